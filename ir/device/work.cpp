#include "ir/device/work.h"

#include <algorithm>

#include "core/saturate.h"
#include "ir/analysis/sizes.h"

namespace fxopt {
namespace {

std::vector<const CallRow*> work_rows(const DeviceProfile& profile) {
  std::vector<const CallRow*> rows;
  for (const WorkRow& row : profile.work) rows.push_back(&row);
  return rows;
}

// The dtype of the first tensor among a node's values.
DType first_dtype(const Graph& graph, const Value& value) {
  if (value.kind == ValueKind::kTensor) return graph.pool().tensor(value).dtype;
  if (value.kind != ValueKind::kTuple && value.kind != ValueKind::kList) return DType::kUnspecified;
  for (const Value& child : graph.pool().children(value)) {
    const DType dtype = first_dtype(graph, child);
    if (dtype != DType::kUnspecified) return dtype;
  }
  return DType::kUnspecified;
}

// Bytes of the tensors in a value; false when one of them is not known.
bool add_bytes(const Graph& graph, const Value& value, const SymbolValues& values, int64_t& bytes) {
  if (value.kind == ValueKind::kTensor) {
    const Tensor& tensor = graph.pool().tensor(value);
    const std::optional<int64_t> elements = tensor_elements(graph.module(), tensor, values);
    int64_t added = 0;
    if (!elements.has_value() || __builtin_mul_overflow(*elements, element_size(tensor.dtype), &added)) return false;
    bytes = saturating_add(bytes, added);
  }
  if (value.kind != ValueKind::kTuple && value.kind != ValueKind::kList) return true;
  const std::span<const Value> children = graph.pool().children(value);
  return std::all_of(children.begin(), children.end(),
                     [&](const Value& child) { return add_bytes(graph, child, values, bytes); });
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
  bool is_known = add_bytes(graph_, graph_.value(node), values_, bytes);
  graph_.for_each_input(
      node, [&](NodeId input) { is_known = is_known && add_bytes(graph_, graph_.value(input), values_, bytes); });
  return is_known ? std::optional<int64_t>(bytes) : std::nullopt;
}

Work WorkModel::of(NodeId node) {
  Work work;
  if (!graph_[node].is_call()) return work;
  const Op& op = graph_.op(node);
  work.collectives = op.compute == ComputeClass::kCollective ? 1 : 0;
  if (!takes_time(op)) return work;
  bool is_known = is_described(op) || !formulas_.of(node).empty();
  for (const CallFormulas::Answer& answer : formulas_.of(node)) {
    is_known = is_known && answer.value.has_value();
    work.flops = saturating_add(work.flops, std::max<int64_t>(answer.value.value_or(0), 0));
  }
  const std::optional<int64_t> bytes = bytes_of(node);
  work.bytes = bytes.value_or(0);
  work.unknown = is_known && bytes.has_value() ? 0 : 1;
  const std::optional<int64_t> rate = profile_.flops_for(first_dtype(graph_, graph_.value(node)));
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
