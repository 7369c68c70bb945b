#include "cli/report/passes.h"

#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/print/table.h"
#include "cli/report/usage.h"
#include "core/error.h"
#include "core/text.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {
namespace {

std::string option_values(const PassOptionInfo& option) {
  return option.choices.empty() ? option.type : join(option.choices, "|");
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
  out += "  class: " + std::string(pass_class_name(pass.pass_class)) + "\n";
  for (const auto& [other, why] : pass.not_after) {
    out += "  " + wrap("must not stand after " + std::string(other) + ": " + std::string(why), 2) + "\n";
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
  nlohmann::ordered_json not_after = nlohmann::ordered_json::array();
  for (const auto& [other, why] : pass.not_after) not_after.push_back({{"pass", other}, {"why", why}});
  nlohmann::ordered_json options = nlohmann::ordered_json::array();
  for (const PassOptionInfo& option : pass.options) {
    options.push_back({{"name", option.name},
                       {"type", option.type},
                       {"default", option.default_value},
                       {"choices", option.choices},
                       {"help", option.help}});
  }
  return {{"name", pass.name},
          {"summary", pass.summary},
          {"class", pass_class_name(pass.pass_class)},
          {"not_after", not_after},
          {"options", options}};
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
