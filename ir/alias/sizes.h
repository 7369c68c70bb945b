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

// Returns the values of symbols: `given`, and the module's hints for all other symbols.
SymbolValues symbol_values(const Module& module, const SymbolValues& given);

// Returns the ranges of symbols that the module records, narrowed by the ranges in `given`. Hints
// do not narrow the ranges.
SymbolRanges symbol_ranges(const Module& module, const SymbolRanges& given);

// Returns a size, stride or offset as a number. Returns nothing if a symbol has no value. O(size of
// the expression).
std::optional<int64_t> evaluate_dim(const Module& module, const Dim& dim, const SymbolValues& values);

// Returns the number of bytes of a storage that one strided tensor exactly fills: (offset +
// sum((size - 1) * stride) + 1) * element size. Returns 0 if a size is 0. Returns nothing if a
// symbol has no value, or if a number is negative or above 2^63 - 1.
std::optional<int64_t> storage_bytes(const Module& module, const Tensor& tensor, const SymbolValues& values);

// Returns the number of elements of a tensor. Returns nothing if sizes are not recorded, if a
// symbol has no value, if a size is negative, or if the result is above 2^63 - 1.
std::optional<int64_t> tensor_elements(const Module& module, const Tensor& tensor, const SymbolValues& values);

// Returns the bytes of a tensor's elements. Returns nothing if one of these conditions holds:
// - tensor_elements() returns nothing.
// - The dtype is not recorded.
// - The number of bytes is above 2^63 - 1.
std::optional<int64_t> tensor_bytes(const Module& module, const Tensor& tensor, const SymbolValues& values);

// The source of a storage's number of bytes.
enum class SizeKind : uint8_t {
  kNothing,   // no tensor, so the size is 0 bytes
  kUnknown,   // a call without a recorded value
  kLike,      // another storage of the same size
  kRecorded,  // the bytes that the file records
  kTensor,    // the layout of the storage's first tensor
  kRoom,      // the larger of the recorded size and the size that the kernel needs (room.h)
};
struct SizeSource {
  SizeKind kind = SizeKind::kUnknown;
  // `kind` decides which of the following members are used. The comment of each member names the
  // kinds that use the member.
  BufferId like;                 // for kLike: another storage, which has the same size
  Integer bytes;                 // for kRecorded and kRoom: the bytes that the file records
  std::optional<Tensor> tensor;  // for kTensor and kRoom: the first tensor on the storage
  Room room;                     // for kRoom: see room.h
};

// Returns the source of a storage's size. The size in the file is not trusted in two cases:
// - An operator works in a clone of its argument's storage and keeps the argument's strides
//   (Op::clones_storage). The clone has as many bytes as the argument's storage. Fake kernels
//   record only the bytes that the strides reach.
// - A kernel allocates more memory than its result needs (room.h).
// Valid until the graph changes. O(rank).
SizeSource size_source(const Graph& graph, const StorageMap& storages, BufferId id);

// Like size_source(), but for the bytes that exist at run time. Autograd allocates the storage of
// each tangent separately, so the recorded offset of a tangent is ignored.
SizeSource counted_size(const Graph& graph, const StorageMap& storages, BufferId id);

// Returns the number of bytes. Returns nothing for kUnknown, for kLike, and in the same cases as
// storage_bytes(). For kLike, the caller must evaluate the source of the storage `like` instead.
// O(size of the source's expressions).
std::optional<int64_t> evaluate_size(const Module& module, const SizeSource& source, const SymbolValues& values);

// Returns the range of the bytes if each symbol takes all values of its range. The minimum is at
// least 0. The maximum is ValueRange::kNoMax if no bound is known. O(rank).
ValueRange size_bounds(const Module& module, const SizeSource& source, ExprBounds& bounds);

// Returns the expressions from which the number of bytes is computed. Empty if the size is a plain
// number, and for kUnknown. Also empty for kLike: the caller must use the source of the storage
// `like` instead. O(rank).
std::vector<ExprId> size_expressions(const Module& module, const SizeSource& source);

}  // namespace fxopt
