#include "passes/pass/options.h"

#include <algorithm>

#include "core/text.h"

namespace fxopt {

bool NodePattern::matches(std::string_view module_path, std::string_view op_name) const {
  return matches_pattern(module_path, module) && matches_pattern(op_name, op);
}

std::string NodePattern::text() const { return module == "*" ? op : module + "::" + op; }

std::optional<NodePattern> NodePattern::parse(std::string_view text) {
  NodePattern pattern;
  const size_t colons = text.find("::");
  if (colons != std::string_view::npos) {
    pattern.module = text.substr(0, colons);
    text.remove_prefix(colons + 2);
  }
  pattern.op = text;
  if (pattern.module.empty() || pattern.op.empty()) return std::nullopt;
  return pattern;
}

bool matches_any(const std::vector<NodePattern>& patterns, std::string_view module_path, std::string_view op_name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const NodePattern& pattern) { return pattern.matches(module_path, op_name); });
}

}  // namespace fxopt
