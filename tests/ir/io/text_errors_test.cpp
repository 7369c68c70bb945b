// Errors of the text form's reader, and the place each one reports.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "ir/io/io.h"
#include "tests/catch.h"

namespace fxopt {
namespace {

struct Wrong {
  std::string text;
  ErrorCode code = ErrorCode::kInternal;
  uint64_t line = 0;
  uint64_t column = 0;
  std::string says;  // part of "message; hint"
};

std::string read_case(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void check_rejected(const Wrong& wrong, const ReadLimits& limits = {}) {
  INFO(wrong.text.substr(0, 400));
  const Error error = parse_text(wrong.text, "wrong.fxg", limits).error();
  INFO(format_error(error));
  CHECK(code_name(error.code) == code_name(wrong.code));
  CHECK(error.where.file == "wrong.fxg");
  CHECK(error.where.line == wrong.line);
  CHECK(error.where.column == wrong.column);
  CHECK((error.message + "; " + error.hint).find(wrong.says) != std::string::npos);
  CHECK(error.where.excerpt.find("\n") != std::string::npos);
}

// One-line graphs with a wrong argument, type or field at a known place.
const std::string kBeforeArg = "graph @g { %x = f(";
const std::string kBeforeType = "graph @g { %x: ";
const std::string kBeforeField = "graph @g { %x = f() {";
Wrong wrong_arg(const std::string& arg, ErrorCode code, uint64_t column, const std::string& says) {
  return {kBeforeArg + arg + ") }", code, 1, kBeforeArg.size() + column, says};
}
Wrong wrong_type(const std::string& type, ErrorCode code, uint64_t column, const std::string& says) {
  return {kBeforeType + type + " = f() }", code, 1, kBeforeType.size() + column, says};
}
Wrong wrong_field(const std::string& field, ErrorCode code, uint64_t column, const std::string& says) {
  return {kBeforeField + field + "} }", code, 1, kBeforeField.size() + column, says};
}

constexpr ErrorCode kSyntax = ErrorCode::kSyntax;
constexpr ErrorCode kTwice = ErrorCode::kDuplicateName;
constexpr ErrorCode kNothing = ErrorCode::kBadReference;
constexpr ErrorCode kValue = ErrorCode::kBadValue;
constexpr ErrorCode kExpression = ErrorCode::kBadExpression;

TEST_CASE("wrong files and records are rejected where they are wrong", "[text]") {
  check_rejected(GENERATE(values<Wrong>({
      {"fxg", kSyntax, 1, 4, "expected an integer, found the end of the text"},
      {"fxg 1\n", ErrorCode::kVersion, 1, 5, "version 0"},
      {"fxg -1\n", kValue, 1, 5, "does not fit in 64 bits without a sign"},
      {"\n\n  grpah @g {}", kSyntax, 3, 3, "did you mean 'graph'?"},
      {"whatever", kSyntax, 1, 1, "\"whatever\" starts neither a record nor a graph"},
      {"7", kSyntax, 1, 1, "expected a record or a graph"},
      {"'", kSyntax, 1, 1, "no token starts"},
      {"graph g {}", kSyntax, 1, 7, "expected \"@\""},
      {"graph @g", kSyntax, 1, 9, "expected \"{\""},
      {"graph @ {}", kSyntax, 1, 9, "expected a name"},
      {"graph @g {", kSyntax, 1, 11, "found the end of the text"},
      {"graph @g {} graph @g {}", kTwice, 1, 20, "graph \"g\" is given twice"},
      {"graph @g {kimd=joint} {}", kSyntax, 1, 11, "did you mean 'kind'?"},
      {"graph @g {kind=jiont} {}", kSyntax, 1, 16, "did you mean 'joint'?"},
      {"graph @g {kind=joint kind=joint} {}", kSyntax, 1, 22, "expected \"}\""},
      {"graph @g { outputspec {} }", kSyntax, 1, 12, "did you mean 'output_spec'?"},
      {"graph @g { 5 }", kSyntax, 1, 12, "expected a node, a record or \"}\""},
      {"producer {tool=\"a\", tool=\"b\"}", kTwice, 1, 21, "field \"tool\" is given twice"},
      {"producer {} producer {}", kTwice, 1, 22, "only once"},
      {"producer {tool=5}", kSyntax, 1, 16, "expected a quoted string"},
      {"producer {tool}", kSyntax, 1, 15, "expected \"=\""},
      {"producer tool", kSyntax, 1, 10, "expected \"{\""},
      {"module {} module {}", kTwice, 1, 18, "only once"},
      {"meta {} meta {}", kTwice, 1, 14, "twice"},
      {"meta {k: 1}", kSyntax, 1, 7, "expected a quoted string"},
      {"meta {\"k\": %x}", kValue, 1, 12, "refer to the node by its uid"},
      {"profile \"AA==\"", kSyntax, 1, 9, "expected base64"},
      {"profile base64\"A\"", kSyntax, 1, 15, "not base64"},
      {"profile base64\"\" profile base64\"\"", kTwice, 1, 26, "only once"},
      {"storage {id=1} storage {id=1}", kTwice, 1, 24, "storage 1 is given twice"},
      {"graph @g { %a: f32[2]$1 = f() } storage {id=1}", kTwice, 1, 41, "before the tensors that refer to it"},
      {"storage {id=18446744073709551615}", ErrorCode::kLimit, 1, 9, "largest id"},
      {"graph @g { %a = f() } counters {next_uid=0}", kValue, 1, 32, "leave the counter out"},
      {"storage {id=1} counters {next_storage=1}", kValue, 1, 25, "leave the counter out"},
      {"graph @g {} counters {names=[{graph=1}]}", kNothing, 1, 22, "graph 1, but the number of graphs is 1"},
      {"constant {tensor=None}", kValue, 1, 18, "only a tensor"},
      {"storage {id=-1}", kValue, 1, 13, "without a sign"},
      {"storage {bytes=x}", kSyntax, 1, 16, "expected an integer"},
      {"storage {bytes=(s0 +)}", kExpression, 1, 21, "expression"},
      {"storage {pinned=1}", kSyntax, 1, 17, "true or false"},
      {"assertion {condition=()}", kExpression, 1, 23, "an expression is missing"},
      {"assertion {condition=s0}", kSyntax, 1, 22, "expected \"(\""},
      {"counters {} counters {}", kTwice, 1, 22, "only once"},
      {"counters {names=[{base=\"a\"}, {base=\"a\"}]}", kTwice, 1, 10, "counter of \"a\" is given twice"},
      {"counters {unknown=base64\"AA==\"}", kSyntax, 1, 11, "there is no field \"unknown\" here"},
      {"rank {rank=1.5}", kSyntax, 1, 12, "expected an integer"},
      {"process_group {ranks=[1 2]}", kSyntax, 1, 25, "expected \"]\""},
      {"invocation {bindings=[{input=4294967296}]}", kValue, 1, 30, "does not fit in 32 bits"},
  })));
}

TEST_CASE("wrong nodes are rejected where they are wrong", "[text]") {
  check_rejected(GENERATE(values<Wrong>({
      {"graph @g {\n  %a = f()\n  %a = f()\n}", kTwice, 3, 4, "node \"a\" is defined twice"},
      {"graph @g {\n  %output = f()\n  return 1\n}", kTwice, 3, 3, "node \"output\" is defined twice"},
      {"graph @g {\n  %weights = f()\n  %b = f(%wieghts)\n}", kNothing, 3, 10, "did you mean 'weights'?"},
      {"graph @g {\n  %b = f(%laetr)\n  %later = f()\n}", kNothing, 2, 10, "did you mean 'later'?"},
      {"graph @g {\n  %b = f(%nothing)\n}", kNothing, 2, 10, "there is no node \"nothing\" in this graph"},
      {"graph @g { %a = f() } graph @h { %b = f(%a) }", kNothing, 1, 41, "there is no node \"a\""},
      {"graph @g { %b = f(%x: f32[2]) }", kNothing, 1, 19, "there is no node \"x\""},
      {"graph @g { % = f() }", kSyntax, 1, 14, "expected a name"},
      {"graph @g { %a f() }", kSyntax, 1, 15, "expected \"=\""},
      {"graph @g { %a = () }", kSyntax, 1, 17, "expected a call target"},
      {"graph @g { %a = f }", kSyntax, 1, 19, "expected \"(\""},
      {"graph @g { %a = f( }", kSyntax, 1, 20, "expected an argument"},
      {"graph @g { %a = call(1) }", kSyntax, 1, 21, "expected \"[\""},
      {"graph @g { %a = get_attr() }", kSyntax, 1, 25, "expected \"[\""},
      {"graph @g { %a = call_method[size](1) }", kSyntax, 1, 29, "expected a quoted string"},
      {"graph @g { %a = kind(call)[\"t\"]() }", kSyntax, 1, 22, "\"call\" is not a kind of node"},
      {"graph @g { %a = kind(?256)[\"t\"]() }", kValue, 1, 23, "does not fit in 8 bits"},
      {"graph @g { %a = return(1) }", kSyntax, 1, 17, "write: return"},
      {"graph @g { return }", kSyntax, 1, 19, "expected an argument"},
      {"graph @g { %a = f(k=1, 2) }", kSyntax, 1, 24, "follows a keyword argument"},
      {"graph @g { %a = f(k=) }", kSyntax, 1, 21, "expected an argument"},
      {"graph @g { %a = f(1 2) }", kSyntax, 1, 21, "expected \")\""},
      wrong_field("fase=forward", kSyntax, 1, "did you mean 'phase'?"),
      wrong_field("phase=bakward", kSyntax, 7, "did you mean 'backward'?"),
      wrong_field("phase=?256", kValue, 8, "8 bits"),
      wrong_field("tag=MUST_SAVED", kSyntax, 5, "did you mean 'MUST_SAVE'?"),
      wrong_field("uid=1, uid=2", kTwice, 8, "field \"uid\" is given twice"),
      wrong_field("uid=-1", kValue, 5, "without a sign"),
      wrong_field("uid=1 phase=loss", kSyntax, 7, "expected \"}\""),
      wrong_field("control=[%x]", kSyntax, 10, "expected a kind of control dependency"),
      wrong_field("control=[order %y]", kNothing, 16, "there is no node \"y\""),
      wrong_field("phase_markers=[?32]", ErrorCode::kLimit, 0, "between 0 and 31"),
      wrong_field("uid=18446744073709551615", ErrorCode::kLimit, 0, "the largest uid"),
      wrong_field("uid=18446744073709551614} %y = f() {", ErrorCode::kLimit, 36, "the largest uid"),
      wrong_field("meta={\"k\": [%x]}", kValue, 13, "refer to the node by its uid"),
      wrong_field("verdict={rule=7}", kSyntax, 15, "a value of this field"),
      wrong_field("unknown=base64\"A\"", kSyntax, 15, "not base64"),
      wrong_field("unknown=base64\"\", unknown=base64\"\"", kTwice, 19, "twice"),
      wrong_field("meta={1: 2}", kSyntax, 7, "expected a quoted string"),
  })));
}

TEST_CASE("wrong arguments are rejected where they are wrong", "[text]") {
  check_rejected(GENERATE(values<Wrong>({
      wrong_arg("ture", kSyntax, 1, "did you mean 'True'?"),
      wrong_arg("none", kSyntax, 1, "did you mean 'None'?"),
      wrong_arg("dtyp(f32)", kSyntax, 1, "did you mean 'dtype'?"),
      wrong_arg("dtype(fp32)", kSyntax, 7, "did you mean 'f32'?"),
      wrong_arg("dtype", kSyntax, 6, "expected \"(\""),
      wrong_arg("layout(stride)", kSyntax, 8, "did you mean 'strided'?"),
      wrong_arg("memory_format(5)", kSyntax, 15, "expected a memory format"),
      wrong_arg("9223372036854775808", kValue, 1, "does not fit in 64 bits with a sign"),
      wrong_arg("1e999", kValue, 1, "too large or too small"),
      wrong_arg("1e", kSyntax, 1, "exponent has no digits"),
      wrong_arg("12ab", kSyntax, 1, "a letter follows the number"),
      wrong_arg("-", kSyntax, 1, "minus sign needs a number"),
      wrong_arg("0x10", kSyntax, 1, "expected an argument"),
      wrong_arg("float(1.5)", kSyntax, 7, "64 bits of the number"),
      wrong_arg("float(0x10000000000000000)", kSyntax, 7, "64 bits of the number"),
      wrong_arg("\"abc", kSyntax, 1, "not closed on its line"),
      wrong_arg("\"a\\q\"", kSyntax, 1, "unknown escape"),
      wrong_arg("\"\\xff\"", kValue, 1, "not valid UTF-8"),
      wrong_arg("(1)", kSyntax, 1, "a tuple of one item needs a comma"),
      wrong_arg("[1", kSyntax, 3, "expected \"]\""),
      wrong_arg("{1}", kSyntax, 3, "expected \":\""),
      wrong_arg("slice(1, 2)", kSyntax, 11, "expected \",\""),
      wrong_arg("typed(\"T\", 5)", kSyntax, 12, "only a list"),
      wrong_arg("enum(\"T\")", kSyntax, 9, "expected \",\""),
      wrong_arg("opaque(\"T\", base64\"\")", kSyntax, 13, "expected a quoted string"),
      wrong_arg("complex(1.0)", kSyntax, 12, "expected \",\""),
      wrong_arg("sym(s0 +)", kExpression, 9, "expression"),
      wrong_arg("sym(1, 2)", kSyntax, 6, "expected \")\""),
      wrong_arg("sym(s0 $ 2)", kExpression, 8, "expression"),
      wrong_arg("value(1)", kSyntax, 7, "expected a type"),
      wrong_arg("value(const(%x))", kValue, 13, "refer to the node by its uid"),
      wrong_arg("uid(-1)", kValue, 5, "without a sign"),
      wrong_arg("1~2", kSyntax, 3, "expected base64"),
      wrong_arg("@", kSyntax, 2, "expected a name"),
      wrong_arg("op(\"a\" b)", kSyntax, 8, "expected \")\""),
  })));
}

TEST_CASE("wrong types are rejected where they are wrong", "[text]") {
  check_rejected(GENERATE(values<Wrong>({
      wrong_type("f23[2]", kSyntax, 1, "did you mean 'f32'?"),
      wrong_type("f32", kSyntax, 1, "write f32[2, 4]"),
      wrong_type("float32", kSyntax, 1, "is not a type"),
      wrong_type("5", kSyntax, 1, "expected a type"),
      wrong_type("f32[2", kExpression, 7, "found \"=\""),
      wrong_type("f32[,]", kExpression, 5, "an expression is missing"),
      wrong_type("f32[2.5.1]", kExpression, 5, "\"2.5.1\""),
      wrong_type("f32[s0 s1]", kExpression, 8, "expression"),
      wrong_type("f32[99999999999999999999]", kValue, 5, "does not fit"),
      wrong_type("f32[2]+x", kSyntax, 8, "expected an integer"),
      wrong_type("f32[2]@", kSyntax, 7, "no device follows the @"),
      wrong_type("f32[2]$x", kSyntax, 8, "expected an integer"),
      wrong_type("f32[2]{require_grad}", kSyntax, 8, "did you mean 'requires_grad'?"),
      wrong_type("f32[2]{layout=jaged}", kSyntax, 15, "did you mean 'jagged'?"),
      wrong_type("f32[2]{placements=[{kind=shart}]}", kSyntax, 26, "did you mean 'shard'?"),
      wrong_type("f32[2, 3](1)", kValue, 10, "1 strides for 2 sizes"),
      wrong_type("f32[2]()", kValue, 7, "0 strides for 1 sizes"),
      wrong_type("f32[2]$18446744073709551615", ErrorCode::kLimit, 8, "largest id"),
      wrong_type("const(%x)", kValue, 7, "refer to the node by its uid"),
      wrong_type("sym_int()", kExpression, 9, "an expression is missing"),
      wrong_type("(f32[2])", kSyntax, 1, "a tuple of one item needs a comma"),
      wrong_type("{a: f32[2]}", kSyntax, 2, "expected a quoted string"),
      wrong_type("sym_int(s0", kExpression, 12, "found \"=\""),
      wrong_type("sym_itn(s0)", kSyntax, 1, "did you mean 'sym_int'?"),
      wrong_type("opaque(5)", kSyntax, 8, "expected a quoted string"),
      wrong_type("opaque(\"T\", mehs=\"m\")", kSyntax, 13, "did you mean 'mesh'?"),
      wrong_type("graph(g)", kSyntax, 7, "expected \"@\""),
  })));
}

// tests/cases/parse: the first line of each file is "# error: FX0306 3:12 part of the message;
// hint".
TEST_CASE("wrong files are rejected as their first lines say", "[text]") {
  const std::filesystem::path folder = std::filesystem::path(FXOPT_SOURCE_DIR) / "tests/cases/parse";
  size_t count = 0;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder)) {
    INFO(entry.path().filename().string());
    const std::string text = read_case(entry.path());
    std::istringstream first(text.substr(0, text.find('\n')));
    std::string hash, word, code, says;
    Wrong wrong;
    char colon = 0;
    first >> hash >> word >> code >> wrong.line >> colon >> wrong.column;
    std::getline(first >> std::ws, wrong.says);
    REQUIRE(word == "error:");
    REQUIRE(find_error_info(code) != nullptr);
    wrong.code = find_error_info(code)->code;
    wrong.text = text;
    check_rejected(wrong);
    ++count;
  }
  CHECK(count >= 8);
}

TEST_CASE("the excerpt is the line with a caret, and no more than a window of it", "[text]") {
  const auto excerpt = [](const std::string& text) { return parse_text(text, "").error().where.excerpt; };
  CHECK(excerpt("fxg 0\n\tgrpah @g {}\n") == "\tgrpah @g {}\n\t^");
  CHECK(excerpt("producer {tool=\"\xc3\xa9\", tol=1}") ==
        "producer {tool=\"\xc3\xa9\", tol=1}\n" + std::string(20, ' ') + "^");
  CHECK(excerpt("a\x1b[2J") == "a?[2J\n^");
  CHECK(excerpt("a\xff") == "a?\n^");
  CHECK(excerpt("graph @g {") == "graph @g {\n          ^");
  const std::string long_line = "meta {\"k\": [" + std::string(100000, ' ') + "?" + std::string(100000, ' ') + "]}";
  CHECK(excerpt(long_line) == std::string(80, ' ') + "?" + std::string(79, ' ') + "\n" + std::string(80, ' ') + "^");
}

TEST_CASE("errors name the graph and the node", "[text]") {
  const Error error = parse_text("graph @g { %a = f() {fase=1} }", "x.fxg").error();
  CHECK(error.where.graph == "g");
  CHECK(error.where.node == "a");
}

TEST_CASE("nesting is read up to the limit and not beyond", "[text]") {
  const auto nested = [](size_t depth, const std::string& open, const std::string& inner, const std::string& close) {
    std::string text = inner;
    for (size_t i = 0; i < depth; ++i) text = open + text + close;
    return text;
  };
  const auto [open, close] = GENERATE(table<std::string, std::string>({{"[", "]"},
                                                                       {"(", ",)"},
                                                                       {"typed(\"T\", [", "])"},
                                                                       {"slice(1, 2, ", ")"},
                                                                       {"{1: ", "}"},
                                                                       {"{", ": 1}"},
                                                                       {"set(", ")"}}));
  const size_t just_inside = ReadLimits().max_depth;
  CHECK(parse_text(kBeforeArg + nested(just_inside, open, "1", close) + ") }", "").ok());
  const Error deeper = parse_text(kBeforeArg + nested(just_inside + 1, open, "1", close) + ") }", "").error();
  CHECK(deeper.code == ErrorCode::kLimit);
}

TEST_CASE("nesting of types is read up to the limit and not beyond", "[text]") {
  const auto type = [](size_t depth, const std::string& inner) {
    return kBeforeType + std::string(depth, '[') + inner + std::string(depth, ']') + " = f() }";
  };
  const size_t just_inside = ReadLimits().max_depth;
  CHECK(parse_text(type(just_inside, "None"), "").ok());
  CHECK(parse_text(type(just_inside + 1, "None"), "").error().code == ErrorCode::kLimit);
  CHECK(parse_text(type(just_inside - 1, "const(1)"), "").ok());
  CHECK(parse_text(type(just_inside, "const(1)"), "").error().code == ErrorCode::kLimit);
  CHECK(parse_text(kBeforeArg + std::string(1000000, '['), "").error().code == ErrorCode::kLimit);
  CHECK(parse_text(kBeforeArg + "sym(" + std::string(1000000, '('), "").error().code == ErrorCode::kLimit);
}

TEST_CASE("numbers of nodes and lengths of strings are read up to the limit and not beyond", "[text]") {
  ReadLimits limits;
  limits.max_nodes = 2;
  CHECK(parse_text("graph @g { %a = f() %b = f() }", "", limits).ok());
  check_rejected(
      {"graph @g { %a = f() } graph @h { %b = f() return 1 }", ErrorCode::kLimit, 1, 43, "more than 2 nodes"}, limits);
  limits.max_string_bytes = 8;
  CHECK(parse_text("module {name=\"12345678\"}", "", limits).ok());
  check_rejected({"module {name=\"123456789\"}", ErrorCode::kLimit, 1, 14, "beyond the limit of 8"}, limits);
  check_rejected({"graph @a23456789 {}", ErrorCode::kLimit, 1, 8, "beyond the limit of 8"}, limits);
}

TEST_CASE("every beginning of a text is read or rejected", "[text]") {
  const std::filesystem::path folder = std::filesystem::path(FXOPT_SOURCE_DIR) / "tests/cases/text";
  for (const char* name : {"graphs.fxg", "records.fxg"}) {
    const std::string text = read_case(folder / name);
    size_t rejected = 0;
    for (size_t length = 0; length < text.size(); ++length) {
      rejected += parse_text(text.substr(0, length), "").ok() ? 0 : 1;
    }
    CHECK(rejected > text.size() * 9 / 10);
  }
}

TEST_CASE("a text with bytes changed is rejected, or read to a module that prints the same twice", "[text]") {
  const std::filesystem::path folder = std::filesystem::path(FXOPT_SOURCE_DIR) / "tests/cases/text";
  std::mt19937_64 random(7);
  const std::string alphabet = "()[]{},:=%@$+~?\"#\\ \n-.0123456789aefnstux_\xff";
  size_t loaded = 0;
  for (const char* name : {"graphs.fxg", "records.fxg", "example.fxg"}) {
    const std::string original = read_case(folder / name);
    for (int i = 0; i < 2000; ++i) {
      std::string text = original;
      const size_t at = random() % text.size();
      const char byte = alphabet[random() % alphabet.size()];
      if (random() % 2 == 0) {
        text[at] = byte;
      } else {
        text.insert(at, 1, byte);
      }
      INFO(text);
      const Result<std::unique_ptr<Module>> module = parse_text(text, "");
      if (!module.ok()) continue;
      ++loaded;
      const std::string once = print_text(**module);
      REQUIRE(print_text(*parse_text(once, "").value()) == once);
    }
  }
  CHECK(loaded > 600);
}

}  // namespace
}  // namespace fxopt
