// Arguments of calls by their schema position: given by position, by keyword, by default, or
// absent.

#include "ir/values/call_args.h"

#include <memory>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

constexpr const char* kCalls = R"(symbol {name="s0", kind=backed}
graph @main {
  %x: f32[s0, 4] = placeholder()
  %y: f32[4, 4] = placeholder()
  %n: sym_int(s0) = aten.sym_size.int(%x, 0)
  %place = aten.sum.dim_IntList(%x, [0, -1], True)
  %word = aten.sum.dim_IntList(self=%x, dim=None, keepdim=True, dtype=dtype(f64))
  %bare = aten.sum.dim_IntList(%x, [0, %n])
  %add = aten.add.Tensor(%x, %y)
  %scaled = aten.add.Tensor(%x, %y, alpha=0.5)
  %norm = aten.native_layer_norm.default(%y, [4], None, None, 1)
  %linalg = aten.linalg_vector_norm.default(%y)
  %pool = aten.max_pool2d_with_indices.default(%y, [2, 2])
  %upper = aten.triu_indices.default(4, 4)
  %mean = aten.linalg_norm.ord_str(%y, "fro")
  %gelu = aten.gelu.default(%y)
  %view = aten.view.default(%x, [%n, 2, 2])
  %row = aten.select.int(%x, 0, %n)
  %past = aten.select.int(%x, 0, sym(1 + s0))
  %clone = aten.clone.default(%y, memory_format=memory_format(contiguous))
  %cat = aten.cat.default([%y, %y], -1)
  %opaque = my_lib.my_op.default(%y, 3, scale=2.0)
  %all = my_lib.known.default(%y, count=2)
  return %cat
})";

class Calls {
 public:
  CallArgs of(std::string_view name) const {
    const NodeId node = module_->main().find(module_->strings.find(name));
    REQUIRE(node.is_valid());
    return CallArgs(module_->main(), node);
  }
  NodeId node(std::string_view name) const { return module_->main().find(module_->strings.find(name)); }
  const Module& module() const { return *module_; }

 private:
  std::unique_ptr<Module> module_ = parse(kCalls);
};

TEST_CASE("call args: by place and by keyword") {
  const Calls calls;
  const CallArgs place = calls.of("place"), word = calls.of("word");
  CHECK(place.size() == 4);
  CHECK(place[0].as_node() == calls.node("x"));
  CHECK(word[0].as_node() == calls.node("x"));
  CHECK(word.named("self").as_node() == calls.node("x"));
  CHECK(place[2].as_bool() == true);
  CHECK(word[2].as_bool() == true);
  CHECK(word.named("keepdim").is_given());
  CHECK(word[3].as_dtype() == DType::kFloat64);
}

TEST_CASE("call args: given, default, missing and None are told apart") {
  const Calls calls;
  const CallArg none = calls.of("word")[1];
  CHECK((none.is_given() && none.is_none() && none.is_absent()));
  CHECK_FALSE((none.is_default() || none.is_missing()));
  const CallArg by_default = calls.of("place")[3];  // dtype=None
  CHECK((by_default.is_default() && by_default.is_none() && by_default.is_absent()));
  CHECK_FALSE((by_default.is_given() || by_default.is_missing()));
  CHECK(by_default.given() == nullptr);
  CHECK_FALSE(by_default.as_dtype().has_value());
  const CallArg missing = calls.of("mean").named("nothing");
  CHECK((missing.is_missing() && missing.is_absent()));
  CHECK_FALSE((missing.is_given() || missing.is_default() || missing.is_none()));
  CHECK(missing.described() == nullptr);
  const CallArg number = calls.of("bare")[2];  // keepdim=False
  CHECK((number.is_default() && !number.is_none() && !number.is_absent()));
}

TEST_CASE("call args: a default of each type") {
  const Calls calls;
  CHECK(calls.of("bare")[2].as_bool() == false);
  CHECK(calls.of("add")[2].as_int() == 1);
  CHECK(calls.of("add")[2].as_double() == 1.0);
  CHECK(calls.of("linalg")[1].as_double() == 2.0);
  CHECK(calls.of("upper").named("dtype").as_dtype() == DType::kInt64);
  CHECK(calls.of("upper").named("offset").as_int() == 0);
  const CallArgs pool = calls.of("pool");
  CHECK(pool.named("dilation").as_int() == 1);
  CHECK(pool.named("ceil_mode").as_bool() == false);
}

