#include "ir/values/sym_int.h"

namespace fxopt {
namespace {

__extension__ using Wide = unsigned __int128;  // of GCC and Clang

uint64_t add(uint64_t a, uint64_t b, uint64_t prime) { return static_cast<uint64_t>((Wide{a} + b) % prime); }
uint64_t subtract(uint64_t a, uint64_t b, uint64_t prime) { return add(a, prime - b, prime); }
uint64_t multiply(uint64_t a, uint64_t b, uint64_t prime) { return static_cast<uint64_t>(Wide{a} * b % prime); }

}  // namespace

uint64_t SymInt::far_residue(int64_t value, uint64_t prime) {
  if (value >= 0) return static_cast<uint64_t>(value) % prime;
  const uint64_t below = (uint64_t{0} - static_cast<uint64_t>(value)) % prime;
  return below == 0 ? 0 : prime - below;
}

SymInt SymInt::symbol(const Hash128& name) {
  SymInt out;
  out.first_ = name.high % kFirstPrime;
  out.second_ = name.low % kSecondPrime;
  out.is_static_ = false;
  return out;
}

SymInt operator+(const SymInt& a, const SymInt& b) {
  int64_t sum = 0;
  if (a.is_static_ && b.is_static_ && !__builtin_add_overflow(a.value_, b.value_, &sum)) return sum;
  SymInt out;
  out.is_static_ = false;
  out.first_ = add(a.first_, b.first_, SymInt::kFirstPrime);
  out.second_ = add(a.second_, b.second_, SymInt::kSecondPrime);
  return out;
}

SymInt operator-(const SymInt& a, const SymInt& b) {
  int64_t difference = 0;
  if (a.is_static_ && b.is_static_ && !__builtin_sub_overflow(a.value_, b.value_, &difference)) return difference;
  SymInt out;
  out.is_static_ = false;
  out.first_ = subtract(a.first_, b.first_, SymInt::kFirstPrime);
  out.second_ = subtract(a.second_, b.second_, SymInt::kSecondPrime);
  return out;
}

SymInt operator*(const SymInt& a, const SymInt& b) {
  int64_t product = 0;
  if (a.is_static_ && b.is_static_ && !__builtin_mul_overflow(a.value_, b.value_, &product)) return product;
  SymInt out;
  out.is_static_ = false;
  out.first_ = multiply(a.first_, b.first_, SymInt::kFirstPrime);
  out.second_ = multiply(a.second_, b.second_, SymInt::kSecondPrime);
  return out;
}

SymInt SymInts::of(ExprId id) {
  // Inputs come before users in the table.
  while (known_.size() <= id.index()) known_.push_back(make(ExprId(known_.size())));
  return known_[id.index()];
}

SymInt symbol_named(std::string_view name) {
  const Hash128 hash = hash_text(name);
  const std::array<uint64_t, 3> words = {static_cast<uint64_t>(ExprKind::kSymbol), hash.high, hash.low};
  return SymInt::symbol(hash_words(words));
}

SymInt SymInts::make(ExprId id) const {
  const Expr& expr = module_->exprs[id];
  const auto input = [&](size_t i) { return known_[expr.inputs[i].index()]; };
  switch (expr.kind) {
    case ExprKind::kInt:
      return expr.value;
    case ExprKind::kAdd:
      return input(0) + input(1);
    case ExprKind::kSub:
      return input(0) - input(1);
    case ExprKind::kMul:
      return input(0) * input(1);
    case ExprKind::kSymbol:
      return symbol_named(module_->text(expr.name));
    case ExprKind::kNeg:
      return SymInt(0) - input(0);
    default:
      break;
  }
  std::vector<std::optional<int64_t>> numbers;
  std::vector<uint64_t> words = {static_cast<uint64_t>(expr.kind), static_cast<uint64_t>(expr.value)};
  const Hash128 name = hash_text(module_->text(expr.name));
  words.insert(words.end(), {name.high, name.low});
  bool are_numbers = !expr.inputs.empty();
  for (size_t i = 0; i < expr.inputs.size(); ++i) {
    const SymInt operand = input(i);
    are_numbers = are_numbers && operand.is_static();
    numbers.emplace_back(operand.value());
    words.insert(words.end(), {operand.key().high, operand.key().low});
  }
  if (are_numbers) {
    const std::optional<int64_t> value = module_->exprs.apply(id, numbers);
    if (value.has_value()) return *value;
  }
  if (expr.kind == ExprKind::kPow && input(1).is_static() && input(1).value() >= 0 && input(1).value() <= 8) {
    SymInt power = 1;
    for (int64_t i = 0; i < input(1).value(); ++i) power = power * input(0);
    return power;
  }
  return SymInt::symbol(hash_words(words));
}

}  // namespace fxopt
