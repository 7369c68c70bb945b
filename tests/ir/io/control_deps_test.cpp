// The control_deps op and control dependencies: conversion in both directions, and near misses that
// are not converted.

#include "ir/io/control_deps.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/parse.h"
#include "tests/replaced.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

std::string print(const Module& module) {
  TextOptions options;
  options.version = false;
  options.uids = false;
  for (const Error& error : verify(module)) FAIL_CHECK(format_error(error));
  const std::string text = print_text(module, options);
  const size_t counters = text.find("counters {next_uid=");
  return counters == std::string::npos ? text : text.substr(0, counters) + text.substr(text.find('\n', counters) + 1);
}

// A canonical module: PyTorch's form of %m = aten.mm.default(%x, %w) with an order dependency on
// %r.
const std::string kRaised = R"(graph @main {
  attribute {path="subgraph_m", graph="main.subgraph_m"}
  %x: f32[4, 4] = placeholder()
  %w: f32[4, 4] = placeholder() {seq_nr=3}
  %r: f32[4, 4] = aten.relu.default(%x)
  %subgraph_m = get_attr["subgraph_m"]()
  %m: f32[4, 4] = higher_order.control_deps((%r,), %subgraph_m, %x, %w) {tag=MUST_RECOMPUTE, seq_nr=7, meta={"custom": {"a": 1}}}
  return (%m,)
}
graph @main.subgraph_m {kind=subgraph, owner="main"} {
  %arg_0: f32[4, 4] = placeholder()
  %arg_1: f32[4, 4] = placeholder() {seq_nr=3}
  %mm_default: f32[4, 4] = aten.mm.default(%arg_0, %arg_1) {tag=MUST_RECOMPUTE, seq_nr=7, meta={"custom": {"a": 1, "fallback_to_eager": True}, "should_fallback": True}}
  %output: f32[4, 4] = output(%mm_default)
}
)";
const std::string kLowered = R"(graph @main {
  %x: f32[4, 4] = placeholder()
  %w: f32[4, 4] = placeholder() {seq_nr=3}
  %r: f32[4, 4] = aten.relu.default(%x)
  %m: f32[4, 4] = aten.mm.default(%x, %w) {tag=MUST_RECOMPUTE, seq_nr=7, control=[order %r], meta={"custom": {"a": 1, "fallback_to_eager": True}, "should_fallback": True}}
  return (%m,)
}
)";

TEST_CASE("control_deps: lowered to control dependencies and raised again exactly", "[ir]") {
  const std::unique_ptr<Module> module = parse(kRaised);
  CHECK((lower_control_deps(*module) == ControlDepsResult{1, 0}));
  CHECK(print(*module) == kLowered);
  CHECK((raise_control_deps(*module) == ControlDepsResult{1, 0}));
  CHECK(print(*module) == kRaised);
}

TEST_CASE("control_deps: a bare call and bare metadata", "[ir]") {
  CHECK(fx_name("aten.mm.default", true) == "mm_default");
  CHECK(fx_name("aten._scaled_dot_product_flash_attention.default", true) ==
        "_scaled_dot_product_flash_attention_default");
  CHECK(fx_name("aten.add_.Tensor", true) == "add__tensor");
  CHECK(fx_name("aten.sym_size.int", true) == "sym_size_int");
  CHECK(fx_name("lib.opName.someOverload", true) == "op_name_some_overload");
  CHECK(fx_name("operator.getitem", false) == "getitem");
  CHECK(fx_name("pkg.mod.2x-y", false) == "_2x_y");
}

