#include "cli/arguments.h"

#include <algorithm>
#include <cctype>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/report/usage.h"
#include "core/text.h"

namespace fxopt {
namespace {

constexpr int64_t kMaxCount = 1'000'000'000;
constexpr std::string_view kCountType = "N";
constexpr std::string_view kCommandType = "COMMAND";  // words of another program, which may be empty

// One option or argument as it was written.
struct Word {
  std::string text;
  const CLI::Option* option = nullptr;  // null: not known here
  std::string name;                     // "--passes", "-o"; empty for an argument
  std::optional<std::string> value;     // of an argument: itself
  bool is_attached = false;             // --passes=VALUE, -oVALUE
};

// "-" is standard input and "-5" a number.
bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    if (name.starts_with("--") ? option->check_lname(name.substr(2)) : option->check_sname(name.substr(1))) {
      return option;
    }
  }
  return nullptr;
}

// The positional that the argument with `index` others before it belongs to; nullptr when there is none for it.
const CLI::Option* positional_at(const CLI::App& app, size_t index) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const size_t most = static_cast<size_t>(option->get_items_expected_max());
    if (index < most) return option;
    index -= most;
  }
  return nullptr;
}

// Every "--name" and "-n" an app takes.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

Error error_of(ErrorCode code, std::string message, std::string hint) {
  return {code, std::move(message), std::move(hint), {}};
}

class Checker {
 public:
  Checker(const CLI::App& root, const std::vector<std::string>& args) : root_(root), args_(args) {
    line_.command = &root;
    line_.args = args;
  }

  CheckedLine run() {
    line_.error = check();
    return std::move(line_);
  }

 private:
  using Check = std::optional<Error> (Checker::*)() const;

  std::optional<Error> check() {
    std::optional<Error> error = find_command();
    if (error.has_value() || command_ == nullptr) return error;
    read_words();
    if (error = unknown_option(); error.has_value()) return error;
    if (asks_for_help()) {
      line_.args = {command_->get_name(), "--help"};
      return std::nullopt;
    }
    for (const Check next : {&Checker::bad_value, &Checker::repeated, &Checker::excluded, &Checker::arguments}) {
      if (error = (this->*next)(); error.has_value()) return error;
    }
    find_misread();
    put_in_order();
    return std::nullopt;
  }

  // Sets command_, unless the root's own options answer.
  std::optional<Error> find_command() {
    std::vector<std::string_view> names;
    for (const Command& command : commands()) names.push_back(command.name);
    for (size_t i = 0; i < args_.size(); ++i) {
      const std::string& word = args_[i];
      if (std::find(names.begin(), names.end(), word) != names.end()) {
        command_ = line_.command = root_.get_subcommand(word);
        first_ = i + 1;
        return std::nullopt;
      }
      if (!looks_like_option(word)) {
        return error_of(ErrorCode::kUsage, "there is no command '" + word + "'",
                        suggestion(word, names, "`fxopt help` lists the commands"));
      }
      if (find_option(root_, word) != nullptr) return std::nullopt;
      return is_of_some_command(word) ? error_of(ErrorCode::kUsage, "'" + word + "' stands before the command",
                                                 "write it after the command, as in `fxopt COMMAND " + word + "`")
                                      : no_option(word);
    }
    return error_of(ErrorCode::kUsage, "a command is missing", "`fxopt help` lists the commands");
  }

  bool is_of_some_command(const std::string& word) const {
    return std::any_of(commands().begin(), commands().end(), [&](const Command& command) {
      return find_option(*root_.get_subcommand(std::string(command.name)), name_in(word)) != nullptr;
    });
  }

  static std::string name_in(const std::string& word) {
    return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
  }

  void read_words() {
    bool is_ended = false;
    size_t arguments = 0;
    for (size_t i = first_; i < args_.size(); ++i) {
      const std::string& text = args_[i];
      if (is_ended || !looks_like_option(text)) {
        words_.push_back({text, positional_at(*command_, arguments++), "", text, false});
      } else if (text == "--") {
        is_ended = true;
      } else {
        Word word{text, nullptr, name_in(text), std::nullopt, false};
        word.option = find_option(*command_, word.name);
        word.is_attached = text.size() > word.name.size();
        if (word.is_attached) word.value = text.substr(word.name.size() + (text.starts_with("--") ? 1 : 0));
        if (word.option != nullptr && takes_value(*word.option) && !word.is_attached && i + 1 < args_.size()) {
          word.value = args_[++i];
        }
        words_.push_back(std::move(word));
      }
    }
  }

