// view_geometry() against PyTorch's records: every view of testdata with recorded tensors.
#include "ir/alias/view_geometry.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/alias/effects.h"
#include "ir/graph/module.h"
#include "ir/values/values.h"
#include "tests/catch.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

using Outcome = ViewGeometry::Outcome;

struct Tally {
  size_t computed = 0;
  std::map<std::string, size_t> unknown;     // by operator
  std::map<std::string, std::string> wrong;  // by operator, the first

  std::string unknown_text() const {
    std::string out;
    for (const auto& [op, count] : unknown) out += op + " " + std::to_string(count) + "; ";
    return out;
  }
  std::string wrong_text() const {
    std::string out;
    for (const auto& [op, example] : wrong) out += example + "\n";
    return out;
  }
};

// The conjugation and negation bits are not compared: fake tensors do not have them (see
// canonicalize).
bool agree(Geometry a, const Geometry& b) {
  a.conjugate = b.conjugate;
  a.negative = b.negative;
  return same_geometry(a, b);
}

std::string text(const std::vector<SymInt>& list) {
  std::string out = "[";
  for (const SymInt& item : list) out += (item.is_static() ? std::to_string(item.value()) : "symbolic") + " ";
  return out + "]";
}

// The recorded result tensors of a call; empty if a tensor has no sizes or strides.
std::vector<Geometry> recorded(const Graph& graph, NodeId node, SymInts& integers) {
  std::vector<Geometry> out;
  bool is_complete = true;
  for_each_tensor(graph, graph[node].value, [&](ValueId, const Tensor& tensor) {
    const std::optional<Geometry> geometry = geometry_of(graph.module(), integers, tensor);
    is_complete = is_complete && geometry.has_value();
    if (geometry.has_value()) out.push_back(*geometry);
  });
  if (!is_complete) out.clear();
  return out;
}

void compare(const Graph& graph, NodeId node, SymInts& integers, Tally& tally) {
  const ViewKind kind = view_of_call(graph, node);
  const bool is_view = kind == ViewKind::kView || kind == ViewKind::kMaybeView || kind == ViewKind::kMultiView;
  const NodeId first = first_argument(graph, node);
  if (!graph[node].is_call() || !is_view || !first.is_valid() || single_tensor(graph, first) == nullptr) return;
  const std::optional<Geometry> from = geometry_of(graph.module(), integers, *single_tensor(graph, first));
  const std::vector<Geometry> expected = recorded(graph, node, integers);
  if (!from.has_value() || expected.empty()) return;
  const ViewGeometry found = view_geometry(graph, node, *from, [&](NodeId id) -> std::optional<SymInt> {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kSymbolic || value.symbol_type != SymbolType::kInt) return std::nullopt;
    return integers.of(ExprId(value.first));
  });
  if (found.outcome == Outcome::kUnknown) {
    ++tally.unknown[graph.op(node).name];
    return;
  }
  ++tally.computed;
  const std::vector<Geometry> same = {*from};
  const std::vector<Geometry>& given = found.outcome == Outcome::kSame ? same : found.tensors;
  bool agrees = found.outcome != Outcome::kImpossible && given.size() == expected.size();
  for (size_t i = 0; agrees && i < given.size(); ++i) agrees = agree(given[i], expected[i]);
  if (agrees) return;
  tally.wrong.emplace(graph.op(node).name,
                      "%" + std::string(graph.name_of(node)) + " = " + graph.op(node).name + ": " +
                          (given.empty() ? "impossible" : text(given[0].sizes) + text(given[0].strides)) + " of " +
                          text(from->sizes) + text(from->strides) + ", recorded " + text(expected[0].sizes) +
                          text(expected[0].strides));
}

TEST_CASE("testdata: every view shows what its arguments say", "[testdata][view_geometry]") {
  Tally tally;
  for (const std::string& file : testdata_files()) {
    INFO(file);
    const std::unique_ptr<Module> module = load_testdata(file);
    SymInts integers(*module);
    Tally one;
    for (const GraphId id : module->graphs()) {
      const Graph& graph = module->graph(id);
      for (const NodeId node : graph.nodes()) compare(graph, node, integers, one);
    }
    INFO(one.wrong_text());
    CHECK(one.wrong.empty());
    tally.computed += one.computed;
    for (const auto& [op, count] : one.unknown) tally.unknown[op] += count;
  }
  INFO(tally.unknown_text());
  if (has_all_testdata()) CHECK(tally.computed > 150000);
  // Slices and views whose sizes depend on symbols in a way that no polynomial expresses.
  std::vector<std::string> operators;
  for (const auto& [op, count] : tally.unknown) operators.push_back(op);
  CHECK(operators == std::vector<std::string>{"aten.slice.Tensor", "aten.view.default"});
}

}  // namespace
}  // namespace fxopt
