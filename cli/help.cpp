// fxopt help: explains commands, passes, error codes and concepts.

#include <memory>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "cli/files.h"
#include "cli/print/table.h"
#include "cli/print/wrap.h"
#include "cli/report/passes.h"
#include "cli/topics.h"
#include "cli/usage.h"

namespace fxopt {
namespace {

std::string error_text(const ErrorInfo& info) {
  return code_name(info.code) + ": " + std::string(info.title) + "\n  " + wrap(info.explanation, 2) + "\n  exit code " +
         std::to_string(static_cast<int>(info.exit)) + "\n";
}

std::string overview() {
  const Application application;
  std::ostringstream out;
  out << usage_text(application.line) << "\ntopics:\n";
  Table table({Align::kLeft, Align::kLeft});
  for (const Topic& topic : topics()) table.add({std::string(topic.name), std::string(topic.summary)});
  table.add({"a command", "its arguments and options"});
  table.add({"a pass", "its effect and its options"});
  table.add({"an error code", "its meaning and remedy, as for FX0306; `fxopt help codes` lists all codes"});
  table.print(out);
  out << "\n`fxopt help TOPIC` explains a topic.\n";
  return out.str();
}

std::string all_codes() {
  std::ostringstream out;
  Table table({Align::kLeft, Align::kRight, Align::kLeft}, 0);
  table.add({"code", "exit", "meaning"});
  for (const ErrorInfo& info : error_table()) {
    table.add({code_name(info.code), std::to_string(static_cast<int>(info.exit)), std::string(info.title)});
  }
  table.print(out);
  return out.str();
}

// Returns nothing if `name` is not a topic.
std::optional<std::string> topic_text(const std::string& name) {
  if (name == "codes") return all_codes();
  for (const Command& command : commands()) {
    if (command.name != name) continue;
    const Application application;
    return usage_text(application.line, name);
  }
  for (const Topic& topic : topics()) {
    if (topic.name == name) return topic.text();
  }
  if (const PassInfo* pass = find_pass(name)) return pass_text(*pass);
  if (const ErrorInfo* info = find_error_info(name)) return error_text(*info);
  if (const WarningText* warning = find_warning(name)) return warning->text();
  return std::nullopt;
}

Error unknown_topic(const std::string& name) {
  std::vector<std::string> codes;
  for (const ErrorInfo& info : error_table()) codes.push_back(code_name(info.code));
  std::vector<std::string_view> names{"codes"};
  for (const Command& command : commands()) names.push_back(command.name);
  for (const Topic& topic : topics()) names.push_back(topic.name);
  for (const PassInfo& pass : pass_registry()) names.push_back(pass.name);
  for (const WarningText& warning : warning_table()) names.push_back(warning.code);
  const std::string hint = "`fxopt help` lists the topics, `fxopt help codes` the error codes";
  // "FX" with four other digits is an unknown code, not a slip, so similar codes are not suggested.
  const bool is_code = name.size() == 6 && name.starts_with("FX") && is_count(name.substr(2));
  if (!is_code) names.insert(names.end(), codes.begin(), codes.end());
  return {ErrorCode::kUnknownTopic,
          "there is no help topic '" + name + "'",
          is_code ? hint : suggestion(name, names, hint),
          {}};
}

void run_help(Console& console, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    const std::optional<std::string> one = topic_text(name);
    if (!one.has_value()) {
      console.error(unknown_topic(name));
      continue;
    }
    if (!text.empty()) text += "\n";
    text += *one;
  }
  if (names.empty()) text = overview();
  console.result()["text"] = text;
  console.write_product(text);
}

}  // namespace

CommandBody declare_help(Options options) {
  const std::shared_ptr<std::vector<std::string>> names = std::make_shared<std::vector<std::string>>();
  options.add("TOPIC", *names, "a command, a pass, an error code or a concept (default: list all)").type("TOPIC");
  return [names](Console& console) { run_help(console, *names); };
}

}  // namespace fxopt
