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

// The arguments of a call, by the places of its operator's schema:
//
//   const CallArgs args(graph, node);
//   const std::optional<int64_t> dim = args[1].as_int();
//   const NodeId weight = args.named("weight").as_node();
//
// An argument is given by place or by keyword, None included; else the schema's default holds; else it is missing.

namespace fxopt {

// The argument at `position` of the op's schema as this call gives it: by place, by keyword, or nullptr where the
// default holds. Without a schema only places count. O(keyword arguments).
const Arg* call_argument(const Graph& graph, NodeId node, size_t position);

// An integer that a call is given; `symbolic(arg)` finds the one of an expression or a node.
template <class Symbolic>
std::optional<SymInt> sym_int_of(const Arg& arg, const Symbolic& symbolic) {
  if (arg.is(ArgKind::kInt)) return SymInt(arg.as_int());
  return arg.is(ArgKind::kExpr) || arg.is(ArgKind::kNode) ? symbolic(arg) : std::optional<SymInt>();
}

// One argument. Each as_...() reads what is given, else the default, and yields nothing for a value of another kind:
// None, a symbolic integer, a list. Refers to the graph and the schema. Allocates only where it says so.
class CallArg {
 public:
  // `given`: nullptr where the call leaves the argument out; `described`: nullptr without a schema.
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
  std::optional<double> as_double() const;  // of an integer as well
  // The defaults of dtypes and memory formats are written as the framework's numbers or words.
  std::optional<DType> as_dtype() const;
  std::optional<MemoryFormat> as_memory_format() const;
  std::optional<std::string_view> as_text() const;  // a string; of a default, what stands between its quotes
  NodeId as_node() const;                           // invalid: not a node

  // The members of a list or tuple that is given; empty for anything else. See is_list().
  std::span<const Arg> items() const;
  bool is_list() const { return is_given() && (given_->is(ArgKind::kList) || given_->is(ArgKind::kTuple)); }
  // Fills `out` with the integers of a list, given or by default; a single default of a list that has a length, as in
  // `int[2] stride=1`, counts for each member. False, and `out` is empty, for anything else. O(members).
  bool read_ints(std::vector<int64_t>& out) const;

  // An integer, symbolic ones as sym_int_of() has them.
  template <class Symbolic>
  std::optional<SymInt> sym_int(const Symbolic& symbolic) const {
    if (is_given()) return sym_int_of(*given_, symbolic);
    const std::optional<int64_t> number = as_int();
    return number.has_value() ? std::optional<SymInt>(*number) : std::nullopt;
  }
  // The same, and `otherwise` where the argument is missing or None.
  template <class Symbolic>
  std::optional<SymInt> sym_int_or(int64_t otherwise, const Symbolic& symbolic) const {
    return is_absent() ? SymInt(otherwise) : sym_int(symbolic);
  }
  // The integers of a list that is given; nothing where one is unknown. Allocates the list.
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
  // The default that holds, or nullptr.
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
  // By another schema than the operator's own, such as the one that a file records.
  CallArgs(const Graph& graph, NodeId node, const Schema& schema) : graph_(&graph), node_(node), schema_(&schema) {}

  // The arguments of the schema; without one, or where more are given, those given by place.
  size_t size() const;
  // Beyond the schema and without one only places count. O(keyword arguments).
  CallArg operator[](size_t position) const;
  // Missing where the schema has no such argument; without a schema, by keyword. O(arguments).
  CallArg named(std::string_view name) const;

 private:
  const Graph* graph_;
  NodeId node_;
  const Schema* schema_;  // nullptr: none
};

}  // namespace fxopt
