#include "ir/device/work.h"

#include <algorithm>

#include "core/saturate.h"
#include "ir/alias/sizes.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

std::vector<const CallRow*> work_rows(const DeviceProfile& profile) {
  std::vector<const CallRow*> rows;
  for (const WorkRow& row : profile.work) rows.push_back(&row);
  return rows;
}

// The dtype of the first tensor among a node's values.
DType first_dtype(const Graph& graph, NodeId node) {
  DType dtype = DType::kUnspecified;
  for_each_tensor(graph, graph[node].value, [&dtype](ValueId, const Tensor& tensor) {
    if (dtype == DType::kUnspecified) dtype = tensor.dtype;
  });
  return dtype;
}

bool takes_time(const Op& op) {
  switch (op.compute) {
    case ComputeClass::kView:
    case ComputeClass::kWait:
    case ComputeClass::kCollective:
    case ComputeClass::kScalar:
    case ComputeClass::kAssertion:
      return false;
    default:
      return op.view != ViewKind::kProjection && op.view != ViewKind::kIdentity;
  }
}

}  // namespace

void Work::add(const Work& other) {
  flops = saturating_add(flops, other.flops);
  bytes = saturating_add(bytes, other.bytes);
  seconds += other.seconds;
  unknown += other.unknown;
  collectives += other.collectives;
}

WorkModel::WorkModel(const Graph& graph, const DeviceProfile& profile, const SymbolValues& given)
    : graph_(graph),
      profile_(profile),
      values_(symbol_values(graph.module(), given)),
      formulas_(graph, profile, work_rows(profile), values_) {}

std::optional<int64_t> WorkModel::bytes_of(NodeId node) const {
  int64_t bytes = 0;
  bool is_known = true;
  const auto add = [&](ValueId, const Tensor& tensor) {
    const std::optional<int64_t> elements = tensor_elements(graph_.module(), tensor, values_);
    int64_t added = 0;
    is_known =
        is_known && elements.has_value() && !__builtin_mul_overflow(*elements, element_size(tensor.dtype), &added);
    bytes = saturating_add(bytes, added);
  };
  for_each_tensor(graph_, graph_[node].value, add);
  graph_.for_each_input(node, [&](NodeId input) { for_each_tensor(graph_, graph_[input].value, add); });
  return is_known ? std::optional<int64_t>(bytes) : std::nullopt;
}

Work WorkModel::of(NodeId node) {
  Work work;
  if (!graph_[node].is_call()) return work;
  const Op& op = graph_.op(node);
  work.collectives = op.compute == ComputeClass::kCollective ? 1 : 0;
  if (!takes_time(op)) return work;
  const std::vector<CallFormulas::Answer>& answers = formulas_.of(node);
  bool is_known = is_described(op) || !answers.empty();
  for (const CallFormulas::Answer& answer : answers) {
    is_known = is_known && answer.value.has_value();
    work.flops = saturating_add(work.flops, std::max<int64_t>(answer.value.value_or(0), 0));
  }
  const std::optional<int64_t> bytes = bytes_of(node);
  work.bytes = bytes.value_or(0);
  work.unknown = is_known && bytes.has_value() ? 0 : 1;
  const std::optional<int64_t> rate = profile_.flops_for(first_dtype(graph_, node));
  if (profile_.bandwidth.has_value()) {
    work.seconds = static_cast<double>(work.bytes) / static_cast<double>(*profile_.bandwidth);
    if (rate.has_value()) {
      work.seconds = std::max(work.seconds, static_cast<double>(work.flops) / static_cast<double>(*rate));
    }
  }
  return work;
}

Work WorkModel::of(const std::vector<NodeId>& nodes) {
  Work sum;
  for (const NodeId node : nodes) sum.add(of(node));
  return sum;
}

}  // namespace fxopt
