#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "passes/pipeline/registry.h"

// How a pass function becomes a row of the registry: entry<fn>(...) deduces the options struct from the signature
// `Result<PassResult> fn(Graph&, const Options&, PassContext&)` and reads names, types, defaults and help from Options::visit.

namespace fxopt {

// Errors of binding; `names` and `choices` are what a slip may have meant.
Error unknown_option_error(std::string_view pass, std::string_view option, const std::vector<std::string_view>& names);
Error bad_option_error(std::string_view pass, std::string_view option, std::string_view value, std::string_view type,
                       const std::vector<std::string_view>& choices);

template <class T>
std::string_view option_type() {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_same_v<T, int64_t>) return "int";
  if constexpr (std::is_same_v<T, std::string>) return "string";
  if constexpr (std::is_enum_v<T>) return "enum";
}

template <class T>
std::vector<std::string_view> option_choices() {
  std::vector<std::string_view> choices;
  if constexpr (std::is_enum_v<T>) {
    for (const EnumName<T>& entry : EnumNames<T>::kAll) choices.push_back(entry.name);
  }
  return choices;
}

template <class T>
std::string print_option(const T& field) {
  if constexpr (std::is_same_v<T, bool>) return field ? "true" : "false";
  if constexpr (std::is_same_v<T, int64_t>) return std::to_string(field);
  if constexpr (std::is_same_v<T, std::string>) return field;
  if constexpr (std::is_enum_v<T>) return std::string(name_of(field));
}

// Each value has one spelling, so that the text of a pipeline is canonical.
template <class T>
std::optional<T> parse_option(std::string_view text) {
  if constexpr (std::is_same_v<T, bool>) {
    if (text == "true") return true;
    if (text == "false") return false;
    return std::nullopt;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    int64_t value = 0;
    const std::from_chars_result parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
    if (std::to_string(value) != text) return std::nullopt;
    return value;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return std::string(text);
  } else {
    return parse_enum<T>(text);
  }
}

template <class Options>
std::vector<PassOptionInfo> describe_options() {
  std::vector<PassOptionInfo> infos;
  const Options defaults;
  Options::visit(defaults, [&infos](std::string_view name, const auto& field, std::string_view help) {
    using T = std::remove_cvref_t<decltype(field)>;
    PassOptionInfo info{std::string(name), std::string(option_type<T>()), print_option(field), {}, std::string(help)};
    for (const std::string_view choice : option_choices<T>()) info.choices.emplace_back(choice);
    infos.push_back(std::move(info));
  });
  return infos;
}

// Sets one option. Errors: kUnknownOption, kBadOptionValue.
template <class Options>
Status set_option(std::string_view pass, Options& options, std::string_view option, std::string_view value) {
  std::vector<std::string_view> names;
  std::optional<Error> error;
  bool found = false;
  Options::visit(options, [&](std::string_view name, auto& field, std::string_view) {
    using T = std::remove_cvref_t<decltype(field)>;
    names.push_back(name);
    if (name != option) return;
    found = true;
    std::optional<T> parsed = parse_option<T>(value);
    if (parsed.has_value()) {
      field = std::move(*parsed);
    } else {
      error = bad_option_error(pass, option, value, option_type<T>(), option_choices<T>());
    }
  });
  if (!found) return unknown_option_error(pass, option, names);
  if (error.has_value()) return *std::move(error);
  return ok_status();
}

template <class Function>
struct PassSignature;
template <class OptionsType>
struct PassSignature<Result<PassResult> (*)(Graph&, const OptionsType&, PassContext&)> {
  using Options = OptionsType;
};
template <class OptionsType>
struct PassSignature<Result<PassResult> (*)(Graph&, const OptionsType&)> {  // of a pass that asks nothing
  using Options = OptionsType;
};

using PassOrderRules = std::vector<std::pair<std::string_view, std::string_view>>;

// A row of the registry. `not_after`: see PassInfo.
template <auto Function>
PassInfo entry(std::string_view name, PassClass pass_class, std::string_view summary, PassOrderRules not_after = {}) {
  using Options = typename PassSignature<decltype(Function)>::Options;
  PassInfo info;
  info.name = name;
  info.summary = summary;
  info.pass_class = pass_class;
  info.not_after = std::move(not_after);
  info.options = describe_options<Options>();
  info.bind = [name](const OptionTexts& given) -> Result<BoundPass> {
    Options options;
    for (const auto& [option, value] : given) {
      Status set = set_option(name, options, option, value);
      if (!set.ok()) return std::move(set).error();
    }
    if constexpr (requires { options.check(); }) {
      Status checked = options.check();
      if (!checked.ok()) return std::move(checked).error();
    }
    return BoundPass([options = std::move(options)](Graph& graph, PassContext& context) {
      if constexpr (std::is_invocable_v<decltype(Function), Graph&, const Options&, PassContext&>) {
        return Function(graph, options, context);
      } else {
        return Function(graph, options);
      }
    });
  };
  return info;
}

}  // namespace fxopt
