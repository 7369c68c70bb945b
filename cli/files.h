#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/result.h"
#include "ir/io/control_deps.h"
#include "ir/io/io.h"
#include "ir/prepare.h"

namespace fxopt {

class Console;

// What the user reads for a path: "-" has a name of its own.
std::string shown_input(const std::string& path);

// Checks that standard input is named at most once. Error: kUsage.
Status check_inputs(const std::vector<std::string>& inputs);

// Loads a module and prints its error; null when there was one.
std::unique_ptr<Module> load_input(Console& console, const std::string& path);
// The same, and the file's bytes, decompressed.
std::unique_ptr<Module> load_input(Console& console, const std::string& path, std::string& bytes);

// Works on each input, given by its position, and adds one object for each to "files" of the result: the file's name,
// whether there was no error, and what `work` puts in. A crash, a mistake of ours or a lack of memory becomes an error of
// that input and does not hide the others: of several inputs, or where there is an envelope, each is worked on so that
// a CrashGuard can go on without it. After a crash nothing that `work` changed is there. `ended` is called after each
// input, also after a crash, with the input's position and that of its first error in console.errors().
using FileWork = std::function<void(size_t, nlohmann::ordered_json&)>;
using FileEnd = std::function<void(size_t, size_t)>;
void for_each_input(Console& console, const std::vector<std::string>& inputs, const FileWork& work,
                    const FileEnd& ended = nullptr);

// "# a.pb", where there are several inputs that a reader must tell apart.
void print_file_title(std::ostream& out, const std::vector<std::string>& inputs, const std::string& path);

// Prints every broken invariant. An input that has one is rejected like one that does not parse: exit code 3, whatever
// the family of the code. True when there is none.
bool is_valid_input(Console& console, const Module& module, const std::string& path);

// prepare(), told as stages.
Prepared prepare_told(Console& console, Module& module, const std::string& path);

// Makes a module that was read ready to be worked on, see prepare(). Nothing for an input that is not valid.
std::optional<ControlDepsResult> prepare_input(Console& console, Module& module, const std::string& path);

// load_input() and prepare_input(): null when there was an error.
std::unique_ptr<Module> import_input(Console& console, const std::string& path);

// For each path its last parts, as few as tell it from the other paths, with '/' between them: "step.pb", or
// "A/step.pb" and "B/step.pb" where two folders have one. Equal for equal files. O(parts * log).
std::vector<std::string> distinct_names(const std::vector<std::string>& paths);

// True when the last parts of `path`, as the file system has it, are those of `name`. O(length).
bool ends_with_path(const std::string& path, const std::string& name);

// A name as the text form writes it, "%mm" or "@main", or bare: the bare one.
std::string bare_name(const std::string& name, char sigil);

// The graph of that name, with or without '@', or all top-level ones when `name` is empty. Error: kUnknownNode, with a
// near match.
Result<std::vector<const Graph*>> select_graphs(const Module& module, const std::string& name, const std::string& file);

}  // namespace fxopt
