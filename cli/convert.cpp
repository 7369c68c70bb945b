// fxopt convert: loads a graph and writes it in another format.

#include <memory>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/print/brief.h"
#include "cli/products.h"
#include "ir/io/control_deps.h"

namespace fxopt {
namespace {

struct ConvertFlags {
  FileFlags files;
  bool lower = false;
  bool raise = false;
  bool is_brief = false;
};

// Refuses to write brief text to a file with the extension of a graph file, because no command can
// read brief text.
Status check_brief(const ConvertFlags& flags) {
  if (!flags.is_brief) return ok_status();
  const std::string& output = flags.files.output;
  if (!flags.files.format.empty()) return usage_error("--brief and --format exclude each other", "omit one of the two");
  if (!format_of_path(output).has_value() && !output.ends_with(".zst")) return ok_status();
  return usage_error(
      "--brief writes a text that no command can read, but '" + output + "' has the extension of a graph file",
      "give the file a name such as step.txt");
}

bool save_brief(Console& console, const Module& module, const Product& product) {
  std::ostringstream text;
  print_brief(text, module, product.path == "-" ? console.width() : kBriefWidth);
  if (product.path == "-") return console.write_product(text.str());
  return console.write_output(product.path, text.str());
}

void run_convert(Console& console, const ConvertFlags& flags) {
  console.result()["files"] = nlohmann::ordered_json::array();
  if (!console.is_ok(check_brief(flags))) return;
  FileFlags files = flags.files;
  if (flags.is_brief) files.format = "fxg";
  const Result<std::vector<Product>> products = plan_products(console, files);
  if (!products.ok()) return console.error(products.error());
  for_each_input(console, flags.files.inputs, [&](size_t i, nlohmann::ordered_json& file) {
    const std::string& path = flags.files.inputs[i];
    const std::unique_ptr<Module> module = load_input(console, path);
    if (module == nullptr) return;
    if ((flags.lower || flags.raise) && !is_valid_input(console, *module, path)) return;
    if (flags.lower) lower_control_deps(*module);
    if (flags.raise) raise_control_deps(*module);
    const Product& product = (*products)[i];
    const bool is_written =
        flags.is_brief ? save_brief(console, *module, product) : save_product(console, *module, product);
    if (is_written) file["output"] = product.path;
  });
}

}  // namespace

CommandBody declare_convert(Options options) {
  const std::shared_ptr<ConvertFlags> flags = std::make_shared<ConvertFlags>();
  options.add("IN", flags->files.inputs, "graph files; '-' is standard input").type("IN").required();
  options
      .add("-o,--output", flags->files.output,
           "output file, folder (ending in '/'), or '-' for standard output (default)")
      .type("OUT");
  options
      .add("--format", flags->files.format,
           "output format: pb (protobuf), fxg (text) or json. By default, the name of the output decides, and standard "
           "output gets fxg")
      .type("FORMAT");
  const Option lower =
      options.flag("--lower-control-deps", flags->lower,
                   "replace calls of PyTorch's operator `control_deps` by the calls inside them. The "
                   "node of an inner call then records the control dependencies. `opt` and `mem` "
                   "always do this. Exception: a call of `control_deps` is kept if --raise-control-deps could not "
                   "restore it");
  options
      .flag("--raise-control-deps", flags->raise,
            "put each call with control dependencies into a call of PyTorch's operator `control_deps`")
      .excludes(lower);
  options.flag("--brief", flags->is_brief,
               "write a short text for people: one line for each node, then one line for each symbol, process group, "
               "device mesh, stream, rank and invocation. No command can read this text");
  return [flags](Console& console) { run_convert(console, *flags); };
}

}  // namespace fxopt
