#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/alias/room.h"
#include "ir/alias/storages.h"
#include "ir/graph/expr_bounds.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// The module's hints, overridden by `given`.
SymbolValues symbol_values(const Module& module, const SymbolValues& given);

// The ranges of symbols that the module records, narrowed to `given`. Hints do not narrow them.
SymbolRanges symbol_ranges(const Module& module, const SymbolRanges& given);

// A size, stride or offset as a number; nothing if a symbol has no value.
// O(size of the expression).
std::optional<int64_t> evaluate_dim(const Module& module, const Dim& dim, const SymbolValues& values);

// Bytes of the storage behind a strided tensor that owns it: (offset + sum((size - 1) * stride) +
// 1) * element size, or 0 if a size is 0. Nothing if a symbol has no value, or if a size, a stride
// or the result is negative or above 2^63 - 1.
std::optional<int64_t> storage_bytes(const Module& module, const Tensor& tensor, const SymbolValues& values);

// The number of elements of a tensor. Nothing if sizes are not recorded, if a symbol has no value,
// if a size is negative, or if the result is above 2^63 - 1.
std::optional<int64_t> tensor_elements(const Module& module, const Tensor& tensor, const SymbolValues& values);

// The source of a storage's number of bytes.
enum class SizeKind : uint8_t {
  kNothing,   // not a tensor: 0 bytes
  kUnknown,   // none: a call without a recorded value
  kLike,      // another storage of the same size
  kRecorded,  // the file
  kTensor,    // the layout of its first tensor
  kRoom,      // its kernel leaves more room than the file records: the larger of the two
};
struct SizeSource {
  SizeKind kind = SizeKind::kUnknown;
  BufferId like;                   // kLike
  Integer bytes;                   // kRecorded, kRoom: as the file records them
  const Tensor* tensor = nullptr;  // kTensor, kRoom: its first tensor, until the graph changes
  Room room;                       // kRoom
};

// The source of a storage's size. An operator that works in a clone of its argument's storage needs
// as many bytes as that storage. The file is not trusted there, because fake kernels record only
// the bytes that the strides reach. Nor is it trusted if a kernel leaves room (see room.h).
// O(rank).
SizeSource size_source(const Graph& graph, const StorageMap& storages, BufferId id);

// The bytes of a source of any kind but kLike; nothing under the conditions of storage_bytes().
// O(size of its expressions).
std::optional<int64_t> evaluate_size(const Module& module, const SizeSource& source, const SymbolValues& values);

// The same over the ranges of symbols: at least 0, and ValueRange::kNoMax if unbounded. O(rank).
ValueRange size_bounds(const Module& module, const SizeSource& source, ExprBounds& bounds);

// The expressions that a source of any kind but kLike depends on; none for a plain number. O(rank).
std::vector<ExprId> size_expressions(const Module& module, const SizeSource& source);

}  // namespace fxopt
