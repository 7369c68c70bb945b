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

// The name of a path in messages: "standard input" for "-".
std::string shown_input(const std::string& path);

// Checks that standard input is named at most once. Error: kUsage.
Status check_inputs(const std::vector<std::string>& inputs);

// Loads a module. Prints the error and returns null if that fails.
std::unique_ptr<Module> load_input(Console& console, const std::string& path);
// The same, and returns the decompressed bytes of the file.
std::unique_ptr<Module> load_input(Console& console, const std::string& path, std::string& bytes);

// Processes each input, given by its position, and adds one object for each to "files" of the
// result: the file's name, whether it had no error, and the fields that `work` sets. A crash, an
// internal error or exhausted memory becomes an error of that input, and does not affect the
// others. If there are several inputs or an envelope, a CrashGuard therefore runs each input. After
// a crash, changes made by `work` are lost. `ended` is called after each input, also after a crash,
// with the input's position and the index of its first error in console.errors().
using FileWork = std::function<void(size_t, nlohmann::ordered_json&)>;
using FileEnd = std::function<void(size_t, size_t)>;
void for_each_input(Console& console, const std::vector<std::string>& inputs, const FileWork& work,
                    const FileEnd& ended = nullptr);

// Prints "# a.pb" if a reader must tell several inputs apart.
void print_file_title(std::ostream& out, const std::vector<std::string>& inputs, const std::string& path);

// Prints every broken invariant. An input with one is rejected like one that does not parse: exit
// code 3, whatever the family of the code. True if none is broken.
bool is_valid_input(Console& console, const Module& module, const std::string& path);

// prepare(), reported as stages.
Prepared prepare_logged(Console& console, Module& module, const std::string& path);

// Prepares a module after reading, see prepare(). Nothing for an invalid input.
std::optional<ControlDepsResult> prepare_input(Console& console, Module& module, const std::string& path);

// load_input() and prepare_input(); null after an error.
std::unique_ptr<Module> import_input(Console& console, const std::string& path);

// The shortest trailing parts of each path that distinguish it from the other paths, with '/'
// between them: "step.pb", or "A/step.pb" and "B/step.pb" if two folders have one. Equal for equal
// files. O(parts * log).
std::vector<std::string> distinct_names(const std::vector<std::string>& paths);

// True if the absolute `path` ends in the parts of `name`. O(length).
bool ends_with_path(const std::string& path, const std::string& name);

// The bare form of a name, which may be written as in the text form: "%mm" or "@main".
std::string bare_name(const std::string& name, char sigil);

// The graph of that name, with or without '@', or every top-level graph if `name` is empty. Error:
// kUnknownNode, with a near match.
Result<std::vector<const Graph*>> select_graphs(const Module& module, const std::string& name, const std::string& file);

}  // namespace fxopt
