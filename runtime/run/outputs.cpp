#include "runtime/run/outputs.h"

#include "runtime/plan/plan.h"

namespace fxopt {

std::optional<PlacedTensor> output_tensor(const FxPlan& plan, const ScalarValues& values, uint64_t output) {
  const FxWord word = plan.outputs[output].value;
  if (kind_of(word) != FX_WORD_TENSOR) return std::nullopt;
  std::optional<PlacedTensor> tensor = placed_tensor(plan, values, index_of(word));
  return tensor.has_value() && tensor->storage != FX_NONE ? tensor : std::nullopt;
}

std::vector<NamedTensor> copy_outputs(const Program& program, const ScalarValues& values) {
  const FxPlan& plan = program.plan();
  const std::vector<std::string> names = output_names(plan);
  std::vector<NamedTensor> tensors;
  for (uint32_t i = 0; i < plan.num_outputs; ++i) {
    const std::optional<PlacedTensor> tensor = output_tensor(plan, values, i);
    if (!tensor.has_value()) continue;
    tensors.push_back(
        {names[i], tensor->shape.dtype, tensor->shape.sizes, copy_out(*tensor, program.bytes_of(tensor->storage)), i});
  }
  return tensors;
}

std::vector<NamedTensor> copy_results(const Program& program, const ScalarValues& values, uint32_t step) {
  const FxPlan& plan = program.plan();
  const FxStep& row = plan.steps[step];
  std::vector<NamedTensor> tensors;
  for_each_result(plan, values, step, [&](uint32_t i, const PlacedTensor& tensor) {
    std::string name(text_at(plan, plan.nodes[row.node].name));
    if (row.num_results > 1) name += "." + std::to_string(i);
    tensors.push_back({name, tensor.shape.dtype, tensor.shape.sizes, copy_out(tensor, program.bytes_of(tensor.storage)),
                       FX_NONE, step});
  });
  return tensors;
}

}  // namespace fxopt
