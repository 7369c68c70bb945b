// fxopt completion: scripts for shells, made from the options' descriptions and the registry. What a value can be
// follows from the name of its type: PASS, FORMAT, IN, ...

#include <algorithm>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "cli/files.h"
#include "cli/report/usage.h"
#include "cli/shell.h"
#include "cli/topics.h"
#include "core/text.h"
#include "passes/pipeline/registry.h"

namespace fxopt {
namespace {

constexpr std::string_view kShells[] = {"bash", "fish", "zsh"};

// What can stand where a value of some type is wanted.
struct Values {
  std::vector<std::string> words;
  bool is_path = false;
  bool is_list = false;  // several words, with commas between them
};

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const PassInfo& pass : pass_registry()) names.emplace_back(pass.name);
  return names;
}

std::vector<std::string> topic_names() {
  std::vector<std::string> names{"codes"};
  for (const Command& command : commands()) names.emplace_back(command.name);
  for (const Topic& topic : topics()) names.emplace_back(topic.name);
  for (const std::string& pass : pass_names()) names.push_back(pass);
  for (const ErrorInfo& info : error_table()) names.push_back(code_name(info.code));
  return names;
}

Values values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  Values values;
  values.is_path = type == "IN" || type == "OUT" || type == "FILE" || type == "COMMAND";
  values.is_list = type == "PIPELINE";
  if (type == "PASS" || type == "PIPELINE") values.words = pass_names();
  if (type == "TOPIC") values.words = topic_names();
  if (type == "FORMAT") values.words = {"pb", "fxg", "json"};
  if (type == "SHELL") values.words.assign(std::begin(kShells), std::end(kShells));
  if (type == "PHASE") {
    for (const EnumName<Phase>& entry : EnumNames<Phase>::kAll) values.words.emplace_back(entry.name);
  }
  return values;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string command_words() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  return join(names, " ");
}

std::string bash_reply(const Values& values) {
  if (values.is_path) return "COMPREPLY=($(compgen -f -- \"$cur\"))";
  if (values.words.empty()) return "COMPREPLY=()";
  const std::string words = shell_quoted(join(values.words, " "));
  if (!values.is_list) return "COMPREPLY=($(compgen -W " + words + " -- \"$cur\"))";
  return "COMPREPLY=($(compgen -P \"${cur%\"${cur##*,}\"}\" -W " + words + " -- \"${cur##*,}\"))";
}

std::string bash_command(const CLI::App& app) {
  std::vector<std::string> options;
  std::string by_value;
  Values positional;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() && !positional.is_path) positional = values_of(*option);
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    const std::vector<std::string> names = option_names(*option);
    options.insert(options.end(), names.begin(), names.end());
    if (has_optional_value(*option) && positional.is_path) {
      // A file here would be an input, and the user may well mean --report=FILE.
      by_value += "        " + join(names, "|") + ") return ;;\n";
    }
    if (!takes_value(*option)) continue;
    by_value += "        " + join(names, "|") + ") " + bash_reply(values_of(*option)) + "; return ;;\n";
  }
  std::string out = "    " + app.get_name() + ")\n";
  if (!by_value.empty()) out += "      case $prev in\n" + by_value + "      esac\n";
  out += "      case $cur in\n";
  out += "        -*) COMPREPLY=($(compgen -W " + shell_quoted(join(options, " ")) + " -- \"$cur\")) ;;\n";
  out += "        *) " + bash_reply(positional) + " ;;\n      esac ;;\n";
  return out;
}

std::string bash_script(const CLI::App& app) {
  std::string out =
      "# fxopt completion for bash: source <(fxopt completion bash)\n"
      "_fxopt() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local IFS=$' \\t\\n'\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W " +
      shell_quoted(command_words() + " --help --version") +
      " -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]} in\n";
  for (const Command& command : commands()) out += bash_command(*app.get_subcommand(std::string(command.name)));
  return out + "  esac\n}\ncomplete -o filenames -F _fxopt fxopt\n";
}

