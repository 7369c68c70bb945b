// fxopt convert: load, write in another form.

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

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

CommandBody declare_convert(CLI::App& app) {
  const std::shared_ptr<ConvertFlags> flags = std::make_shared<ConvertFlags>();
  app.add_option("IN", flags->files.inputs, "graph files; '-' is standard input")->type_name("IN")->required();
  app.add_option("-o,--output", flags->files.output,
                 "where the graph goes: a file, a folder with '/' at its end, or '-' (default) for standard output")
      ->type_name("OUT");
  app.add_option("--format", flags->files.format,
                 "form of the output: pb, fxg or json (default: by extension; fxg for '-')")
      ->type_name("FORMAT");
  CLI::Option* lower = app.add_flag("--lower-control-deps", flags->lower,
                                    "turn PyTorch's control_deps op into control dependencies, as opt and mem do");
  app.add_flag("--raise-control-deps", flags->raise, "turn control dependencies into PyTorch's control_deps op")
      ->excludes(lower);
  return [flags](Console& console) { run_convert(console, *flags); };
}

}  // namespace fxopt
