#include "ir/alias/sizes.h"

#include <algorithm>

#include "ir/values/values.h"

namespace fxopt {
namespace {

// A negative number of bytes counts as unknown.
std::optional<int64_t> recorded_bytes(const Module& module, const Integer& bytes, const SymbolValues& values) {
  const std::optional<int64_t> recorded =
      bytes.expr.is_valid() ? module.exprs.evaluate(bytes.expr, values) : bytes.value;
  return recorded.value_or(-1) < 0 ? std::nullopt : recorded;
}

ValueRange at_least_none(ValueRange range) {
  return {std::max<int64_t>(range.min, 0), std::max<int64_t>(range.max, 0)};
}

ValueRange tensor_bounds(const Module& module, const Tensor& tensor, ExprBounds& bounds) {
  constexpr ValueRange kOne = {1, 1};
  if (!tensor.sizes.is_valid() || !tensor.strides.is_valid() || tensor.dtype == DType::kUnspecified) {
    return at_least_none({});
  }
  const std::vector<Dim>& sizes = module.dims(tensor.sizes);
  const std::vector<Dim>& strides = module.dims(tensor.strides);
  if (sizes.size() != strides.size()) return at_least_none({});
  ValueRange elements = bounds[tensor.offset] + kOne;
  bool may_be_empty = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const ValueRange size = at_least_none(bounds[sizes[i]]);
    if (size.max == 0) return ValueRange::of(0);
    may_be_empty = may_be_empty || size.min == 0;
    // Strides of tensors are not negative, and an empty tensor is handled separately.
    elements =
        elements + (ValueRange{std::max<int64_t>(size.min, 1), size.max} - kOne) * at_least_none(bounds[strides[i]]);
  }
  const ValueRange bytes = at_least_none(elements * ValueRange::of(element_size(tensor.dtype)));
  return {may_be_empty ? 0 : bytes.min, bytes.max};
}

std::optional<int64_t> element_count(const Module& module, const std::vector<Dim>& sizes, const SymbolValues& values) {
  bool is_empty = false, is_too_large = false;
  int64_t count = 1;
  for (const Dim& dim : sizes) {
    const std::optional<int64_t> size = evaluate_dim(module, dim, values);
    if (!size.has_value() || *size < 0) return std::nullopt;
    is_empty = is_empty || *size == 0;
    is_too_large = is_too_large || __builtin_mul_overflow(count, *size, &count);
  }
  if (is_empty) return 0;
  return is_too_large ? std::nullopt : std::optional<int64_t>(count);
}

std::optional<int64_t> room_bytes(const Module& module, const SizeSource& source, const SymbolValues& values) {
  const std::optional<int64_t> count = element_count(module, source.room.sizes, values);
  int64_t bytes = 0;
  if (!count.has_value() || __builtin_add_overflow(*count, source.room.more, &bytes) ||
      __builtin_mul_overflow(bytes, element_size(source.tensor->dtype), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

ValueRange room_bounds(const SizeSource& source, ExprBounds& bounds) {
  ValueRange count = ValueRange::of(1);
  for (const Dim& size : source.room.sizes) count = count * at_least_none(bounds[size]);
  return at_least_none((count + ValueRange::of(source.room.more)) * ValueRange::of(element_size(source.tensor->dtype)));
}

// Returns the index of a storage among the storages of its producer's results.
size_t result_index(const StorageMap& storages, BufferId id) {
  const std::span<const BufferId> made = storages.buffers(storages.buffer(id).producer);
  return static_cast<size_t>(std::ranges::find(made, id) - made.begin());
}

// Returns the source without the room of the kernel.
SizeSource as_recorded(const SizeSource& source) {
  SizeSource recorded = source;
  recorded.kind = source.bytes.is_known() ? SizeKind::kRecorded : SizeKind::kTensor;
  return recorded;
}

}  // namespace

SymbolValues symbol_values(const Module& module, const SymbolValues& given) {
  SymbolValues values = given;
  for (const Symbol& symbol : module.symbols) {
    if (symbol.hint.has_value()) values.emplace(symbol.name, *symbol.hint);
  }
  return values;
}

SymbolRanges symbol_ranges(const Module& module, const SymbolRanges& given) {
  SymbolRanges ranges = given;
  for (const Symbol& symbol : module.symbols) {
    ValueRange& range = ranges[symbol.name];
    range.min = std::max(range.min, symbol.min.value_or(ValueRange::kNoMin));
    range.max = std::min(range.max, symbol.max.value_or(ValueRange::kNoMax));
  }
  return ranges;
}

std::optional<int64_t> evaluate_dim(const Module& module, const Dim& dim, const SymbolValues& values) {
  return dim.is_static() ? std::optional<int64_t>(dim.value) : module.exprs.evaluate(dim.expr, values);
}

std::optional<int64_t> storage_bytes(const Module& module, const Tensor& tensor, const SymbolValues& values) {
  if (!tensor.sizes.is_valid() || !tensor.strides.is_valid() || tensor.dtype == DType::kUnspecified)
    return std::nullopt;
  const std::vector<Dim>& sizes = module.dims(tensor.sizes);
  const std::vector<Dim>& strides = module.dims(tensor.strides);
  const std::optional<int64_t> offset = evaluate_dim(module, tensor.offset, values);
  if (!offset.has_value() || sizes.size() != strides.size()) return std::nullopt;
  int64_t last = *offset;  // index of the last element
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::optional<int64_t> size = evaluate_dim(module, sizes[i], values);
    const std::optional<int64_t> stride = evaluate_dim(module, strides[i], values);
    if (!size.has_value() || !stride.has_value()) return std::nullopt;
    if (*size == 0) return 0;
    if (*size < 0 || *stride < 0) return std::nullopt;
    int64_t extent = 0;
    if (__builtin_mul_overflow(*size - 1, *stride, &extent) || __builtin_add_overflow(last, extent, &last)) {
      return std::nullopt;
    }
  }
  int64_t bytes = 0;
  if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, element_size(tensor.dtype), &bytes)) {
    return std::nullopt;
  }
  return bytes < 0 ? std::nullopt : std::optional<int64_t>(bytes);
}