  Error no_option(const std::string& word) const {
    const CLI::App& app = *line_.command;
    const bool is_root = &app == &root_;
    const bool is_short = !word.starts_with("--");
    const std::vector<std::string> names = option_names(app);
    std::string hint =
        is_root ? "`fxopt help` lists the commands" : "`fxopt help " + app.get_name() + "` lists what it takes";
    if (is_short && word.size() > 2 && !is_root) hint += "; a file of this name is written ./" + word;
    const bool is_letter = word.size() == 2;
    const std::string name = word.substr(0, word.find('='));
    return error_of(ErrorCode::kUnknownOption,
                    "fxopt" + (is_root ? std::string() : " " + app.get_name()) + " has no option '" + name + "'",
                    is_letter ? hint : suggestion(name, {names.begin(), names.end()}, hint));
  }

  std::optional<Error> unknown_option() const {
    for (const Word& word : words_) {
      if (word.option == nullptr && !word.name.empty()) return no_option(word.text);
    }
    return std::nullopt;
  }

  bool asks_for_help() const {
    return std::any_of(words_.begin(), words_.end(),
                       [this](const Word& word) { return word.option == command_->get_help_ptr(); });
  }

  std::optional<Error> bad_value() const {
    for (const Word& word : words_) {
      if (word.option == nullptr) continue;  // an argument where none is taken
      std::optional<Error> error = word.name.empty()           ? bad_argument(word)
                                   : takes_value(*word.option) ? bad_option_value(word)
                                                               : bad_flag_value(word);
      if (error.has_value()) return error;
    }
    return std::nullopt;
  }

  static bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

  static std::optional<Error> bad_argument(const Word& word) {
    if (!is_blank(word.text) || word.option->get_type_name() == kCommandType) return std::nullopt;
    return error_of(ErrorCode::kBadOptionValue, "an argument is empty where " + word.option->get_type_name() + " goes",
                    "a variable of the shell may have no value; leave the argument out, or give it one");
  }

  std::optional<Error> bad_flag_value(const Word& word) const {
    if (!word.is_attached) return std::nullopt;
    if (!has_optional_value(*word.option)) {
      return error_of(ErrorCode::kBadOptionValue, word.name + " takes no value, so '" + word.text + "' is wrong",
                      "write " + word.name + " alone, or leave it out");
    }
    return is_blank(*word.value) ? std::optional<Error>(empty_value(word)) : std::nullopt;
  }

  static Error empty_value(const Word& word) {
    return error_of(ErrorCode::kBadOptionValue, word.name + " has an empty value",
                    "a variable of the shell may have no value; leave " + word.name + " out, or write " +
                        shown(word.name, *word.option));
  }

  // "--passes PIPELINE", "--report=FILE".
  static std::string shown(const std::string& name, const CLI::Option& option) {
    return name + (takes_value(option) ? " " : "=") + option.get_type_name();
  }

  std::optional<Error> bad_option_value(const Word& word) const {
    if (!word.value.has_value()) {
      return error_of(ErrorCode::kBadOptionValue, word.name + " needs a value",
                      "write " + shown(word.name, *word.option));
    }
    if (is_blank(*word.value)) return empty_value(word);
    const std::string& value = *word.value;
    if (!word.is_attached && looks_like_option(value) && find_option(*command_, name_in(value)) != nullptr) {
      return error_of(ErrorCode::kBadOptionValue, word.name + " needs a value, and '" + value + "' is an option",
                      "write " + shown(word.name, *word.option));
    }
    const bool is_short = word.is_attached && !word.text.starts_with("--");
    if (is_short && find_option(*command_, name_in("-" + word.text)) != nullptr) {
      return error_of(ErrorCode::kUnknownOption, "'" + word.text + "' has one '-' too few",
                      "did you mean '-" + word.text + "'?");
    }
    if (is_short && value.front() == '=') {
      return error_of(ErrorCode::kBadOptionValue, "'" + word.text + "' gives the value '" + value + "'",
                      "write " + word.name + " " + value.substr(1) + ", or the long name with '='");
    }
    if (word.option->get_type_name() == kCountType && !is_count(value)) {
      return error_of(
          ErrorCode::kBadOptionValue,
          word.name + " takes a whole number from 0 to " + std::to_string(kMaxCount) + ", not '" + value + "'",
          "write it in decimal digits, without a sign");
    }
    return std::nullopt;
  }

