#include "ir/graph/expr_bounds.h"

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace fxopt {
namespace {

constexpr int64_t kNoMin = ValueRange::kNoMin;
constexpr int64_t kNoMax = ValueRange::kNoMax;

std::string text_of(ValueRange range) {
  return (range.has_min() ? std::to_string(range.min) : "") + ".." + (range.has_max() ? std::to_string(range.max) : "");
}

struct BoundsFixture {
  Interner strings;
  ExprTable table{strings};
  SymbolRanges ranges;

  ExprId parse(std::string_view text) {
    INFO(text);
    return table.parse(text).value();
  }
  StringId name(std::string_view text) { return strings.intern(text); }
  // Bounds for a in 2..64, b in 0..10, c in -3..5, d from 1 on, e unbounded.
  std::string bounds(std::string_view text) {
    ranges = {{name("a"), {2, 64}}, {name("b"), {0, 10}}, {name("c"), {-3, 5}}, {name("d"), {1, kNoMax}}};
    const ExprId id = parse(text);
    return text_of(ExprBounds(table, strings, ranges)[id]);
  }
};

// A random expression over a, b, c, with each operator and function that has an integer meaning.
std::string random_expression(std::mt19937_64& random, int depth) {
  const auto pick = [&random](size_t count) { return static_cast<size_t>(random() % count); };
  const auto operand = [&] { return "(" + random_expression(random, depth - 1) + ")"; };
  if (depth == 0 || pick(5) == 0) {
    const std::vector<std::string> leaves = {"a", "b", "c", "0", "1", "2", "3", "-1", "-4", "9223372036854775807"};
    return leaves[pick(leaves.size())];
  }
  const std::vector<std::string> operators = {" + ",  " - ",  " * ",  " // ", " % ", " / ",
                                              " == ", " != ", " <= ", " >= ", " < ", " > "};
  const std::vector<std::pair<std::string, size_t>> functions = {
      {"Max", 3}, {"Min", 2}, {"CeilDiv", 2}, {"Mod", 2},   {"Abs", 1},      {"ModularIndexing", 3},
      {"And", 2}, {"Or", 2},  {"Not", 1},     {"Where", 3}, {"Pow2Floor", 1}};
  const size_t kind = pick(operators.size() + functions.size() + 2);
  if (kind < operators.size()) return operand() + operators[kind] + operand();
  if (kind == operators.size()) return "-" + operand();
  if (kind == operators.size() + 1) return operand() + " ** " + std::vector<std::string>{"0", "1", "2", "(b)"}[pick(4)];
  const auto& [function, count] = functions[kind - operators.size() - 2];
  std::string text = function + "(";
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + random_expression(random, depth - 1);
  return text + ")";
}

}  // namespace

TEST_CASE_METHOD(BoundsFixture, "bounds: each operator at both ends", "[bounds]") {
  CHECK(bounds("7") == "7..7");
  CHECK(bounds("a") == "2..64");
  CHECK(bounds("e") == "..");
  CHECK(bounds("a + b") == "2..74");
  CHECK(bounds("a - b") == "-8..64");
  CHECK(bounds("a - a") == "-62..62");  // cancelling a symbol with itself is not detected
  CHECK(bounds("a * b") == "0..640");
  CHECK(bounds("a * c") == "-192..320");
  CHECK(bounds("-a") == "-64..-2");
  CHECK(bounds("c // a") == "-2..2");
  CHECK(bounds("a // -2") == "-32..-1");
  CHECK(bounds("a // b") == "0..64");  // no value for b = 0
  CHECK(bounds("a // (b - b)") == "..");
  CHECK(bounds("a // 0") == "..");
  CHECK(bounds("a // (b + 1)") == "0..64");
  CHECK(bounds("a / 2") == "1..32");
  CHECK(bounds("a % 7") == "0..6");
  CHECK(bounds("b % 11") == "0..10");  // equal to b
  CHECK(bounds("b % 20") == "0..10");
  CHECK(bounds("c % 7") == "0..6");
  CHECK(bounds("a % b") == "0..9");
  CHECK(bounds("a % c") == "..");
  CHECK(bounds("a ** 2") == "4..4096");
  CHECK(bounds("b ** 2") == "0..100");
  CHECK(bounds("b ** b") == "0..10000000000");
  CHECK(bounds("c ** 2") == "..");
  CHECK(bounds("a == b") == "0..1");
}

TEST_CASE_METHOD(BoundsFixture, "bounds: functions", "[bounds]") {
  CHECK(bounds("Max(a, b, 5)") == "5..64");
  CHECK(bounds("Min(a, b)") == "0..10");
  CHECK(bounds("CeilDiv(a, 8)") == "1..8");
  CHECK(bounds("CeilDiv(a + 1, 8)") == "1..9");
  CHECK(bounds("Mod(a, 8)") == "0..7");
  CHECK(bounds("ModularIndexing(a, 8, 4)") == "0..3");
  CHECK(bounds("ModularIndexing(b, 8, 4)") == "0..1");
  CHECK(bounds("Abs(c)") == "0..5");
  CHECK(bounds("Abs(c - 6)") == "1..9");
  CHECK(bounds("Where(a < b, a, b)") == "0..64");
  CHECK(bounds("Where(a, 1, b)") == "1..1");  // a is never 0
  CHECK(bounds("Where(0, 1, b)") == "0..10");
  CHECK(bounds("Pow2Floor(a)") == "2..64");
  CHECK(bounds("Pow2Floor(a - 1)") == "1..32");
  CHECK(bounds("Not(a)") == "0..1");
  CHECK(bounds("unheard_of(a)") == "..");
  CHECK(bounds("Max()") == "..");
  CHECK(bounds("a * 1.5") == "..");
}

TEST_CASE_METHOD(BoundsFixture, "bounds: an end that nothing bounds stays one, and a large one becomes one",
                 "[bounds]") {
  CHECK(bounds("d") == "1..");
  CHECK(bounds("d - 5") == "-4..");
  CHECK(bounds("5 - d") == "..4");
  CHECK(bounds("d * 0") == "0..0");
  CHECK(bounds("d * -2") == "..-2");
  CHECK(bounds("d // 1000") == "0..");
  CHECK(bounds("a // d") == "0..64");
  CHECK(bounds("c // d") == "-3..5");
  CHECK(bounds("Min(d, 9223372036854775807)") == "1..");
  CHECK(bounds("Min(d, b)") == "0..10");
  CHECK(bounds("9223372036854775806 + a") == "9223372036854775807..");
  CHECK(bounds("9223372036854775807 // 2") == "4611686018427387903..");
  CHECK(bounds("a ** 11") == "2048..");
  CHECK(bounds("a ** d") == "2..");
}

TEST_CASE_METHOD(BoundsFixture, "bounds: every value lies within", "[bounds]") {
  std::mt19937_64 random(7);
  const StringId names[] = {name("a"), name("b"), name("c")};
  size_t values = 0, bounded = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = random_expression(random, 4);
    const ExprId id = parse(text);
    SymbolRanges between;
    for (const StringId symbol : names) {
      const int64_t low = static_cast<int64_t>(random() % 12) - 4;
      between[symbol] = {low, low + static_cast<int64_t>(random() % 6)};
    }
    const ValueRange bound = ExprBounds(table, strings, between)[id];
    bounded += bound.has_min() && bound.has_max() ? 1 : 0;
    for (int64_t a = between[names[0]].min; a <= between[names[0]].max; ++a) {
      for (int64_t b = between[names[1]].min; b <= between[names[1]].max; ++b) {
        for (int64_t c = between[names[2]].min; c <= between[names[2]].max; ++c) {
          const std::optional<int64_t> value = table.evaluate(id, {{names[0], a}, {names[1], b}, {names[2], c}});
          if (!value.has_value()) continue;
          ++values;
          if (*value >= bound.min && *value <= bound.max) continue;
          FAIL(text << " with a = " << a << ", b = " << b << ", c = " << c << " is " << *value << ", outside of "
                    << text_of(bound));
        }
      }
    }
  }
  CHECK(values > 50'000);
  CHECK(bounded > 1'000);  // otherwise the checks above prove little
}

TEST_CASE("bounds: sums and products of ranges", "[bounds]") {
  CHECK(ValueRange{1, 2} + ValueRange{3, kNoMax} == ValueRange{4, kNoMax});
  CHECK(ValueRange{kNoMin, 2} - ValueRange{3, 4} == ValueRange{kNoMin, -1});
  CHECK(ValueRange{-1, 2} * ValueRange{3, kNoMax} == ValueRange{kNoMin, kNoMax});
  CHECK(ValueRange{0, 2} * ValueRange{3, kNoMax} == ValueRange{0, kNoMax});
}

}  // namespace fxopt
