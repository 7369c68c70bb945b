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

// The arguments of a call, by position in the schema of the called operator:
//
//   const CallArgs args(graph, node);
//   const std::optional<int64_t> dim = args[1].as_int();
//   const NodeId weight = args.named("weight").as_node();
//
// An argument may be given by position or by keyword. An argument whose value is None counts as
// given. If the argument is not given, the schema's default applies. If the schema has no default,
// the argument is missing.

namespace fxopt {

// Returns the argument at `position` of the op's schema if the call gives it by position or by
// keyword. Returns nullptr if the call leaves the argument out. Without a schema, keywords are
// ignored. O(keyword arguments).
const Arg* call_argument(const Graph& graph, NodeId node, size_t position);

// Returns an integer argument of a call. `symbolic(arg)` returns the integer of an expression or of
// a node.
template <class Symbolic>
std::optional<SymInt> sym_int_of(const Arg& arg, const Symbolic& symbolic) {
  if (arg.is(ArgKind::kInt)) return SymInt(arg.as_int());
  return arg.is(ArgKind::kExpr) || arg.is(ArgKind::kNode) ? symbolic(arg) : std::optional<SymInt>();
}

// One argument of a call. Each as_...() returns the given value, or the default if the call leaves
// the argument out. Each as_...() returns nothing for a value of a different kind, such as None, a
// symbolic integer or a list. The graph and the schema must outlive the object. Functions allocate
// only if their comments say so.
class CallArg {
 public:
  // `given` is nullptr if the call leaves the argument out. `described` is nullptr without a
  // schema.
  CallArg(const Graph& graph, const Arg* given, const SchemaArg* described)
      : graph_(&graph), given_(given), described_(described) {}

  const Arg* given() const { return given_; }
  const SchemaArg* described() const { return described_; }
  bool is_given() const { return given_ != nullptr; }
  bool is_default() const { return default_value() != nullptr; }
  bool is_missing() const { return !is_given() && !is_default(); }
  bool is_none() const { return is_given() ? given_->is(ArgKind::kNone) : has_default(SchemaDefault::Kind::kNone); }
  bool is_absent() const { return is_missing() || is_none(); }
  // True for an expression, and for a node that is a symbolic integer, float or boolean.
  bool is_symbolic() const;

  std::optional<bool> as_bool() const;
  std::optional<int64_t> as_int() const;
  std::optional<double> as_double() const;  // also converts an integer
  // A schema may give the default dtype as the number of PyTorch's enumerator. It may give the
  // default memory format as such a number or by name (contiguous_format, preserve_format).
  std::optional<DType> as_dtype() const;
  std::optional<MemoryFormat> as_memory_format() const;
  NodeId as_node() const;  // invalid if the argument is not a node

  // Returns the members of the argument if the call gives a list or tuple. Empty otherwise, also if
  // the schema's default is a list. See is_list().
  std::span<const Arg> items() const;
  bool is_list() const { return is_given() && (given_->is(ArgKind::kList) || given_->is(ArgKind::kTuple)); }

  // Returns an integer. Symbolic integers are handled as in sym_int_of().
  template <class Symbolic>
  std::optional<SymInt> sym_int(const Symbolic& symbolic) const {
    if (is_given()) return sym_int_of(*given_, symbolic);
    const std::optional<int64_t> number = as_int();
    return number.has_value() ? std::optional<SymInt>(*number) : std::nullopt;
  }
  // Returns sym_int(), or `otherwise` if the argument is missing or None.
  template <class Symbolic>
  std::optional<SymInt> sym_int_or(int64_t otherwise, const Symbolic& symbolic) const {
    return is_absent() ? SymInt(otherwise) : sym_int(symbolic);
  }
  // Returns the integers of a given list, or nothing if an integer is unknown. Allocates the list.
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
  // The schema's default if the call leaves the argument out, or nullptr.
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

// All arguments of one call. The graph must outlive the object.
class CallArgs {
 public:
  CallArgs(const Graph& graph, NodeId node);
  // Uses `schema` instead of the operator's own schema, for example a schema that a file records.
  CallArgs(const Graph& graph, NodeId node, const Schema& schema) : graph_(&graph), node_(node), schema_(&schema) {}

  // Returns the larger of two numbers: the number of arguments in the schema, and the number of
  // arguments given by position.
  size_t size() const;
  // Returns the argument at `position`. Without a schema, and for positions beyond the schema, only
  // arguments given by position are found. O(keyword arguments).
  CallArg operator[](size_t position) const;
  // Returns the argument called `name`. The argument is missing if the schema has no argument with
  // this name. Without a schema, only arguments given by keyword are found. O(arguments).
  CallArg named(std::string_view name) const;

 private:
  const Graph* graph_;
  NodeId node_;
  const Schema* schema_;  // nullptr without a schema
};

}  // namespace fxopt
