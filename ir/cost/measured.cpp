#include "ir/cost/measured.h"

#include <vector>

#include "ir/alias/sizes.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

// Returns a type such as "bf16[8,16]" or "f32[16,4]:1,16". Returns nothing if a size or stride is
// unknown.
std::optional<std::string> type_text(const Module& module, const Tensor& tensor, const SymbolValues& values) {
  if (!tensor.sizes.is_valid()) return std::nullopt;
  std::vector<int64_t> sizes, strides;
  for (const Dim& dim : module.dims(tensor.sizes)) {
    const std::optional<int64_t> size = evaluate_dim(module, dim, values);
    if (!size.has_value()) return std::nullopt;
    sizes.push_back(*size);
  }
  if (tensor.strides.is_valid()) {
    for (const Dim& dim : module.dims(tensor.strides)) {
      const std::optional<int64_t> stride = evaluate_dim(module, dim, values);
      if (!stride.has_value()) return std::nullopt;
      strides.push_back(*stride);
    }
  }
  bool is_dense = true;  // row-major; a dimension of size 1 may have any stride
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0 && i < strides.size();) {
    is_dense = is_dense && (sizes[i] == 1 || strides[i] == expected);
    expected *= std::max<int64_t>(sizes[i], 1);
  }
  const auto list = [](const std::vector<int64_t>& numbers) {
    std::string text;
    for (const int64_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
    return text;
  };
  return std::string(name_of(tensor.dtype)) + "[" + list(sizes) + "]" + (is_dense ? "" : ":" + list(strides));
}

}  // namespace

std::string call_types(const Graph& graph, NodeId node, const SymbolValues& values) {
  bool is_known = true;
  std::string text, list;
  const auto add = [&](ValueId, const Tensor& tensor) {
    const std::optional<std::string> type = type_text(graph.module(), tensor, values);
    is_known = is_known && type.has_value();
    list += (list.empty() ? "" : ", ") + type.value_or("");
  };
  graph.for_each_input(node, [&](NodeId input) { for_each_tensor(graph, graph[input].value, add); });
  text = std::move(list) + " -> ";
  list.clear();
  for_each_tensor(graph, graph[node].value, add);
  return is_known ? text + list : "";
}

MeasuredCalls::MeasuredCalls(const Graph& graph, const Measurement& measurement, const SymbolValues& values)
    : graph_(graph), values_(values) {
  const std::string_view name = graph.module().text(graph.name());
  for (const auto& [measured, calls] : measurement.graphs) {
    for (const MeasuredCall& call : calls) {
      if (measured == name) by_uid_.try_emplace(call.uid, &call);
      Sum& sum = alike_[key(call.target, call.types)];
      sum.seconds += call.seconds;
      ++sum.calls;
    }
  }
}

std::string MeasuredCalls::key(std::string_view target, std::string_view types) {
  return std::string(target) + "(" + std::string(types);
}

std::optional<double> MeasuredCalls::of(NodeId node) const {
  if (!graph_[node].is_call()) return std::nullopt;
  const std::string types = call_types(graph_, node, values_);
  if (types.empty()) return std::nullopt;
  const Module& module = graph_.module();
  const std::string_view target = module.text(module.target(graph_[node].target).name);
  const auto own = by_uid_.find(graph_[node].uid);
  if (own != by_uid_.end() && own->second->target == target && own->second->types == types) {
    return own->second->seconds;
  }
  const auto found = alike_.find(key(target, types));
  if (found == alike_.end()) return std::nullopt;
  return found->second.seconds / static_cast<double>(found->second.calls);
}

}  // namespace fxopt
