#include <algorithm>

#include "fxgraph.pb.h"

#include "core/check.h"
#include "ir/io/pb_decode.h"
#include "ir/io/pb_unknown.h"

namespace fxopt {

std::optional<ValueId> PbDecoder::value(const schema::Value& value) {
  edges_allowed_ = false;
  const size_t mark = values_.size();
  if (!push_value(value, 1)) return std::nullopt;
  if (values_.back().kind == ValueKind::kAbsent) {
    values_.pop_back();
    return ValueId();
  }
  return take_values(mark);
}

bool PbDecoder::push_value(const schema::Value& value, uint32_t depth) {
  std::optional<Value> converted = convert(value, depth);
  if (!converted.has_value()) return false;
  std::string unknown = value_unknown(value);
  if (!unknown.empty()) values_unknown_.emplace_back(values_.size(), std::move(unknown));
  values_.push_back(*converted);
  return true;
}

ValueId PbDecoder::take_values(size_t mark) {
  const ValueId first = pool_->append_values(std::span(values_).subspan(mark));
  values_.resize(mark);
  while (!values_unknown_.empty() && values_unknown_.back().first >= mark) {
    auto& [place, bytes] = values_unknown_.back();
    pool_->set_value_unknown(ValueId(first.index() + (place - mark)), std::move(bytes));
    values_unknown_.pop_back();
  }
  return first;
}

std::string PbDecoder::value_unknown(const schema::Value& value) {
  switch (value.kind_case()) {
    case schema::Value::kTensor: {
      const schema::Tensor& tensor = value.tensor();
      const auto is_plain = [](const auto& entry) { return !has_own_unknown(entry); };
      const bool has_none = is_plain(value) && is_plain(tensor) && is_plain(tensor.offset()) &&
                            std::ranges::all_of(tensor.symbolic_sizes(), is_plain) &&
                            std::ranges::all_of(tensor.symbolic_strides(), is_plain) &&
                            std::ranges::all_of(tensor.placements(), is_plain);
      return has_none ? std::string() : unknown_fragment(value);
    }
    case schema::Value::kTuple:
      return unknown_with(value, value.tuple());
    case schema::Value::kList:
      return unknown_with(value, value.list());
    case schema::Value::kDict:
      return unknown_with(value, value.dict());
    case schema::Value::kSymbolic:
      return unknown_with(value, value.symbolic());
    case schema::Value::kOpaque:
      return unknown_with(value, value.opaque());
    default:
      return own_unknown(value);
  }
}

template <class Items>
std::optional<Value> PbDecoder::convert_children(ValueKind kind, const Items& items, std::string_view name,
                                                 uint32_t depth) {
  if (!is_depth(depth)) return std::nullopt;
  const size_t mark = values_.size();
  for (int i = 0; i < items.size(); ++i) {
    if (!push_value(items[i], depth + 1)) {
      in(name, static_cast<size_t>(i));
      return std::nullopt;
    }
  }
  Value result;
  result.kind = kind;
  result.count = static_cast<uint32_t>(items.size());
  result.first = take_values(mark).index();
  return result;
}

std::optional<Value> PbDecoder::convert(const schema::Value& value, uint32_t depth) {
  Value result;
  switch (value.kind_case()) {
    case schema::Value::KIND_NOT_SET:
      result.kind = !has_own_unknown(value) ? ValueKind::kAbsent : ValueKind::kUnknown;
      return result;
    case schema::Value::kNone:
      result.kind = ValueKind::kNone;
      if (value.none()) return result;
      fail(ErrorCode::kBadValue, "none can only be true");
      return std::nullopt;
    case schema::Value::kTensor: {
      const std::optional<Tensor> converted = tensor(value.tensor());
      if (!converted.has_value()) {
        in("tensor");
        return std::nullopt;
      }
      return pool_->tensor_value(*converted);
    }
    case schema::Value::kTuple:
      return convert_children(ValueKind::kTuple, value.tuple().items(), "tuple", depth);
    case schema::Value::kList:
      return convert_children(ValueKind::kList, value.list().items(), "list", depth);
    case schema::Value::kDict:
      return convert_dict(value, depth);
    case schema::Value::kSymbolic:
    case schema::Value::kGraph:
      return convert_name(value);
    case schema::Value::kScalar: {
      const size_t mark = stack_->mark();
      if (!is_depth(depth) || !push_arg(value.scalar(), depth + 1, arg_unknown(value.scalar()))) return std::nullopt;
      result.kind = ValueKind::kScalar;
      result.first = stack_->take(mark).first;
      return result;
    }
    case schema::Value::kOpaque:
      return convert_opaque(value);
  }
  FXOPT_CHECK(false, "value kind without a reader");
}

std::optional<Value> PbDecoder::convert_name(const schema::Value& value) {
  Value result;
  if (value.kind_case() == schema::Value::kGraph) {
    result.kind = ValueKind::kGraph;
    return set(string(value.graph()), result.name) ? std::optional<Value>(result) : std::nullopt;
  }
  const std::optional<SymbolType> type = enumeration<SymbolType>(value.symbolic().type());
  const std::optional<ExprId> id = type.has_value() ? expr(value.symbolic().expr()) : std::nullopt;
  if (!id.has_value()) return std::nullopt;
  result.kind = ValueKind::kSymbolic;
  result.symbol_type = *type;
  result.first = id->index();
  return result;
}

std::optional<Value> PbDecoder::convert_dict(const schema::Value& value, uint32_t depth) {
  const schema::ValueDict& dict = value.dict();
  if (dict.keys_size() != dict.values_size()) {
    fail(ErrorCode::kBadValue,
         std::to_string(dict.keys_size()) + " keys for " + std::to_string(dict.values_size()) + " values in a dict");
    return std::nullopt;
  }
  std::vector<StringId> keys;
  if (!strings(dict.keys(), keys, "dict.keys")) return std::nullopt;
  std::optional<Value> result = convert_children(ValueKind::kDict, dict.values(), "dict.values", depth);
  if (result.has_value()) result->keys = pool_->append_keys(keys);
  return result;
}

std::optional<Value> PbDecoder::convert_opaque(const schema::Value& value) {
  const schema::OpaqueValue& opaque = value.opaque();
  Value result;
  result.kind = ValueKind::kOpaque;
  const bool ok = text(opaque.type(), result.name, "opaque.type") && text(opaque.mesh(), result.mesh, "opaque.mesh") &&
                  text(opaque.group(), result.group, "opaque.group") && text(opaque.text(), result.text, "opaque.text");
  return ok ? std::optional<Value>(result) : std::nullopt;
}

// ---- tensors

std::optional<Tensor> PbDecoder::tensor(const schema::Tensor& tensor) {
  Tensor result;
  if (!set(enumeration<DType>(tensor.dtype()), result.dtype) ||
      !set(enumeration<Layout>(tensor.layout()), result.layout)) {
    return std::nullopt;
  }
  result.requires_grad = tensor.requires_grad();
  result.conjugate = tensor.conjugate();
  result.negative = tensor.negative();
  result.pinned = tensor.pinned();
  if (!set(dims(tensor.sizes(), tensor.symbolic_sizes(), "sizes"), result.sizes) || !tensor_strides(tensor, result) ||
      !text(tensor.device(), result.device, "device") || !text(tensor.mesh(), result.mesh, "mesh") ||
      !text(tensor.subclass(), result.subclass, "subclass") ||
      (tensor.has_offset() && !tensor_offset(tensor.offset(), result.offset))) {
    return std::nullopt;
  }
  if (tensor.has_storage()) {
    result.storage = module_->find_storage(storage_base_ + tensor.storage());
    if (!result.storage.is_valid()) {
      fail(ErrorCode::kBadReference, "storage " + std::to_string(tensor.storage()) + " is not in the module",
           "list it in Module.storages, or leave the field out");
      return std::nullopt;
    }
  }
  if (tensor.placements_size() > 0 && !tensor_placements(tensor, result)) return std::nullopt;
  return result;
}

template <class Values, class Entries>
std::optional<DimsId> PbDecoder::dims(const Values& values, const Entries& symbolic, std::string_view name) {
  dims_.clear();
  for (const int64_t number : values) dims_.push_back(Dim{number, ExprId()});
  for (int i = 0; i < symbolic.size(); ++i) {
    const schema::SymbolicEntry& entry = symbolic[i];
    const bool ascending = i == 0 || symbolic[i - 1].index() < entry.index();
    if (!ascending || entry.index() >= dims_.size() || dims_[entry.index()].value != 0) {
      fail(ErrorCode::kBadValue, "symbolic entry for index " + std::to_string(entry.index()) + " of " +
                                     std::to_string(dims_.size()) +
                                     (ascending ? " has no 0 to replace" : " is not in ascending order"));
      in(name);
      return std::nullopt;
    }
    if (!set(expr(entry.expr()), dims_[entry.index()].expr)) {
      in(name, entry.index());
      return std::nullopt;
    }
  }
  return module_->dims(dims_);
}

bool PbDecoder::tensor_strides(const schema::Tensor& tensor, Tensor& to) {
  if (tensor.strides_size() == 0 && tensor.symbolic_strides_size() == 0) {
    if (to.layout != Layout::kStrided) return true;
    if (!contiguous_.get(to.sizes).is_valid()) contiguous_[to.sizes] = module_->contiguous_strides(to.sizes);
    to.strides = contiguous_[to.sizes];
    return true;
  }
  if (tensor.strides_size() != tensor.sizes_size()) {
    fail(ErrorCode::kBadValue,
         std::to_string(tensor.strides_size()) + " strides for " + std::to_string(tensor.sizes_size()) + " sizes");
    return in("strides");
  }
  return set(dims(tensor.strides(), tensor.symbolic_strides(), "strides"), to.strides);
}

bool PbDecoder::tensor_offset(const schema::Int& offset, Dim& to) {
  if (offset.has_value() == offset.has_expr()) {
    fail(ErrorCode::kBadValue, "an offset is either a number or an expression",
         "leave the field out for an offset of 0");
    return in("offset");
  }
  if (offset.has_expr()) return store(expr(offset.expr()), to.expr, "offset");
  to.value = offset.value();
  return true;
}

bool PbDecoder::tensor_placements(const schema::Tensor& tensor, Tensor& to) {
  std::vector<Placement> list;
  for (const schema::Placement& item : tensor.placements()) {
    Placement placement;
    if (!set(enumeration<PlacementKind>(item.kind()), placement.kind) ||
        !set(optional_string(item.reduce_op()), placement.reduce_op)) {
      return in("placements", list.size());
    }
    placement.has_dim = item.has_dim();
    placement.dim = item.dim();
    placement.has_split_factor = item.has_split_factor();
    placement.split_factor = item.split_factor();
    list.push_back(placement);
  }
  to.placements = module_->placements(std::move(list));
  return true;
}

}  // namespace fxopt
