#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "ir/io/io.h"

namespace fxopt {

class Console;

// What the user reads for a path: "-" has a name of its own.
std::string shown_input(const std::string& path);

// Checks that standard input is named at most once. Error: kUsage.
Status check_inputs(const std::vector<std::string>& inputs);

// "pb", "fxg" or "json"; nothing for an empty text. Error: kUnknownFormat.
Result<std::optional<Format>> parse_format(const std::string& text);

// Where each input's product goes. One input: to `output`, or to standard output when that is empty. An `output` that
// ends in '/' or is a folder takes files named like the inputs, with the extension of `format` when one is given, and
// is made when it does not exist; several inputs need that. Errors: kUsage (several inputs for one file, two products
// for one name, nothing to name a product after), kFileWrite.
Result<std::vector<std::string>> plan_outputs(const std::vector<std::string>& inputs, const std::string& output,
                                              std::optional<Format> format);

// Refuses a product on standard output while the JSON envelope goes there. Error: kUsage.
Status check_stdout_is_free(const Console& console, const std::vector<std::string>& outputs);

// Writes a module atomically; "-" is standard output, in text unless a format is given. Errors go to the console; false
// when there was one.
bool save_product(Console& console, const Module& module, const std::string& path, std::optional<Format> format);

// Loads a module and prints its error; null when there was one.
std::unique_ptr<Module> load_input(Console& console, const std::string& path);

// Works on each input, given by its position. A mistake of ours or a lack of memory becomes an error of that input and
// does not hide the others.
void for_each_input(Console& console, const std::vector<std::string>& inputs, const std::function<void(size_t)>& work);

// Prints every broken invariant. An input that has one is rejected like one that does not parse: exit code 3, whatever
// the family of the code. True when there is none.
bool is_valid_input(Console& console, const Module& module, const std::string& path);

// The graphs that run on their own, in order: all but those that higher-order ops run. The main graph is one.
std::vector<const Graph*> top_level_graphs(const Module& module);

// The graph of that name, or all top-level ones when `name` is empty. Error: kUnknownNode, with a near match.
Result<std::vector<const Graph*>> select_graphs(const Module& module, const std::string& name, const std::string& file);

// "70GiB", "70GB", "512MiB", "1.5 GiB", "1000": GiB is 2^30, GB is 10^9. Nothing for anything else, for negative and
// for more than 2^63 - 1 bytes.
std::optional<int64_t> parse_bytes(std::string_view text);

// "did you mean 'x'?", or `otherwise` when no candidate is near.
std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates,
                       std::string_view otherwise);

}  // namespace fxopt
