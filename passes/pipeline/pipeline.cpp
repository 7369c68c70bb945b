#include "passes/pipeline/pipeline.h"

#include <chrono>
#include <optional>
#include <utility>

#include "core/check.h"
#include "ir/check/verify.h"

namespace fxopt {
namespace {

// Graphs that higher-order ops run belong to the node that names them and are never rewritten on their own.
class Subgraphs {
 public:
  explicit Subgraphs(const Module& module) : is_subgraph_(module.num_graphs(), false) {
    for (size_t i = 0; i < module.num_graphs(); ++i) {
      const Graph& graph = module.graph(GraphId(i));
      if (graph.owner.is_valid() || graph.kind == GraphKind::kSubgraph) is_subgraph_[i] = true;
      for (const Attribute& attribute : graph.attributes) mark(module, attribute.graph);
      for (const NodeId node : graph.nodes()) {
        mark_args(graph, graph[node].args);
        mark_args(graph, graph[node].kwargs);
      }
    }
    is_subgraph_[0] = false;  // the main graph
  }

  bool contains(size_t graph) const { return is_subgraph_[graph]; }

 private:
  void mark(const Module& module, StringId name) {
    const GraphId id = module.find_graph(name);
    if (id.is_valid()) is_subgraph_[id.index()] = true;
  }
  void mark_args(const Graph& graph, ArgRange range) {
    for (const Arg& arg : graph.pool().args(range)) {
      if (arg.is(ArgKind::kGraph)) mark(graph.module(), arg.as_string());
      if (arg.has_children()) mark_args(graph, arg.range());
    }
  }

  std::vector<bool> is_subgraph_;
};

size_t count_nodes(const Module& module) {
  size_t count = 0;
  for (size_t i = 0; i < module.num_graphs(); ++i) count += module.graph(GraphId(i)).num_nodes();
  return count;
}

Result<PassResult> run_step(Module& module, const PipelineStep& step) {
  PassResult result;
  std::optional<Subgraphs> subgraphs;
  if (module.num_graphs() > 1) subgraphs.emplace(module);
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    if (subgraphs.has_value() && subgraphs->contains(i)) continue;
    Graph& graph = module.graph(GraphId(i));
    Result<PassResult> one = step.run(graph);
    if (!one.ok()) {
      Error error = std::move(one).error();
      error.message = step.text + ": " + error.message;
      if (error.where.graph.empty()) error.where.graph = module.text(graph.name());
      return error;
    }
    graph.prune_control();
    result.merge(std::move(*one));
  }
  return result;
}

std::optional<Error> check_output(const Module& module, const PipelineStep& step, size_t index) {
  const std::vector<Error> broken = verify(module);
  if (broken.empty()) return std::nullopt;
  Error error = broken.front();
  error.message = "after pass " + std::to_string(index + 1) + " (" + step.text + "): " + error.message;
  if (broken.size() > 1) error.message += "; " + std::to_string(broken.size() - 1) + " more broken invariants";
  error.hint = "this is a mistake in the pass, not in the input";
  return error;
}

}  // namespace

std::string_view default_pipeline_text() {
  return "infer-phase,"   // first: the others must tell forward from backward; marked graphs pass through
         "canonicalize,"  // before cse and remat, so that neither has to look through aliases
         "cse,"           // fewer nodes to save or recompute
         "remat,"         // carries out the tags
         "dce";           // last: what the others left without users
}

Result<RunReport> run_pipeline(Module& module, const Pipeline& pipeline, const RunOptions& options) {
  FXOPT_CHECK(module.num_graphs() > 0, "a module without graphs");
  RunReport report;
  uint64_t hash = options.check_hash ? structural_hash(module) : 0;
  for (size_t i = 0; i < pipeline.steps.size() && i < options.stop_after; ++i) {
    const PipelineStep& step = pipeline.steps[i];
    StepReport done;
    done.pass = step.text;
    done.nodes_before = count_nodes(module);
    const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    Result<PassResult> result = run_step(module, step);
    if (!result.ok()) return std::move(result).error();
    done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    done.result = std::move(*result);
    done.nodes_after = count_nodes(module);
    if (options.check_hash) {
      const uint64_t after = structural_hash(module);
      FXOPT_CHECK(done.result.changed() == (after != hash),
                  "pass " + step.text +
                      (after != hash ? " changed the module and counted nothing" : " counted a change and made none"));
      hash = after;
    }
    if (options.verify) {
      if (std::optional<Error> broken = check_output(module, step, i)) return *std::move(broken);
    }
    if (options.observer) options.observer(i, step, done, module);
    report.steps.push_back(std::move(done));
  }
  return report;
}

}  // namespace fxopt
