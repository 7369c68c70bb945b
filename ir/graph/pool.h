#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/check.h"
#include "ir/graph/arg.h"
#include "ir/graph/value.h"

namespace fxopt {

// Storage for arguments and values. Children of a list, a tuple or a dict are contiguous. The pool
// never removes an item, so ranges and ids stay valid.
class Pool {
 public:
  const Arg& arg(ArgIndex index) const { return args_[index.index()]; }
  std::span<const Arg> args(ArgRange range) const { return std::span(args_).subspan(range.first, range.count); }
  std::span<const Arg> children(const Arg& arg) const { return args(arg.range()); }
  ArgRange append(std::span<const Arg> items);
  size_t num_args() const { return args_.size(); }

  // Throws InternalError if `id` is invalid. The id is invalid for a node without a recorded value,
  // for example.
  const Value& value(ValueId id) const {
    FXOPT_CHECK(id.is_valid(), "no value is recorded");
    return values_[id.index()];
  }
  std::span<const Value> children(const Value& value) const {
    return std::span(values_).subspan(value.first, value.count);
  }
  const Tensor& tensor(const Value& value) const {
    FXOPT_CHECK(value.kind == ValueKind::kTensor, "the value is not a tensor");
    return tensors_[value.first];
  }
  Tensor& tensor(const Value& value) { return tensors_[value.first]; }
  const Arg& scalar(const Value& value) const { return args_[value.first]; }
  std::span<const StringId> keys(const Value& value) const { return std::span(keys_).subspan(value.keys, value.count); }

  // A value must be complete when it is appended. Append its children first, contiguously, and then
  // the parent.
  ValueId append_value(const Value& value);
  ValueId append_values(std::span<const Value> values);  // returns the id of the first value
  uint32_t append_tensor(const Tensor& tensor);
  uint32_t append_keys(std::span<const StringId> keys);
  Value tensor_value(const Tensor& tensor);
  // A function that changes a tensor in place, for copy_value().
  using TensorEdit = std::function<void(Tensor&)>;
  // Appends a deep copy of the value `id` of the pool `from`. Returns the id of the copy. The pool
  // `from` may be this pool. Calls `edit` with every tensor of the copy, in depth-first order.
  // O(size of the value).
  ValueId copy_value(const Pool& from, ValueId id, const TensorEdit& edit);

  // Returns the serialized unknown fields of an argument or a value. Empty if the item has no
  // unknown fields.
  const std::string& arg_unknown(ArgIndex index) const;
  const std::string& value_unknown(ValueId id) const;
  // Stores the unknown fields of an item, and sets the item's flag `has_unknown`. The item must
  // already be in the pool.
  void set_arg_unknown(ArgIndex index, std::string bytes);
  void set_value_unknown(ValueId id, std::string bytes);

  // In every argument of `kind`, replaces each old name in `names` by its new name. The payload of
  // `kind` must be an interned string. For kGraph, also replaces the names of graphs in values.
  // O(arguments + values).
  void rename(ArgKind kind, const IdMap<StringId, StringId>& names);

 private:
  friend class Graph;
  Value copy_children(const Pool& from, Value value, const TensorEdit& edit);

  std::vector<Arg> args_;
  std::vector<Value> values_;
  std::vector<Tensor> tensors_;
  std::vector<StringId> keys_;
  std::map<uint32_t, std::string> arg_unknown_;
  std::map<uint32_t, std::string> value_unknown_;
};

// Builds nested arguments in one pass over any source, without an intermediate tree:
//
//   ArgStack stack(pool);
//   const size_t outer = stack.mark();
//   stack.push(Arg::integer(2));
//   stack.push(Arg::integer(4));
//   stack.close(ArgKind::kList, outer);      // replaces both by one list argument
//   ArgRange args = stack.take(0);           // all arguments since mark 0, contiguous in the pool
class ArgStack {
 public:
  explicit ArgStack(Pool& pool) : pool_(&pool) {}

  size_t mark() const { return stack_.size(); }
  void push(const Arg& arg) { push(arg, std::string()); }
  void push(const Arg& arg, std::string unknown);
  void close(ArgKind kind, size_t mark, StringId type = StringId(), std::string unknown = std::string());
  ArgRange take(size_t mark);

 private:
  Pool* pool_;
  std::vector<Arg> stack_;
  std::map<size_t, std::string> unknown_;  // by stack position
};

}  // namespace fxopt
