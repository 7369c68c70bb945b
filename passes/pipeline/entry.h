#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "passes/pipeline/option_types.h"
#include "passes/pipeline/registry.h"

// Turns a pass function into a PassInfo, its entry in the registry. entry<fn>(...) deduces the
// subject (graph or module) and the options struct from the signature of fn. The signature is
// `Result<PassResult> fn(Graph&, const Options&, PassContext&)`. A pass on the module has `Module&`
// as its first parameter. Options::visit gives the names, types, defaults and help texts of the
// options.

namespace fxopt {

// The errors for an unknown option and for an invalid value of an option. `names` and `choices` are
// the candidates for suggestions.
Error unknown_option_error(std::string_view pass, std::string_view option, const std::vector<std::string_view>& names);
Error bad_option_error(std::string_view pass, std::string_view option, std::string_view value, std::string_view hint,
                       const std::vector<std::string_view>& choices);

template <class Options>
std::vector<PassOptionInfo> describe_options() {
  std::vector<PassOptionInfo> infos;
  const Options defaults;
  Options::visit(defaults, [&infos](std::string_view name, const auto& field, std::string_view help) {
    using T = std::remove_cvref_t<decltype(field)>;
    PassOptionInfo info{std::string(name), option_type<T>(), print_option(field), {}, std::string(help)};
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
    std::string_view bad = value;
    std::optional<T> parsed = parse_option<T>(value, bad);
    if (parsed.has_value()) {
      field = std::move(*parsed);
    } else {
      constexpr std::string_view kHint = OptionType<typename OptionItems<T>::Item>::kHint;
      error = bad_option_error(pass, option, bad, kHint, option_choices<T>());
    }
  });
  if (!found) return unknown_option_error(pass, option, names);
  if (error.has_value()) return *std::move(error);
  return ok_status();
}

// Returns the options that differ from their defaults, in the syntax of a pipeline text and in
// order of declaration.
template <class Options>
OptionTexts option_texts(const Options& options) {
  OptionTexts texts;
  const std::vector<PassOptionInfo> infos = describe_options<Options>();
  size_t i = 0;
  Options::visit(options, [&](std::string_view name, const auto& field, std::string_view) {
    std::string text = print_option(field);
    if (text != infos[i++].default_value) texts.emplace_back(name, std::move(text));
  });
  return texts;
}

template <class Function>
struct PassSignature;
template <class GraphOrModule, class OptionsType>
struct PassSignature<Result<PassResult> (*)(GraphOrModule&, const OptionsType&, PassContext&)> {
  using Subject = GraphOrModule;
  using Options = OptionsType;
};

template <auto Function>
PassInfo entry(std::string_view name, Numerics numerics, std::string_view summary, PassRules rules = {}) {
  using Subject = typename PassSignature<decltype(Function)>::Subject;
  using Options = typename PassSignature<decltype(Function)>::Options;
  PassInfo info;
  info.name = name;
  info.summary = summary;
  info.numerics = numerics;
  info.rules = std::move(rules);
  info.is_on_module = std::is_same_v<Subject, Module>;
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
    BoundPass bound;
    bound.options = option_texts(options);
    bound.run = PassRun<Subject>([options = std::move(options)](Subject& subject, PassContext& context) {
      return Function(subject, options, context);
    });
    return bound;
  };
  return info;
}

}  // namespace fxopt
