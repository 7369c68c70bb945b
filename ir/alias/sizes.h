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

// What the module says its symbols range over, narrowed to `given`. Not narrowed by hints.
SymbolRanges symbol_ranges(const Module& module, const SymbolRanges& given);

// A size, stride or offset as a number; nothing when a symbol has no value. O(size of the expression).
std::optional<int64_t> evaluate_dim(const Module& module, const Dim& dim, const SymbolValues& values);

// Bytes of the storage behind a strided tensor that owns it: (offset + sum((size - 1) * stride) + 1) * element size, 0
// when a size is 0; nothing when a symbol has no value, when a size, a stride or the whole is negative or above 2^63
// - 1.
std::optional<int64_t> storage_bytes(const Module& module, const Tensor& tensor, const SymbolValues& values);

// The number of elements of a tensor; nothing when sizes are not recorded, when a symbol has no value, when a size is
// negative or the whole above 2^63 - 1.
std::optional<int64_t> tensor_elements(const Module& module, const Tensor& tensor, const SymbolValues& values);

// Where the number of bytes of a storage stands.
enum class SizeKind : uint8_t {
  kNothing,   // it is no tensor: 0 bytes
  kUnknown,   // nowhere: a call without a recorded value
  kLike,      // it is as large as another storage
  kRecorded,  // in the file
  kTensor,    // in its first tensor's layout
  kRoom,      // its kernel leaves more room than the file says: the larger of the two
};
struct SizeSource {
  SizeKind kind = SizeKind::kUnknown;
  BufferId like;                   // kLike
  Integer bytes;                   // kRecorded, kRoom: where the file has them
  const Tensor* tensor = nullptr;  // kTensor, kRoom: its first tensor; until the graph changes
  Room room;                       // kRoom
};

// An operator that works in a clone of its argument's storage takes as much as that, in which the file cannot be
// trusted: fake kernels give the part that the strides reach. Nor can it where a kernel leaves room (see room.h). O(rank).
SizeSource size_source(const Graph& graph, const StorageMap& storages, BufferId id);

// The bytes of a source of any kind but kLike: as storage_bytes(). O(size of its expressions).
std::optional<int64_t> evaluate_size(const Module& module, const SizeSource& source, const SymbolValues& values);

// The same over the ranges of symbols, between 0 and, where nothing bounds it, ValueRange::kNoMax. O(rank).
ValueRange size_bounds(const Module& module, const SizeSource& source, ExprBounds& bounds);

// The expressions that a source of any kind but kLike depends on; none for a plain number. O(rank).
std::vector<ExprId> size_expressions(const Module& module, const SizeSource& source);

}  // namespace fxopt
