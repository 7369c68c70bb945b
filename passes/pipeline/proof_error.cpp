#include "passes/pipeline/proof_error.h"

#include <string>

#include "ir/io/io.h"

namespace fxopt {
namespace {

constexpr size_t kMaxClaims = 3;  // refused claims to print

// The node's line in the text form, without the annotations after the call.
std::string call_line(const Graph& graph, NodeId node) {
  std::string line = print_node(graph, node);
  if (const size_t end = line.find(") {"); end != std::string::npos) line.resize(end + 1);
  return line;
}

std::string source_of(const Graph& graph, NodeId node) {
  const SourceId id = graph[node].source;
  if (!id.is_valid()) return "";
  const Source& source = graph.module().source(id);
  return std::string(graph.module().text(source.file)) + ":" + std::to_string(source.line);
}

std::string_view change_text(ModuleProof::Change change) {
  if (change == ModuleProof::Change::kAdded) return "The earlier graph has no node with this uid";
  if (change == ModuleProof::Change::kArguments) {
    return "The earlier graph's node with this uid has another operator, or other arguments, constants or sizes";
  }
  return "The earlier graph's node with this uid is the same call, but reads other data. Its operands were computed or "
         "written differently, or its order with another write, draw or effect changed";
}

}  // namespace

Error proof_error(const Module& judged, const ModuleProof& proof) {
  const Module& after = proof.step != nullptr ? *proof.step : judged;
  Error error;
  const bool is_undecided = proof.answer == ProofAnswer::kUndecided;
  error.code = is_undecided ? ErrorCode::kNotProved : ErrorCode::kNotEquivalent;
  error.message = is_undecided ? "not proved to compute the same: " + proof.missing : "results differ";
  if (!proof.differences.empty()) {
    const ProofDifference& first = proof.differences.front();
    error.message += is_undecided ? "; the output graph may differ in " : ": ";
    error.message += first.what;
    if (first.graph.is_valid()) error.where.graph = after.text(first.graph);
    if (first.graph.is_valid() && first.node.is_valid()) {
      const Graph& graph = after.graph(after.find_graph(first.graph));
      error.message += " (%" + std::string(graph.name_of(first.node)) + ")";
    }
    const size_t more = proof.differences.size() - 1;
    if (more > 0) error.message += " and " + std::to_string(more) + " more";
  }
  for (size_t i = 0; i < proof.refused_claims.size() && i < kMaxClaims; ++i) {
    error.message += (i == 0 ? "; rewrite rules that could not be confirmed: " : "; ") + proof.refused_claims[i];
  }
  if (proof.refused_claims.size() > kMaxClaims) {
    error.message += "; and " + std::to_string(proof.refused_claims.size() - kMaxClaims) + " more";
  }
  if (!proof.first_new.is_valid() && is_undecided) return error;
  if (!proof.first_new.is_valid()) {
    error.hint = "the earlier graph has every call, but outputs, writes or effects were exchanged or removed";
    return error;
  }
  const Graph& graph = after.graph(after.find_graph(proof.graph));
  error.where.graph = after.text(proof.graph);
  error.where.node = graph.name_of(proof.first_new);
  error.where.module_path = after.text(graph[proof.first_new].module_path);
  error.where.source = source_of(graph, proof.first_new);
  error.where.excerpt = call_line(graph, proof.first_new);
  error.hint = "this call is the first that the earlier graph does not compute. ";
  error.hint += change_text(proof.change);
  return error;
}

}  // namespace fxopt
