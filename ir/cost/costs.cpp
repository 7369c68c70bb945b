#include "ir/cost/costs.h"

#include <algorithm>
#include <numeric>

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

const DeviceProfile& no_profile() {
  static const DeviceProfile kNone;
  return kNone;
}

bool runs_kernel(const Op& op) {
  const bool is_free = op.compute == ComputeClass::kView || op.compute == ComputeClass::kWait ||
                       op.compute == ComputeClass::kScalar || op.compute == ComputeClass::kAssertion;
  return !is_free && op.view != ViewKind::kProjection && op.view != ViewKind::kIdentity;
}

}  // namespace

std::string_view cost_basis_name(CostBasis basis) {
  static constexpr std::string_view kNames[kNumCostBases] = {"unknown", "free",   "roofline",
                                                             "links",   "scaled", "measured"};
  return kNames[static_cast<size_t>(basis)];
}

void Cost::add(const Cost& other) {
  flops = saturating_add(flops, other.flops);
  bytes = saturating_add(bytes, other.bytes);
  seconds += other.seconds;
  link_seconds += other.link_seconds;
  unknown += other.unknown;
  for (size_t i = 0; i < kNumCostBases; ++i) {
    kernels[i] += other.kernels[i];
    collectives[i] += other.collectives[i];
  }
}

size_t Cost::num_kernels() const {
  return std::accumulate(kernels.begin(), kernels.end(), size_t{0}) - num_kernels(CostBasis::kFree);
}

size_t Cost::num_collectives() const { return std::accumulate(collectives.begin(), collectives.end(), size_t{0}); }

CostTable::CostTable(const Graph& graph, const CostSources& sources)
    : graph_(graph),
      profile_(sources.profile != nullptr ? *sources.profile : no_profile()),
      values_(symbol_values(graph.module(), sources.symbols)),
      formulas_(graph, profile_, work_rows(profile_), values_),
      links_(profile_) {
  for (const ProcessGroup& group : graph.module().groups) groups_.try_emplace(group.uid, &group);
  if (sources.measurement == nullptr) return;
  measured_.emplace(graph, *sources.measurement, values_);
  add_samples();
}

void CostTable::add_samples() {
  for (const NodeId node : graph_.nodes()) {
    if (!graph_[node].is_call() || graph_.op(node).compute != ComputeClass::kCollective) continue;
    const ProcessGroup* group = group_of(node);
    const std::optional<double> seconds = measured_->of(node);
    bool by_hint = false;
    const std::optional<int64_t> bytes = collective_input_bytes(graph_, node, values_, by_hint);
    if (group == nullptr || !seconds.has_value() || !bytes.has_value()) continue;
    links_.add_sample(collective_kind(graph_.op(node)), group_shape(group->ranks, links_.gpus_per_node()), *bytes,
                      *seconds);
  }
}

const ProcessGroup* CostTable::group_of(NodeId node) const {
  const auto found = groups_.find(group_of_call(graph_, node).uid);
  return found == groups_.end() ? nullptr : found->second;
}

std::optional<int64_t> CostTable::bytes_of(NodeId node) const {
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

Cost CostTable::of(NodeId node) {
  if (!graph_[node].is_call()) return {};
  const Op& op = graph_.op(node);
  const bool is_collective = op.compute == ComputeClass::kCollective;
  if (!is_collective && !runs_kernel(op)) {
    Cost cost;
    ++cost.kernels[static_cast<size_t>(CostBasis::kFree)];
    return cost;
  }
  const std::optional<double> measured = measured_.has_value() ? measured_->of(node) : std::nullopt;
  return is_collective ? cost_of_collective(node, measured) : cost_of_kernel(node, measured);
}

Cost CostTable::cost_of_collective(NodeId node, std::optional<double> measured) const {
  const ProcessGroup* group = group_of(node);
  bool by_hint = false;
  const std::optional<int64_t> bytes = collective_input_bytes(graph_, node, values_, by_hint);
  if (!measured.has_value() && group != nullptr && bytes.has_value()) {
    return collective(collective_kind(graph_.op(node)), group->ranks, *bytes);
  }
  Cost cost;
  cost.link_seconds = measured.value_or(0);
  ++cost.collectives[static_cast<size_t>(measured.has_value() ? CostBasis::kMeasured : CostBasis::kUnknown)];
  return cost;
}

Cost CostTable::collective(CollectiveKind kind, const std::vector<int64_t>& ranks, int64_t bytes) const {
  const std::optional<LinkModel::Time> time = links_.seconds(kind, group_shape(ranks, links_.gpus_per_node()), bytes);
  Cost cost;
  if (time.has_value()) cost.link_seconds = time->seconds;
  const CostBasis basis = !time.has_value()   ? CostBasis::kUnknown
                          : time->is_measured ? CostBasis::kScaled
                                              : CostBasis::kLinks;
  ++cost.collectives[static_cast<size_t>(basis)];
  return cost;
}

Cost CostTable::cost_of_kernel(NodeId node, std::optional<double> measured) {
  Cost cost;
  const std::vector<CallFormulas::Answer>& answers = formulas_.of(node);
  bool is_known = is_described(graph_.op(node)) || !answers.empty();
  for (const CallFormulas::Answer& answer : answers) {
    is_known = is_known && answer.value.has_value();
    cost.flops = saturating_add(cost.flops, std::max<int64_t>(answer.value.value_or(0), 0));
  }
  const std::optional<int64_t> bytes = bytes_of(node);
  cost.bytes = bytes.value_or(0);
  cost.unknown = is_known && bytes.has_value() ? 0 : 1;
  CostBasis basis = cost.unknown > 0 || !profile_.bandwidth.has_value() ? CostBasis::kUnknown : CostBasis::kRoofline;
  if (measured.has_value()) basis = CostBasis::kMeasured;
  cost.seconds = measured.has_value() ? *measured : roofline(node, cost);
  ++cost.kernels[static_cast<size_t>(basis)];
  return cost;
}

double CostTable::roofline(NodeId node, const Cost& cost) const {
  if (!profile_.bandwidth.has_value()) return 0;
  double seconds = std::max(static_cast<double>(cost.bytes) / static_cast<double>(*profile_.bandwidth),
                            static_cast<double>(profile_.constant("device.kernel").value_or(0)) * 1e-9);
  if (const std::optional<int64_t> rate = profile_.flops_for(first_dtype(graph_, node)); rate.has_value()) {
    seconds = std::max(seconds, static_cast<double>(cost.flops) / static_cast<double>(*rate));
  }
  return seconds;
}

Cost CostTable::of(const std::vector<NodeId>& nodes) {
  Cost sum;
  for (const NodeId node : nodes) sum.add(of(node));
  return sum;
}

Cost CostTable::all() {
  Cost sum;
  for (const NodeId node : graph_.nodes()) sum.add(of(node));
  return sum;
}

}  // namespace fxopt
