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

// Where one graph goes, and in which form.
struct Product {
  std::string path;  // "-" is standard output
  Format format = Format::kText;
};

// What a command line says of the files of one call.
struct FileFlags {
  std::vector<std::string> inputs;
  std::string output;  // -o; empty: standard output
  std::string format;  // --format; empty: by the extension
  std::string report;  // --report: empty: none; "-": standard error; else a file
};

// Where each input's graph goes, checked before anything is read. One input: to `output`, or to standard output. An
// `output` that ends in '/' or is a folder takes files named like the inputs (with their folders where names repeat,
// see distinct_names()), with the extension of `format` when one is given, and is made when it does not exist; several
// inputs need that. /dev/null takes any number of graphs.
//
// The form is `format`, else by the extension; text for standard output, devices and pipes. No product may be written
// over another one or over an input: paths are compared as files (file_identity()), and devices and pipes are no files
// here. One exception: a graph may go back to its own input.
//
// Errors: those of check_inputs(); kUsage (several inputs for one file, two products in one file, a product over an
// input, the graph and the JSON envelope both on standard output, nothing to name a product after), kUnknownFormat,
// kFileWrite.
Result<std::vector<Product>> plan_products(Console& console, const FileFlags& flags);

// Where graphs of these names go when each gets a file of its own: "step.pb" becomes "step.forward.pb", "step.backward.pb".
std::vector<Product> split_product(const Product& product, const std::vector<std::string>& names);

// A file beside the graphs: the flag that asks for it, such as --dot, and its path.
using ExtraProduct = std::pair<std::string, std::string>;

// Refuses files beside the graphs that would be written over an input, the JSON envelope or one another. Error: kUsage.
Status check_extra_products(Console& console, const std::vector<std::string>& inputs,
                            const std::vector<ExtraProduct>& products);
Status check_extra_product(Console& console, const std::vector<std::string>& inputs, const std::string& flag,
                           const std::string& path);

// Writes a module atomically. Errors go to the console; false when there was one.
bool save_product(Console& console, const Module& module, const Product& product);

}  // namespace fxopt
