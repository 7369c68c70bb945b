// Geometry of views from their arguments alone: just inside and just outside PyTorch's rules.
#include "ir/alias/view_geometry.h"

#include <optional>
#include <string>

#include "ir/graph/module.h"
#include "ir/values/values.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

using Outcome = ViewGeometry::Outcome;

std::string number(const SymInt& item) { return item.is_static() ? std::to_string(item.value()) : "?"; }

std::string list(const std::vector<SymInt>& items) {
  std::string out;
  for (const SymInt& item : items) out += (out.empty() ? "" : " ") + number(item);
  return "[" + out + "]";
}

// The outcome, then sizes, strides and offset of each result tensor of `%b = call` applied to `%a`.
std::string shown(const std::string& tensor, const std::string& call, const std::string& header = "",
                  const std::string& nodes = "") {
  const std::string text =
      header + "graph @main {\n%a: " + tensor + " = placeholder()\n" + nodes + "%b = " + call + "\nreturn %b }";
  INFO(text);
  const std::unique_ptr<Module> module = parse(text);
  const Graph& graph = module->main();
  SymInts integers(*module);
  const NodeId a = graph.find(module->strings.find("a"));
  const std::optional<Geometry> from = geometry_of(*module, integers, *single_tensor(graph, a));
  REQUIRE(from.has_value());
  const ViewGeometry found =
      view_geometry(graph, graph.find(module->strings.find("b")), *from, [&](NodeId node) -> std::optional<SymInt> {
        const Value& value = graph.value(node);
        if (value.kind != ValueKind::kSymbolic) return std::nullopt;
        return integers.of(ExprId(value.first));
      });
  switch (found.outcome) {
    case Outcome::kSame:
      return "same";
    case Outcome::kImpossible:
      return "impossible";
    case Outcome::kUnknown:
      return "unknown";
    default:
      break;
  }
  std::string out = found.outcome == Outcome::kView ? "view" : "copy";
  for (const Geometry& each : found.tensors) {
    out += " " + list(each.sizes) + list(each.strides) + "+" + number(each.offset);
  }
  return out;
}

TEST_CASE("view geometry: a tensor indexed as in Python", "[view_geometry]") {
  CHECK(shown("f32[4, 6]", "operator.getitem(%a, 1)") == "view [6][1]+6");
  CHECK(shown("f32[4, 6]", "operator.getitem(%a, -1)") == "view [6][1]+18");
  CHECK(shown("f32[4, 6]", "operator.getitem(%a, 4)") == "impossible");
  CHECK(shown("f32[4, 6]", "operator.getitem(%a, (slice(1, None, 2), 2))") == "view [2][12]+8");
  CHECK(shown("f32[4, 6]", "operator.getitem(%a, (..., None, slice(None, -2, None)))") == "view [4 1 4][6 6 1]+0");
  CHECK(shown("f32[4, 6]", "operator.getitem(%a, (0, 0, 0))") == "impossible");
  CHECK(shown("f32[4, 6]", "operator.getitem(%a, slice(None, None, -1))") == "impossible");
  CHECK(shown("f32[4, 6]", "operator.getitem(%a, [1, 0])") == "unknown");
}

TEST_CASE("view geometry: narrow, chunks, windows", "[view_geometry]") {
  CHECK(shown("f32[4, 6]", "aten.narrow.default(%a, 1, 2, 4)") == "view [4 4][6 1]+2");
  CHECK(shown("f32[4, 6]", "aten.narrow.default(%a, 1, 2, 5)") == "impossible");
  CHECK(shown("f32[4, 6]", "aten.narrow.default(%a, 1, -6, 6)") == "view [4 6][6 1]+0");
  CHECK(shown("f32[4, 6]", "aten.narrow.default(%a, 1, -7, 1)") == "impossible");
  CHECK(shown("f32[5]", "aten.chunk.default(%a, 2)") == "view [3][1]+0 [2][1]+3");
  CHECK(shown("f32[5]", "aten.chunk.default(%a, 4)") == "view [2][1]+0 [2][1]+2 [1][1]+4");
  CHECK(shown("f32[5]", "aten.chunk.default(%a, 0)") == "impossible");
  CHECK(shown("f32[5]", "aten.unfold.default(%a, 0, 2, 3)") == "view [2 2][3 1]+0");
  CHECK(shown("f32[5]", "aten.unfold.default(%a, 0, 6, 1)") == "impossible");
}

