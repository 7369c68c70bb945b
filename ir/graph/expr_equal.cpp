// Equality of symbolic integers by their normal form as polynomials with integer coefficients.
#include <algorithm>
#include <map>

#include "ir/graph/expr.h"

namespace fxopt {
namespace {

constexpr size_t kMaxTerms = 4096;
constexpr uint64_t kMaxSteps = uint64_t{1} << 18;
constexpr int64_t kMaxExponent = 64;  // a power beyond it is an atom

// Sorted by atom, exponents of at least 1; empty for the constant term.
using Monomial = std::vector<std::pair<uint32_t, uint32_t>>;
// No coefficient is 0.
using Polynomial = std::map<Monomial, int64_t>;
using MaybePolynomial = std::optional<Polynomial>;  // nothing: beyond the bounds

// A symbol, a float, or an operation that is no polynomial over operands in normal form.
struct Atom {
  ExprKind kind;
  int64_t value;
  StringId name;
  std::vector<uint32_t> operands;  // numbers of polynomials

  auto operator<=>(const Atom&) const = default;
};

bool add_term(Polynomial& sum, const Monomial& monomial, int64_t coefficient) {
  if (coefficient == 0) return true;
  int64_t& total = sum[monomial];
  if (__builtin_add_overflow(total, coefficient, &total)) return false;
  if (total == 0) sum.erase(monomial);
  return true;
}

// The product; nothing when an exponent overflows.
std::optional<Monomial> multiply_monomials(const Monomial& a, const Monomial& b) {
  Monomial product;
  Monomial::const_iterator left = a.begin(), right = b.begin();
  while (left != a.end() || right != b.end()) {
    if (right == b.end() || (left != a.end() && left->first < right->first)) {
      product.push_back(*left++);
    } else if (left == a.end() || right->first < left->first) {
      product.push_back(*right++);
    } else {
      product.push_back(*left++);
      if (__builtin_add_overflow(product.back().second, right->second, &product.back().second)) return std::nullopt;
      ++right;
    }
  }
  return product;
}

}  // namespace

// Normal forms that can be compared with each other: they share the numbers of atoms and the budget of steps.
class PolynomialForm {
 public:
  explicit PolynomialForm(const ExprTable& table) : table_(table) {}

  // The normal form of `id`, inputs first and without recursion: trees built by passes may be deep.
  MaybePolynomial normalize(ExprId id) {
    const std::vector<ExprId> ids = table_.closure(id);
    std::vector<Polynomial> forms;
    for (const ExprId current : ids) {
      const Expr& expr = table_[current];
      std::vector<const Polynomial*> inputs;
      for (const ExprId input : expr.inputs) {
        const std::vector<ExprId>::const_iterator at = std::lower_bound(ids.begin(), ids.end(), input);
        inputs.push_back(&forms[static_cast<size_t>(at - ids.begin())]);
      }
      MaybePolynomial form = charge(1) ? combine(expr, inputs) : std::nullopt;
      if (!form.has_value() || form->size() > kMaxTerms) return std::nullopt;
      forms.push_back(std::move(*form));
    }
    return std::move(forms.back());
  }

 private:
  using Operands = std::vector<const Polynomial*>;

  bool charge(uint64_t steps) {
    steps_ += steps;
    return steps_ <= kMaxSteps;
  }

  MaybePolynomial combine(const Expr& expr, const Operands& inputs) {
    switch (expr.kind) {
      case ExprKind::kInt: {
        Polynomial constant;
        if (expr.value != 0) constant[Monomial()] = expr.value;
        return constant;
      }
      case ExprKind::kAdd:
        return add_scaled(*inputs[0], *inputs[1], 1);
      case ExprKind::kSub:
        return add_scaled(*inputs[0], *inputs[1], -1);
      case ExprKind::kNeg:
        return add_scaled(Polynomial(), *inputs[0], -1);
      case ExprKind::kMul:
        return multiply(*inputs[0], *inputs[1]);
      case ExprKind::kPow:
        if (const std::optional<int64_t> exponent = small_exponent(*inputs[1])) return raise(*inputs[0], *exponent);
        return atom(expr, inputs);
      default:
        return atom(expr, inputs);
    }
  }

  // a + factor * b
  MaybePolynomial add_scaled(const Polynomial& a, const Polynomial& b, int64_t factor) {
    if (!charge(weight(a) + weight(b))) return std::nullopt;
    Polynomial sum = a;
    for (const auto& [monomial, coefficient] : b) {
      int64_t scaled = 0;
      if (__builtin_mul_overflow(coefficient, factor, &scaled)) return std::nullopt;
      if (!add_term(sum, monomial, scaled)) return std::nullopt;
    }
    return sum;
  }

  MaybePolynomial multiply(const Polynomial& a, const Polynomial& b) {
    if (!charge(weight(a) * b.size() + a.size() * weight(b))) return std::nullopt;
    Polynomial product;
    for (const auto& [left, left_coefficient] : a) {
      for (const auto& [right, right_coefficient] : b) {
        const std::optional<Monomial> monomial = multiply_monomials(left, right);
        int64_t coefficient = 0;
        if (!monomial.has_value() || __builtin_mul_overflow(left_coefficient, right_coefficient, &coefficient)) {
          return std::nullopt;
        }
        if (!add_term(product, *monomial, coefficient)) return std::nullopt;
      }
    }
    return product;
  }

  MaybePolynomial raise(const Polynomial& base, int64_t exponent) {
    Polynomial result;
    result[Monomial()] = 1;
    for (int64_t i = 0; i < exponent; ++i) {
      MaybePolynomial next = multiply(result, base);
      if (!next.has_value()) return std::nullopt;
      result = std::move(*next);
    }
    return result;
  }

  MaybePolynomial atom(const Expr& expr, const Operands& inputs) {
    Atom key{expr.kind, expr.value, expr.name, {}};
    for (const Polynomial* input : inputs) {
      if (!charge(weight(*input))) return std::nullopt;
      const uint32_t fresh = static_cast<uint32_t>(numbers_.size());
      key.operands.push_back(numbers_.emplace(*input, fresh).first->second);
    }
    const uint32_t fresh = static_cast<uint32_t>(atoms_.size());
    const uint32_t number = atoms_.emplace(std::move(key), fresh).first->second;
    Polynomial form;
    form[Monomial{{number, 1}}] = 1;
    return form;
  }

  static std::optional<int64_t> small_exponent(const Polynomial& form) {
    if (form.empty()) return 0;
    if (form.size() > 1 || !form.begin()->first.empty()) return std::nullopt;
    const int64_t value = form.begin()->second;
    return value > 0 && value <= kMaxExponent ? std::optional<int64_t>(value) : std::nullopt;
  }

  static uint64_t weight(const Polynomial& form) {
    uint64_t total = 1;
    for (const auto& [monomial, coefficient] : form) total += 1 + monomial.size();
    return total;
  }

  const ExprTable& table_;
  std::map<Atom, uint32_t> atoms_;
  std::map<Polynomial, uint32_t> numbers_;
  uint64_t steps_ = 0;
};

bool ExprTable::equal(ExprId a, ExprId b) const {
  if (a == b) return true;
  PolynomialForm form(*this);
  const MaybePolynomial left = form.normalize(a);
  if (!left.has_value()) return false;
  const MaybePolynomial right = form.normalize(b);
  return right.has_value() && *left == *right;
}

}  // namespace fxopt
