#include "cli/arguments.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <CLI/CLI.hpp>

#include "core/scan.h"
#include "core/text.h"
#include "core/version.h"

namespace fxopt {
namespace {

constexpr int64_t kMaxCount = 1'000'000'000;
constexpr std::string_view kCountType = "N";
// The words of another program. Unlike other values, they may be empty.
constexpr std::string_view kCommandType = "COMMAND";

// The exception with which a check passes its error through CLI11. CLI11 itself would keep only the
// text.
struct Refusal {
  Error error;
};

Error error_of(ErrorCode code, std::string message, std::string hint) {
  return {code, std::move(message), std::move(hint), {}};
}

std::string help_hint(const CLI::App& app) { return "`fxopt help " + app.get_name() + "` shows its usage"; }

// ---- names

// Returns false for "-", which is standard input, and for numbers such as "-5".
bool looks_like_option(const std::string& word) { return word.size() > 1 && word.front() == '-' && !is_digit(word[1]); }

// Returns the option that a word such as "--passes=cse" or "-oOUT" names, or null.
const CLI::Option* named_option(const CLI::App& app, const std::string& word) {
  if (!looks_like_option(word)) return nullptr;
  return app.get_option_no_throw(word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2));
}

// Returns all names of an option, short names first: "-o", "--output".
std::vector<std::string> option_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool has_optional_value(const CLI::Option& option) {
  return option.get_items_expected_max() == 0 && !option.get_type_name().empty();
}

// Return the option as messages show it: its names, "-o, --output", and its use, "-o OUT" or
// "--report=FILE".
std::string shown_names(const CLI::Option& option) { return join(option_names(option), ", "); }
std::string shown_use(const CLI::Option& option) {
  return option_names(option).front() + (option.get_items_expected_max() > 0 ? " " : "=") + option.get_type_name();
}

// ---- values, before CLI11 stores them

Error blank_value(const CLI::Option& option) {
  const std::string why = "a shell variable may be unset; leave ";
  if (option.get_positional()) {
    return bad_value_error("the argument " + option.get_type_name() + " is empty",
                           why + "the argument out, or give it a value");
  }
  return bad_value_error(shown_names(option) + " has an empty value",
                         why + option_names(option).front() + " out, or write " + shown_use(option));
}

// Returns an error for a slip such as "-output" or "-o=OUT". CLI11 would use the rest of the word
// as the value of -o.
std::optional<Error> slip_of_short_name(const CLI::App& app, const CLI::Option& option, const std::string& value) {
  for (const std::string& letter : option.get_snames()) {
    const std::string word = "-" + letter + value;
    if (named_option(app, "-" + word) != nullptr) {
      return error_of(ErrorCode::kUnknownOption, "'" + word + "' starts with only one '-'",
                      "did you mean '-" + word + "'?");
    }
    if (value.front() == '=') {
      return bad_value_error("'" + word + "' gives the value '" + value + "'",
                             "write -" + letter + " " + value.substr(1) + ", or the long name with '='");
    }
  }
  return std::nullopt;
}

std::optional<Error> bad_value(const CLI::App& app, const CLI::Option& option, const std::string& value) {
  const std::string type = option.get_type_name();
  if (type.empty()) {  // a plain flag
    if (value == "true") return std::nullopt;
    return bad_value_error(shown_names(option) + " takes no value, so '=" + value + "' is wrong",
                           "write " + option_names(option).front() + " without a value, or leave it out");
  }
  if (value.find_first_not_of(" \t\r\n") == std::string::npos) {
    return type == kCommandType ? std::nullopt : std::optional(blank_value(option));
  }
  if (option.get_positional() || option.get_items_expected_max() == 0) return std::nullopt;
  if (named_option(app, value) != nullptr) {
    return bad_value_error(shown_names(option) + " needs a value, but '" + value + "' is an option",
                           "write " + shown_use(option));
  }
  if (type == kCountType && !is_count(value)) {
    return bad_value_error(
        shown_names(option) + " takes a whole number from 0 to " + std::to_string(kMaxCount) + ", not '" + value + "'",
        "write the number in decimal digits, without a sign");
  }
  return slip_of_short_name(app, option, value);
}

// Makes CLI11 check every value of every option and argument. Also refuses flags such as
// --report[=FILE] that are given twice.
void check_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    option->check([&app, option](const std::string& value) {
      if (std::optional<Error> error = bad_value(app, *option, value); error.has_value()) throw Refusal{*error};
      return std::string();
    });
    if (has_optional_value(*option)) option->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  }
}