TEST_CASE("view geometry: sizes changed in place, and conversions", "[view_geometry]") {
  CHECK(shown("f32[4, 6](1, 4)", "aten.resize_.default(%a, [4, 6])") == "view [4 6][1 4]+0");
  CHECK(shown("f32[4, 6](1, 4)", "aten.resize_.default(%a, [6, 4])") == "view [6 4][4 1]+0");
  CHECK(shown("f32[4, 6]", "aten.resize_.default(%a, [-1])") == "impossible");
  CHECK(shown("f32[4, 6]+3", "aten.to.dtype(%a, dtype(f16))") == "copy [4 6][6 1]+0");
  CHECK(shown("f32[4, 6]+3", "aten.to.dtype(%a, dtype(f32))") == "same");
  CHECK(shown("f32[4, 6](1, 4)", "aten.to.dtype(%a, dtype(f16))") == "unknown");
}

TEST_CASE("view geometry: transposes and permutes", "[view_geometry]") {
  CHECK(shown("f32[4, 8]", "aten.t.default(%a)") == "view [8 4][1 8]+0");
  CHECK(shown("f32[8]", "aten.t.default(%a)") == "view [8][1]+0");
  CHECK(shown("f32[2, 4, 8]", "aten.t.default(%a)") == "impossible");
  CHECK(shown("f32[2, 4, 8]", "aten.transpose.int(%a, -1, 0)") == "view [8 4 2][1 8 32]+0");
  CHECK(shown("f32[2, 4, 8]", "aten.transpose.int(%a, 3, 0)") == "impossible");
  CHECK(shown("f32[2, 4, 8]", "aten.permute.default(%a, [2, 0, -2])") == "view [8 2 4][1 32 8]+0");
  CHECK(shown("f32[2, 4, 8]", "aten.permute.default(%a, [2, 0, 0])") == "impossible");
}

TEST_CASE("view geometry: slices clamp as Python does", "[view_geometry]") {
  CHECK(shown("f32[8, 4]", "aten.slice.Tensor(%a, 0, 2, 100)") == "view [6 4][4 1]+8");
  CHECK(shown("f32[8, 4]", "aten.slice.Tensor(%a, 0, -3, -1)") == "view [2 4][4 1]+20");
  CHECK(shown("f32[8, 4]", "aten.slice.Tensor(%a, 1, 1, 4, 2)") == "view [8 2][4 2]+1");
  CHECK(shown("f32[8, 4]", "aten.slice.Tensor(%a, 0, 6, 2)") == "view [0 4][4 1]+24");
  CHECK(shown("f32[8, 4]", "aten.slice.Tensor(%a, 0, 0, 4, 0)") == "impossible");
  CHECK(shown("f32[8, 4]", "aten.select.int(%a, 0, -8)") == "view [4][1]+0");
  CHECK(shown("f32[8, 4]", "aten.select.int(%a, 0, -9)") == "impossible");
  CHECK(shown("f32[8, 4]", "aten.select.int(%a, 0, 8)") == "impossible");
}

TEST_CASE("view geometry: a view has strides, or the call raises, and a reshape copies", "[view_geometry]") {
  CHECK(shown("f32[4, 6]", "aten.view.default(%a, [2, 2, -1])") == "view [2 2 6][12 6 1]+0");
  CHECK(shown("f32[4, 6]", "aten.view.default(%a, [5, -1])") == "impossible");
  CHECK(shown("f32[4, 6]", "aten.view.default(%a, [4, 7])") == "impossible");
  CHECK(shown("f32[4, 6](1, 4)", "aten.view.default(%a, [24])") == "impossible");
  CHECK(shown("f32[4, 6](1, 4)", "aten.reshape.default(%a, [24])") == "copy [24][1]+0");
  CHECK(shown("f32[4, 6](1, 4)", "aten.reshape.default(%a, [2, 2, 6])") == "view [2 2 6][2 1 4]+0");
  CHECK(shown("f32[0, 6]", "aten.view.default(%a, [3, 0])") == "view [3 0][1 1]+0");
}

TEST_CASE("view geometry: expand and squeeze", "[view_geometry]") {
  CHECK(shown("f32[1, 4]", "aten.expand.default(%a, [2, 3, -1])") == "view [2 3 4][0 0 1]+0");
  CHECK(shown("f32[2, 4]", "aten.expand.default(%a, [3, 4])") == "impossible");
  CHECK(shown("f32[2, 4]", "aten.expand.default(%a, [-1, 2, 4])") == "impossible");
  CHECK(shown("f32[1]", "aten.expand.default(%a, [0])") == "view [0][0]+0");
  CHECK(shown("f32[1]", "aten.expand.default(%a, [-5])") == "impossible");
  CHECK(shown("f32[4]", "aten.as_strided.default(%a, [-5], [1])") == "impossible");
  CHECK(shown("f32[1, 4, 1]", "aten.squeeze.dim(%a, -1)") == "view [1 4][4 1]+0");
  CHECK(shown("f32[1, 4, 1]", "aten.squeeze.dims(%a, [0, 1])") == "view [4 1][1 1]+0");
  CHECK(shown("f32[4]", "aten.unsqueeze.default(%a, -1)") == "view [4 1][1 1]+0");
  CHECK(shown("f32[4]", "aten.unsqueeze.default(%a, 2)") == "impossible");
}

