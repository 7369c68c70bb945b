// fxopt completion: prints a script for each shell. The script asks the program for the words that
// are possible at the cursor. The type name of an option, such as PASS, FORMAT or IN, determines
// its values.

#include "cli/completion.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "cli/arguments.h"
#include "cli/files.h"
#include "cli/topics.h"
#include "core/text.h"
#include "ir/graph/types.h"
#include "passes/pipeline/registry.h"

namespace fxopt {
namespace {

struct Script {
  std::string_view shell, text;
};

// Each script reads lines "WORD<tab>DESCRIPTION". The line ":" makes the script offer paths.
constexpr Script kScripts[] = {{"bash", R"(# fxopt completion for bash: source <(fxopt completion bash)
_fxopt() {
  local word text
  COMPREPLY=()
  while IFS=$'\t' read -r word text; do
    if [ "$word" = : ]; then compopt -o default; else COMPREPLY+=("$word"); fi
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _fxopt fxopt
)"},
                               {"fish", R"(# fxopt completion for fish: fxopt completion fish | source
function __fxopt_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test "$line" = ':'; __fish_complete_path (commandline -ct); else; echo $line; end
  end
end
complete -c fxopt -f -a '(__fxopt_complete)'
)"},
                               {"zsh", R"(#compdef fxopt
# fxopt completion for zsh: source <(fxopt completion zsh), or save it as _fxopt in $fpath
_fxopt() {
  local -a found
  local word text paths
  while IFS=$'\t' read -r word text; do
    if [[ $word == : ]]; then paths=1; else found+=("${word//:/\\:}:$text"); fi
  done < <($words[1] __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( $#found )) && _describe fxopt found
  [[ -n $paths ]] && _files
}
compdef _fxopt fxopt
)"}};

using Words = std::vector<std::pair<std::string, std::string>>;  // with descriptions

Words pass_names() {
  Words words;
  for (const PassInfo& pass : pass_registry()) words.emplace_back(pass.name, pass.summary);
  return words;
}

Words command_names() {
  Words words;
  for (const Command& command : commands()) words.emplace_back(command.name, command.summary);
  return words;
}

Words topic_names() {
  Words words = command_names();
  words.emplace_back("codes", "all error codes");
  for (const Topic& topic : topics()) words.emplace_back(topic.name, topic.summary);
  for (auto& pass : pass_names()) words.push_back(std::move(pass));
  for (const ErrorInfo& info : error_table()) words.emplace_back(code_name(info.code), info.title);
  return words;
}

// Returns the possible values of a type. The word ":" represents paths.
Words values_of(const std::string& type) {
  if (type == "IN" || type == "OUT" || type == "FILE" || type == "COMMAND" || type == "BEFORE" ||
      type.starts_with("F."))
    return {{":", ""}};
  if (type == "PASS" || type == "PIPELINE") return pass_names();
  if (type == "TOPIC") return topic_names();
  if (type == "FORMAT") return {{"pb", ""}, {"fxg", ""}, {"json", ""}};
  Words words;
  if (type == "SHELL") {
    for (const Script& script : kScripts) words.emplace_back(script.shell, "");
  }
  if (type == "PHASE") {
    for (const EnumName<Phase>& entry : EnumNames<Phase>::kAll) words.emplace_back(entry.name, "");
  }
  return words;
}

class Completion {
 public:
  explicit Completion(const std::vector<std::string>& words)
      : words_(words), begun_(words.empty() ? "" : words.back()) {}

  std::string text() {
    if (words_.size() < 2) {
      offer(command_names());
      offer({{"--help", "print the commands"}, {"--version", "print the version"}});
      return out_;
    }
    const std::vector<Command>& known = commands();
    if (std::none_of(known.begin(), known.end(), [&](const Command& row) { return row.name == words_.front(); }))
      return "";
    const Application application;
    command_ = application.line.describe(words_.front());
    complete_word();
    return out_;
  }

 private:
  const OptionInfo* named(const std::string& word) const {
    for (const OptionInfo& option : command_.options) {
      if (std::find(option.names.begin(), option.names.end(), word) != option.names.end()) return &option;
    }
    return nullptr;
  }

  // Returns the positional argument at the cursor. The last declared argument takes all further
  // words.
  const OptionInfo* argument() const {
    size_t place = 0;
    for (size_t i = 1; i + 1 < words_.size(); ++i) {
      const OptionInfo* before = i > 1 ? named(words_[i - 1]) : nullptr;
      const bool is_value = before != nullptr && before->takes_value;
      if (!is_value && !words_[i].starts_with("-") && words_[i] != "=") ++place;
    }
    const OptionInfo* found = nullptr;
    for (const OptionInfo& option : command_.options) {
      if (!option.is_positional) continue;
      found = &option;
      if (place == 0 || option.takes_several) break;
      --place;
    }
    return found;
  }

  // Offers words for the cursor. bash splits --report=FILE into three words.
  void complete_word() {
    const std::string& word = words_.back();
    const std::string& before = words_[words_.size() - 2];
    const bool is_cut = word == "=" || before == "=";
    const OptionInfo* option = named(word == "=" ? before : before == "=" ? words_[words_.size() - 3] : before);
    if (const size_t equals = word.find('='); word.starts_with("--") && equals != std::string::npos) {
      option = named(word.substr(0, equals));
      if (option != nullptr) offer_values(*option, word);
      return;
    }
    if (option != nullptr && (option->takes_value || is_cut)) return offer_values(*option, word == "=" ? "" : word);
    if (word.starts_with("-")) return offer_options();
    // After a flag such as --report, no files are offered. A file would be an input, but the user
    // may mean --report=FILE.
    const OptionInfo* wanted = argument();
    const bool is_doubtful = option != nullptr && option->has_optional_value;
    if (wanted == nullptr || (is_doubtful && values_of(wanted->type) == values_of("FILE"))) return;
    offer_values(*wanted, word);
  }

  void offer_options() {
    for (const OptionInfo& option : command_.options) {
      for (const std::string& name : option.names) offer({{name, option.help}});
    }
  }

  // Offers values. The text before a value is kept: "--name=", or the earlier passes of a pipeline.
  void offer_values(const OptionInfo& option, const std::string& word) {
    begun_ = word;
    size_t begin = word.starts_with("--") ? word.find('=') + 1 : 0;
    if (option.type == "PIPELINE") begin = std::max(begin, word.rfind(',') + 1);
    offer(values_of(option.type), word.substr(0, begin));
  }

  void offer(const Words& words, const std::string& prefix = "") {
    for (const auto& [word, text] : words) {
      if (word == ":") {
        out_ += ":\n";
      } else if ((prefix + word).starts_with(begun_)) {
        out_ += prefix + word + "\t" + text.substr(0, text.find('\n')) + "\n";
      }
    }
  }

  const std::vector<std::string>& words_;
  std::string begun_;  // offered words start with this
  CommandInfo command_;
  std::string out_;
};

void run_completion(Console& console, const std::string& shell) {
  for (const Script& script : kScripts) {
    if (script.shell != shell) continue;
    console.result()["text"] = script.text;
    console.write_product(std::string(script.text));
    return;
  }
  console.error(bad_value_error("no completion script exists for '" + shell + "'",
                                suggestion(shell, {kScripts[0].shell, kScripts[1].shell, kScripts[2].shell},
                                           "the shells are bash, fish and zsh")));
}

}  // namespace

std::string completions(std::vector<std::string> words) {
  // A quote at the start of the unfinished word belongs to the shell, not to the word.
  if (!words.empty() && (words.back().starts_with("'") || words.back().starts_with("\""))) words.back().erase(0, 1);
  return Completion(words).text();
}

CommandBody declare_completion(Options options) {
  const std::shared_ptr<std::string> shell = std::make_shared<std::string>();
  options.add("SHELL", *shell, "bash, fish or zsh").type("SHELL").required();
  return [shell](Console& console) { run_completion(console, *shell); };
}

}  // namespace fxopt
