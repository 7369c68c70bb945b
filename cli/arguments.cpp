#include "cli/arguments.h"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>

#include "cli/option_values.h"
#include "cli/report/usage.h"
#include "core/text.h"

namespace fxopt {
namespace {

Error error_of(ErrorCode code, std::string message, std::string hint) {
  return {code, std::move(message), std::move(hint), {}};
}

std::string help_hint(const CLI::App& app) { return "`fxopt help " + app.get_name() + "` lists what it takes"; }

Error no_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    for (std::string& name : option_names(*option)) names.push_back(std::move(name));
  }
  const bool is_root = app.get_name() == "fxopt";
  std::string hint = is_root ? "`fxopt help` lists the commands" : help_hint(app);
  const bool is_short = !word.starts_with("--");
  if (is_short && word.size() > 2 && !is_root) hint += "; a file of this name is written ./" + word;
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
    return error_of(ErrorCode::kUsage, shown_names(*option) + " is given twice",
                    "give it once, with the value you mean");
  }
  return std::nullopt;
}

std::optional<Error> excluded(const CLI::App& app) {
  const std::vector<CLI::Option*>& given = app.parse_order();
  for (auto later = given.begin(); later != given.end(); ++later) {
    for (CLI::Option* other : (*later)->get_excludes()) {
      if (std::find(given.begin(), later, other) == later) continue;
      return error_of(ErrorCode::kUsage, shown_names(*other) + " and " + shown_names(**later) + " exclude each other",
                      "give one of them; two calls answer both");
    }
  }
  return std::nullopt;
}

std::optional<Error> missing_or_extra(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    return error_of(ErrorCode::kUsage, "fxopt " + app.get_name() + " needs " + option->get_description(),
                    help_hint(app));
  }
  for (const std::string& word : app.remaining()) {
    if (word != "--") return error_of(ErrorCode::kUsage, "unexpected argument '" + word + "'", help_hint(app));
  }
  return std::nullopt;
}

// For what nobody thought of.
Error in_its_words(const CLI::App& app, const CLI::ParseError& failure) {
  return error_of(ErrorCode::kUsage, "the command line is not understood: " + std::string(failure.what()),
                  help_hint(app));
}

// What CLI11 tells of the option by its text alone: it is that of the last word, which may be one of "-vo".
Error no_value(const CLI::App& app, const CLI::ParseError& failure, const std::string& last) {
  const CLI::Option* option = app.get_option_no_throw(last);
  if (option == nullptr) option = app.get_option_no_throw(std::string("-") + last.back());
  if (option == nullptr) return in_its_words(app, failure);
  return error_of(ErrorCode::kBadOptionValue, shown_names(*option) + " needs a value", "write " + shown_use(*option));
}

// Nothing also where --help is asked for.
std::optional<Error> parse(CLI::App& app, const std::vector<std::string>& words) {
  std::optional<Error> error;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success&) {  // --help and --version
  } catch (const Refusal& refusal) {
    error = refusal.error;
  } catch (const CLI::ArgumentMismatch& failure) {  // too many values, or none
    error = repeated(app);
    if (!error.has_value()) error = no_value(app, failure, words.back());
  } catch (const CLI::ParseError& failure) {
    error = excluded(app);
    if (!error.has_value()) error = missing_or_extra(app);
    if (!error.has_value()) error = in_its_words(app, failure);
  }
  return app.get_help_ptr()->count() > 0 ? std::nullopt : error;
}

// For the words that the program's own options leave, when the first of them is no command.
Error no_command(const CLI::App& root, const std::vector<std::string>& words) {
  const std::string help = "`fxopt help` lists the commands";
  if (words.empty()) return error_of(ErrorCode::kUsage, "a command is missing", help);
  const std::string& word = words.front();
  std::vector<std::string> names;
  bool is_of_command = false;
  for (const CLI::App* command : root.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
    is_of_command = is_of_command || named_option(*command, word) != nullptr;
  }
  if (is_of_command) {
    return error_of(ErrorCode::kUsage, "'" + word + "' stands before the command",
                    "write it after the command, as in `fxopt COMMAND " + word + "`");
  }
  if (looks_like_option(word)) return no_option(root, word);
  return error_of(ErrorCode::kUsage, "there is no command '" + word + "'",
                  suggestion(word, {names.begin(), names.end()}, help));
}

// CLI11 2.1 reads "--name=" as "--name"; what it reads here is a blank value, which is refused.
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

}  // namespace

ParsedLine parse_line(CLI::App& root, const std::vector<std::string>& args) {
  ParsedLine line{&root, parse(root, args), root.get_help_ptr()->count() > 0, root.get_version_ptr()->count() > 0, {}};
  std::vector<std::string> words = root.remaining();
  if (line.error.has_value() || line.wants_version) return line;
  const std::vector<CLI::App*> commands = root.get_subcommands(
      [&words](const CLI::App* command) { return !words.empty() && command->get_name() == words.front(); });
  if (commands.empty()) {
    if (!line.wants_help) line.error = no_command(root, words);
    return line;
  }
  CLI::App* command = line.app = commands.front();
  if (line.wants_help) return line;
  words.erase(words.begin());
  line.error = parse(*command, with_blank_values(*command, std::move(words)));
  if (std::optional<Error> unknown = unknown_option(*command); unknown.has_value()) line.error = std::move(unknown);
  line.wants_help = command->get_help_ptr()->count() > 0;
  if (!line.error.has_value()) line.misread = find_misread(*command);
  return line;
}

}  // namespace fxopt
