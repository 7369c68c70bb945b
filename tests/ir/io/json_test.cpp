#include <string>
#include <string_view>

#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/ir/sample_module.h"
#include "tests/must.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

std::string printed_json(const Module& module) { return must(print_json(module)); }

Error json_error(std::string_view text) {
  const Error error = parse_json(text, "case.json").error();
  CHECK(error.where.file == "case.json");
  return error;
}

// A graph with an input and one call whose only argument is `arg`.
std::string with_arg(std::string_view arg) {
  return R"({"version":0,"module":{"graphs":[{"name":"g","nodes":[{"kind":"NODE_KIND_PLACEHOLDER","name":"x"},)"
         R"({"kind":"NODE_KIND_CALL_FUNCTION","name":"y","target":"aten.neg.default","args":[)" +
         std::string(arg) + "]}]}]}}";
}

TEST_CASE("JSON holds all that the binary form does", "[json]") {
  const std::unique_ptr<Module> sample = make_sample_module();
  const std::string text = printed_json(*sample);
  CHECK(printed_json(*sample) == text);
  const std::unique_ptr<Module> again = parse(text, Format::kJson);
  CHECK(printed_json(*again) == text);
  CHECK((*print_pb(*again) == *print_pb(*sample)));
  CHECK(printed_json(*parse(printed_json(Module()), Format::kJson)) == printed_json(Module()));
}

TEST_CASE("JSON shows names, not indices", "[json]") {
  const std::string text = printed_json(*make_chain_module(2));
  const std::string expected =
      R"({"version":0,"module":{"graphs":[
{"name":"main",
"nodes":[
{"kind":"NODE_KIND_PLACEHOLDER","name":"n0","target":"n0",)"
      R"("value":{"tensor":{"dtype":"DTYPE_FLOAT32","sizes":[4,0]}},"uid":0},
{"kind":"NODE_KIND_CALL_FUNCTION","name":"n1","target":"aten.neg.default","args":[{"node":"n0"}],)"
      R"("value":{"tensor":{"dtype":"DTYPE_FLOAT32","sizes":[4,1]}},"uid":1}
]}
],
"counters":{"next_uid":2}}}
)";
  CHECK(text == expected);
}

TEST_CASE("arguments may be spelled for people", "[json]") {
  const auto arg = [](std::string_view text) {
    const std::unique_ptr<Module> module = parse(with_arg(text), Format::kJson);
    return *module->main().arg(NodeId(1), 0);
  };
  CHECK(arg(R"({"float":0.5})").as_double() == 0.5);
  CHECK(arg(R"({"float":3})").as_double() == 3.0);
  CHECK(arg(R"({"float":"-inf"})").as_double() < 0);
  CHECK(arg(R"({"float_bits":"0x8000000000000000"})").as_bits() == uint64_t{1} << 63);
  CHECK(arg(R"({"float_bits":"18446744073709551615"})").as_bits() == UINT64_MAX);
  CHECK(arg(R"({"int_value":-7})").as_int() == -7);
  CHECK(arg(R"({"int_value":"-9223372036854775808"})").as_int() == INT64_MIN);
  CHECK(arg(R"({"dtype":"DTYPE_INT64"})").as_dtype() == DType::kInt64);
  CHECK(arg(R"({"dtype":77})").as_dtype() == static_cast<DType>(77));
  CHECK(arg(R"({"node":"y"})").as_node() == NodeId(1));
  CHECK(arg(R"({"string":"a","list":null})").is(ArgKind::kString));
}

TEST_CASE("integers beyond 2^53 are strings", "[json]") {
  const std::string inside = R"({"int_value":9007199254740991})";
  const std::string outside = R"({"int_value":"9007199254740992"})";
  CHECK(printed_json(*parse(with_arg(inside), Format::kJson)).find(inside) != std::string::npos);
  CHECK(printed_json(*parse(with_arg(outside), Format::kJson)).find(outside) != std::string::npos);
  CHECK(printed_json(*parse(with_arg(R"({"int_value":9007199254740992})"), Format::kJson)).find(outside) !=
        std::string::npos);
}