// ---- lines

Error no_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    for (std::string& name : option_names(*option)) names.push_back(std::move(name));
  }
  const bool is_root = app.get_name() == "fxopt";
  std::string hint = is_root ? "`fxopt help` lists the commands" : help_hint(app);
  const bool is_short = !word.starts_with("--");
  if (is_short && word.size() > 2 && !is_root) hint += "; if you mean a file, write ./" + word;
  const std::string name = word.substr(0, word.find('='));
  return error_of(ErrorCode::kUnknownOption,
                  "fxopt" + (is_root ? "" : " " + app.get_name()) + " has no option '" + name + "'",
                  word.size() == 2 ? hint : suggestion(name, {names.begin(), names.end()}, hint));
}

std::optional<Error> unknown_option(const CLI::App& app) {
  for (const std::string& word : app.remaining()) {
    if (word == "--") break;
    if (looks_like_option(word)) return no_option(app, word);
  }
  return std::nullopt;
}

std::optional<Error> repeated(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const bool is_single = !option->get_positional() && option->get_items_expected_max() <= 1;
    if (!is_single || option->get_type_name().empty() || option->count() <= 1) continue;
    return usage_error(shown_names(*option) + " is given twice", "give the option once, with the value that you mean");
  }
  return std::nullopt;
}

std::optional<Error> excluded(const CLI::App& app) {
  const std::vector<CLI::Option*>& given = app.parse_order();
  for (auto later = given.begin(); later != given.end(); ++later) {
    for (CLI::Option* other : (*later)->get_excludes()) {
      if (std::find(given.begin(), later, other) == later) continue;
      return usage_error(shown_names(*other) + " and " + shown_names(**later) + " exclude each other",
                         "give only one of the two, or run fxopt twice");
    }
  }
  return std::nullopt;
}

std::optional<Error> missing_or_extra(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    return usage_error("fxopt " + app.get_name() + " needs " + option->get_description(), help_hint(app));
  }
  for (const std::string& word : app.remaining()) {
    if (word != "--") return usage_error("unexpected argument '" + word + "'", help_hint(app));
  }
  return std::nullopt;
}

// Returns CLI11's own text as an error, for failures that fxopt does not check itself.
Error in_its_words(const CLI::App& app, const CLI::ParseError& failure) {
  return usage_error("the command line is not understood: " + std::string(failure.what()), help_hint(app));
}

// Returns the error for an option at the end of the line that lacks its value. CLI11 2.1 does not
// name this option. The option is the last word, or the last letter of a word such as "-vo".
Error no_value(const CLI::App& app, const CLI::ParseError& failure, const std::string& last) {
  const CLI::Option* option = app.get_option_no_throw(last);
  if (option == nullptr) option = app.get_option_no_throw(std::string("-") + last.back());
  if (option == nullptr) return in_its_words(app, failure);
  return bad_value_error(shown_names(*option) + " needs a value", "write " + shown_use(*option));
}

