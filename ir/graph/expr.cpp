#include "ir/graph/expr.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <unordered_set>

#include "core/hash.h"
#include "ir/graph/expr_number.h"

namespace fxopt {
namespace {

using MaybeInt = std::optional<int64_t>;

uint64_t hash_expr(const Expr& expr) {
  uint64_t hash = hash_combine(static_cast<uint64_t>(expr.kind), static_cast<uint64_t>(expr.value));
  hash = hash_combine(hash, expr.name.index());
  for (const ExprId input : expr.inputs) hash = hash_combine(hash, input.index());
  return hash;
}

MaybeInt checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? MaybeInt() : MaybeInt(sum);
}

MaybeInt checked_subtract(int64_t a, int64_t b) {
  int64_t difference = 0;
  return __builtin_sub_overflow(a, b, &difference) ? MaybeInt() : MaybeInt(difference);
}

MaybeInt checked_multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? MaybeInt() : MaybeInt(product);
}

bool can_divide(int64_t a, int64_t b) { return b != 0 && !(a == std::numeric_limits<int64_t>::min() && b == -1); }

MaybeInt floor_divide(int64_t a, int64_t b) {
  if (!can_divide(a, b)) return std::nullopt;
  const int64_t rest = a % b;
  return a / b - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0);
}

MaybeInt floor_modulo(int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return 0;  // the smallest integer % -1 traps
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

MaybeInt true_divide(int64_t a, int64_t b) {
  if (!can_divide(a, b) || a % b != 0) return std::nullopt;
  return a / b;
}

MaybeInt power(int64_t base, int64_t exponent) {
  if (base == 1 || base == -1) return exponent % 2 == 0 ? 1 : base;
  if (exponent < 0) return std::nullopt;  // a fraction, or a division by zero
  if (base == 0) return exponent == 0 ? 1 : 0;
  MaybeInt result = 1;
  // A base of 2 or more overflows within 63 rounds.
  for (int64_t i = 0; i < exponent && result.has_value(); ++i) result = checked_multiply(*result, base);
  return result;
}

MaybeInt evaluate_binary(ExprKind kind, int64_t a, int64_t b) {
  switch (kind) {
    case ExprKind::kAdd:
      return checked_add(a, b);
    case ExprKind::kSub:
      return checked_subtract(a, b);
    case ExprKind::kMul:
      return checked_multiply(a, b);
    case ExprKind::kFloorDiv:
      return floor_divide(a, b);
    case ExprKind::kMod:
      return floor_modulo(a, b);
    case ExprKind::kTrueDiv:
      return true_divide(a, b);
    case ExprKind::kPow:
      return power(a, b);
    case ExprKind::kEq:
      return a == b ? 1 : 0;
    case ExprKind::kNe:
      return a != b ? 1 : 0;
    case ExprKind::kLe:
      return a <= b ? 1 : 0;
    case ExprKind::kGe:
      return a >= b ? 1 : 0;
    case ExprKind::kLt:
      return a < b ? 1 : 0;
    case ExprKind::kGt:
      return a > b ? 1 : 0;
    default:
      return std::nullopt;
  }
}

using Arguments = std::span<const int64_t>;

MaybeInt call_max(Arguments x) { return *std::max_element(x.begin(), x.end()); }
MaybeInt call_min(Arguments x) { return *std::min_element(x.begin(), x.end()); }
MaybeInt call_abs(Arguments x) { return x[0] < 0 ? checked_subtract(0, x[0]) : x[0]; }
MaybeInt call_not(Arguments x) { return x[0] == 0 ? 1 : 0; }

MaybeInt call_and(Arguments x) {
  return std::all_of(x.begin(), x.end(), [](int64_t value) { return value != 0; }) ? 1 : 0;
}

MaybeInt call_or(Arguments x) {
  return std::any_of(x.begin(), x.end(), [](int64_t value) { return value != 0; }) ? 1 : 0;
}

MaybeInt call_ceil_div(Arguments x) {
  const MaybeInt floor = floor_divide(x[0], x[1]);
  if (!floor.has_value()) return std::nullopt;
  return x[0] % x[1] == 0 ? floor : checked_add(*floor, 1);
}

MaybeInt call_mod(Arguments x) { return x[0] < 0 || x[1] < 0 ? MaybeInt() : floor_modulo(x[0], x[1]); }

MaybeInt call_pow2_floor(Arguments x) {
  return x[0] < 1 ? MaybeInt() : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(x[0])));
}

