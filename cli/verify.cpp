// fxopt verify: every broken invariant of each input.

#include "ir/check/verify.h"

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/report/json.h"
#include "cli/report/table.h"

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

void verify_one(Console& console, const VerifyFlags& flags, const std::string& path, nlohmann::ordered_json& file) {
  const std::unique_ptr<Module> module = load_input(console, path);
  const std::string shown = printable_line(shown_input(path));
  if (module == nullptr) {
    console.product() << shown << ": unreadable\n";
    file["verdict"] = "unreadable";
    return;
  }
  const size_t limit = std::max(flags.max_errors, size_t{1});  // the verdict follows from one
  std::vector<Error> broken = verify(*module, limit + 1);
  const bool is_cut = broken.size() > limit;
  if (is_cut) broken.resize(limit);
  for (Error& error : broken) {
    error.where.file = shown_input(path);
    console.error(error);
  }
  if (is_cut) {
    Where where;
    where.file = shown_input(path);
    console.warning("errors-cut", where,
                    "there are more errors than the " + std::to_string(limit) + " printed; --max-errors N prints more");
  }
  const size_t nodes = count_nodes(*module);
  console.product() << shown << ": " << (broken.empty() ? "ok" : "broken") << ", "
                    << count_text(module->num_graphs(), "graph") << ", " << count_text(nodes, "node") << '\n';
  file["verdict"] = broken.empty() ? "ok" : "broken";
  file["graphs"] = module->num_graphs();
  file["nodes"] = nodes;
  file["errors"] = broken.size();
  file["is_cut"] = is_cut;
}

}  // namespace

CommandBody declare_verify(CLI::App& app) {
  const std::shared_ptr<VerifyFlags> flags = std::make_shared<VerifyFlags>();
  app.add_option("IN", flags->inputs, "graph files; '-' is standard input")->type_name("IN")->required();
  app.add_option("--max-errors", flags->max_errors, "print at most N errors for each file, at least one (default: 100)")
      ->type_name("N");
  return [flags](Console& console) {
    console.result()["files"] = nlohmann::ordered_json::array();
    const Status inputs = check_inputs(flags->inputs);
    if (!inputs.ok()) return console.error(inputs.error());
    for_each_input(console, flags->inputs, [&](size_t i, nlohmann::ordered_json& file) {
      verify_one(console, *flags, flags->inputs[i], file);
    });
  };
}

}  // namespace fxopt
