#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "ir/io/io.h"

namespace fxopt {

class Console;

// "pb", "fxg" or "json".
std::string_view format_name(Format format);

// The path and format of one output graph.
struct Product {
  std::string path;  // "-" is standard output
  Format format = Format::kText;
};

// The options for the files of one call.
struct FileFlags {
  std::vector<std::string> inputs;
  std::string output;  // -o; empty: standard output
  std::string format;  // --format; empty: by the extension
  std::string report;  // --report: empty: none; "-": standard error; else a file
};

// The output path of each input's graph, checked before anything is read. One input goes to
// `output`, or to standard output. An `output` that ends in '/' or is a folder takes files named
// like the inputs, with their folders if names repeat (see distinct_names()), and with the
// extension of `format` if one is given. The folder is created if it does not exist. Several inputs
// need a folder, or /dev/null, which takes any number of graphs.
//
// The format is `format`, else that of the extension; text for standard output, devices and pipes.
// No product may overwrite another one or an input. Paths are compared as files (file_identity());
// devices and pipes do not count as files. One exception: a graph may overwrite its own input.
//
// Errors: those of check_inputs(); kUsage (several inputs for one file, two products in one file, a
// product over an input, the graph and the JSON envelope both on standard output, an input without
// a name for its product), kUnknownFormat, kFileWrite.
Result<std::vector<Product>> plan_products(Console& console, const FileFlags& flags);

// The paths of graphs of these names that get one file each: "step.pb" becomes "step.forward.pb",
// "step.backward.pb".
std::vector<Product> split_product(const Product& product, const std::vector<std::string>& names);

// An additional output file: its flag, such as --dot, and its path.
using ExtraProduct = std::pair<std::string, std::string>;

// Refuses additional output files that would overwrite an input, the JSON envelope or one another.
// Error: kUsage.
Status check_extra_products(Console& console, const std::vector<std::string>& inputs,
                            const std::vector<ExtraProduct>& products);
Status check_extra_product(Console& console, const std::vector<std::string>& inputs, const std::string& flag,
                           const std::string& path);

// Writes a module atomically. Prints the error and returns false if that fails.
bool save_product(Console& console, const Module& module, const Product& product);

}  // namespace fxopt
