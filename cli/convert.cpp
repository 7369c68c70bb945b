// fxopt convert: load, write in another form.

#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "ir/io/control_deps.h"

namespace fxopt {
namespace {

struct ConvertFlags {
  std::vector<std::string> inputs;
  std::string output;
  std::string format;
  bool lower = false;
  bool raise = false;
};

void run_convert(Console& console, const ConvertFlags& flags) {
  console.result()["files"] = nlohmann::ordered_json::array();
  const Status inputs = check_inputs(flags.inputs);
  if (!inputs.ok()) return console.error(inputs.error());
  const Result<std::optional<Format>> format = parse_format(flags.format);
  if (!format.ok()) return console.error(format.error());
  const Result<std::vector<std::string>> outputs = plan_outputs(flags.inputs, flags.output, *format);
  if (!outputs.ok()) return console.error(outputs.error());
  const Status is_free = check_stdout_is_free(console, *outputs);
  if (!is_free.ok()) return console.error(is_free.error());
  for_each_input(console, flags.inputs, [&](size_t i) {
    const std::unique_ptr<Module> module = load_input(console, flags.inputs[i]);
    if (module == nullptr) return;
    if ((flags.lower || flags.raise) && !is_valid_input(console, *module, flags.inputs[i])) return;
    if (flags.lower) lower_control_deps(*module);
    if (flags.raise) raise_control_deps(*module);
    if (!save_product(console, *module, (*outputs)[i], *format)) return;
    console.result()["files"].push_back({{"file", shown_input(flags.inputs[i])}, {"output", (*outputs)[i]}});
  });
}

}  // namespace

CommandBody declare_convert(CLI::App& app) {
  const std::shared_ptr<ConvertFlags> flags = std::make_shared<ConvertFlags>();
  app.add_option("IN", flags->inputs, "graph files; '-' is standard input")->type_name("IN")->required();
  app.add_option("-o,--output", flags->output,
                 "where the graph goes: a file, a folder with '/' at its end, or '-' (default) for standard output")
      ->type_name("OUT");
  app.add_option("--format", flags->format, "form of the output: pb, fxg or json (default: by extension; fxg for '-')")
      ->type_name("FORMAT");
  CLI::Option* lower = app.add_flag("--lower-control-deps", flags->lower,
                                    "turn PyTorch's control_deps op into control dependencies, as opt and mem do");
  app.add_flag("--raise-control-deps", flags->raise, "turn control dependencies into PyTorch's control_deps op")
      ->excludes(lower);
  return [flags](Console& console) { run_convert(console, *flags); };
}

}  // namespace fxopt
