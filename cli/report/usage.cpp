#include "cli/report/usage.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>

#include "core/text.h"

namespace fxopt {
namespace {

constexpr size_t kWidth = 100;
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

bool has_optional_value(const CLI::Option& option) {
  return option.get_items_expected_max() == 0 && !option.get_type_name().empty();
}

std::vector<std::string> option_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string option_text(const CLI::Option& option) {
  if (option.get_positional()) {
    std::string name = option.get_type_name();
    if (option.get_items_expected_max() > 1) name += "...";
    return option.get_required() ? name : "[" + name + "]";
  }
  std::string text = join(option_names(option), ", ");
  if (has_optional_value(option)) return text + "[=" + option.get_type_name() + "]";
  if (option.get_items_expected_max() > 0) text += " " + option.get_type_name();
  return text;
}

std::string wrap(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  size_t begin = 0;
  while (begin < text.size()) {
    if (text[begin] == '\n') {
      out.append("\n").append(indent, ' ');
      column = indent;
      ++begin;
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const size_t length = end - begin;
    if (column > indent && column + 1 + length > kWidth) {
      out.append("\n").append(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(begin, length);
    column += length;
    begin = end < text.size() && text[end] == ' ' ? end + 1 : end;
  }
  return out;
}

std::string usage_text(const CLI::App& app) {
  std::string out = "usage: fxopt" + (app.get_name() == "fxopt" ? " COMMAND" : " " + app.get_name()) + " [OPTION...]";
  Rows arguments, options, subcommands;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_type_name() == "COMMAND") out += " --";  // what follows has options of its own
    if (option->get_positional()) out += " " + option_text(*option);
    (option->get_positional() ? arguments : options).emplace_back(option_text(*option), option->get_description());
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    subcommands.emplace_back(sub->get_name(), sub->get_description());
  }
  out.append("\n\n").append(wrap(app.get_description(), 0)).append("\n");
  append_rows(out, "commands", subcommands);
  append_rows(out, "arguments", arguments);
  append_rows(out, "options", options);
  const std::string footer = app.get_footer();
  if (!footer.empty()) out.append("\n").append(footer).append("\n");
  return out;
}

}  // namespace fxopt