TEST_CASE("view geometry: parts of a tensor", "[view_geometry]") {
  CHECK(shown("f32[5]", "aten.split.Tensor(%a, 2)") == "view [2][1]+0 [2][1]+2 [1][1]+4");
  CHECK(shown("f32[5]", "aten.split.Tensor(%a, 0)") == "impossible");
  CHECK(shown("f32[5]", "aten.split_with_sizes.default(%a, [2, 3])") == "view [2][1]+0 [3][1]+2");
  CHECK(shown("f32[5]", "aten.split_with_sizes.default(%a, [2, 2])") == "impossible");
  CHECK(shown("f32[2, 3]", "aten.unbind.int(%a, 1)") == "view [2][3]+0 [2][3]+1 [2][3]+2");
}

TEST_CASE("view geometry: complex numbers and their parts", "[view_geometry]") {
  CHECK(shown("f32[3, 2]", "aten.view_as_complex.default(%a)") == "view [3][1]+0");
  CHECK(shown("f32[3, 2](3, 1)", "aten.view_as_complex.default(%a)") == "unknown");
  CHECK(shown("f32[3, 4]", "aten.view_as_complex.default(%a)") == "impossible");
  CHECK(shown("c64[3]", "aten.view_as_real.default(%a)") == "view [3 2][2 1]+0");
}

TEST_CASE("view geometry: contiguous hands back what is in order", "[view_geometry]") {
  CHECK(shown("f32[4, 1, 8](8, 3, 1)", "aten.contiguous.default(%a)") == "same");
  CHECK(shown("f32[4, 8](1, 4)", "aten.contiguous.default(%a)") == "unknown");
}

TEST_CASE("view geometry: sizes that depend on symbols", "[view_geometry]") {
  const std::string header = "symbol {name=\"s0\", kind=backed, min=2, hint=3}\n";
  const std::string size = "%s: sym_int(s0) = aten.sym_size.int(%a, 0)\n";
  CHECK(shown("f32[s0, 8]", "aten.view.default(%a, [%s, 2, 4])", header, size) == "view [? 2 4][8 4 1]+0");
  CHECK(shown("f32[s0, 8]", "aten.view.default(%a, [-1, 4])", header, size) == "unknown");
  CHECK(shown("f32[s0, 4, 8]", "aten.view.default(%a, [-1, 8])", header, size) == "view [? 8][8 1]+0");
  CHECK(shown("f32[s0, 8](1, s0)", "aten.view.default(%a, [-1])", header, size) == "unknown");
  CHECK(shown("f32[s0, 8]", "aten.slice.Tensor(%a, 0, 0, %s)", header, size) == "view [? 8][8 1]+0");
  CHECK(shown("f32[s0, 8]", "aten.slice.Tensor(%a, 0, 0, 2)", header, size) == "unknown");
  CHECK(shown("f32[s0, 8]", "aten.transpose.int(%a, 0, 1)", header, size) == "view [8 ?][1 8]+0");
}

TEST_CASE("symbolic integers: equal polynomials are equal, others are not", "[sym_int]") {
  const std::unique_ptr<Module> module = parse("graph @main {\n%a = placeholder()\nreturn %a }");
  SymInts integers(*module);
  const auto of = [&](const char* text) { return integers.of(module->exprs.parse(text).value()); };
  CHECK(of("s0 * (s1 + 2)") == of("2 * s0 + s1 * s0"));
  CHECK(of("s0 ** 2 - s1 ** 2") == of("(s0 - s1) * (s0 + s1)"));
  CHECK_FALSE(of("s0 * (s1 + 2)") == of("2 * s0 + s1 * s1"));
  CHECK(of("s0 // 2 + s0 // 2") == of("2 * (s0 // 2)"));
  CHECK_FALSE(of("2 * (s0 // 2)") == of("s0"));
  CHECK(of("7 // -2").is(-4));
  CHECK(SymInt(INT64_MAX) * SymInt(2) == SymInt(2) * SymInt(INT64_MAX));
  // 2^63 - 1 and 3 have the same residue modulo 2^61 - 1.
  CHECK_FALSE(SymInt(INT64_MAX) == SymInt(3));
  CHECK(SymInt(-1) + SymInt(1) == SymInt(0));
}

}  // namespace
}  // namespace fxopt