TEST_CASE("errors of syntax have line and column", "[json]") {
  const Error error = json_error("{\"version\":0,\n \"module\":{,}}");
  CHECK(error.code == ErrorCode::kMalformed);
  CHECK(error.where.line == 2);
  CHECK(error.where.column == 12);
  CHECK(json_error("{\"version\":0,").code == ErrorCode::kTruncated);
  CHECK(json_error("").code == ErrorCode::kTruncated);
  CHECK(json_error("{\"module\":{\"name\":\"\xFF\"}}").code == ErrorCode::kMalformed);
  const Error twice = json_error("{\"module\":{\"name\":\"a\",\n\"name\":\"b\"}}");
  CHECK(twice.code == ErrorCode::kMalformed);
  CHECK(twice.where.line == 2);
  CHECK(json_error(R"({"module":{"n\u0061me":"a"}})").code == ErrorCode::kBadValue);
}

TEST_CASE("errors of content have a path and a suggestion", "[json]") {
  const Error key = json_error(with_arg(R"({"int_valu":3})"));
  CHECK(key.code == ErrorCode::kBadValue);
  CHECK(key.where.field == "module.graphs[0].nodes[1].args[0].int_valu");
  CHECK(key.hint == "did you mean 'int_value'?");
  CHECK(json_error(with_arg(R"({"dtype":"DTYPE_INT63"})")).hint.find("DTYPE_INT") != std::string::npos);
  CHECK(json_error(with_arg(R"({"node":"z"})")).code == ErrorCode::kBadReference);
  CHECK(json_error(with_arg(R"({"int_value":1.5})")).code == ErrorCode::kBadValue);
  CHECK(json_error(with_arg(R"({"int_value":9223372036854775808})")).code == ErrorCode::kBadValue);
  CHECK(json_error(with_arg(R"({"int_value":1,"bool_value":true})")).code == ErrorCode::kBadValue);
  CHECK(json_error(with_arg(R"({"float":1,"float_bits":"0x0"})")).code == ErrorCode::kBadValue);
  CHECK(json_error(with_arg(R"({"bytes_value":"?"})")).code == ErrorCode::kBadValue);
  CHECK(json_error(with_arg(R"({"@unknown":"/w=="})")).code == ErrorCode::kBadValue);
  CHECK(json_error(with_arg("3")).where.field == "module.graphs[0].nodes[1].args[0]");
  CHECK(json_error(R"({"module":{"strings":["a"]}})").code == ErrorCode::kBadValue);
  CHECK(json_error(R"({"version":1,"module":{}})").code == ErrorCode::kVersion);
  CHECK(json_error(R"({"version":0})").code == ErrorCode::kMalformed);
  CHECK(json_error(R"({"modul":{}})").hint == "did you mean 'module'?");
  CHECK(json_error("[]").code == ErrorCode::kBadValue);
}

TEST_CASE("what the binary reader rejects, the JSON reader does too", "[json]") {
  const Error error = json_error(with_arg(R"({"expr":"s0 +"})"));
  CHECK(error.code == ErrorCode::kBadExpression);
  CHECK(error.where.node == "y");
  CHECK(error.where.field == "args[0]");
  CHECK_FALSE(error.where.has_byte);
}

TEST_CASE("nesting and keys are limited", "[json]") {
  const auto nested = [](size_t depth) {
    std::string arg;
    for (size_t i = 0; i < depth; ++i) arg += R"({"list":{"items":[)";
    arg += R"({"none":true})";
    for (size_t i = 0; i < depth; ++i) arg += "]}}";
    return with_arg(arg);
  };
  const ReadLimits limits;
  const std::unique_ptr<Module> deepest = parse(nested(limits.max_depth), Format::kJson);
  CHECK(printed_json(*parse(printed_json(*deepest), Format::kJson)) == printed_json(*deepest));
  CHECK(json_error(nested(limits.max_depth + 1)).code == ErrorCode::kLimit);
  CHECK(json_error(nested(100000)).code == ErrorCode::kLimit);
  CHECK(json_error(std::string(1000000, '[')).code == ErrorCode::kLimit);
  std::string keys = "{";
  for (int i = 0; i < 100; ++i) keys += "\"" + std::to_string(i) + "\":0,";
  CHECK(json_error(keys + "\"module\":{}}").code == ErrorCode::kLimit);
}

}  // namespace
}  // namespace fxopt
