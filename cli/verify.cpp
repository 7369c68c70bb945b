// fxopt verify: every broken invariant of each input.

#include "ir/check/verify.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/report/json.h"

namespace fxopt {
namespace {

struct VerifyFlags {
  std::vector<std::string> inputs;
  size_t max_errors = 100;
};

size_t count_nodes(const Module& module) {
  size_t nodes = 0;
  for (size_t i = 0; i < module.num_graphs(); ++i) nodes += module.graph(GraphId(i)).num_nodes();
  return nodes;
}

void verify_one(Console& console, const VerifyFlags& flags, const std::string& path) {
  const std::unique_ptr<Module> module = load_input(console, path);
  const std::string shown = printable_line(shown_input(path));
  if (module == nullptr) {
    console.product() << shown << ": unreadable\n";
    console.result()["files"].push_back({{"file", shown_input(path)}, {"verdict", "unreadable"}});
    return;
  }
  std::vector<Error> broken = verify(*module, flags.max_errors);
  for (Error& error : broken) {
    error.where.file = shown_input(path);
    console.error(error);
  }
  const size_t nodes = count_nodes(*module);
  console.product() << shown << ": " << (broken.empty() ? "ok" : "broken") << ", " << module->num_graphs()
                    << (module->num_graphs() == 1 ? " graph, " : " graphs, ") << nodes << " nodes\n";
  console.result()["files"].push_back({{"file", shown_input(path)},
                                       {"verdict", broken.empty() ? "ok" : "broken"},
                                       {"graphs", module->num_graphs()},
                                       {"nodes", nodes},
                                       {"errors", broken.size()}});
}

}  // namespace

CommandBody declare_verify(CLI::App& app) {
  const std::shared_ptr<VerifyFlags> flags = std::make_shared<VerifyFlags>();
  app.add_option("IN", flags->inputs, "graph files; '-' is standard input")->type_name("IN")->required();
  app.add_option("--max-errors", flags->max_errors, "print at most N errors for each file (default: 100)")
      ->type_name("N");
  return [flags](Console& console) {
    console.result()["files"] = nlohmann::ordered_json::array();
    const Status inputs = check_inputs(flags->inputs);
    if (!inputs.ok()) return console.error(inputs.error());
    for_each_input(console, flags->inputs, [&](size_t i) { verify_one(console, *flags, flags->inputs[i]); });
  };
}

}  // namespace fxopt
