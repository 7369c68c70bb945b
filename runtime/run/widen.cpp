#include "runtime/run/widen.h"

#include <algorithm>

#include "ir/graph/types.h"
#include "ir/values/values.h"
#include "runtime/run/compare.h"
#include "runtime/run/tensors.h"

namespace fxopt {
namespace {

bool is_narrow(uint8_t type) {
  const auto dtype = static_cast<DType>(type);
  return is_floating(dtype) && dtype != DType::kFloat64;
}

}  // namespace

std::unique_ptr<Plan> widen(const FxPlan& plan, const ScalarValues& values) {
  auto wide = std::make_unique<Plan>();
  wide->for_each_array(plan, [](auto& to, const auto* data, uint64_t count) { to.assign(data, data + count); });
  for (uint64_t i = 0; i < plan.num_strings; ++i) wide->add_string(text_at(plan, static_cast<uint32_t>(i)));
  wide->name = plan.name;
  wide->hash = plan.hash;
  std::vector<int64_t> factor(plan.num_storages, 1);
  for (FxTensor& tensor : wide->tensors) {
    if (!is_narrow(tensor.dtype)) continue;
    const int64_t grows = 8 / element_size(static_cast<DType>(tensor.dtype));
    tensor.dtype = static_cast<uint8_t>(DType::kFloat64);
    if (tensor.storage != FX_NONE) factor[tensor.storage] = std::max(factor[tensor.storage], grows);
  }
  for (uint64_t i = 0; i < plan.num_storages; ++i) {
    const std::optional<int64_t> bytes = values.integer(plan.storages[i].bytes);
    if (bytes.has_value()) wide->storages[i].bytes = wide->number(*bytes * factor[i]);
  }
  return wide;
}

Result<WidenedInputs> WidenedInputs::convert(const FxPlan& plan, const FxPlan& widened, const ScalarValues& values,
                                             const std::vector<void*>& given) {
  WidenedInputs inputs;
  inputs.given_.assign(plan.num_storages, nullptr);
  for (uint64_t i = 0; i < plan.num_inputs; ++i) {
    const FxWord value = plan.inputs[i].value;
    if (kind_of(value) != FX_WORD_TENSOR) continue;
    const std::optional<PlacedTensor> from = placed_tensor(plan, values, index_of(value));
    const std::optional<PlacedTensor> to = placed_tensor(widened, values, index_of(value));
    if (!from.has_value() || !to.has_value() || from->storage == FX_NONE) continue;
    void*& place = inputs.given_[from->storage];
    if (place == nullptr) {
      const int64_t bytes = values.integer(widened.storages[from->storage].bytes).value_or(0);
      inputs.blocks_.emplace_back(bytes);
      place = inputs.blocks_.back().data();
      if (place == nullptr && bytes > 0) {
        return Error{ErrorCode::kOutOfMemory,
                     "cannot allocate " + std::to_string(bytes) + " bytes for an input in float64",
                     "give a tolerance that needs no second run, such as 1e-5,1e-8",
                     {}};
      }
    }
    const std::vector<std::byte> bytes = copy_out(*from, given[from->storage]);
    if (from->shape.dtype == to->shape.dtype) {
      copy_in(*to, bytes, place);
      continue;
    }
    const std::vector<double> reals = as_doubles(from->shape.dtype, bytes);
    copy_in(*to, std::as_bytes(std::span(reals)), place);
  }
  return inputs;
}

}  // namespace fxopt
