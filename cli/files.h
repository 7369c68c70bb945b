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

// Returns the name that messages use for a path: "standard input" for "-".
std::string shown_input(const std::string& path);

// Returns the place to which an error or warning refers: a file, and optionally a graph and a node.
Where where_in(std::string file, std::string_view graph = {}, std::string_view node = {});

// Fails with kUsage if standard input is named more than once.
Status check_inputs(const std::vector<std::string>& inputs);

// Loads a module. If loading fails, prints the error and returns null.
std::unique_ptr<Module> load_input(Console& console, const std::string& path);
// Like load_input(console, path), but also stores the decompressed bytes of the file in `bytes`.
std::unique_ptr<Module> load_input(Console& console, const std::string& path, std::string& bytes);

// Calls `work` with the position of each input. Adds one object for each input to the list "files"
// of Console::result(). The object holds the file's name, whether the input succeeded, and the
// fields that `work` sets.
//
// A crash, an internal error or exhausted memory becomes an error of that input. The other inputs
// are still processed. If there are several inputs, or if --json is given, a CrashGuard guards each
// input. After a crash, the changes that `work` made for the input are lost.
//
// `ended` is called after each input, even after a crash. The first argument is the position of the
// input. The second argument is the index of the input's first error in console.errors().
using FileWork = std::function<void(size_t, nlohmann::ordered_json&)>;
using FileEnd = std::function<void(size_t, size_t)>;
void for_each_input(Console& console, const std::vector<std::string>& inputs, const FileWork& work,
                    const FileEnd& ended = nullptr);

// Prints a title such as "# a.pb" if there are several inputs.
void print_file_title(std::ostream& out, const std::vector<std::string>& inputs, const std::string& path);

// Prints every broken invariant and returns true if none is broken. If an invariant is broken, the
// input is rejected with exit code 3, whatever exit code error_info() gives for the error. An input
// that does not parse is also rejected with exit code 3.
bool is_valid_input(Console& console, const Module& module, const std::string& path);

// Calls prepare() and reports its stages.
Prepared prepare_logged(Console& console, Module& module, const std::string& path);

// Calls prepare_logged() on a module that was just read. If the input is invalid, prints the errors
// and returns nothing.
std::optional<ControlDepsResult> prepare_input(Console& console, Module& module, const std::string& path);

// Calls load_input() and prepare_input(). Returns null after an error.
std::unique_ptr<Module> import_input(Console& console, const std::string& path);

// Returns a name for each path: the last parts of its absolute form, such as "step.pb" or
// "A/step.pb". The name has as few parts as possible, but no other path ends with the name. For
// example:
// - "A/step.pb" and "B/step.pb" get the names "A/step.pb" and "B/step.pb".
// - "A/step.pb" and "B/loss.pb" get the names "step.pb" and "loss.pb".
//
// If two paths have the same absolute form, they get the same name. O(n * p * log n) for n paths,
// if the longest name has p parts separated by '/'.
std::vector<std::string> distinct_names(const std::vector<std::string>& paths);

// True if the absolute form of `path` ends with the parts of `name`. O(length).
bool ends_with_path(const std::string& path, const std::string& name);

// Returns a name without its sigil, if it has one. In the text form, names have sigils: "%mm",
// "@main".
std::string bare_name(const std::string& name, char sigil);

// Returns the error for a node that is not in a file, with a near match among the file's `names`.
Error unknown_node(const std::string& name, const std::vector<std::string_view>& names, const std::string& file);

// Returns the graph with the name `name`. The '@' in `name` is optional. If `name` is empty,
// returns every top-level graph. If no graph has this name, fails with kUnknownNode and a near
// match.
Result<std::vector<const Graph*>> select_graphs(const Module& module, const std::string& name, const std::string& file);

}  // namespace fxopt
