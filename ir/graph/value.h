#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/expr.h"
#include "ir/graph/ids.h"
#include "ir/graph/types.h"

namespace fxopt {

// A placement of a DTensor. For a DTensor, Tensor records the local part.
struct Placement {
  PlacementKind kind = PlacementKind::kReplicate;
  bool has_dim = false;
  int64_t dim = 0;
  bool has_split_factor = false;
  int64_t split_factor = 0;
  StringId reduce_op;
  bool operator==(const Placement&) const = default;
};

// A tensor as the tracer recorded it. Sizes, strides and offset are in elements.
struct Tensor {
  DType dtype = DType::kUnspecified;
  Layout layout = Layout::kStrided;
  bool requires_grad = false;
  bool conjugate = false;
  bool negative = false;
  bool pinned = false;
  DimsId sizes;
  DimsId strides;  // invalid if the layout has no strides
  Dim offset;
  StringId device;  // invalid if not recorded
  // The storage that the file records, or invalid if no storage is recorded. Analyses derive their
  // own storages, see ir/alias/storages.h.
  StorageId storage;
  StringId mesh;            // the name of the device mesh of `placements`
  StringId subclass;        // the Python type if the tensor is not a plain tensor
  uint32_t placements = 0;  // an index for Module::placements(); 0 for no placements
};

enum class ValueKind : uint8_t {
  kAbsent,  // the trace recorded no value; kNone is a recorded None
  kNone,
  kTensor,
  kTuple,     // children
  kList,      // children
  kDict,      // children, with `keys`
  kSymbolic,  // a symbolic int, float or bool
  kScalar,    // a plain bool, int, float or string
  kOpaque,    // a DeviceMesh, a Generator, ...
  kGraph,
  kUnknown,  // a kind that only a newer schema has
};

// A node's result. The ValueIds of the children are contiguous in the graph's value pool.
struct Value {
  ValueKind kind = ValueKind::kAbsent;
  SymbolType symbol_type = SymbolType::kInt;  // the type of a kSymbolic
  bool has_unknown = false;                   // has unknown fields, see Pool::value_unknown()
  uint32_t first = 0;                         // with children: ValueId of the first; kTensor: index in the graph's
                                              // tensors; kScalar: ArgIndex; kSymbolic: ExprId
  uint32_t count = 0;                         // the number of children
  StringId name;                              // kOpaque: Python type; kGraph: graph name
  StringId mesh;                              // kOpaque: name of the device mesh, if any
  StringId group;                             // kOpaque: the process group, if any
  StringId text;                              // kOpaque: a description for people
  uint32_t keys = 0;                          // kDict: first of `count` names in the graph's key pool
};

}  // namespace fxopt
