#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "ir/graph/ids.h"
#include "ir/graph/types.h"

namespace fxopt {

// The kind of an argument. A container such as a list has its items as children, which are also
// arguments. A few kinds occur only in metadata.
enum class ArgKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,    // IEEE bits, so that nan payloads and -0.0 are kept
  kComplex,  // two kFloat children
  kString,
  kNode,  // another node of the graph; the only kind that is an edge
  kExpr,
  kDType,
  kDevice,  // a device name such as "cuda:0"
  kLayout,
  kMemoryFormat,
  kList,   // the children are the items
  kTuple,  // the children are the items
  kDict,   // the children are key, value, key, value, ...
  kSlice,  // three children: start, stop, step
  kOp,     // an operator as an argument, by target name
  kGraph,  // a subgraph, by name
  kGroup,  // a process group, by uid
  // A process group that depends on the rank, such as `rank % 2`. The value of the expression is
  // the group's index in Module::groups.
  kGroupExpr,
  kMesh,
  kEnum,    // three children: type, name (kString), number (kInt or kNone)
  kOpaque,  // three children: type, text (kString), payload (kBytes)
  kBytes,
  kValue,   // only in metadata: the description of a tensor
  kUidRef,  // only in metadata: the uid of a node; not an edge
  kEllipsis,
  kRngSlot,
  kSet,      // only in metadata: a set, whose items are the children
  kUnknown,  // a kind that only a newer schema has; its bytes are stored as a string
};

// A contiguous range of the graph's argument pool.
struct ArgRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

// One argument, in 16 bytes. Strings are interned in the module. Children are contiguous in the
// graph's pool.
class Arg {
 public:
  Arg() = default;

  static Arg none() { return Arg(ArgKind::kNone); }
  static Arg ellipsis() { return Arg(ArgKind::kEllipsis); }
  static Arg boolean(bool value) { return Arg(ArgKind::kBool, value ? 1 : 0); }
  static Arg integer(int64_t value) { return Arg(ArgKind::kInt, std::bit_cast<uint64_t>(value)); }
  static Arg floating_bits(uint64_t bits) { return Arg(ArgKind::kFloat, bits); }
  static Arg floating(double value) { return floating_bits(std::bit_cast<uint64_t>(value)); }
  // Makes an argument of a kind whose payload is an interned string. These kinds are kString,
  // kDevice, kOp, kGraph, kGroup, kMesh, kBytes, kRngSlot and kUnknown.
  static Arg named(ArgKind kind, StringId name) { return Arg(kind, name.index()); }
  static Arg string(StringId text) { return named(ArgKind::kString, text); }
  static Arg expr(ExprId id) { return Arg(ArgKind::kExpr, id.index()); }
  static Arg group_expr(ExprId id) { return Arg(ArgKind::kGroupExpr, id.index()); }
  static Arg dtype(DType value) { return Arg(ArgKind::kDType, static_cast<uint64_t>(value)); }
  static Arg layout(Layout value) { return Arg(ArgKind::kLayout, static_cast<uint64_t>(value)); }
  static Arg memory_format(MemoryFormat value) { return Arg(ArgKind::kMemoryFormat, static_cast<uint64_t>(value)); }
  static Arg value(ValueId id) { return Arg(ArgKind::kValue, id.index()); }
  static Arg uid_ref(uint64_t uid) { return Arg(ArgKind::kUidRef, uid); }
  // Makes an edge to `input`. When a node gets the argument, Graph sets use().
  static Arg node(NodeId input) {
    Arg arg(ArgKind::kNode, UseId().index());
    arg.count_ = input.index();
    return arg;
  }
  // Makes an argument with children. `type` names the Python type of a subclass, for example
  // torch.Size. For a plain list, tuple or dict, `type` is invalid.
  static Arg children(ArgKind kind, ArgRange range, StringId type = StringId()) {
    Arg arg(kind, (uint64_t{type.index()} << 32) | range.first);
    arg.count_ = range.count;
    return arg;
  }

  ArgKind kind() const { return kind_; }
  bool is(ArgKind kind) const { return kind_ == kind; }
  bool has_children() const {
    switch (kind_) {
      case ArgKind::kComplex:
      case ArgKind::kList:
      case ArgKind::kTuple:
      case ArgKind::kDict:
      case ArgKind::kSlice:
      case ArgKind::kEnum:
      case ArgKind::kOpaque:
      case ArgKind::kSet:
        return true;
      default:
        return false;
    }
  }

  bool as_bool() const { return payload_ != 0; }
  int64_t as_int() const { return std::bit_cast<int64_t>(payload_); }
  uint64_t as_bits() const { return payload_; }
  double as_double() const { return std::bit_cast<double>(payload_); }
  uint64_t as_uid() const { return payload_; }
  StringId as_string() const { return StringId(payload_); }
  ExprId as_expr() const { return ExprId(payload_); }
  ValueId as_value() const { return ValueId(payload_); }
  DType as_dtype() const { return static_cast<DType>(payload_); }
  Layout as_layout() const { return static_cast<Layout>(payload_); }
  MemoryFormat as_memory_format() const { return static_cast<MemoryFormat>(payload_); }
  NodeId as_node() const { return NodeId(count_); }
  UseId use() const { return UseId(payload_); }
  ArgRange range() const { return {static_cast<uint32_t>(payload_), count_}; }
  StringId type() const { return StringId(payload_ >> 32); }

  // Returns true if the file has fields of a newer schema for this argument. Pool::arg_unknown()
  // returns these fields.
  bool has_unknown() const { return has_unknown_; }

 private:
  friend class Graph;
  friend class Pool;
  explicit Arg(ArgKind kind, uint64_t payload = 0) : kind_(kind), payload_(payload) {}

  ArgKind kind_ = ArgKind::kNone;
  bool has_unknown_ = false;
  uint32_t count_ = 0;
  uint64_t payload_ = 0;
};

static_assert(sizeof(Arg) == 16);

// Returns make(*value), or nullopt if `value` is empty.
template <class T>
std::optional<Arg> make_arg(const std::optional<T>& value, Arg (*make)(T)) {
  return value.has_value() ? std::optional<Arg>(make(*value)) : std::nullopt;
}

}  // namespace fxopt