MaybeInt call_modular_indexing(Arguments x) {
  const MaybeInt quotient = floor_divide(x[0], x[1]);
  return quotient.has_value() ? floor_modulo(*quotient, x[2]) : MaybeInt();
}

struct Function {
  std::string_view name;
  size_t min_arguments;
  size_t max_arguments;
  MaybeInt (*evaluate)(Arguments);
};

constexpr size_t kAny = std::numeric_limits<size_t>::max();
constexpr std::string_view kWhere = "Where";  // the only function that ignores some of its inputs
constexpr Function kFunctions[] = {
    {"Max", 1, kAny, call_max},       {"Min", 1, kAny, call_min},
    {"CeilDiv", 2, 2, call_ceil_div}, {"Mod", 2, 2, call_mod},
    {"Abs", 1, 1, call_abs},          {"ModularIndexing", 3, 3, call_modular_indexing},
    {"And", 1, kAny, call_and},       {"Or", 1, kAny, call_or},
    {"Not", 1, 1, call_not},          {"Pow2Floor", 1, 1, call_pow2_floor},
};

const Function* find_function(std::string_view name) {
  const auto* found = std::ranges::find(kFunctions, name, &Function::name);
  return found == std::end(kFunctions) ? nullptr : found;
}

MaybeInt evaluate_call(std::string_view name, std::span<const MaybeInt> inputs) {
  if (!ExprTable::takes(name, inputs.size())) return std::nullopt;
  if (name == kWhere) {
    if (!inputs[0].has_value()) return std::nullopt;
    return *inputs[0] != 0 ? inputs[1] : inputs[2];
  }
  std::vector<int64_t> arguments;
  for (const MaybeInt& input : inputs) {
    if (!input.has_value()) return std::nullopt;
    arguments.push_back(*input);
  }
  return find_function(name)->evaluate(arguments);
}

MaybeInt look_up(const SymbolValues& values, StringId name) {
  const SymbolValues::const_iterator found = values.find(name);
  return found == values.end() ? MaybeInt() : MaybeInt(found->second);
}

bool is_binary(ExprKind kind) {
  switch (kind) {
    case ExprKind::kInt:
    case ExprKind::kBigInt:
    case ExprKind::kFloat:
    case ExprKind::kSymbol:
    case ExprKind::kNeg:
    case ExprKind::kCall:
      return false;
    default:
      return true;
  }
}

}  // namespace

ExprId ExprTable::add(Expr expr) {
  const uint64_t hash = hash_expr(expr);
  const auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (exprs_[it->second.index()] == expr) return it->second;
  }
  const ExprId id(exprs_.size());
  exprs_.push_back(std::move(expr));
  index_.emplace(hash, id);
  return id;
}

ExprId ExprTable::constant(int64_t value) { return add(Expr{ExprKind::kInt, value, StringId(), {}}); }

ExprId ExprTable::big_integer(StringId digits) { return add(Expr{ExprKind::kBigInt, 0, digits, {}}); }

ExprId ExprTable::floating(double value) {
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return add(Expr{ExprKind::kFloat, std::bit_cast<int64_t>(value), StringId(), {}});
}

ExprId ExprTable::symbol(StringId name) { return add(Expr{ExprKind::kSymbol, 0, name, {}}); }

ExprId ExprTable::make(ExprKind kind, std::vector<ExprId> inputs, StringId name) {
  for (const ExprId input : inputs) FXOPT_CHECK(input.index() < exprs_.size(), "an operand belongs to another table");
  const bool is_call = kind == ExprKind::kCall;
  FXOPT_CHECK(is_call || is_binary(kind) || kind == ExprKind::kNeg, "neither an operator nor a call");
  FXOPT_CHECK(is_call || inputs.size() == (is_binary(kind) ? 2 : 1), "wrong number of operands");
  FXOPT_CHECK(is_call == name.is_valid(), "a call needs a name, and an operator must not have a name");
  return add(Expr{kind, 0, name, std::move(inputs)});
}

