#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "ir/io/io.h"

namespace fxopt {

class Console;

// Returns "pb", "fxg" or "json".
std::string_view format_name(Format format);

// The path and format of one output graph.
struct Product {
  std::string path;  // "-" is standard output
  Format format = Format::kText;
};

// The options for input and output files.
struct FileFlags {
  std::vector<std::string> inputs;
  std::string output;  // -o; empty: standard output
  std::string format;  // --format; empty: by the extension
  std::string report;  // --report: a file, or "-" for standard error; empty: no report
};

// Returns the output path and format of each input's graph. Checks the paths and formats before any
// input is read.
// - The graph of a single input goes to `output`. If `output` is empty, the graph goes to standard
//   output.
// - If `output` ends in '/' or is a folder, each graph gets a file in this folder. The folder is
//   created if it does not exist. The files have the names of the inputs: see distinct_names(). If
//   `format` is given, the names get its extension.
// - Several inputs need a folder or /dev/null. /dev/null takes any number of graphs.
//
// If `format` is given, every graph has this format. If `format` is not given, the output path
// determines the format:
// - Standard output, devices and pipes get the text format.
// - For any other path, the extension determines the format.
//
// No product may overwrite another product or an input. Exception: a graph may overwrite its own
// input. Paths are compared as files: see file_identity(). Devices and pipes do not count as files.
//
// Fails with the errors of check_inputs(), with kUnknownFormat or kFileWrite, and with kUsage in
// these cases:
// - Several inputs share one output file.
// - Two products share one file.
// - A product would overwrite an input.
// - The graph and the JSON envelope both go to standard output.
// - Standard input has no name, so no file in a folder can be named after it.
Result<std::vector<Product>> plan_products(Console& console, const FileFlags& flags);

// Returns one product for each graph in `names`, so that each graph gets its own file. The path
// "step.pb" becomes "step.forward.pb" and "step.backward.pb".
std::vector<Product> split_product(const Product& product, const std::vector<std::string>& names);

// An additional output file: its flag, such as --dot, and its path.
using ExtraProduct = std::pair<std::string, std::string>;

// Fails with kUsage if an additional output file is the same file as an input, the file of --json
// or another additional output file (see file_identity()). Standard output, devices and pipes do
// not count. Fails with kFileWrite if a path is a folder, or if the folder of a path does not
// exist.
Status check_extra_products(Console& console, const std::vector<std::string>& inputs,
                            const std::vector<ExtraProduct>& products);
Status check_extra_product(Console& console, const std::vector<std::string>& inputs, const std::string& flag,
                           const std::string& path);

// Writes a module atomically. If writing fails, prints the error and returns false.
bool save_product(Console& console, const Module& module, const Product& product);

}  // namespace fxopt
