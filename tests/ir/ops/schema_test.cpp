#include <string>
#include <string_view>

#include "ir/ops/op.h"
#include "tests/catch.h"

namespace fxopt {
namespace {

Schema parsed(std::string_view text) {
  INFO(text);
  Result<Schema> schema = parse_schema(text);
  if (!schema.ok()) FAIL(schema.error().message << " at column " << schema.error().where.column);
  return std::move(schema).value();
}

Error rejected(std::string_view text) {
  INFO(text);
  return parse_schema(text).error();
}

// The only argument of "a::f(<arg>) -> ()".
SchemaArg parsed_arg(const std::string& arg) {
  const Schema schema = parsed("a::f(" + arg + ") -> ()");
  REQUIRE(schema.args.size() == 1);
  return schema.args[0];
}

TEST_CASE("a schema names the operator, its overload, arguments and returns") {
  const Schema schema = parsed("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  CHECK(schema.name == "aten::add_");
  CHECK(schema.overload == "Tensor");
  CHECK_FALSE(schema.variadic);
  REQUIRE(schema.args.size() == 3);
  CHECK(schema.args[0].name == "self");
  CHECK(schema.args[0].type == "Tensor");
  CHECK(schema.args[0].alias_set == "a");
  CHECK(schema.args[0].is_write);
  CHECK_FALSE(schema.args[1].is_write);
  CHECK(schema.args[1].alias_set.empty());
  CHECK_FALSE(schema.args[1].keyword_only);
  CHECK(schema.args[2].keyword_only);
  CHECK(schema.args[2].default_value.text == "1");
  REQUIRE(schema.returns.size() == 1);
  CHECK(schema.returns[0].alias_set == "a");
  CHECK(schema.returns[0].is_write);
  CHECK(schema.mutates());
}

TEST_CASE("an annotation without '!' does not mutate") {
  CHECK_FALSE(parsed("aten::t(Tensor(a) self) -> Tensor(a)").mutates());
  CHECK(parsed("aten::t_(Tensor(a!) self) -> Tensor(a!)").mutates());
}

TEST_CASE("alias annotations in every place they are written") {
  const SchemaArg split = parsed_arg("Tensor(a -> *) self");
  CHECK(split.alias_set == "a");
  CHECK(split.is_wildcard);
  CHECK_FALSE(split.is_write);

  const SchemaArg either = parsed_arg("Tensor(a|b) self");
  CHECK(either.alias_set == "a|b");
  CHECK_FALSE(either.is_wildcard);

  const SchemaArg inner = parsed_arg("Tensor(a!)[] out");
  CHECK(inner.type == "Tensor[]");
  CHECK(inner.is_write);

  const SchemaArg outer = parsed_arg("Tensor[](a!) inputs");
  CHECK(outer.type == "Tensor[]");
  CHECK(outer.alias_set == "a");
  CHECK(outer.is_write);

  const SchemaArg optional = parsed_arg("Tensor(a0!)? x");
  CHECK(optional.type == "Tensor?");
  CHECK(optional.alias_set == "a0");

  const SchemaArg anything = parsed_arg("Tensor(*) x");
  CHECK(anything.alias_set.empty());
  CHECK(anything.is_wildcard);
}

TEST_CASE("types keep their lengths, options and names") {
  CHECK(parsed_arg("int[2] x").type == "int[2]");
  CHECK(parsed_arg("SymInt[]? x").type == "SymInt[]?");
  CHECK(parsed_arg("Tensor?[] x").type == "Tensor?[]");
  CHECK(parsed_arg("Tensor[][] x").type == "Tensor[][]");
  CHECK(parsed_arg("__torch__.torch.classes.c10d.ProcessGroup group").type ==
        "__torch__.torch.classes.c10d.ProcessGroup");
  CHECK(parsed_arg("Dict(str, Tensor) x").type == "Dict(str, Tensor)");
  CHECK(parsed_arg("(str, Tensor)[] x").type == "(str, Tensor)[]");
  CHECK(parsed_arg("Future(t) x").type == "Future(t)");
  CHECK(parsed_arg("Tensor x").is_tensor());
  CHECK_FALSE(parsed_arg("Tensor? x").is_tensor_list());
  CHECK(parsed_arg("Tensor?[] x").is_tensor_list());
}

TEST_CASE("defaults are kept as written") {
  CHECK(parsed_arg("int x=-1").default_value.text == "-1");
  CHECK(parsed_arg("float eps=1.0000000000000001e-05").default_value.text == "1.0000000000000001e-05");
  CHECK(parsed_arg("float x=0.").default_value.text == "0.");
  CHECK(parsed_arg("int[2] x=[0, 1]").default_value.text == "[0, 1]");
  CHECK(parsed_arg("int[] x=[]").default_value.text == "[]");
  CHECK(parsed_arg("int[][] x=[[1], [-2, 3]]").default_value.text == "[[1], [-2, 3]]");
  CHECK(parsed_arg("str x=\"a, b) \\\"c\"").default_value.text == "\"a, b) \\\"c\"");
  CHECK(parsed_arg("str x='sum'").default_value.text == "'sum'");
  CHECK(parsed_arg("ScalarType? x=None").default_value.text == "None");
  CHECK(parsed_arg("MemoryFormat x=contiguous_format").default_value.text == "contiguous_format");
  CHECK(parsed_arg("str x=\"\"").has_default());
  CHECK_FALSE(parsed_arg("str x").has_default());
}

TEST_CASE("defaults are read by their type") {
  using Kind = SchemaDefault::Kind;
  const auto of = [](const std::string& arg) { return parsed_arg(arg).default_value; };
  CHECK(of("int x").kind == Kind::kMissing);
  CHECK(of("Tensor? x=None").kind == Kind::kNone);
  CHECK((of("bool x=True").kind == Kind::kBool && of("bool x=True").integer == 1));
  CHECK((of("bool x=False").kind == Kind::kBool && of("bool x=False").integer == 0));
  CHECK((of("int x=-1").kind == Kind::kInt && of("int x=-1").integer == -1));
  CHECK(of("int x=9223372036854775808").kind == Kind::kFloat);
  CHECK((of("float x=0.").kind == Kind::kFloat && of("float x=0.").real == 0.0));
  CHECK(of("float x=1.0000000000000001e-05").real == 1e-5);
  CHECK(of("float x=-inf").real == -std::numeric_limits<double>::infinity());
  CHECK(of("str x='1'").kind == Kind::kString);
  CHECK(of("MemoryFormat x=contiguous_format").kind == Kind::kWord);
  CHECK(of("int x=1-2").kind == Kind::kWord);
  CHECK((of("int[] x=[]").kind == Kind::kInts && of("int[] x=[]").integers.empty()));
  CHECK(of("int[2] x=[ 0 ,-1 ]").integers == std::vector<int64_t>{0, -1});
  CHECK(of("float[] x=[0.5]").kind == Kind::kOther);
  CHECK(of("str[] x=[\"a, 1\"]").kind == Kind::kOther);
  CHECK(of("int[][] x=[[1], [2]]").kind == Kind::kOther);
}

TEST_CASE("returns may be none, one, named, several or unknown") {
  CHECK(parsed("a::f() -> ()").returns.empty());
  CHECK(parsed("a::f() -> Tensor").returns.size() == 1);
  CHECK(parsed("a::f() -> Tensor(a)[]").returns[0].is_tensor_list());
  CHECK(parsed("a::f() -> str _0").returns[0].name == "_0");
  const Schema several = parsed("aten::sort.stable(Tensor self) -> (Tensor values, Tensor(b!) indices)");
  REQUIRE(several.returns.size() == 2);
  CHECK(several.returns[0].name == "values");
  CHECK(several.returns[1].is_write);
  CHECK_FALSE(several.mutates());
  CHECK(parsed("prim::Print(...) -> ()").variadic);
  CHECK(parsed("prim::Loop(int n, ...) -> ...").variadic);
  CHECK(parsed("prim::Loop(int n, ...) -> (...)").returns.empty());
}

TEST_CASE("space does not matter and a name needs no namespace") {
  const Schema schema = parsed(" f\t( Tensor( a! ) x = None , * , int y )\n->( Tensor , int ) ");
  CHECK(schema.name == "f");
  CHECK(schema.overload.empty());
  CHECK(schema.returns.size() == 2);
}

TEST_CASE("two arguments may have one name, as in the framework") {
  CHECK(parsed("a::f(float? posinf, float? posinf) -> Tensor").args.size() == 2);
}

TEST_CASE("what is not a schema is rejected with its column") {
  CHECK(rejected("").where.column == 1);
  CHECK(rejected("aten::mm").where.column == 9);
  CHECK(rejected("aten::mm.(Tensor x) -> Tensor").where.column == 10);
  CHECK(rejected("a::f(Tensor) -> Tensor").where.column == 12);
  CHECK(rejected("a::f(Tensor x) Tensor").where.column == 16);
  CHECK(rejected("a::f(Tensor x) -> ").where.column == 19);
  CHECK(rejected("a::f(Tensor x) -> Tensor y z").where.column == 28);
  CHECK(rejected("a::f(Tensor(a! x) -> Tensor").where.column == 16);
  CHECK(rejected("a::f(Tensor() x) -> Tensor").where.column == 13);
  CHECK(rejected("a::f(int[2 x) -> Tensor").where.column == 12);
  CHECK(rejected("a::f(2 x) -> Tensor").code == ErrorCode::kSyntax);
  CHECK(rejected("a::f(int x=) -> Tensor").where.column == 12);
  CHECK(rejected("a::f(int[] x=[1 2]) -> Tensor").where.column == 17);
  CHECK(rejected("a::f(int[] x=[1,]) -> Tensor").where.column == 17);
  CHECK(rejected("a::f(int[] x=[1) -> Tensor").where.column == 16);
  CHECK(rejected("a::f(str x=\"a) -> Tensor").where.column == 12);
  CHECK(rejected("a::f(str x=\"a\\").where.column == 12);
  CHECK(rejected("a::f(..., int x) -> Tensor").code == ErrorCode::kSyntax);
  CHECK(rejected("a::f(*, *, int x) -> Tensor").code == ErrorCode::kSyntax);
  CHECK(rejected("a::f(Dict(str, Tensor x) -> Tensor").code == ErrorCode::kSyntax);
}

TEST_CASE("the excerpt of a rejected schema points at the column") {
  const Error error = rejected("a::f(Tensor) -> Tensor");
  CHECK(error.where.excerpt == "a::f(Tensor) -> Tensor\n           ^");
  CHECK_FALSE(error.hint.empty());
}

TEST_CASE("a hostile schema is bounded in length, arguments and depth") {
  std::string args = "int x0";
  for (int i = 1; i < 255; ++i) args += ", int x" + std::to_string(i);
  CHECK(parsed("a::f(" + args + ") -> ()").args.size() == 255);
  CHECK(rejected("a::f(" + args + ", int y) -> ()").code == ErrorCode::kLimit);

  const auto nested = [](size_t depth) {
    return "a::f(int x=" + std::string(depth, '[') + "1" + std::string(depth, ']') + ") -> ()";
  };
  CHECK(parsed(nested(16)).args.size() == 1);
  CHECK(rejected(nested(17)).code == ErrorCode::kLimit);

  const auto tuples = [](size_t depth) {
    return "a::f(" + std::string(depth, '(') + "int" + std::string(depth, ')') + " x) -> ()";
  };
  CHECK(parsed(tuples(16)).args.size() == 1);
  CHECK(rejected(tuples(17)).code == ErrorCode::kLimit);
  CHECK(rejected(std::string(65537, 'a')).code == ErrorCode::kLimit);
}

TEST_CASE("no prefix of a schema crashes, and only the whole one and its returns parse") {
  const std::string text = "aten::f.o(Tensor(a! -> *)[]? x=[1, -2], *, str s=\"q\") -> (Tensor(a|b) r, int)";
  for (size_t length = 0; length < text.size(); ++length) CHECK_FALSE(parse_schema(text.substr(0, length)).ok());
  CHECK(parse_schema(text).ok());
}

}  // namespace
}  // namespace fxopt
