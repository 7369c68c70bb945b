#include "ir/device/expr_check.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/interner.h"

namespace fxopt {
namespace {

// Facts about a part.
struct Known {
  bool is_never = false;         // never has a value, even if all symbols have values
  std::optional<int64_t> value;  // the value, if it is known
};

class Checker {
 public:
  Checker(const ExprTable& exprs, const Interner& strings, ExprId id)
      : exprs_(exprs), strings_(strings), parts_(exprs.closure(id)) {
    for (const ExprId part : parts_) known_.push_back(judge(part));
  }

  ExprId first() const {
    const auto found = std::find_if(known_.begin(), known_.end(), [](const Known& known) { return known.is_never; });
    return found == known_.end() ? ExprId() : parts_[static_cast<size_t>(found - known_.begin())];
  }

  bool is_whole() const { return known_.back().is_never; }

 private:
  static constexpr Known kNever{true, {}};

  const Known& of(ExprId part) const {
    return known_[static_cast<size_t>(std::lower_bound(parts_.begin(), parts_.end(), part) - parts_.begin())];
  }

  Known judge(ExprId part) const {
    const Expr& expr = exprs_[part];
    if (expr.kind == ExprKind::kFloat || expr.kind == ExprKind::kBigInt) return kNever;
    if (expr.kind == ExprKind::kSymbol) return {};
    const std::string_view name = expr.kind == ExprKind::kCall ? strings_[expr.name] : std::string_view();
    if (expr.kind == ExprKind::kCall && !ExprTable::is_function(name)) return {};
    if (expr.kind == ExprKind::kCall && !ExprTable::takes(name, expr.inputs.size())) return kNever;
    if (name == "Where") return judge_where(of(expr.inputs[0]), of(expr.inputs[1]), of(expr.inputs[2]));
    std::vector<std::optional<int64_t>> values;
    bool is_known = true;
    for (const ExprId input : expr.inputs) {
      if (of(input).is_never) return kNever;
      values.push_back(of(input).value);
      is_known = is_known && of(input).value.has_value();
    }
    if (divides_by_zero(expr.kind, name, values)) return kNever;
    if (!is_known) return {};
    const std::optional<int64_t> value = exprs_.apply(part, values);
    return {!value.has_value(), value};
  }

  static Known judge_where(const Known& condition, const Known& then, const Known& otherwise) {
    if (condition.is_never || (then.is_never && otherwise.is_never)) return kNever;
    if (condition.value.has_value()) return *condition.value != 0 ? then : otherwise;
    return {};
  }

  static bool divides_by_zero(ExprKind kind, std::string_view name, std::span<const std::optional<int64_t>> values) {
    const bool divides = kind == ExprKind::kFloorDiv || kind == ExprKind::kMod || kind == ExprKind::kTrueDiv ||
                         name == "CeilDiv" || name == "Mod" || name == "ModularIndexing";
    return divides && std::any_of(values.begin() + 1, values.end(), [](const auto& value) { return value == 0; });
  }

  const ExprTable& exprs_;
  const Interner& strings_;
  std::vector<ExprId> parts_;
  std::vector<Known> known_;  // for each part
};

}  // namespace

ExprId find_valueless(const ExprTable& exprs, const Interner& strings, ExprId id) {
  return Checker(exprs, strings, id).first();
}

bool is_valueless(const ExprTable& exprs, const Interner& strings, ExprId id) {
  return Checker(exprs, strings, id).is_whole();
}

}  // namespace fxopt
