// fxopt convert: load, write in another form.

#include <memory>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/products.h"
#include "ir/io/control_deps.h"

namespace fxopt {
namespace {

struct ConvertFlags {
  FileFlags files;
  bool lower = false;
  bool raise = false;
};

void run_convert(Console& console, const ConvertFlags& flags) {
  console.result()["files"] = nlohmann::ordered_json::array();
  const Result<std::vector<Product>> products = plan_products(console, flags.files);
  if (!products.ok()) return console.error(products.error());
  for_each_input(console, flags.files.inputs, [&](size_t i, nlohmann::ordered_json& file) {
    const std::string& path = flags.files.inputs[i];
    const std::unique_ptr<Module> module = load_input(console, path);
    if (module == nullptr) return;
    if ((flags.lower || flags.raise) && !is_valid_input(console, *module, path)) return;
    if (flags.lower) lower_control_deps(*module);
    if (flags.raise) raise_control_deps(*module);
    if (save_product(console, *module, (*products)[i])) file["output"] = (*products)[i].path;
  });
}

}  // namespace

CommandBody declare_convert(Options options) {
  const std::shared_ptr<ConvertFlags> flags = std::make_shared<ConvertFlags>();
  options.add("IN", flags->files.inputs, "graph files; '-' is standard input").type("IN").required();
  options
      .add("-o,--output", flags->files.output,
           "where the graph goes: a file, a folder with '/' at its end, or '-' (default) for standard output")
      .type("OUT");
  options
      .add("--format", flags->files.format, "form of the output: pb, fxg or json (default: by extension; fxg for '-')")
      .type("FORMAT");
  const Option lower = options.flag("--lower-control-deps", flags->lower,
                                    "turn PyTorch's control_deps op into control dependencies, as opt and mem do");
  options.flag("--raise-control-deps", flags->raise, "turn control dependencies into PyTorch's control_deps op")
      .excludes(lower);
  return [flags](Console& console) { run_convert(console, *flags); };
}

}  // namespace fxopt
