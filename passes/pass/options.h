#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the fields of an options struct may be beside bool, int64_t, double, std::string, enumerations with EnumNames,
// std::vector<std::string> and std::vector of such an enumeration. A pipeline writes lists with commas, in double
// quotes: sac{exclude="lm_head,loss"}.

namespace fxopt {

// A size, as in "25MiB". Not negative.
struct Bytes {
  int64_t value = 0;
  bool operator==(const Bytes&) const = default;
};

// Calls by where they come from and what they call: "layers.*.feed_forward::aten.silu.default". A pattern without "::"
// is an op of any module; '*' stands for any characters, also none.
struct NodePattern {
  std::string module = "*";
  std::string op;

  bool matches(std::string_view module_path, std::string_view op_name) const;  // O(texts * patterns)
  std::string text() const;                                                    // parse() of it gives the same
  // Nothing where a side of "::" is empty.
  static std::optional<NodePattern> parse(std::string_view text);
  bool operator==(const NodePattern&) const = default;
};

bool matches_any(const std::vector<NodePattern>& patterns, std::string_view module_path, std::string_view op_name);

}  // namespace fxopt