  // Flags say the same when they are said again.
  std::optional<Error> repeated() const {
    for (size_t i = 0; i < words_.size(); ++i) {
      const Word& word = words_[i];
      const bool is_single = word.option != nullptr && !word.name.empty() && word.option->get_items_expected_max() <= 1;
      if (!is_single || word.option->get_type_name().empty()) continue;
      for (size_t j = 0; j < i; ++j) {
        if (words_[j].option != word.option) continue;
        return error_of(ErrorCode::kUsage, word.name + " is given twice", "give it once, with the value you mean");
      }
    }
    return std::nullopt;
  }

  std::optional<Error> excluded() const {
    for (size_t i = 0; i < words_.size(); ++i) {
      const std::set<CLI::Option*> others =
          words_[i].option == nullptr ? std::set<CLI::Option*>() : words_[i].option->get_excludes();
      for (size_t j = 0; j < i && !others.empty(); ++j) {
        const bool is_excluded = std::any_of(others.begin(), others.end(),
                                             [&](const CLI::Option* other) { return other == words_[j].option; });
        if (!is_excluded) continue;
        return error_of(ErrorCode::kUsage, words_[j].name + " and " + words_[i].name + " exclude each other",
                        "give one of them; two calls answer both");
      }
    }
    return std::nullopt;
  }

  std::optional<Error> arguments() const {
    const std::string help = "`fxopt help " + command_->get_name() + "` lists what it takes";
    size_t count = 0;
    for (const Word& word : words_) {
      if (!word.name.empty()) continue;
      ++count;
      if (word.option == nullptr) return error_of(ErrorCode::kUsage, "unexpected argument '" + word.text + "'", help);
    }
    const CLI::Option* next = positional_at(*command_, count);
    const bool is_begun = count > 0 && next == positional_at(*command_, count - 1);
    if (next == nullptr || is_begun || !next->get_required()) return std::nullopt;
    return error_of(ErrorCode::kUsage, "fxopt " + command_->get_name() + " needs " + next->get_description(), help);
  }

  void find_misread() {
    for (size_t i = 1; i < words_.size(); ++i) {
      const Word& before = words_[i - 1];
      if (!words_[i].name.empty() || before.name.empty() || before.is_attached) continue;
      if (has_optional_value(*before.option)) line_.misread.emplace_back(words_[i].text, before.name);
    }
  }

  void put_in_order() {
    line_.args = {command_->get_name()};
    std::vector<std::string> arguments;
    for (const Word& word : words_) {
      (word.name.empty() ? arguments : line_.args).push_back(word.text);
      if (!word.name.empty() && !word.is_attached && word.value.has_value()) line_.args.push_back(*word.value);
    }
    if (!arguments.empty()) line_.args.push_back("--");
    line_.args.insert(line_.args.end(), arguments.begin(), arguments.end());
  }

  const CLI::App& root_;
  const std::vector<std::string>& args_;
  CheckedLine line_;
  const CLI::App* command_ = nullptr;
  size_t first_ = 0;  // of args_, behind the command
  std::vector<Word> words_;
};

}  // namespace

bool is_count(std::string_view text) {
  const bool is_digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_digits || (text.size() > 1 && text.front() == '0')) return false;
  const std::optional<int64_t> value = parse_int64(text);
  return value.has_value() && *value <= kMaxCount;
}

CheckedLine check_arguments(const CLI::App& root, const std::vector<std::string>& args) {
  return Checker(root, args).run();
}

}  // namespace fxopt