TEST_CASE("call args: what is given hides the default, whatever its type") {
  const Calls calls;
  const CallArg scaled = calls.of("scaled")[2];
  CHECK_FALSE(scaled.as_int().has_value());
  CHECK(scaled.as_double() == 0.5);
  CHECK(calls.of("norm")[4].as_double() == 1.0);
  CHECK(calls.of("norm")[2].is_none());
  CHECK_FALSE(calls.of("place")[1].as_int().has_value());
  CHECK_FALSE(calls.of("place")[2].as_int().has_value());
}

TEST_CASE("call args: keyword-only arguments take no place") {
  const Calls calls;
  const CallArgs scaled = calls.of("scaled");
  CHECK(scaled.named("alpha").described()->keyword_only);
  CHECK(scaled.named("alpha").as_double() == 0.5);
  const CallArgs clone = calls.of("clone");
  CHECK(clone[1].as_memory_format() == MemoryFormat::kContiguous);
  CHECK_FALSE(calls.of("add").named("alpha").is_given());
}

TEST_CASE("call args: beyond the schema there is nothing") {
  const Calls calls;
  for (const size_t position : {3u, 4u, 100u}) {
    const CallArg arg = calls.of("add")[position];
    CHECK(arg.is_missing());
    CHECK_FALSE(arg.as_int().has_value());
    CHECK_FALSE(arg.as_node().is_valid());
    CHECK(arg.items().empty());
  }
}

TEST_CASE("call args: symbolic integers are no plain ones") {
  const Calls calls;
  const auto unknown = [](const Arg&) { return std::optional<SymInt>(); };
  const auto known = [](const Arg& arg) {
    return std::optional<SymInt>(symbol_named(arg.is(ArgKind::kNode) ? "node" : "expr"));
  };
  const CallArg row = calls.of("row")[2], past = calls.of("past")[2];
  for (const CallArg& arg : {row, past}) {
    CHECK(arg.is_symbolic());
    CHECK_FALSE(arg.as_int().has_value());
    CHECK_FALSE(arg.sym_int(unknown).has_value());
    CHECK_FALSE(arg.is_absent());
  }
  CHECK(row.as_node() == calls.node("n"));
  CHECK(row.sym_int(known) == symbol_named("node"));
  CHECK(past.sym_int(known) == symbol_named("expr"));
  CHECK_FALSE(calls.of("row")[0].is_symbolic());  // a tensor
  CHECK(calls.of("row")[1].sym_int(unknown) == SymInt(0));
  CHECK(calls.of("add")[2].sym_int(unknown) == SymInt(1));
  CHECK(calls.of("word")[1].sym_int_or(5, unknown) == SymInt(5));
  CHECK_FALSE(row.sym_int_or(5, unknown).has_value());
  const CallArg sizes = calls.of("view")[1];
  CHECK_FALSE(sizes.sym_ints(unknown).has_value());
  CHECK(sizes.sym_ints(known) == std::vector<SymInt>{symbol_named("node"), 2, 2});
  CHECK_FALSE(calls.of("add")[2].sym_ints(known).has_value());
}

TEST_CASE("call args: lists of tensors") {
  const Calls calls;
  const CallArg tensors = calls.of("cat")[0];
  CHECK(tensors.is_list());
  REQUIRE(tensors.items().size() == 2);
  CHECK(tensors.items()[1].as_node() == calls.node("y"));
  CHECK_FALSE(tensors.as_node().is_valid());
  CHECK(calls.of("cat")[1].as_int() == -1);
}

TEST_CASE("call args: an operator without a schema has places and keywords") {
  const Calls calls;
  const CallArgs args = calls.of("opaque");
  CHECK(args.size() == 2);
  CHECK(args[0].as_node() == calls.node("y"));
  CHECK(args[1].as_int() == 3);
  CHECK(args[1].described() == nullptr);
  CHECK(args[2].is_missing());
  CHECK(args.named("scale").as_double() == 2.0);
  CHECK(args.named("other").is_missing());
}

TEST_CASE("call args: by a schema that is given") {
  const Calls calls;
  const Schema schema =
      parse_schema("my_lib::known(Tensor a, int[99999999] b=3, *, int count, str mode='a b') -> Tensor").value();
  const CallArgs args(calls.module().main(), calls.node("all"), schema);
  CHECK(args.size() == 4);
  CHECK(args[2].as_int() == 2);
}

}  // namespace
}  // namespace fxopt