// Returns no error if --help is given.
std::optional<Error> parse(CLI::App& app, const std::vector<std::string>& words) {
  std::optional<Error> error;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success&) {  // --help and --version
  } catch (const Refusal& refusal) {
    error = refusal.error;
  } catch (const CLI::ArgumentMismatch& failure) {  // too many values, or no value
    error = repeated(app);
    if (!error.has_value()) error = no_value(app, failure, words.back());
  } catch (const CLI::ParseError& failure) {
    error = excluded(app);
    if (!error.has_value()) error = missing_or_extra(app);
    if (!error.has_value()) error = in_its_words(app, failure);
  }
  return app.get_help_ptr()->count() > 0 ? std::nullopt : error;
}

// Returns the error for a line whose first word after fxopt's own options is not a command.
Error no_command(const CLI::App& root, const std::vector<std::string>& words) {
  const std::string help = "`fxopt help` lists the commands";
  if (words.empty()) return usage_error("a command is missing", help);
  const std::string& word = words.front();
  std::vector<std::string> names;
  bool is_of_command = false;
  for (const CLI::App* command : root.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
    is_of_command = is_of_command || named_option(*command, word) != nullptr;
  }
  if (is_of_command) {
    return usage_error("'" + word + "' is given before the command",
                       "write it after the command, as in `fxopt COMMAND " + word + "`");
  }
  if (looks_like_option(word)) return no_option(root, word);
  return usage_error("there is no command '" + word + "'", suggestion(word, {names.begin(), names.end()}, help));
}

// Appends a space to words such as "--name=". CLI11 2.1 would read them as "--name". With the
// space, the value is blank, and is refused.
std::vector<std::string> with_blank_values(const CLI::App& app, std::vector<std::string> words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != end; ++word) {
    const bool ends_so = word->starts_with("--") && word->find('=') == word->size() - 1;
    if (ends_so && named_option(app, *word) != nullptr) *word += ' ';
  }
  return words;
}

std::vector<std::pair<std::string, std::string>> find_misread(const CLI::App& app) {
  std::vector<std::pair<std::string, std::string>> misread;
  std::map<const CLI::Option*, size_t> num_read;
  const CLI::Option* before = nullptr;
  for (const CLI::Option* option : app.parse_order()) {
    const size_t index = num_read[option]++;
    const bool is_behind_flag = before != nullptr && has_optional_value(*before) && before->results().front() == "-";
    if (option->get_positional() && is_behind_flag && index < option->count()) {
      misread.emplace_back(option->results()[index], option_names(*before).front());
    }
    before = option;
  }
  return misread;
}

OptionInfo info_of(const CLI::Option& option) {
  OptionInfo info;
  info.names = option_names(option);
  info.type = option.get_type_name();
  info.help = option.get_description();
  info.is_positional = option.get_positional();
  info.is_required = option.get_required();
  info.takes_value = option.get_items_expected_max() > 0;
  info.takes_several = option.get_items_expected_max() > 1;
  info.has_optional_value = has_optional_value(option);
  return info;
}

CommandInfo info_of(const CLI::App& app) {
  CommandInfo info{app.get_name(), app.get_description(), app.get_footer(), {}};
  for (const CLI::Option* option : app.get_options()) info.options.push_back(info_of(*option));
  return info;
}

}  // namespace

// ---- declarations

Option Option::type(const std::string& name) const {
  option_->type_name(name);
  return *this;
}
Option Option::required() const {
  option_->required();
  return *this;
}
Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}
Option Option::one_each() const {
  option_->allow_extra_args(false);
  return *this;
}
Option Option::separated_by(char delimiter) const {
  option_->delimiter(delimiter);
  return *this;
}
std::string Option::name() const { return option_names(*option_).back(); }

bool Option::is_given() const { return option_->count() > 0; }

template <class Value>
Option Options::add(const std::string& names, Value& value, const std::string& help) {
  return Option(app_.add_option(names, value, help));
}
template Option Options::add(const std::string&, std::string&, const std::string&);
template Option Options::add(const std::string&, std::optional<std::string>&, const std::string&);
template Option Options::add(const std::string&, std::vector<std::string>&, const std::string&);
template Option Options::add(const std::string&, uint32_t&, const std::string&);
template Option Options::add(const std::string&, uint64_t&, const std::string&);
template Option Options::add(const std::string&, std::optional<uint64_t>&, const std::string&);
Option Options::flag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_.add_flag(name, value, help));
}
Option Options::flag(const std::string& name, std::string& value, const std::string& help) {
  return Option(app_.add_flag(name, value, help));
}
void Options::footer(const std::string& text) { app_.footer(text); }

