#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "ir/values/sym_int.h"
#include "tests/catch.h"

namespace fxopt {
namespace {

constexpr int kNumSymbols = 3;

struct RandomFixture {
  Module module;
  ExprTable& table = module.exprs;
  std::mt19937_64 random{4};

  ExprId parse(std::string_view text) {
    INFO(text);
    return table.parse(text).value();
  }
  bool equal(ExprId a, ExprId b) { return sym_int_of(module, a) == sym_int_of(module, b); }
  bool equal(std::string_view a, std::string_view b) { return equal(parse(a), parse(b)); }

  StringId symbol_name(int index) { return module.intern("s" + std::to_string(index)); }

  ExprId random_leaf() {
    const uint64_t kind = random() % 5;
    if (kind == 0) return table.constant(static_cast<int64_t>(random() % 9) - 4);
    if (kind == 1) return table.floating(static_cast<double>(random() % 9) / 2 - 2);
    return table.symbol(symbol_name(static_cast<int>(random() % kNumSymbols)));
  }

  ExprId random_expr(int depth) {
    if (depth == 0 || random() % 8 == 0) return random_leaf();
    const uint64_t choice = random() % 16;
    if (choice == 0) return table.make(ExprKind::kNeg, {random_expr(depth - 1)});
    if (choice == 1) {
      return table.make(ExprKind::kCall, {random_expr(depth - 1), random_expr(depth - 1)}, module.intern("Max"));
    }
    const int first = static_cast<int>(ExprKind::kAdd);
    const int last = static_cast<int>(ExprKind::kGt);
    ExprKind kind = ExprKind::kNeg;
    while (kind == ExprKind::kNeg) {
      kind = static_cast<ExprKind>(first + static_cast<int>(random() % static_cast<uint64_t>(last - first + 1)));
    }
    return table.make(kind, {random_expr(depth - 1), random_expr(depth - 1)});
  }

  // `id` with the operands of about half of its binary operators swapped: equal for + and *, mostly
  // unequal for others.
  ExprId exchange_operands(ExprId id) {
    const Expr expr = table[id];
    if (expr.inputs.empty()) return id;
    std::vector<ExprId> inputs;
    for (const ExprId input : expr.inputs) inputs.push_back(exchange_operands(input));
    if (random() % 2 == 0) std::swap(inputs.front(), inputs.back());
    return table.make(expr.kind, inputs, expr.name);
  }

