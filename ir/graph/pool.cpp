#include "ir/graph/pool.h"

#include <utility>

#include "core/check.h"

namespace fxopt {
namespace {

const std::string kNoBytes;

const std::string& find_bytes(const std::map<uint32_t, std::string>& table, uint32_t index) {
  const std::map<uint32_t, std::string>::const_iterator found = table.find(index);
  return found == table.end() ? kNoBytes : found->second;
}

}  // namespace

ArgRange Pool::append(std::span<const Arg> items) {
  const ArgRange range{static_cast<uint32_t>(args_.size()), static_cast<uint32_t>(items.size())};
  FXOPT_CHECK(args_.size() + items.size() < UINT32_MAX, "argument pool is full");
  args_.insert(args_.end(), items.begin(), items.end());
  return range;
}

ValueId Pool::append_value(const Value& value) { return append_values(std::span(&value, 1)); }

ValueId Pool::append_values(std::span<const Value> values) {
  FXOPT_CHECK(values_.size() + values.size() < UINT32_MAX, "value pool is full");
  const ValueId first(values_.size());
  values_.insert(values_.end(), values.begin(), values.end());
  return first;
}

uint32_t Pool::append_tensor(const Tensor& tensor) {
  tensors_.push_back(tensor);
  return static_cast<uint32_t>(tensors_.size() - 1);
}

uint32_t Pool::append_keys(std::span<const StringId> keys) {
  const uint32_t first = static_cast<uint32_t>(keys_.size());
  keys_.insert(keys_.end(), keys.begin(), keys.end());
  return first;
}

Value Pool::tensor_value(const Tensor& tensor) {
  Value value;
  value.kind = ValueKind::kTensor;
  value.first = append_tensor(tensor);
  return value;
}

ValueId Pool::copy_value(const Pool& from, ValueId id, const TensorEdit& edit) {
  const Value copy = copy_children(from, from.value(id), edit);
  const ValueId to = append_value(copy);
  if (copy.has_unknown) set_value_unknown(to, from.value_unknown(id));
  return to;
}

Value Pool::copy_children(const Pool& from, Value value, const TensorEdit& edit) {
  switch (value.kind) {
    case ValueKind::kTensor: {
      Tensor tensor = from.tensor(value);
      edit(tensor);
      value.first = append_tensor(tensor);
      return value;
    }
    case ValueKind::kScalar: {
      const Arg scalar = from.scalar(value);
      value.first = append(std::span(&scalar, 1)).first;
      return value;
    }
    case ValueKind::kTuple:
    case ValueKind::kList:
    case ValueKind::kDict:
      break;
    default:
      return value;
  }
  if (value.kind == ValueKind::kDict) {
    const std::span<const StringId> keys = from.keys(value);
    value.keys = append_keys(std::vector<StringId>(keys.begin(), keys.end()));
  }
  std::vector<Value> children;  // children of the copy; their own children come first
  for (uint32_t i = 0; i < value.count; ++i) {
    children.push_back(copy_children(from, from.value(ValueId(value.first + i)), edit));
  }
  const ValueId first = append_values(children);
  for (uint32_t i = 0; i < value.count; ++i) {
    const ValueId child(value.first + i);
    if (from.value(child).has_unknown) set_value_unknown(ValueId(first.index() + i), from.value_unknown(child));
  }
  value.first = first.index();
  return value;
}

const std::string& Pool::arg_unknown(ArgIndex index) const { return find_bytes(arg_unknown_, index.index()); }

const std::string& Pool::value_unknown(ValueId id) const { return find_bytes(value_unknown_, id.index()); }

void Pool::set_arg_unknown(ArgIndex index, std::string bytes) {
  args_[index.index()].has_unknown_ = !bytes.empty();
  arg_unknown_[index.index()] = std::move(bytes);
}

void Pool::set_value_unknown(ValueId id, std::string bytes) {
  values_[id.index()].has_unknown = !bytes.empty();
  value_unknown_[id.index()] = std::move(bytes);
}

void ArgStack::push(const Arg& arg, std::string unknown) {
  if (!unknown.empty()) unknown_[stack_.size()] = std::move(unknown);
  stack_.push_back(arg);
}

void ArgStack::close(ArgKind kind, size_t mark, StringId type, std::string unknown) {
  const ArgRange range = take(mark);
  push(Arg::children(kind, range, type), std::move(unknown));
}

ArgRange ArgStack::take(size_t mark) {
  FXOPT_CHECK(mark <= stack_.size(), "the mark is above the top of the stack");
  const ArgRange range = pool_->append(std::span(stack_).subspan(mark));
  for (std::map<size_t, std::string>::iterator it = unknown_.lower_bound(mark); it != unknown_.end();) {
    pool_->set_arg_unknown(ArgIndex(range.first + (it->first - mark)), std::move(it->second));
    it = unknown_.erase(it);
  }
  stack_.resize(mark);
  return range;
}

void Pool::rename(ArgKind kind, const IdMap<StringId, StringId>& names) {
  for (Arg& arg : args_) {
    if (arg.is(kind) && names[arg.as_string()].is_valid()) arg = Arg::named(kind, names[arg.as_string()]);
  }
  if (kind != ArgKind::kGraph) return;
  for (Value& value : values_) {
    if (value.kind == ValueKind::kGraph && names[value.name].is_valid()) value.name = names[value.name];
  }
}

}  // namespace fxopt
