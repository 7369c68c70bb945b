#include "ir/values/sym_int.h"

#include <algorithm>
#include <span>

namespace fxopt {
namespace {

__extension__ using Wide = unsigned __int128;  // available in GCC and Clang

uint64_t add(uint64_t a, uint64_t b, uint64_t prime) { return static_cast<uint64_t>((Wide{a} + b) % prime); }
uint64_t subtract(uint64_t a, uint64_t b, uint64_t prime) { return add(a, prime - b, prime); }
uint64_t multiply(uint64_t a, uint64_t b, uint64_t prime) { return static_cast<uint64_t>(Wide{a} * b % prime); }

}  // namespace

uint64_t SymInt::far_residue(int64_t value, uint64_t prime) {
  if (value >= 0) return static_cast<uint64_t>(value) % prime;
  const uint64_t below = (uint64_t{0} - static_cast<uint64_t>(value)) % prime;
  return below == 0 ? 0 : prime - below;
}

SymInt SymInt::symbol(const Hash128& name) { return from_residues(name.high % kFirstPrime, name.low % kSecondPrime); }

SymInt SymInt::from_residues(uint64_t first, uint64_t second) {
  SymInt out;
  out.is_static_ = false;
  out.first_ = first;
  out.second_ = second;
  return out;
}

SymInt operator+(const SymInt& a, const SymInt& b) {
  int64_t sum = 0;
  if (a.is_static_ && b.is_static_ && !__builtin_add_overflow(a.value_, b.value_, &sum)) return sum;
  return SymInt::from_residues(add(a.first_, b.first_, SymInt::kFirstPrime),
                               add(a.second_, b.second_, SymInt::kSecondPrime));
}

SymInt operator-(const SymInt& a, const SymInt& b) {
  int64_t difference = 0;
  if (a.is_static_ && b.is_static_ && !__builtin_sub_overflow(a.value_, b.value_, &difference)) return difference;
  return SymInt::from_residues(subtract(a.first_, b.first_, SymInt::kFirstPrime),
                               subtract(a.second_, b.second_, SymInt::kSecondPrime));
}

SymInt operator*(const SymInt& a, const SymInt& b) {
  int64_t product = 0;
  if (a.is_static_ && b.is_static_ && !__builtin_mul_overflow(a.value_, b.value_, &product)) return product;
  return SymInt::from_residues(multiply(a.first_, b.first_, SymInt::kFirstPrime),
                               multiply(a.second_, b.second_, SymInt::kSecondPrime));
}

SymInt symbol_named(std::string_view name) {
  const Hash128 hash = hash_text(name);
  const std::array<uint64_t, 3> words = {static_cast<uint64_t>(ExprKind::kSymbol), hash.high, hash.low};
  return SymInt::symbol(hash_words(words));
}

namespace {

constexpr int64_t kMaxExponent = 64;  // a power with a larger exponent is a symbol

SymInt power(const SymInt& base, int64_t exponent) {
  SymInt out = 1;
  for (int64_t i = 0; i < exponent; ++i) out = out * base;
  return out;
}

// Returns the result of an operation that is not a polynomial. If all inputs are numbers, the
// result is a number. Otherwise, it is a symbol that is named by a hash of the operation.
SymInt make_other(const Module& module, ExprId id, std::span<const SymInt> inputs) {
  const Expr& expr = module.exprs[id];
  std::vector<std::optional<int64_t>> numbers;
  const Hash128 name = hash_text(module.text(expr.name));
  std::vector<uint64_t> words = {static_cast<uint64_t>(expr.kind), static_cast<uint64_t>(expr.value), name.high,
                                 name.low};
  bool are_numbers = !inputs.empty();
  for (const SymInt& input : inputs) {
    are_numbers = are_numbers && input.is_static();
    numbers.emplace_back(input.value());
    words.insert(words.end(), {input.key().high, input.key().low});
  }
  const std::optional<int64_t> value = are_numbers ? module.exprs.apply(id, numbers) : std::nullopt;
  return value.has_value() ? SymInt(*value) : SymInt::symbol(hash_words(words));
}

SymInt make(const Module& module, ExprId id, std::span<const SymInt> inputs) {
  const Expr& expr = module.exprs[id];
  switch (expr.kind) {
    case ExprKind::kInt:
      return expr.value;
    case ExprKind::kAdd:
      return inputs[0] + inputs[1];
    case ExprKind::kSub:
      return inputs[0] - inputs[1];
    case ExprKind::kMul:
      return inputs[0] * inputs[1];
    case ExprKind::kSymbol:
      return symbol_named(module.text(expr.name));
    case ExprKind::kNeg:
      return SymInt(0) - inputs[0];
    case ExprKind::kPow:
      if (inputs[1].is_static() && inputs[1].value() >= 0 && inputs[1].value() <= kMaxExponent) {
        return power(inputs[0], inputs[1].value());
      }
      return make_other(module, id, inputs);
    default:
      return make_other(module, id, inputs);
  }
}

}  // namespace

SymInt SymInts::of(ExprId id) {
  std::vector<SymInt> inputs;
  // Inputs come before users in the table.
  while (known_.size() <= id.index()) {
    const ExprId next(known_.size());
    inputs.clear();
    for (const ExprId input : module_->exprs[next].inputs) inputs.push_back(known_[input.index()]);
    known_.push_back(make(*module_, next, inputs));
  }
  return known_[id.index()];
}

SymInt sym_int_of(const Module& module, ExprId id) {
  const std::vector<ExprId> ids = module.exprs.closure(id);
  std::vector<SymInt> known;
  std::vector<SymInt> inputs;
  for (const ExprId current : ids) {
    inputs.clear();
    for (const ExprId input : module.exprs[current].inputs) {
      inputs.push_back(known[static_cast<size_t>(std::lower_bound(ids.begin(), ids.end(), input) - ids.begin())]);
    }
    known.push_back(make(module, current, inputs));
  }
  return known.back();
}

}  // namespace fxopt
