#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/text.h"
#include "ir/graph/types.h"
#include "passes/pass/options.h"

// Defines how each option type is parsed and printed. parse() accepts the output of print(). A
// canonical pipeline contains only the spelling that print() returns. option_choices() lists the
// names of an enumeration's values.

namespace fxopt {

template <class T>
struct OptionType;

template <>
struct OptionType<bool> {
  static constexpr std::string_view kName = "bool", kHint = "write true or false";
  static std::string print(bool value) { return value ? "true" : "false"; }
  static std::optional<bool> parse(std::string_view text) {
    if (text == "true") return true;
    if (text == "false") return false;
    return std::nullopt;
  }
};

template <>
struct OptionType<int64_t> {
  static constexpr std::string_view kName = "int", kHint = "write a decimal integer of 64 bits";
  static std::string print(int64_t value) { return std::to_string(value); }
  static std::optional<int64_t> parse(std::string_view text) {
    const std::optional<int64_t> value = parse_int64(text);
    return value.has_value() && print(*value) == text ? value : std::nullopt;
  }
};

template <>
struct OptionType<double> {
  static constexpr std::string_view kName = "float", kHint = "write a number, as in 0.5 or 1e-3";
  static std::string print(double value) { return format_double(value); }
  static std::optional<double> parse(std::string_view text) {
    const std::optional<double> value = parse_double(text);
    return value.has_value() && *value == *value ? value : std::nullopt;  // rejects NaN
  }
};

template <>
struct OptionType<Share> {
  static constexpr std::string_view kName = "share", kHint = "write a share, as in 5% or 0.05";
  static std::string print(Share value) { return format_double(value.value); }
  static std::optional<Share> parse(std::string_view text) {
    const bool is_percent = text.ends_with('%');
    const std::optional<double> value = parse_double(text.substr(0, text.size() - (is_percent ? 1 : 0)));
    if (!value.has_value() || *value != *value) return std::nullopt;
    return Share{is_percent ? *value / 100 : *value};
  }
};

template <>
struct OptionType<Bytes> {
  static constexpr std::string_view kName = "bytes", kHint = "write a size with a unit, as in 25MiB, 1.5GiB or 1000B";
  static std::string print(Bytes value) { return format_byte_size(value.value); }
  static std::optional<Bytes> parse(std::string_view text) {
    const std::optional<int64_t> value = parse_bytes(text);
    return value.has_value() ? std::optional<Bytes>(Bytes{*value}) : std::nullopt;
  }
};

template <>
struct OptionType<std::string> {
  static constexpr std::string_view kName = "string", kHint = "";
  static std::string print(const std::string& value) { return value; }
  static std::optional<std::string> parse(std::string_view text) { return std::string(text); }
};

template <>
struct OptionType<NodePattern> {
  static constexpr std::string_view kName = "pattern", kHint = "write an op or module::op, where '*' matches any text";
  static std::string print(const NodePattern& value) { return value.text(); }
  static std::optional<NodePattern> parse(std::string_view text) { return NodePattern::parse(text); }
};

template <class E>
requires std::is_enum_v<E>
struct OptionType<E> {
  static constexpr std::string_view kName = "enum", kHint = "";
  static std::string print(E value) {
    if constexpr (requires { EnumNames<E>::kOld; }) {
      for (const EnumName<E>& entry : EnumNames<E>::kOld) {
        if (entry.value == value) return std::string(entry.name);
      }
    }
    return std::string(name_of(value));
  }
  // Also accepts the earlier spellings of an enumeration (kOld). The earlier spellings are not
  // among the choices.
  static std::optional<E> parse(std::string_view text) {
    if constexpr (requires { EnumNames<E>::kOld; }) {
      for (const EnumName<E>& entry : EnumNames<E>::kOld) {
        if (entry.name == text) return entry.value;
      }
    }
    return parse_enum<E>(text);
  }
};

// Returns the parts between the commas of an option value. Removes surrounding blanks and empty
// parts.
std::vector<std::string_view> option_parts(std::string_view text);

template <class T>
struct OptionItems {
  using Item = T;
  static constexpr bool kIsList = false;
};
template <class T>
struct OptionItems<std::vector<T>> {
  using Item = T;
  static constexpr bool kIsList = true;
};

// If T is an enumeration or a vector of enumerators, returns the names of the enumerators. For any
// other T, the result is empty.
template <class T>
std::vector<std::string_view> option_choices() {
  using Item = typename OptionItems<T>::Item;
  std::vector<std::string_view> choices;
  if constexpr (std::is_enum_v<Item>) {
    for (const EnumName<Item>& entry : EnumNames<Item>::kAll) choices.push_back(entry.name);
  }
  return choices;
}

template <class T>
std::string option_type() {
  return std::string(OptionType<typename OptionItems<T>::Item>::kName) + (OptionItems<T>::kIsList ? " list" : "");
}

template <class T>
std::string print_option(const T& field) {
  if constexpr (OptionItems<T>::kIsList) {
    std::vector<std::string> parts;
    for (const auto& item : field) parts.push_back(OptionType<typename OptionItems<T>::Item>::print(item));
    return join(parts, ",");
  } else {
    return OptionType<T>::print(field);
  }
}

// If the text is not a valid value, returns nothing and sets `bad` to the invalid part. The items
// of a list of enumerators are sorted in the order of the enumeration, without repeats.
template <class T>
std::optional<T> parse_option(std::string_view text, std::string_view& bad) {
  if constexpr (OptionItems<T>::kIsList) {
    using Item = typename OptionItems<T>::Item;
    T items;
    for (const std::string_view part : option_parts(text)) {
      std::optional<Item> item = OptionType<Item>::parse(part);
      bad = part;
      if (!item.has_value()) return std::nullopt;
      items.push_back(*std::move(item));
    }
    if constexpr (std::is_enum_v<Item>) {
      std::sort(items.begin(), items.end());
      items.erase(std::unique(items.begin(), items.end()), items.end());
    }
    return items;
  } else {
    bad = text;
    return OptionType<T>::parse(text);
  }
}

}  // namespace fxopt
