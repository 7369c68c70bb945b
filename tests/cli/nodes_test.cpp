// Texts about one node.

#include "cli/print/nodes.h"

#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

TEST_CASE("the source of a node is the innermost line outside PyTorch") {
  const std::unique_ptr<Module> module = parse(R"fxg(fxg 0
graph @main {
  %x: f32[4] = placeholder()
  %own: f32[4] = aten.neg.default(%x) {source={file="model.py", line=3}, meta={"stack_trace": "File \"other.py\", line 9, in f"}}
  %inner: f32[4] = aten.neg.default(%x) {source={file="lib/site-packages/torch/nn/linear.py", line=134}, meta={"stack_trace": "File \"main.py\", line 7, in f\n    g()\nFile \"model.py\", line 12, in g\n    h()\nFile \"lib/site-packages/torch/nn/linear.py\", line 134, in h\n    mm()"}}
  %all: f32[4] = aten.neg.default(%x) {source={file="site-packages/torch/a.py", line=1}, meta={"stack_trace": "File \"site-packages/torch/a.py\", line 1, in f"}}
  %none: f32[4] = aten.neg.default(%x) {meta={"stack_trace": "File \"model.py\", line 12, in g"}}
  return (%own, %inner, %all, %none)
}
)fxg");
  const Graph& graph = module->main();
  std::vector<std::string> texts;
  for (const NodeId node : graph.nodes()) {
    if (graph[node].is_call()) texts.push_back(source_text(graph, node));
  }
  CHECK(texts == std::vector<std::string>{"model.py:3", "model.py:12", "site-packages/torch/a.py:1", ""});
}

}  // namespace
}  // namespace fxopt