// Inside _arguments specifications ':', '[', ']' and '\' have a meaning.
std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const CLI::Option& option) {
  const Values values = values_of(option);
  const std::string message = ":" + zsh_escaped(option.get_type_name()) + ":";
  if (values.is_path) return message + "_files";
  if (values.words.empty()) return message + " ";
  const std::string words = "(" + join(values.words, " ") + ")";
  return message + (values.is_list ? "_sequence compadd - " + join(values.words, " ") : words);
}

std::string zsh_command(const CLI::App& app) {
  std::string out = "    " + app.get_name() + ")\n      _arguments -s";
  int arguments = 0;
  for (const CLI::Option* option : app.get_options()) {
    out += " \\\n        ";
    if (option->get_positional()) {
      out += shell_quoted((option->get_items_expected_max() > 1 ? "*" : std::to_string(++arguments)) +
                          zsh_action(*option));
      continue;
    }
    const std::string text = "[" + zsh_escaped(option->get_description()) + "]";
    const std::vector<std::string> names = option_names(*option);
    const bool is_repeatable = option->get_items_expected_max() > 1;
    if (is_repeatable) {
      out += shell_quoted("*");
    } else if (names.size() > 1) {
      out += shell_quoted("(" + join(names, " ") + ")");
    }
    out += names.size() > 1 ? "{" + join(names, ",") + "}" : names.front();
    out += shell_quoted(text + (takes_value(*option) ? zsh_action(*option) : ""));
  }
  return out + " ;;\n";
}

std::string zsh_script(const CLI::App& app) {
  std::string out =
      "#compdef fxopt\n"
      "# fxopt completion for zsh: source <(fxopt completion zsh), or save it as _fxopt in $fpath\n"
      "_fxopt() {\n"
      "  if (( CURRENT == 2 )); then\n"
      "    local -a commands=(\n";
  for (const Command& command : commands()) {
    out += "      " + shell_quoted(std::string(command.name) + ":" + zsh_escaped(command.summary)) + "\n";
  }
  out +=
      "    )\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $words[1] in\n";
  for (const Command& command : commands()) out += zsh_command(*app.get_subcommand(std::string(command.name)));
  return out + "  esac\n}\ncompdef _fxopt fxopt\n";
}

// Single quotes and backslashes are what fish looks at inside single quotes.
std::string fish_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_option(const std::string& command, const CLI::Option& option) {
  const Values values = values_of(option);
  std::string line = "complete -c fxopt -n '__fish_seen_subcommand_from " + command + "'";
  for (const std::string& name : option.get_snames()) line += " -s " + name;
  for (const std::string& name : option.get_lnames()) line += " -l " + name;
  if (takes_value(option) && !option.get_positional()) line += values.is_path ? " -r" : " -x";
  if (values.is_path && (option.get_positional() || takes_value(option))) line += " -F";
  if (!values.words.empty()) line += " -a " + fish_word(join(values.words, " "));
  return line + " -d " + fish_word(option.get_description()) + "\n";
}

std::string fish_script(const CLI::App& app) {
  std::string out =
      "# fxopt completion for fish: fxopt completion fish | source\n"
      "complete -c fxopt -f\n";
  for (const Command& command : commands()) {
    out += "complete -c fxopt -n __fish_use_subcommand -a " + std::string(command.name) + " -d " +
           fish_word(command.summary) + "\n";
    const std::string name(command.name);
    for (const CLI::Option* option : app.get_subcommand(name)->get_options()) out += fish_option(name, *option);
  }
  return out;
}

void run_completion(Console& console, const std::string& shell) {
  const Application application;
  std::string script;
  if (shell == "bash") {
    script = bash_script(*application.app);
  } else if (shell == "zsh") {
    script = zsh_script(*application.app);
  } else if (shell == "fish") {
    script = fish_script(*application.app);
  } else {
    return console.error(
        {ErrorCode::kBadOptionValue,
         "there is no completion for '" + shell + "'",
         suggestion(shell, {std::begin(kShells), std::end(kShells)}, "the shells are bash, fish and zsh"),
         {}});
  }
  console.result()["text"] = script;
  console.write_product(script);
}

}  // namespace

CommandBody declare_completion(CLI::App& app) {
  const std::shared_ptr<std::string> shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, fish or zsh")->type_name("SHELL")->required();
  return [shell](Console& console) { run_completion(console, *shell); };
}

}  // namespace fxopt
