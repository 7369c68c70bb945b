#include "runtime/run/tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>

#include "core/check.h"
#include "runtime/ops/kernels/dtype.h"
#include "runtime/plan/plan.h"

namespace fxopt {
namespace {

// Calls visit(offset in bytes, row-major offset in bytes, bytes) for each contiguous piece of a
// tensor.
template <class Visit>
void for_each_piece(const TensorShape& shape, const Visit& visit) {
  const int64_t size = element_size(shape.dtype);
  const int64_t count = shape.elements();
  if (count == 0) return;
  const size_t rank = shape.rank();
  const bool has_rows = rank > 0 && (shape.strides.back() == 1 || shape.sizes.back() == 1);
  const int64_t row = has_rows ? shape.sizes.back() : 1;
  const size_t walked = has_rows ? rank - 1 : rank;
  std::vector<int64_t> index(walked, 0);
  int64_t offset = 0;
  for (int64_t at = 0; at < count; at += row) {
    visit(offset * size, at * size, row * size);
    for (size_t d = walked; d-- > 0;) {
      offset += shape.strides[d];
      if (++index[d] < shape.sizes[d]) break;
      offset -= shape.strides[d] * shape.sizes[d];
      index[d] = 0;
    }
  }
}

}  // namespace

std::optional<PlacedTensor> placed_tensor(const FxPlan& plan, const ScalarValues& values, uint32_t index) {
  const FxTensor& tensor = plan.tensors[index];
  const FxStep none{};
  const StepCall call(plan, values, none, nullptr);
  std::optional<TensorShape> shape = call.shape_of(make_word(FX_WORD_TENSOR, index));
  const std::optional<int64_t> offset = values.integer(tensor.offset);
  if (!shape.has_value() || !offset.has_value()) return std::nullopt;
  const int64_t bytes = *offset * element_size(shape->dtype);
  return PlacedTensor{*std::move(shape), bytes, tensor.storage};
}

std::vector<std::byte> copy_out(const PlacedTensor& tensor, const void* storage) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.shape.elements() * element_size(tensor.shape.dtype)));
  const std::byte* from = static_cast<const std::byte*>(storage);
  for_each_piece(tensor.shape, [&](int64_t offset, int64_t at, int64_t size) {
    std::memcpy(bytes.data() + at, from + tensor.offset + offset, static_cast<size_t>(size));
  });
  return bytes;
}

void copy_in(const PlacedTensor& tensor, std::span<const std::byte> bytes, void* storage) {
  FXOPT_CHECK(bytes.size() == static_cast<size_t>(tensor.shape.elements() * element_size(tensor.shape.dtype)),
              "the number of bytes does not match the tensor");
  std::byte* to = static_cast<std::byte*>(storage);
  for_each_piece(tensor.shape, [&](int64_t offset, int64_t at, int64_t size) {
    std::memcpy(to + tensor.offset + offset, bytes.data() + at, static_cast<size_t>(size));
  });
}

size_t count_not_finite(const PlacedTensor& tensor, const void* storage) {
  const std::byte* from = static_cast<const std::byte*>(storage) + tensor.offset;
  const int64_t size = element_size(tensor.shape.dtype);
  size_t count = 0;
  for_each_piece(tensor.shape, [&](int64_t offset, int64_t, int64_t bytes) {
    double x[256];
    for (int64_t at = 0; at < bytes / size; at += 256) {
      const int64_t n = std::min<int64_t>(256, bytes / size - at);
      kernels::load_run(static_cast<uint8_t>(tensor.shape.dtype), from + offset, at, 1, n, x);
      count += static_cast<size_t>(std::count_if(x, x + n, [](double value) { return !std::isfinite(value); }));
    }
  });
  return count;
}

std::vector<std::string> output_names(const FxPlan& plan) {
  std::map<std::string_view, size_t> count;
  for (uint64_t i = 0; i < plan.num_outputs; ++i) ++count[text_at(plan, plan.outputs[i].name)];
  std::vector<std::string> names;
  for (uint64_t i = 0; i < plan.num_outputs; ++i) {
    const std::string_view name = text_at(plan, plan.outputs[i].name);
    names.push_back(!name.empty() && count[name] == 1 ? std::string(name) : "output_" + std::to_string(i));
  }
  return names;
}

}  // namespace fxopt
