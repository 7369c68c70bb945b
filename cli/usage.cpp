#include "cli/usage.h"

#include <algorithm>
#include <utility>

#include "cli/command.h"
#include "cli/print/wrap.h"
#include "core/text.h"

namespace fxopt {
namespace {

constexpr size_t kMaxNameColumn = 28;

using Rows = std::vector<std::pair<std::string, std::string>>;

void append_rows(std::string& out, std::string_view title, const Rows& rows) {
  if (rows.empty()) return;
  size_t column = 0;
  for (const auto& [name, text] : rows) column = std::max(column, std::min(name.size(), kMaxNameColumn));
  out.append("\n").append(title).append(":\n");
  for (const auto& [name, text] : rows) {
    out.append("  ").append(name);
    if (name.size() > column) {
      out.append("\n").append(column + 4, ' ');
    } else {
      out.append(column + 2 - name.size(), ' ');
    }
    out.append(wrap(text, column + 4)).append("\n");
  }
}

}  // namespace

std::string option_text(const OptionInfo& option) {
  if (option.is_positional) {
    const std::string name = option.type + (option.takes_several ? "..." : "");
    return option.is_required ? name : "[" + name + "]";
  }
  const std::string text = join(option.names, ", ");
  if (option.has_optional_value) return text + "[=" + option.type + "]";
  return option.takes_value ? text + " " + option.type : text;
}

std::string usage_text(const CommandLine& line, std::string_view name) {
  const CommandInfo command = line.describe(name);
  std::string out = "usage: fxopt " + (name.empty() ? "COMMAND" : command.name) + " [OPTION...]";
  Rows arguments, options, subcommands;
  for (const OptionInfo& option : command.options) {
    if (option.type == "COMMAND") out += " --";  // options after it belong to COMMAND
    if (option.is_positional) out += " " + option_text(option);
    (option.is_positional ? arguments : options).emplace_back(option_text(option), option.help);
  }
  if (name.empty()) {
    for (const Command& sub : commands()) subcommands.emplace_back(sub.name, sub.summary);
  }
  out.append("\n\n").append(wrap(command.summary, 0)).append("\n");
  append_rows(out, "commands", subcommands);
  append_rows(out, "arguments", arguments);
  append_rows(out, "options", options);
  if (!command.footer.empty()) out.append("\n").append(command.footer).append("\n");
  return out;
}

}  // namespace fxopt