std::vector<ExprId> ExprTable::closure(ExprId id) const {
  FXOPT_CHECK(id.index() < exprs_.size(), "the expression belongs to another table");
  std::vector<ExprId> ids = {id};
  std::unordered_set<ExprId> seen = {id};
  for (size_t i = 0; i < ids.size(); ++i) {
    for (const ExprId input : exprs_[ids[i].index()].inputs) {
      if (seen.insert(input).second) ids.push_back(input);
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::optional<int64_t> ExprTable::apply(ExprId id, std::span<const std::optional<int64_t>> inputs) const {
  const Expr& expr = exprs_[id.index()];
  if (expr.kind == ExprKind::kInt) return expr.value;
  if (expr.kind == ExprKind::kCall) return evaluate_call((*strings_)[expr.name], inputs);
  if (expr.kind == ExprKind::kNeg && inputs[0].has_value()) return checked_subtract(0, *inputs[0]);
  if (!is_binary(expr.kind) || !inputs[0].has_value() || !inputs[1].has_value()) return std::nullopt;
  return evaluate_binary(expr.kind, *inputs[0], *inputs[1]);
}

std::optional<int64_t> ExprTable::evaluate(ExprId id, const SymbolValues& values) const {
  const std::vector<ExprId> ids = closure(id);
  std::vector<Number> results;
  results.reserve(ids.size());
  std::vector<Number> inputs;
  for (const ExprId current : ids) {
    inputs.clear();
    for (const ExprId input : exprs_[current.index()].inputs) {
      const std::vector<ExprId>::const_iterator at = std::lower_bound(ids.begin(), ids.end(), input);
      inputs.push_back(results[static_cast<size_t>(at - ids.begin())]);
    }
    results.push_back(evaluate_one(current, inputs, values));
  }
  const auto* value = std::get_if<int64_t>(&results.back());  // `id` is the last: inputs have smaller ids
  return value == nullptr ? std::nullopt : std::optional(*value);
}

Number ExprTable::evaluate_one(ExprId id, std::span<const Number> inputs, const SymbolValues& values) const {
  const Expr& expr = exprs_[id.index()];
  const auto number = [](const MaybeInt& value) { return value.has_value() ? Number(*value) : Number(); };
  if (expr.kind == ExprKind::kSymbol) return number(look_up(values, expr.name));
  if (expr.kind == ExprKind::kFloat) return std::bit_cast<double>(expr.value);
  const std::string_view name = expr.kind == ExprKind::kCall ? (*strings_)[expr.name] : std::string_view();
  if (name == kWhere && inputs.size() == 3) {  // needs only the chosen input
    const auto* condition = std::get_if<int64_t>(&inputs[0]);
    return condition == nullptr ? Number() : *condition != 0 ? inputs[1] : inputs[2];
  }
  const bool has_float = std::any_of(inputs.begin(), inputs.end(),
                                     [](const Number& input) { return std::holds_alternative<double>(input); });
  if (has_float || is_float_function(name)) return apply_to_floats(expr.kind, name, inputs);
  std::vector<MaybeInt> integers;
  for (const Number& input : inputs) {
    const auto* value = std::get_if<int64_t>(&input);
    integers.push_back(value == nullptr ? MaybeInt() : MaybeInt(*value));
  }
  return number(apply(id, integers));
}

bool ExprTable::is_function(std::string_view name) { return name == kWhere || find_function(name) != nullptr; }

bool ExprTable::takes(std::string_view name, size_t arguments) {
  const Function* function = find_function(name);
  if (function == nullptr) return name == kWhere && arguments == 3;
  return arguments >= function->min_arguments && arguments <= function->max_arguments;
}

std::vector<StringId> ExprTable::symbols(ExprId id) const {
  FXOPT_CHECK(id.index() < exprs_.size(), "the expression belongs to another table");
  std::vector<StringId> names;
  std::unordered_set<ExprId> seen;
  std::vector<ExprId> pending = {id};
  while (!pending.empty()) {
    const ExprId current = pending.back();
    pending.pop_back();
    if (!seen.insert(current).second) continue;
    const Expr& expr = exprs_[current.index()];
    if (expr.kind == ExprKind::kSymbol) names.push_back(expr.name);  // never twice, because equal symbols have one id
    pending.insert(pending.end(), expr.inputs.rbegin(), expr.inputs.rend());
  }
  return names;
}

}  // namespace fxopt