// ---- the command line

// In CLI11 2.1, a subcommand that has its required arguments does not get the words after "--". The
// program therefore parses only its own options, with all commands disabled. The selected command
// then parses the remaining words itself.
CommandLine::CommandLine(const std::string& summary) : app_(std::make_unique<CLI::App>(summary, "fxopt")) {
  app_->set_help_flag("-h,--help", "print this help and exit");
  app_->set_version_flag("--version", std::string(kVersion), "print the version and exit");
  check_values(*app_);
}
CommandLine::~CommandLine() = default;

void CommandLine::add(std::string_view name, std::string_view summary, const std::function<void(Options)>& declare) {
  CLI::App& command = *app_->add_subcommand(std::string(name), std::string(summary));
  declare(Options(command));
  // Console reads --json itself, before parsing. It is declared here for help, and so that it is
  // known.
  const std::string json_help =
      "print the results, errors and warnings as one JSON object, to standard output or to FILE";
  const std::string verbose_help = "print one line to standard error for each stage of the work, with its duration";
  command.add_flag("--json{-}", json_help)->type_name("FILE");
  command.add_flag("-v,--verbose", verbose_help);
  const std::string werror_help =
      "treat all warnings, or only the warnings with these codes, as errors (exit code 4). `fxopt help warnings` lists "
      "the codes";
  command.add_flag("--werror{all}", werror_help)->type_name("CODE,...");
  check_values(command);
  command.disabled();
}

ParsedLine CommandLine::parse(const std::vector<std::string>& args) {
  ParsedLine line;
  app_->prefix_command();  // only now, because commands added later would inherit it
  line.error = fxopt::parse(*app_, args);
  line.wants_help = app_->get_help_ptr()->count() > 0;
  line.wants_version = app_->get_version_ptr()->count() > 0;
  std::vector<std::string> words = app_->remaining();
  if (line.error.has_value() || line.wants_version) return line;
  const std::vector<CLI::App*> commands = app_->get_subcommands(
      [&words](const CLI::App* command) { return !words.empty() && command->get_name() == words.front(); });
  if (commands.empty()) {
    if (!line.wants_help) line.error = no_command(*app_, words);
    return line;
  }
  CLI::App& command = *commands.front();
  line.command = command.get_name();
  if (line.wants_help) return line;
  words.erase(words.begin());
  line.error = fxopt::parse(command, with_blank_values(command, std::move(words)));
  if (std::optional<Error> unknown = unknown_option(command); unknown.has_value()) line.error = std::move(unknown);
  line.wants_help = command.get_help_ptr()->count() > 0;
  line.is_verbose = command.count("--verbose") > 0;
  if (command.count("--werror") > 0) line.werror = command["--werror"]->as<std::string>();
  if (!line.error.has_value()) line.misread = find_misread(command);
  return line;
}

CommandInfo CommandLine::describe(std::string_view command) const {
  return info_of(command.empty() ? *app_ : *app_->get_subcommand(std::string(command)));
}

Error usage_error(std::string message, std::string hint) {
  return error_of(ErrorCode::kUsage, std::move(message), std::move(hint));
}

Error bad_value_error(std::string message, std::string hint) {
  return error_of(ErrorCode::kBadOptionValue, std::move(message), std::move(hint));
}

bool is_count(std::string_view text) {
  const bool is_digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_digits || (text.size() > 1 && text.front() == '0')) return false;
  const std::optional<int64_t> value = parse_int64(text);
  return value.has_value() && *value <= kMaxCount;
}

}  // namespace fxopt
