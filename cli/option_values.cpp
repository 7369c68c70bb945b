#include "cli/option_values.h"

#include <cctype>

#include <CLI/CLI.hpp>

#include "cli/report/usage.h"
#include "core/text.h"

namespace fxopt {
namespace {

constexpr int64_t kMaxCount = 1'000'000'000;
constexpr std::string_view kCountType = "N";
constexpr std::string_view kCommandType = "COMMAND";  // words of another program, which may be empty

Error bad(std::string message, std::string hint) {
  return {ErrorCode::kBadOptionValue, std::move(message), std::move(hint), {}};
}

Error blank_value(const CLI::Option& option) {
  const std::string why = "a variable of the shell may have no value; leave ";
  if (option.get_positional()) {
    return bad("an argument is empty where " + option.get_type_name() + " goes",
               why + "the argument out, or give it one");
  }
  return bad(shown_names(option) + " has an empty value",
             why + option_names(option).front() + " out, or write " + shown_use(option));
}

// A slip in "-output" or "-o=OUT": CLI11 takes what follows -o for its value.
std::optional<Error> slip_of_short_name(const CLI::App& app, const CLI::Option& option, const std::string& value) {
  for (const std::string& letter : option.get_snames()) {
    const std::string word = "-" + letter + value;
    if (named_option(app, "-" + word) != nullptr) {
      return Error{
          ErrorCode::kUnknownOption, "'" + word + "' has one '-' too few", "did you mean '-" + word + "'?", {}};
    }
    if (value.front() == '=') {
      return bad("'" + word + "' gives the value '" + value + "'",
                 "write -" + letter + " " + value.substr(1) + ", or the long name with '='");
    }
  }
  return std::nullopt;
}

std::optional<Error> bad_value(const CLI::App& app, const CLI::Option& option, const std::string& value) {
  const std::string type = option.get_type_name();
  if (type.empty()) {  // a plain flag
    if (value == "true") return std::nullopt;
    return bad(shown_names(option) + " takes no value, so '=" + value + "' is wrong",
               "write " + option_names(option).front() + " alone, or leave it out");
  }
  if (value.find_first_not_of(" \t\r\n") == std::string::npos) {
    return type == kCommandType ? std::nullopt : std::optional(blank_value(option));
  }
  if (option.get_positional() || option.get_items_expected_max() == 0) return std::nullopt;
  if (named_option(app, value) != nullptr) {
    return bad(shown_names(option) + " needs a value, and '" + value + "' is an option", "write " + shown_use(option));
  }
  if (type == kCountType && !is_count(value)) {
    return bad(
        shown_names(option) + " takes a whole number from 0 to " + std::to_string(kMaxCount) + ", not '" + value + "'",
        "write it in decimal digits, without a sign");
  }
  return slip_of_short_name(app, option, value);
}

}  // namespace

bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

const CLI::Option* named_option(const CLI::App& app, const std::string& word) {
  if (!looks_like_option(word)) return nullptr;
  return app.get_option_no_throw(word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2));
}

std::string shown_names(const CLI::Option& option) { return join(option_names(option), ", "); }

std::string shown_use(const CLI::Option& option) {
  return option_names(option).front() + (option.get_items_expected_max() > 0 ? " " : "=") + option.get_type_name();
}

bool is_count(std::string_view text) {
  const bool is_digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_digits || (text.size() > 1 && text.front() == '0')) return false;
  const std::optional<int64_t> value = parse_int64(text);
  return value.has_value() && *value <= kMaxCount;
}

void check_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    option->check([&app, option](const std::string& value) {
      if (std::optional<Error> error = bad_value(app, *option, value); error.has_value()) throw Refusal{*error};
      return std::string();
    });
    if (has_optional_value(*option)) option->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  }
}

}  // namespace fxopt
