// fxopt passes: lists the registered passes, as text or JSON.

#include "cli/report/passes.h"

#include <memory>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"

namespace fxopt {
namespace {

void run_passes(Console& console, const std::vector<std::string>& names) {
  nlohmann::ordered_json& list = console.result()["passes"] = nlohmann::ordered_json::array();
  if (names.empty()) {
    for (const PassInfo& pass : pass_registry()) list.push_back(pass_json(pass));
    console.write_product(pass_list_text());
    return;
  }
  bool is_first = true;
  for (const std::string& name : names) {
    const PassInfo* pass = find_pass(name);
    if (pass == nullptr) {
      console.error(unknown_pass(name));
      continue;
    }
    list.push_back(pass_json(*pass));
    console.write_product((is_first ? "" : "\n") + pass_text(*pass));
    is_first = false;
  }
}

}  // namespace

CommandBody declare_passes(Options options) {
  const std::shared_ptr<std::vector<std::string>> names = std::make_shared<std::vector<std::string>>();
  options.add("NAME", *names, "passes to describe (default: list all passes)").type("PASS");
  return [names](Console& console) { run_passes(console, *names); };
}

}  // namespace fxopt
