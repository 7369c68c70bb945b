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
  bool is_plain = !has_own_unknown(value);
  switch (value.kind_case()) {
    case schema::Value::kTensor: {
      const schema::Tensor& tensor = value.tensor();
      is_plain = is_plain && !has_own_unknown(tensor) && !has_own_unknown(tensor.offset());
      for (const schema::SymbolicEntry& entry : tensor.symbolic_sizes()) is_plain &= !has_own_unknown(entry);
      for (const schema::SymbolicEntry& entry : tensor.symbolic_strides()) is_plain &= !has_own_unknown(entry);
      for (const schema::Placement& entry : tensor.placements()) is_plain &= !has_own_unknown(entry);
      break;
    }
    case schema::Value::kTuple:
      is_plain &= !has_own_unknown(value.tuple());
      break;
    case schema::Value::kList:
      is_plain &= !has_own_unknown(value.list());
      break;
    case schema::Value::kDict:
      is_plain &= !has_own_unknown(value.dict());
      break;
    case schema::Value::kSymbolic:
      is_plain &= !has_own_unknown(value.symbolic());
      break;
    case schema::Value::kOpaque:
      is_plain &= !has_own_unknown(value.opaque());
      break;
    default:
      break;
  }
  return is_plain ? std::string() : unknown_fragment(value);
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
    const std::optional<StringId> name = string(value.graph());
    if (!name.has_value()) return std::nullopt;
    result.kind = ValueKind::kGraph;
    result.name = *name;
    return result;
  }
  const std::optional<SymbolType> type = enumeration<SymbolType>(value.symbolic().type());
  if (!type.has_value()) return std::nullopt;
  const std::optional<ExprId> id = expr(value.symbolic().expr());
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
  const std::optional<DType> dtype = enumeration<DType>(tensor.dtype());
  if (!dtype.has_value()) return std::nullopt;
  const std::optional<Layout> layout = enumeration<Layout>(tensor.layout());
  if (!layout.has_value()) return std::nullopt;
  result.dtype = *dtype;
  result.layout = *layout;
  result.requires_grad = tensor.requires_grad();
  result.conjugate = tensor.conjugate();
  result.negative = tensor.negative();
  result.pinned = tensor.pinned();
  const std::optional<DimsId> sizes = dims(tensor.sizes(), tensor.symbolic_sizes(), "sizes");
  if (!sizes.has_value()) return std::nullopt;
  result.sizes = *sizes;
  if (!tensor_strides(tensor, result) || !tensor_names(tensor, result)) return std::nullopt;
  if (tensor.has_offset()) {
    const std::optional<Dim> offset = tensor_offset(tensor.offset());
    if (!offset.has_value()) return std::nullopt;
    result.offset = *offset;
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
    const std::optional<ExprId> id = expr(entry.expr());
    if (!id.has_value()) {
      in(name, entry.index());
      return std::nullopt;
    }
    dims_[entry.index()].expr = *id;
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
  const std::optional<DimsId> strides = dims(tensor.strides(), tensor.symbolic_strides(), "strides");
  if (strides.has_value()) to.strides = *strides;
  return strides.has_value();
}

bool PbDecoder::tensor_names(const schema::Tensor& tensor, Tensor& to) {
  return text(tensor.device(), to.device, "device") && text(tensor.mesh(), to.mesh, "mesh") &&
         text(tensor.subclass(), to.subclass, "subclass");
}

std::optional<Dim> PbDecoder::tensor_offset(const schema::Int& offset) {
  if (offset.has_value() == offset.has_expr()) {
    fail(ErrorCode::kBadValue, "an offset is either a number or an expression",
         "leave the field out for an offset of 0");
    in("offset");
    return std::nullopt;
  }
  if (offset.has_value()) return Dim{offset.value(), ExprId()};
  const std::optional<ExprId> id = expr(offset.expr());
  if (!id.has_value()) {
    in("offset");
    return std::nullopt;
  }
  return Dim{0, *id};
}

bool PbDecoder::tensor_placements(const schema::Tensor& tensor, Tensor& to) {
  std::vector<Placement> list;
  for (const schema::Placement& item : tensor.placements()) {
    const std::optional<PlacementKind> kind = enumeration<PlacementKind>(item.kind());
    const std::optional<StringId> reduce_op = kind.has_value() ? optional_string(item.reduce_op()) : std::nullopt;
    if (!reduce_op.has_value()) return in("placements", list.size());
    Placement placement;
    placement.kind = *kind;
    placement.has_dim = item.has_dim();
    placement.dim = item.dim();
    placement.has_split_factor = item.has_split_factor();
    placement.split_factor = item.split_factor();
    placement.reduce_op = *reduce_op;
    list.push_back(placement);
  }
  to.placements = module_->placements(std::move(list));
  return true;
}

}  // namespace fxopt