  SymbolValues random_values() {
    SymbolValues values;
    for (int i = 0; i < kNumSymbols; ++i) values[symbol_name(i)] = static_cast<int64_t>(random() % 21) - 10;
    return values;
  }
};

}  // namespace

TEST_CASE_METHOD(RandomFixture, "the same polynomial in another form is equal") {
  CHECK(equal("a + b", "b + a"));
  CHECK(equal("(a + b) * (a - b)", "a * a - b ** 2"));
  CHECK(equal("a - a", "0"));
  CHECK(equal("2 * (a + 3)", "a + 6 + a"));
  CHECK(equal("-(a - b)", "b - a"));
  CHECK(equal("(a + 1) ** 3", "a ** 3 + 3 * a ** 2 + 3 * a + 1"));
  CHECK(equal("a ** 0", "1"));
  CHECK(equal("a * b * c", "c * (b * a)"));
  CHECK(equal("4096*u0 + 4096*u1", "4096*(u1 + u0)"));
}

TEST_CASE_METHOD(RandomFixture, "what is no polynomial matches when its operands do") {
  CHECK(equal("(a + b) // 2 + 1", "1 + (b + a) // 2"));
  CHECK(equal("Max(a + a, 1) * 2", "Max(2 * a, 1) + Max(a * 2, 1)"));
  CHECK(equal("2 ** (a + b)", "2 ** (b + a)"));
  CHECK_FALSE(equal("Max(a, b)", "Max(b, a)"));
  CHECK_FALSE(equal("a // 2", "a / 2"));
  CHECK_FALSE(equal("f(a)", "g(a)"));
  CHECK_FALSE(equal("f(a)", "f(a, a)"));
  CHECK_FALSE(equal("1.0", "1"));
}

TEST_CASE_METHOD(RandomFixture, "different polynomials are not equal") {
  CHECK_FALSE(equal("a", "b"));
  CHECK_FALSE(equal("a * 2 // 2", "a"));
  CHECK_FALSE(equal("a + 1", "a"));
  CHECK_FALSE(equal("a ** 2", "a"));
  CHECK_FALSE(equal("a ** -1", "a"));
}

TEST_CASE_METHOD(RandomFixture, "equality does not depend on how much is to be expanded") {
  std::string forwards = "(x0 + 1)";
  std::string backwards = "(x0 + 1)";
  for (int i = 1; i < 40; ++i) {
    forwards += " * (x" + std::to_string(i) + " + 1)";
    backwards.insert(0, "(x" + std::to_string(i) + " + 1) * ");
  }
  CHECK(equal(forwards, backwards));  // 2^40 terms
  CHECK_FALSE(equal(forwards, backwards + " + 1"));
  CHECK(equal("a * 9223372036854775807 * 3", "3 * a * 9223372036854775807"));
  CHECK(equal("(a ** 64) ** 64 + 1", "1 + (a ** 64) ** 64"));
  CHECK(equal("a ** 64 * a", "a * a ** 64"));
  CHECK_FALSE(equal("a ** 64", "a ** 63"));
  CHECK_FALSE(equal("a ** 65", "a ** 64 * a"));  // a symbol of its own
  ExprId shared = table.symbol(module.intern("s"));
  for (int i = 0; i < 62; ++i) shared = table.make(ExprKind::kAdd, {shared, shared});
  CHECK(equal(shared, parse("4611686018427387904 * s")));
  std::string sum = "s";
  for (int i = 0; i < 20000; ++i) sum += " + x" + std::to_string(i);
  CHECK(equal("1 + " + sum, sum + " + 1"));
}

TEST_CASE_METHOD(RandomFixture, "equal expressions have equal values") {
  int num_compared = 0;
  for (int round = 0; round < 20000; ++round) {
    const ExprId a = random_expr(3);
    const ExprId b = exchange_operands(a);
    if (a == b || !equal(a, b)) continue;
    for (int i = 0; i < 20; ++i) {
      const SymbolValues values = random_values();
      const std::optional<int64_t> left = table.evaluate(a, values);
      const std::optional<int64_t> right = table.evaluate(b, values);
      CAPTURE(table.to_string(a), table.to_string(b));
      if (!left.has_value() || !right.has_value()) continue;
      CHECK(*left == *right);
      ++num_compared;
    }
  }
  CHECK(num_compared > 1000);
}

TEST_CASE_METHOD(RandomFixture, "random expressions are read back as printed") {
  for (int round = 0; round < 20000; ++round) {
    const ExprId id = random_expr(4);
    const std::string text = table.to_string(id);
    CAPTURE(text);
    REQUIRE(parse(text) == id);
  }
}

TEST_CASE_METHOD(RandomFixture, "random text is rejected with a place, or read and printed for good") {
  const char* tokens[] = {"(",
                          ")",
                          ",",
                          "-",
                          "+",
                          "**",
                          "*",
                          "//",
                          "/",
                          "%",
                          "<",
                          "==",
                          " ",
                          "7",
                          "2.5",
                          "1e",
                          "inf",
                          "s0",
                          "f(",
                          "\"",
                          "\\",
                          ".",
                          "9223372036854775808",
                          "\xff"};
  int num_read = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string text;
    for (uint64_t i = random() % 9; i > 0; --i) text += tokens[random() % std::size(tokens)];
    CAPTURE(text);
    const Result<ExprId> id = table.parse(text);
    if (!id.ok()) {
      const uint64_t column = id.error().where.column;
      REQUIRE((column >= 1 && column <= text.size() + 1));
      continue;
    }
    ++num_read;
    REQUIRE(parse(table.to_string(*id)) == *id);
  }
  CHECK(num_read > 1000);
}

TEST_CASE_METHOD(RandomFixture, "no pair of printed brackets can be left out") {
  for (int round = 0; round < 3000; ++round) {
    const ExprId id = random_expr(3);
    const std::string text = table.to_string(id);
    std::vector<size_t> open;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '(') open.push_back(i);
      if (text[i] != ')') continue;
      const size_t begin = open.back();
      open.pop_back();
      if (begin >= 3 && text.substr(begin - 3, 3) == "Max") continue;
      std::string without = text;
      without[begin] = ' ';
      without[i] = ' ';
      CAPTURE(text, without);
      const Result<ExprId> other = table.parse(without);
      const bool same = other.ok() && *other == id;
      CHECK_FALSE(same);
    }
  }
}

}  // namespace fxopt