TEST_CASE("control_deps: a body that raising would not give back stays as it is", "[ir]") {
  const struct {
    const char* what;
    const char* from;
    const char* to;
  } rows[] = {
      {"another name inside", "%arg_0: f32[4, 4] = placeholder()", "%arg_0: f32[4, 4] = placeholder[\"arg\"]()"},
      {"inputs in another order", "aten.mm.default(%arg_0, %arg_1)", "aten.mm.default(%arg_1, %arg_0)"},
      {"an input that is not read", "aten.mm.default(%arg_0, %arg_1)", "aten.mm.default(%arg_0, %arg_0)"},
      {"other metadata of a placeholder", "%arg_1: f32[4, 4] = placeholder() {seq_nr=3}",
       "%arg_1: f32[4, 4] = placeholder() {seq_nr=4}"},
      {"other metadata of the wrapper", "%subgraph_m, %x, %w) {tag=MUST_RECOMPUTE, seq_nr=7",
       "%subgraph_m, %x, %w) {tag=MUST_RECOMPUTE, seq_nr=8"},
      {"another tag on the wrapper", "%subgraph_m, %x, %w) {tag=MUST_RECOMPUTE", "%subgraph_m, %x, %w) {tag=MUST_SAVE"},
      {"another value of the wrapper", "%m: f32[4, 4]", "%m: f32[4, 4]{requires_grad}"},
      {"another owner", "owner=\"main\"", "owner=\"other\""},
      {"an entry that is the wrapper's own", "meta={\"custom\": {\"a\": 1}}",
       "meta={\"custom\": {\"a\": 1}, \"b\": 2}"},
      {"no dependency", "((%r,), ", "((), "},
      {"a dependency twice", "((%r,), ", "((%r, %r), "},
      {"a list of dependencies", "((%r,), ", "([%r], "},
      {"a marked get_attr", "get_attr[\"subgraph_m\"]()", "get_attr[\"subgraph_m\"]() {seq_nr=1}"},
      {"a get_attr read twice", "return (%m,)", "return (%m, %subgraph_m)"},
      {"a second call inside", "  %output: f32[4, 4] = output(%mm_default)",
       "  %n: f32[4, 4] = aten.neg.default(%mm_default)\n  %output: f32[4, 4] = output(%n)"},
      {"a value handed through", "output(%mm_default)", "output((%mm_default, %arg_0))"},
      {"a body somebody else names", "  attribute {",
       "  attribute {path=\"other\", graph=\"main.subgraph_m\"}\n  attribute {"},
      {"a get_attr elsewhere", "  %r: f32[4, 4] = aten.relu.default(%x)\n  %subgraph_m = get_attr[\"subgraph_m\"]()\n",
       "  %subgraph_m = get_attr[\"subgraph_m\"]()\n  %r: f32[4, 4] = aten.relu.default(%x)\n"},
  };
  for (const auto& row : rows) {
    INFO(row.what);
    const std::unique_ptr<Module> module = parse(replaced(kRaised, row.from, row.to));
    TextOptions options;
    options.uids = false;
    const std::string before = print_text(*module, options);
    CHECK((lower_control_deps(*module) == ControlDepsResult{0, 1}));
    CHECK(print_text(*module, options) == before);
  }
}

TEST_CASE("control_deps: every kind of dependency is raised, and names that are taken are avoided", "[ir]") {
  const std::unique_ptr<Module> module = parse(R"(graph @main {
  attribute {path="subgraph_m", graph="inner"}
  %x: f32[4] = placeholder()
  %subgraph_m = get_attr["subgraph_m"]()
  %h: (f32[4],) = higher_order.wrap(%subgraph_m, %x)
  %r: f32[4] = aten.relu.default(%x)
  %m: f32[4] = aten.cat.default([%x, %r, %x]) {control=[keep_alive %h, order %h, data_ready %r]}
  return (%m,)
}
graph @inner {kind=subgraph, owner="main"} {
  %y: f32[4] = placeholder()
  return (%y,)
}
)");
  CHECK((raise_control_deps(*module) == ControlDepsResult{1, 0}));
  CHECK(print(*module) == R"(graph @main {
  attribute {path="subgraph_m", graph="inner"}
  attribute {path="subgraph_m_0", graph="main.subgraph_m_0"}
  %x: f32[4] = placeholder()
  %subgraph_m = get_attr["subgraph_m"]()
  %h: (f32[4],) = higher_order.wrap(%subgraph_m, %x)
  %r: f32[4] = aten.relu.default(%x)
  %subgraph_m_0 = get_attr["subgraph_m_0"]()
  %m: f32[4] = higher_order.control_deps((%h, %r), %subgraph_m_0, %x, %r)
  return (%m,)
}
graph @inner {kind=subgraph, owner="main"} {
  %y: f32[4] = placeholder()
  return (%y,)
}
graph @main.subgraph_m_0 {kind=subgraph, owner="main"} {
  %arg_0: f32[4] = placeholder()
  %arg_1: f32[4] = placeholder()
  %cat_default: f32[4] = aten.cat.default([%arg_0, %arg_1, %arg_0])
  %output: f32[4] = output(%cat_default)
}
)");
}

// Sorts attributes and subgraphs by name. PyTorch lists them in the order in which it wrapped the
// nodes, which the graph does not record.
std::string sorted_children(const std::string& text) {
  std::vector<std::string> blocks, attributes;
  std::string block;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at) + 1;
    const std::string line = text.substr(at, end - at);
    at = end;
    if (line.starts_with("graph @")) {
      blocks.push_back(block);
      block.clear();
    }
    (line.starts_with("  attribute {") ? attributes.emplace_back() : block) += line;
  }
  blocks.push_back(block);
  std::sort(attributes.begin(), attributes.end());
  std::sort(blocks.begin(), blocks.end());
  std::string sorted;
  for (const std::string& line : attributes) sorted += line;
  for (const std::string& each : blocks) sorted += each;
  return sorted;
}

TEST_CASE("testdata: the control_deps of a scheduled step are lowered and raised again exactly", "[testdata]") {
  const std::unique_ptr<Module> module = load_testdata("dumps/g_debug_dp4_tp2_overlap.fxg.zst");
  const std::string before = print(*module);
  const size_t nodes = module->main().num_nodes();
  CHECK((lower_control_deps(*module) == ControlDepsResult{132, 0}));
  CHECK(module->main().num_nodes() == nodes - 132);
  CHECK(print(*module).find("control_deps") == std::string::npos);
  CHECK((raise_control_deps(*module) == ControlDepsResult{132, 0}));
  const std::string after = print(*module);
  CHECK((sorted_children(after) == sorted_children(before)));
}

}  // namespace
}  // namespace fxopt