std::optional<int64_t> tensor_elements(const Module& module, const Tensor& tensor, const SymbolValues& values) {
  return tensor.sizes.is_valid() ? element_count(module, module.dims(tensor.sizes), values) : std::nullopt;
}

std::optional<int64_t> tensor_bytes(const Module& module, const Tensor& tensor, const SymbolValues& values) {
  const std::optional<int64_t> elements = tensor_elements(module, tensor, values);
  int64_t bytes = 0;
  const bool is_known = elements.has_value() && tensor.dtype != DType::kUnspecified &&
                        !__builtin_mul_overflow(*elements, element_size(tensor.dtype), &bytes);
  return is_known ? std::optional(bytes) : std::nullopt;
}

SizeSource size_source(const Graph& graph, const StorageMap& storages, BufferId id) {
  const Buffer& buffer = storages.buffer(id);
  SizeSource source;
  const Tensor* first = buffer.value.is_valid() ? &graph.pool().tensor(graph.pool().value(buffer.value)) : nullptr;
  if (buffer.source == BufferSource::kNode && graph.op(buffer.producer).clones_storage) {
    const NodeId from = first_argument(graph, buffer.producer);
    const Tensor* given = from.is_valid() ? single_tensor(graph, from) : nullptr;
    // If the elements of an argument overlap in memory, the op copies them and does not keep the
    // strides.
    if (given != nullptr && first != nullptr && first->strides == given->strides)
      source.like = storages.buffers(from)[0];
  }
  if (buffer.carried.is_valid()) source.bytes = graph.module().storage(buffer.carried).bytes;
  if (first != nullptr) source.tensor = *first;
  std::optional<Room> room;
  const bool is_made = buffer.source == BufferSource::kNode && first != nullptr;
  if (is_made && graph.op(buffer.producer).holds != Holds::kItself)
    room = find_room(graph, buffer.producer, result_index(storages, id), *first);
  if (room.has_value()) source.room = *std::move(room);
  if (source.like.is_valid()) {
    source.kind = SizeKind::kLike;
  } else if (!source.room.sizes.empty()) {
    source.kind = SizeKind::kRoom;
  } else if (source.bytes.is_known()) {
    source.kind = SizeKind::kRecorded;
  } else if (first != nullptr) {
    source.kind = SizeKind::kTensor;
  } else if (buffer.source != BufferSource::kNode) {  // an attribute may be a subgraph
    source.kind = SizeKind::kNothing;
  }
  return source;
}

SizeSource counted_size(const Graph& graph, const StorageMap& storages, BufferId id) {
  SizeSource source = size_source(graph, storages, id);
  const bool is_own = source.kind == SizeKind::kTensor && is_tangent(graph, storages.buffer(id).producer);
  if (is_own) source.tensor->offset = Dim();
  return source;
}

std::optional<int64_t> evaluate_size(const Module& module, const SizeSource& source, const SymbolValues& values) {
  switch (source.kind) {
    case SizeKind::kNothing:
      return 0;
    case SizeKind::kRecorded:
      return recorded_bytes(module, source.bytes, values);
    case SizeKind::kTensor:
      return storage_bytes(module, *source.tensor, values);
    case SizeKind::kRoom: {
      const std::optional<int64_t> recorded = evaluate_size(module, as_recorded(source), values);
      const std::optional<int64_t> room = room_bytes(module, source, values);
      return recorded.has_value() && room.has_value() ? std::max(recorded, room) : std::nullopt;
    }
    case SizeKind::kUnknown:
    case SizeKind::kLike:
      break;
  }
  return std::nullopt;
}

ValueRange size_bounds(const Module& module, const SizeSource& source, ExprBounds& bounds) {
  switch (source.kind) {
    case SizeKind::kNothing:
      return ValueRange::of(0);
    case SizeKind::kRecorded:
      return at_least_none(source.bytes.expr.is_valid() ? bounds[source.bytes.expr]
                                                        : ValueRange::of(*source.bytes.value));
    case SizeKind::kTensor:
      return tensor_bounds(module, *source.tensor, bounds);
    case SizeKind::kRoom: {
      const ValueRange recorded = size_bounds(module, as_recorded(source), bounds);
      const ValueRange room = room_bounds(source, bounds);
      return {std::max(recorded.min, room.min), std::max(recorded.max, room.max)};
    }
    case SizeKind::kUnknown:
    case SizeKind::kLike:
      break;
  }
  return at_least_none({});
}

std::vector<ExprId> size_expressions(const Module& module, const SizeSource& source) {
  std::vector<ExprId> expressions;
  const auto add = [&expressions](const Dim& dim) {
    if (!dim.is_static()) expressions.push_back(dim.expr);
  };
  if (source.kind == SizeKind::kRoom) {
    expressions = size_expressions(module, as_recorded(source));
    for (const Dim& size : source.room.sizes) add(size);
    return expressions;
  }
  if (source.kind == SizeKind::kRecorded && source.bytes.expr.is_valid()) expressions.push_back(source.bytes.expr);
  if (source.kind != SizeKind::kTensor) return expressions;
  for (const DimsId dims : {source.tensor->sizes, source.tensor->strides}) {
    if (!dims.is_valid()) continue;
    for (const Dim& dim : module.dims(dims)) add(dim);
  }
  add(source.tensor->offset);
  return expressions;
}

}  // namespace fxopt
