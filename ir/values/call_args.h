#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/ops/op.h"
#include "ir/values/sym_int.h"

// The arguments of a call by their positions in its operator's schema:
//
//   const CallArgs args(graph, node);
//   const std::optional<int64_t> dim = args[1].as_int();
//   const NodeId weight = args.named("weight").as_node();
//
// An argument is given by position or by keyword, None included; else the schema's default holds;
// else it is missing.

namespace fxopt {

// The argument at `position` of the op's schema as this call gives it, by position or by keyword.
// nullptr if the default holds. Without a schema only positions count. O(keyword arguments).
const Arg* call_argument(const Graph& graph, NodeId node, size_t position);

// An integer argument of a call. `symbolic(arg)` returns the integer of an expression or a node.
template <class Symbolic>
std::optional<SymInt> sym_int_of(const Arg& arg, const Symbolic& symbolic) {
  if (arg.is(ArgKind::kInt)) return SymInt(arg.as_int());
  return arg.is(ArgKind::kExpr) || arg.is(ArgKind::kNode) ? symbolic(arg) : std::optional<SymInt>();
}

// One argument. Each as_...() reads the given value, else the default, and returns nothing for a
// value of another kind: None, a symbolic integer, a list. Refers to the graph and the schema.
// Allocates only if the comment says so.
class CallArg {
 public:
  // `given`: nullptr if the call leaves the argument out. `described`: nullptr without a schema.
  CallArg(const Graph& graph, const Arg* given, const SchemaArg* described)
      : graph_(&graph), given_(given), described_(described) {}

  const Arg* given() const { return given_; }
  const SchemaArg* described() const { return described_; }
  bool is_given() const { return given_ != nullptr; }
  bool is_default() const { return default_value() != nullptr; }
  bool is_missing() const { return !is_given() && !is_default(); }
  bool is_none() const { return is_given() ? given_->is(ArgKind::kNone) : has_default(SchemaDefault::Kind::kNone); }
  bool is_absent() const { return is_missing() || is_none(); }
  // An expression, or a node that is a symbolic integer, float or boolean.
  bool is_symbolic() const;

  std::optional<bool> as_bool() const;
  std::optional<int64_t> as_int() const;
  std::optional<double> as_double() const;  // also for an integer
  // Defaults of dtypes and memory formats are written as the framework's numbers or words.
  std::optional<DType> as_dtype() const;
  std::optional<MemoryFormat> as_memory_format() const;
  std::optional<std::string_view> as_text() const;  // a string; a default without its quotes
  NodeId as_node() const;                           // invalid: not a node

  // The members of a given list or tuple; empty for anything else. See is_list().
  std::span<const Arg> items() const;
  bool is_list() const { return is_given() && (given_->is(ArgKind::kList) || given_->is(ArgKind::kTuple)); }
  // Fills `out` with the integers of a list, given or by default. A single default for a list with
  // a fixed length, as in `int[2] stride=1`, counts for each member. Returns false and clears `out`
  // for anything else. O(members).
  bool read_ints(std::vector<int64_t>& out) const;

  // An integer, with symbolic ones as in sym_int_of().
  template <class Symbolic>
  std::optional<SymInt> sym_int(const Symbolic& symbolic) const {
    if (is_given()) return sym_int_of(*given_, symbolic);
    const std::optional<int64_t> number = as_int();
    return number.has_value() ? std::optional<SymInt>(*number) : std::nullopt;
  }
  // The same, or `otherwise` if the argument is missing or None.
  template <class Symbolic>
  std::optional<SymInt> sym_int_or(int64_t otherwise, const Symbolic& symbolic) const {
    return is_absent() ? SymInt(otherwise) : sym_int(symbolic);
  }
  // The integers of a given list; nothing if one is unknown. Allocates the list.
  template <class Symbolic>
  std::optional<std::vector<SymInt>> sym_ints(const Symbolic& symbolic) const {
    if (!is_list()) return std::nullopt;
    std::vector<SymInt> list;
    for (const Arg& item : items()) {
      const std::optional<SymInt> integer = sym_int_of(item, symbolic);
      if (!integer.has_value()) return std::nullopt;
      list.push_back(*integer);
    }
    return list;
  }

 private:
  // The default if it holds, or nullptr.
  const SchemaDefault* default_value() const {
    return !is_given() && described_ != nullptr && described_->has_default() ? &described_->default_value : nullptr;
  }
  bool has_default(SchemaDefault::Kind kind) const {
    return default_value() != nullptr && default_value()->kind == kind;
  }

  const Graph* graph_;
  const Arg* given_;
  const SchemaArg* described_;
};

// All arguments of one call. Refers to the graph.
class CallArgs {
 public:
  CallArgs(const Graph& graph, NodeId node);
  // Uses another schema than the operator's own, such as one that a file records.
  CallArgs(const Graph& graph, NodeId node, const Schema& schema) : graph_(&graph), node_(node), schema_(&schema) {}

  // The number of arguments of the schema, or of those given by position if they are more.
  size_t size() const;
  // Without a schema or beyond it, only positions count. O(keyword arguments).
  CallArg operator[](size_t position) const;
  // Missing if the schema has no such argument; without a schema, by keyword. O(arguments).
  CallArg named(std::string_view name) const;

 private:
  const Graph* graph_;
  NodeId node_;
  const Schema* schema_;  // nullptr: none
};

}  // namespace fxopt
