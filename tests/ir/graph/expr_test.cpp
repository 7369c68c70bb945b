#include "ir/graph/expr.h"

#include <limits>
#include <string>

#include "tests/catch.h"

namespace fxopt {
namespace {

constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();

struct Fixture {
  Interner strings;
  ExprTable table{strings};

  ExprId parse(std::string_view text) {
    INFO(text);
    return table.parse(text).value();
  }
  std::string canonical(std::string_view text) { return table.to_string(parse(text)); }
  Error error(std::string_view text) {
    INFO(text);
    return table.parse(text).error();
  }
  std::optional<int64_t> evaluate(std::string_view text, const SymbolValues& values = {}) {
    return table.evaluate(parse(text), values);
  }
  StringId name(std::string_view text) { return strings.intern(text); }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "equal text is one expression") {
  CHECK(parse("s0*(s1 + 2)") == parse("  s0 *\t( s1+2 )\n"));
  CHECK(parse("s0*s1") != parse("s1*s0"));
  CHECK(table.constant(7) == parse("7"));
  CHECK(table.symbol(name("s0")) == parse("s0"));
  CHECK(table.make(ExprKind::kAdd, {parse("s0"), parse("7")}) == parse("s0 + 7"));
  CHECK(parse("f(s0)") != parse("g(s0)"));
  CHECK(parse("1") != parse("1.0"));
}

TEST_CASE_METHOD(Fixture, "text is printed with single spaces and no needless brackets") {
  CHECK(canonical("((s0))*((2))") == "s0 * 2");
  CHECK(canonical("(a*b)+(c//d)") == "a * b + c // d");
  CHECK(canonical("(a+b)*c") == "(a + b) * c");
  CHECK(canonical("(a-b)-c") == "a - b - c");
  CHECK(canonical("a-(b-c)") == "a - (b - c)");
  CHECK(canonical("a//(b*c)") == "a // (b * c)");
  CHECK(canonical("a%b/c") == "a % b / c");
  CHECK(canonical("(a<b)==(c<=d)") == "(a < b) == (c <= d)");
  CHECK(canonical("a + b >= c") == "a + b >= c");
  CHECK(canonical("Max( 1,(s0), Min() )") == "Max(1, s0, Min())");
  CHECK(canonical("a**(b**c)") == "a ** b ** c");
  CHECK(canonical("(a**b)**c") == "(a ** b) ** c");
  CHECK(canonical("(-a)**(-b)") == "(-a) ** -b");
  CHECK(canonical("-(a**b)") == "-a ** b");
  CHECK(canonical("-(a*b)") == "-(a * b)");
  CHECK(canonical("(-a)*b") == "-a * b");
  CHECK(canonical("a - -b") == "a - -b");
}

TEST_CASE_METHOD(Fixture, "an integer beyond 64 bits is carried, but has no value") {
  const std::string guard = "s0 - 1 <= 9223372036854775808 - s0";  // PyTorch guards sizes with 2**63
  CHECK(canonical(guard) == guard);
  CHECK(parse("9223372036854775808") == parse("09223372036854775808"));
  CHECK(parse("9223372036854775808") != parse("9223372036854775809"));
  CHECK(table[parse("9223372036854775807")].kind == ExprKind::kInt);
  CHECK(table[parse("-9223372036854775809")].kind == ExprKind::kBigInt);
  CHECK(canonical("-9223372036854775809 ** 2") == "-9223372036854775809 ** 2");
  CHECK(canonical("(-9223372036854775809) ** 2") == "(-9223372036854775809) ** 2");
  CHECK(canonical("-(9223372036854775809)") == "-(9223372036854775809)");
  const std::string most(1000, '9');
  CHECK(canonical(most) == most);
  CHECK_FALSE(table.evaluate(parse(guard), {{strings.intern("s0"), 4}}).has_value());
}

TEST_CASE_METHOD(Fixture, "sizes that go through floats have the values of Python") {
  const SymbolValues values = {{strings.intern("s7"), 4}, {strings.intern("s8"), 7}};
  const auto value = [&](std::string_view text) { return evaluate(text, values); };
  CHECK(value("TruncToInt(1.7 * ToFloat(s7))") == 6);
  CHECK(value("TruncToInt(-1.7 * ToFloat(s7))") == -6);
  CHECK(value("FloorToInt(-1.7 * ToFloat(s7))") == -7);
  CHECK(value("CeilToInt(IntTrueDiv(s8, 2))") == 4);
  CHECK(value("RoundToInt(0.5)") == 0);
  CHECK(value("RoundToInt(1.5)") == 2);
  CHECK(value("RoundToInt(-2.5)") == -2);
  CHECK(value("RoundToInt(2.6)") == 3);
  CHECK(value("FloorToInt(s8)") == 7);
  CHECK(value("TruncToInt(TruncToFloat(3.9) + Max(0.5, ToFloat(s7)))") == 7);
  CHECK(value("FloatTrueDiv(1.0, 4.0) * s7 == 1.0") == 1);
  CHECK(value("Where(1 == 1, s7, 1.5)") == 4);                                      // needs only the chosen input
  CHECK_FALSE(value("9007199254740993 == ToFloat(9007199254740992)").has_value());  // Python does not round
  CHECK_FALSE(value("1.5 * ToFloat(s7)").has_value());                              // a float is no size
  CHECK_FALSE(value("TruncToInt(FloatTrueDiv(1.0, 0.0))").has_value());
  CHECK_FALSE(value("TruncToInt(1e19)").has_value());
  CHECK_FALSE(value("TruncToInt(inf)").has_value());
  CHECK_FALSE(value("TruncToInt(1.5 * s9)").has_value());
  CHECK_FALSE(value("TruncToInt(IntTrueDiv(9007199254740993, 1))").has_value());  // Python rounds only once
}

TEST_CASE_METHOD(Fixture, "a sign before a number makes a constant, unless a power follows") {
  CHECK(table[parse("-3")].kind == ExprKind::kInt);
  CHECK(table[parse("- 3")].value == -3);
  CHECK(table[parse("-(3)")].kind == ExprKind::kNeg);
  CHECK(table[parse("--3")].kind == ExprKind::kNeg);
  CHECK(table[parse("-3 ** 2")].kind == ExprKind::kNeg);
  CHECK(table[parse("(-3) ** 2")].kind == ExprKind::kPow);
  for (const char* text : {"-3", "-(3)", "--3", "-(-(3))", "-3 ** 2", "(-3) ** 2", "2 ** -3", "2 ** -(3)", "-3 * a",
                           "a - -3", "-(2.5)", "-2.5 ** 2", "-9223372036854775808", "(-9223372036854775808) ** 2"}) {
    if (std::string_view(text) == "-(-(3))") {
      CHECK(canonical(text) == "--(3)");
    } else {
      CHECK(canonical(text) == text);
    }
  }
}

TEST_CASE_METHOD(Fixture, "floats keep their bits") {
  for (const char* text : {"1.0", "0.1", "-0.0", "1e+300", "-2.5", "inf", "-inf", "nan", "Max(inf, 0.5)"}) {
    CHECK(canonical(text) == text);
  }
  CHECK(canonical("1e2") == "100.0");
  CHECK(canonical("1.e-5") == "1e-05");
  CHECK(table.floating(std::numeric_limits<double>::quiet_NaN()) == parse("-nan"));
  CHECK(table.floating(0.0) != table.floating(-0.0));
}

TEST_CASE_METHOD(Fixture, "any name can be a symbol or a function") {
  for (const char* odd : {"", "a b", "inf", "nan", "0x", "a+b", "q\"uote\\", "\xff", "caf\xc3\xa9", "s0"}) {
    const ExprId symbol = table.symbol(name(odd));
    CHECK(parse(table.to_string(symbol)) == symbol);
    const ExprId call = table.make(ExprKind::kCall, {symbol}, name(odd));
    CHECK(parse(table.to_string(call)) == call);
  }
  CHECK(table.to_string(table.symbol(name("a b"))) == "\"a b\"");
  CHECK(canonical("torch.sym_max(_x, u0)") == "torch.sym_max(_x, u0)");
}

TEST_CASE_METHOD(Fixture, "an error names the column and what was expected") {
  struct Case {
    std::string text;
    uint64_t column;
    const char* message;
  };
  const Case cases[] = {
      {"", 1, "expression: expected a number, a symbol or a bracket, found the end"},
      {"s0 +", 5, "expression: expected a number, a symbol or a bracket, found the end"},
      {"s0 + )", 6, "expression: expected a number, a symbol or a bracket, found \")\""},
      {"s0 s1", 4, "expression: expected an operator or the end, found \"s\""},
      {"(s0", 4, "expression: expected an operator or \")\", found the end"},
      {"f(a b)", 5, "expression: expected \",\" or \")\", found \"b\""},
      {"f(a,)", 5, "expression: expected a number, a symbol or a bracket, found \")\""},
      {"a < b < c", 7, "expression: comparisons do not chain; put one in brackets"},
      {"a = b", 3, "expression: expected an operator or the end, found \"=\""},
      {"1 + " + std::string(1001, '9'), 5, "expression: the integer has more than 1,000 digits"},
      {"2 * 12ab", 5, "expression: \"12ab\" is not a 64-bit number"},
      {"1e999", 1, "expression: \"1e999\" is not a 64-bit number"},
      {"\"a", 1, "expression: the quotation mark is not closed"},
      {"\"\\q\"", 1, "expression: the quoted name has a bad escape"},
      {"caf\xc3\xa9", 4, "expression: expected an operator or the end, found \"\xc3\xa9\""},
  };
  for (const Case& c : cases) {
    const Error found = error(c.text);
    CHECK(found.code == ErrorCode::kBadExpression);
    CHECK(found.message == c.message);
    CHECK(found.where.column == c.column);
  }
}

TEST_CASE_METHOD(Fixture, "nesting and size are bounded") {
  const auto nested = [](size_t depth) { return std::string(depth, '(') + "a" + std::string(depth, ')'); };
  CHECK(table.parse(nested(64)).ok());
  CHECK(error(nested(65)).code == ErrorCode::kLimit);
  CHECK(error(nested(65)).where.column == 66);
  CHECK(table.parse(std::string(64, '-') + "a").ok());
  CHECK(error(std::string(100000, '-') + "a").code == ErrorCode::kLimit);
  std::string powers = "a";
  for (int i = 0; i < 65; ++i) powers += " ** a";
  CHECK(error(powers).code == ErrorCode::kLimit);
  std::string sum = "1";
  for (int i = 1; i < 32768; ++i) sum += "+1";
  CHECK(table.parse(sum).ok());  // 65,535 operands and operators
  CHECK(evaluate(sum) == 32768);
  CHECK(error(sum + "+1").code == ErrorCode::kLimit);
}

TEST_CASE_METHOD(Fixture, "division and modulo round as Python's") {
  struct Case {
    int64_t a, b, quotient, rest;
  };
  for (const Case& c :
       {Case{7, 2, 3, 1}, Case{-7, 2, -4, 1}, Case{7, -2, -4, -1}, Case{-7, -2, 3, -1}, Case{6, 3, 2, 0},
        Case{-6, 3, -2, 0}, Case{6, -3, -2, 0}, Case{-6, -3, 2, 0}, Case{0, 5, 0, 0}, Case{0, -5, 0, 0},
        Case{1, 5, 0, 1}, Case{-1, 5, -1, 4}, Case{1, -5, -1, -4}, Case{-1, -5, 0, -1},
        Case{kSmallest, 1, kSmallest, 0}, Case{kSmallest, 3, -3074457345618258603, 1}}) {
    const SymbolValues values = {{name("a"), c.a}, {name("b"), c.b}};
    CAPTURE(c.a, c.b);
    CHECK(evaluate("a // b", values) == c.quotient);
    CHECK(evaluate("a % b", values) == c.rest);
    CHECK(evaluate("CeilDiv(a, b)", values) == c.quotient + (c.rest == 0 ? 0 : 1));
    CHECK(evaluate("a / b", values) == (c.rest == 0 ? std::optional<int64_t>(c.quotient) : std::nullopt));
  }
}

TEST_CASE_METHOD(Fixture, "operators and functions have Python's values") {
  CHECK(evaluate("2 + 3 * 4 - 5") == 9);
  CHECK(evaluate("-2 ** 2") == -4);
  CHECK(evaluate("2 ** 3 ** 2") == 512);
  CHECK(evaluate("(-2) ** 63") == kSmallest);
  CHECK(evaluate("0 ** 0") == 1);
  CHECK(evaluate("(-1) ** 1000000000001") == -1);
  CHECK(evaluate("(-1) ** -2") == 1);
  CHECK(evaluate("(1 == 1) + (1 != 1) + (1 <= 2) + (1 >= 2) + (1 < 2) + (2 > 1)") == 4);
  CHECK(evaluate("Max(3, -1, 7)") == 7);
  CHECK(evaluate("Min(3, -1, 7)") == -1);
  CHECK(evaluate("Mod(7, 4)") == 3);
  CHECK(evaluate("ModularIndexing(29, 4, 5)") == 2);
  CHECK(evaluate("ModularIndexing(-1, 4, 5)") == 4);
  CHECK(evaluate("Abs(-5) + Abs(5)") == 10);
  CHECK(evaluate("And(1, 2) + And(1, 0) * 10 + Or(0, 3) * 100 + Or(0, 0) * 1000 + Not(0) * 10000 + Not(5)") == 10101);
  CHECK(evaluate("Where(s > 3, s, 1 // 0)", {{name("s"), 4}}) == 4);
  CHECK(evaluate("Where(s > 3, s, 8)", {{name("s"), 3}}) == 8);
}

TEST_CASE_METHOD(Fixture, "what has no value evaluates to nothing") {
  for (const char* text : {"s",
                           "s * 0",
                           "f(1)",
                           "1 // 0",
                           "1 % 0",
                           "1 / 0",
                           "1 / 2",
                           "2 ** -1",
                           "0 ** -1",
                           "1.0",
                           "Max()",
                           "Mod(-1, 4)",
                           "Mod(1, -4)",
                           "Mod(1, 0)",
                           "Mod(1)",
                           "Abs(1, 2)",
                           "CeilDiv(1, 0)",
                           "Where(1, 2)",
                           "Where(s, 1, 1)",
                           "ModularIndexing(1, 0, 1)",
                           "ModularIndexing(1, 1, 0)"}) {
    INFO(text);
    CHECK_FALSE(evaluate(text).has_value());
  }
}

TEST_CASE_METHOD(Fixture, "overflow evaluates to nothing, the last value before it does not") {
  CHECK(evaluate("9223372036854775806 + 1") == std::numeric_limits<int64_t>::max());
  CHECK_FALSE(evaluate("9223372036854775807 + 1").has_value());
  CHECK(evaluate("-9223372036854775807 - 1") == kSmallest);
  CHECK_FALSE(evaluate("-9223372036854775808 - 1").has_value());
  CHECK(evaluate("-4611686018427387904 * 2") == kSmallest);
  CHECK_FALSE(evaluate("4611686018427387904 * 2").has_value());
  CHECK(evaluate("2 ** 62") == int64_t{1} << 62);
  CHECK_FALSE(evaluate("2 ** 63").has_value());
  CHECK_FALSE(evaluate("2 ** 9223372036854775807").has_value());
  const SymbolValues values = {{name("m"), kSmallest}};
  CHECK_FALSE(evaluate("-m", values).has_value());
  CHECK_FALSE(evaluate("Abs(m)", values).has_value());
  CHECK_FALSE(evaluate("m // -1", values).has_value());
  CHECK_FALSE(evaluate("m / -1", values).has_value());
  CHECK_FALSE(evaluate("CeilDiv(m, -1)", values).has_value());
  CHECK(evaluate("m % -1", values) == 0);
}

TEST_CASE_METHOD(Fixture, "expressions deeper than any stack and shared ones are evaluated once") {
  ExprId deep = table.constant(0);
  ExprId shared = table.symbol(name("s"));
  for (int i = 0; i < 200000; ++i) deep = table.make(ExprKind::kAdd, {table.constant(1), deep});
  for (int i = 0; i < 62; ++i) shared = table.make(ExprKind::kAdd, {shared, shared});
  CHECK(table.evaluate(deep, {}) == 200000);
  CHECK(table.to_string(deep).size() == 200000 * 6 + 1 - 2);
  CHECK(table.evaluate(shared, {{name("s"), 1}}) == int64_t{1} << 62);
  CHECK(table.symbols(shared).size() == 1);
}

TEST_CASE_METHOD(Fixture, "symbols come in order of first appearance") {
  const std::vector<StringId> names = table.symbols(parse("Max(u1, s0 * 2) + s0 // u1 - a"));
  CHECK(names == std::vector<StringId>{name("u1"), name("s0"), name("a")});
  CHECK(table.symbols(parse("1 + f(2.5)")).empty());
}

TEST_CASE("make accepts well-formed operations only") {
  Interner strings;
  ExprTable table(strings);
  const ExprId one = table.constant(1);
  CHECK_THROWS_AS(table.make(ExprKind::kAdd, {one}), InternalError);
  CHECK_THROWS_AS(table.make(ExprKind::kNeg, {one, one}), InternalError);
  CHECK_THROWS_AS(table.make(ExprKind::kInt, {}), InternalError);
  CHECK_THROWS_AS(table.make(ExprKind::kCall, {one}), InternalError);
  CHECK_THROWS_AS(table.make(ExprKind::kAdd, {one, one}, strings.intern("f")), InternalError);
  CHECK_THROWS_AS(table.make(ExprKind::kNeg, {ExprId(5)}), InternalError);
  CHECK_THROWS_AS(table.evaluate(ExprId(), {}), InternalError);
}

}  // namespace fxopt
