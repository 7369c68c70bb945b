// Merging several modules into one.
#include "ir/io/merge.h"

#include <memory>
#include <string>

#include "ir/check/verify.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

// Both modules merged, as text, or the error.
std::string merged(const std::string& first, const std::string& second) {
  const std::unique_ptr<Module> into = parse(first), from = parse(second);
  const Status status = merge_module(*into, *from, "second.fxg");
  if (!status.ok()) return status.error().where.file + ": " + status.error().message;
  CHECK(verify(*into).empty());
  return print_text(*into);
}

TEST_CASE("merge: graphs, uids and storages count on", "[merge]") {
  CHECK(merged(R"(storage {id=0, bytes=16, device="cpu"}
graph @main {kind=forward} {
  %x: f32[4]@cpu$0 = placeholder()
  return (%x,)
}
)",
               R"(storage {id=0, bytes=16, device="cpu"}
storage {id=1, bytes=8, device="cpu"}
graph @main {kind=backward} {
  %x: f32[4]@cpu$0 = placeholder()
  %y: f32[2]@cpu$1 = aten.neg.default(%x) {origins=[{graph="main", uid=0, kind=merged, pass="cse"}], meta={"of": uid(0)}}
  return (%y,)
}
)") == R"(fxg 0
storage {id=0, bytes=16, device="cpu"}
storage {id=1, bytes=16, device="cpu"}
storage {id=2, bytes=8, device="cpu"}
graph @main {kind=forward} {
  %x: f32[4]@cpu$0 = placeholder()
  return (%x,)
}
graph @backward {kind=backward} {
  %x: f32[4]@cpu$1 = placeholder()
  %y: f32[2]@cpu$2 = aten.neg.default(%x) {origins=[{graph="backward", uid=2, kind=merged, pass="cse"}], meta={"of": uid(2)}}
  return (%y,)
}
)");
}

TEST_CASE("merge: what both name stands once", "[merge]") {
  const std::string shared = R"(symbol {name="s0", kind=backed, min=2, hint=8}
assertion {condition=(s0 > 1), source="guard"}
process_group {uid="0", ranks=[0, 1]}
constant {name="c", tensor=f32[1], inline_data=base64"AACAPw=="}
rng_slot {name="r"}
rank {rank=0, world_size=2}
)";
  const std::string graph = R"( {
  attribute {path="c", constant="c"}
  %c: f32[1] = get_attr["c"]()
  return (%c,)
}
)";
  CHECK(merged(shared + "graph @a" + graph, shared + "graph @b" + graph) ==
        "fxg 0\n" + shared + "graph @a" + graph + "graph @b" + graph);
}

TEST_CASE("merge: constants of one name and other bytes are two", "[merge]") {
  const auto module = [](const std::string& data) {
    return "constant {name=\"c\", tensor=f32[1], inline_data=base64\"" + data +
           "\"}\ngraph @main {\n  attribute {path=\"c\", constant=\"c\"}\n  %c: f32[1] = get_attr[\"c\"]()\n  return "
           "(%c,)\n}\n";
  };
  const std::string text = merged(module("AACAPw=="), module("AACAQA=="));
  CHECK(text.find("constant {name=\"c_1\", tensor=f32[1], inline_data=base64\"AACAQA==\"}") != std::string::npos);
  CHECK(text.find("graph @main_1 {\n  attribute {path=\"c\", constant=\"c_1\"}") != std::string::npos);
}

TEST_CASE("merge: constants of equal bytes and other types are two", "[merge]") {
  const auto module = [](const std::string& type) {
    return "constant {name=\"c\", tensor=" + type +
           ", inline_data=base64\"AAAAAA==\"}\ngraph @main {\n  return ()\n}\n";
  };
  CHECK(merged(module("f32[1]"), module("i32[1]")).find("constant {name=\"c_1\", tensor=i32[1]") != std::string::npos);
  CHECK(merged(module("f32[1]"), module("f32[]")).find("constant {name=\"c_1\", tensor=f32[]") != std::string::npos);
}

TEST_CASE("merge: bindings name the invocations of their own file, and values the graphs", "[merge]") {
  const std::string text = R"(invocation {graph="sub"}
invocation {graph="main", bindings=[{input=0, invocation=0, output=0}]}
graph @main {
  attribute {path="sub", graph="sub"}
  %x: f32[4] = placeholder()
  %sub: graph(@sub) = get_attr["sub"]()
  return (%sub,)
}
graph @sub {kind=subgraph} {
  %y: f32[4] = placeholder()
  return (%y,)
}
)";
  const std::string both = merged(text, text);
  CHECK(both.find("invocation {graph=\"main_1\", bindings=[{invocation=2}]}") != std::string::npos);
  CHECK(both.find("  %sub: graph(@sub_1) = get_attr[\"sub\"]()") != std::string::npos);
}

TEST_CASE("merge: a hint that one file has is that of both", "[merge]") {
  const std::string a = "graph @a {\n  return ()\n}\n", b = "graph @b {\n  return ()\n}\n";
  CHECK(merged("symbol {name=\"s0\"}\n" + a, "symbol {name=\"s0\", hint=9}\n" + b)
            .starts_with("fxg 0\nsymbol {name=\"s0\", hint=9}\n"));
}

TEST_CASE("merge: what the files disagree about is an error", "[merge]") {
  const std::string a = "graph @a {\n  return ()\n}\n", b = "graph @b {\n  return ()\n}\n";
  const auto error = [&](const std::string& first, const std::string& second) {
    return merged(first + "\n" + a, second + "\n" + b);
  };
  CHECK(error("symbol {name=\"s0\", hint=8}", "symbol {name=\"s0\", hint=9}") ==
        "second.fxg: the files disagree about the symbol 's0': {name=\"s0\", hint=8} and {name=\"s0\", hint=9}");
  CHECK(error("symbol {name=\"s0\", hint=8}", "symbol {name=\"s0\"}").starts_with("fxg"));  // known in one
  CHECK(error("process_group {uid=\"0\", ranks=[0, 1]}", "process_group {uid=\"0\", ranks=[0, 2]}") ==
        "second.fxg: the files disagree about the process group '0': {uid=\"0\", ranks=[0, 1]} and {uid=\"0\", "
        "ranks=[0, 2]}");
  CHECK(error("rank {rank=0}", "rank {rank=1}") ==
        "second.fxg: the files are of different ranks: {rank=0} and {rank=1}");
}

}  // namespace
}  // namespace fxopt
