#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Types for the fields of an options struct. Fields may also have these types: bool, int64_t,
// double, std::string, std::vector<std::string>, an enumeration with EnumNames, and std::vector of
// such an enumeration. In the text of a pipeline, a list is in double quotes and has commas between
// its items: sac{exclude="lm_head,loss"}.

namespace fxopt {

// A size in bytes, such as "25MiB". It is not negative.
struct Bytes {
  int64_t value = 0;
  bool operator==(const Bytes&) const = default;
};

// A fraction, such as "5%" or "0.05". Each option defines the meaning of a negative fraction.
struct Share {
  double value = 0;
  bool operator==(const Share&) const = default;
};

// Selects calls by module and op, for example "layers.*.feed_forward::aten.silu.default". A pattern
// without "::" selects an op in any module. '*' matches any number of characters, including zero.
struct NodePattern {
  std::string module = "*";
  std::string op;

  bool matches(std::string_view module_path, std::string_view op_name) const;  // O(text length * pattern length)
  // parse() of the returned text returns the same pattern.
  std::string text() const;
  // Returns nothing if the module or the op is empty.
  static std::optional<NodePattern> parse(std::string_view text);
  bool operator==(const NodePattern&) const = default;
};

bool matches_any(const std::vector<NodePattern>& patterns, std::string_view module_path, std::string_view op_name);

}  // namespace fxopt
