#include "cli/report/passes.h"

#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/print/table.h"
#include "cli/print/wrap.h"
#include "core/error.h"
#include "core/text.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {
namespace {

std::string option_values(const PassOptionInfo& option) {
  if (option.choices.empty()) return option.type;
  return option.type.ends_with(" list") ? "list of " + join(option.choices, "|") : join(option.choices, "|");
}

}  // namespace

std::string pass_list_text() {
  Table table({Align::kLeft, Align::kLeft}, 0);
  for (const PassInfo& pass : pass_registry()) table.add({std::string(pass.name), std::string(pass.summary)});
  std::ostringstream out;
  table.print(out);
  out << "\ndefault pipeline: " << default_pipeline_text() << '\n';
  return out.str();
}

std::string pass_text(const PassInfo& pass) {
  std::string out = std::string(pass.name) + "\n  " + wrap(pass.summary, 2) + "\n";
  out += "  class: " + std::string(name_of(pass.numerics)) + "\n";
  for (const PassInfo& other : pass_registry()) {
    const std::string why = order_conflict(other, pass);
    if (!why.empty()) out += "  " + wrap("must not run after " + std::string(other.name) + ": " + why, 2) + "\n";
  }
  out += pass.options.empty() ? "  no options\n" : "  options:\n";
  for (const PassOptionInfo& option : pass.options) {
    out += "    " + option.name + "=" + option_values(option) +
           "  (default: " + (option.default_value.empty() ? "\"\"" : option.default_value) + ")\n";
    out += "      " + wrap(option.help, 6) + "\n";
  }
  return out;
}

nlohmann::ordered_json pass_json(const PassInfo& pass) {
  nlohmann::ordered_json needs = nlohmann::ordered_json::array(), ends = nlohmann::ordered_json::array();
  for (const OpenQuestion question : pass.rules.needs) needs.push_back(name_of(question));
  for (const PassRules::End& end : pass.rules.ends) ends.push_back({{"ends", name_of(end.question)}, {"why", end.why}});
  nlohmann::ordered_json options = nlohmann::ordered_json::array();
  for (const PassOptionInfo& option : pass.options) {
    options.push_back({{"name", option.name},
                       {"type", option.type},
                       {"default", option.default_value},
                       {"choices", option.choices},
                       {"help", option.help}});
  }
  return {{"name", pass.name}, {"summary", pass.summary}, {"class", name_of(pass.numerics)}, {"needs", needs},
          {"ends", ends},      {"options", options}};
}

Error unknown_pass(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PassInfo& pass : pass_registry()) names.push_back(pass.name);
  return {ErrorCode::kUnknownPass,
          "there is no pass '" + std::string(name) + "'",
          suggestion(name, names, "`fxopt passes` lists them"),
          {}};
}

}  // namespace fxopt
