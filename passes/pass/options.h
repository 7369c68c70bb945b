#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The types of fields of an options struct besides bool, int64_t, double, std::string, enumerations
// with EnumNames, std::vector<std::string> and std::vector of such an enumeration. A pipeline
// writes lists with commas, in double quotes: sac{exclude="lm_head,loss"}.

namespace fxopt {

// A size, such as "25MiB". Not negative.
struct Bytes {
  int64_t value = 0;
  bool operator==(const Bytes&) const = default;
};

// A fraction, such as "5%" or "0.05". The option defines the meaning of a negative one.
struct Share {
  double value = 0;
  bool operator==(const Share&) const = default;
};

// Selects calls by module and op: "layers.*.feed_forward::aten.silu.default". A pattern without
// "::" is an op in any module. '*' matches any characters, or none.
struct NodePattern {
  std::string module = "*";
  std::string op;

  bool matches(std::string_view module_path, std::string_view op_name) const;  // O(texts * patterns)
  std::string text() const;                                                    // parse() of it returns the same
  // Nothing if a side of "::" is empty.
  static std::optional<NodePattern> parse(std::string_view text);
  bool operator==(const NodePattern&) const = default;
};

bool matches_any(const std::vector<NodePattern>& patterns, std::string_view module_path, std::string_view op_name);

}  // namespace fxopt
