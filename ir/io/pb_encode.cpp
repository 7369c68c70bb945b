#include "ir/io/pb_encode.h"

#include "fxgraph.pb.h"

#include "core/bytes.h"
#include "core/check.h"
#include "ir/io/io.h"
#include "ir/io/pb_unknown.h"
#include "ir/io/pb_wire.h"
#include "ir/io/strides.h"

namespace fxopt {

PbEncoder::PbEncoder(const Module& module)
    : module_(module), pool_(&module.pool), by_id_(module.strings.size()), by_expr_(module.exprs.size()) {
  table_.emplace_back();
}

void PbEncoder::enter(const Graph* graph) {
  graph_ = graph;
  pool_ = graph == nullptr ? &module_.pool : &graph->pool();
}

void PbEncoder::fail(ErrorCode code, std::string message, std::string hint) {
  if (!error_.has_value()) error_ = Error{code, std::move(message), std::move(hint), Where()};
}

bool PbEncoder::is_depth(uint32_t depth) {
  const uint32_t limit = ReadLimits().max_depth;
  if (depth <= limit) return true;
  fail(ErrorCode::kLimit, "an argument or value nests more than " + std::to_string(limit) + " deep", "");
  return false;
}

// ---- strings

uint32_t PbEncoder::add(std::string_view text) {
  if (!is_utf8(text)) {
    fail(ErrorCode::kBadValue, "a string is not valid UTF-8: " + quote(text.substr(0, 64)),
         "store bytes as a bytes argument");
  }
  if (text.size() > ReadLimits().max_string_bytes) {
    fail(ErrorCode::kLimit, "a string has " + std::to_string(text.size()) + " bytes", "");
  }
  table_.push_back(text);
  return static_cast<uint32_t>(table_.size() - 1);
}

uint32_t PbEncoder::string(StringId id) {
  if (!id.is_valid() || id.index() == 0) return 0;
  uint32_t& index = by_id_[id.index()];
  if (index == 0) index = add(module_.strings[id]);
  return index;
}

uint32_t PbEncoder::string(const std::string& text) {
  const StringId id = module_.strings.find(text);
  if (id.is_valid()) return string(id);
  const auto found = by_text_.find(text);
  if (found != by_text_.end()) return found->second;
  texts_.push_back(text);
  const uint32_t index = add(texts_.back());
  by_text_.emplace(texts_.back(), index);
  return index;
}

uint32_t PbEncoder::expr(ExprId id) {
  uint32_t& index = by_expr_[id.index()];
  if (index == 0) index = string(module_.exprs.to_string(id));
  return index;
}

// ---- records

void PbEncoder::restore(Message& message, std::string_view fragment) {
  if (fragment.empty() || restore_unknown(message, fragment)) return;
  fail(ErrorCode::kBadValue, "the unknown fields stored for " + message.GetTypeName() + " are invalid",
       "unknown fields must be copied from a file");
}

void PbEncoder::write(Message& message, const PbField& field, const std::vector<int64_t>& member) {
  for (const int64_t number : member) pb_add_int64(message, field, number);
}

void PbEncoder::write(Message& message, const PbField& field, const std::vector<StringId>& member) {
  for (const StringId id : member) pb_add_uint32(message, field, string(id));
}

void PbEncoder::write(Message& message, const PbField& field, StringId member) {
  if (member.is_valid()) pb_set(message, field, string(member));
}

void PbEncoder::write(Message& message, const PbField& field, ExprField member) {
  if (member.id.is_valid()) pb_set(message, field, expr(member.id));
}

void PbEncoder::write(Message& message, const PbField& field, const Integer& member) {
  if (!member.is_known()) return;
  schema::Int& number = static_cast<schema::Int&>(pb_mutable_submessage(message, field));
  if (member.expr.is_valid()) {
    number.set_expr(expr(member.expr));
  } else {
    number.set_value(*member.value);
  }
}

void PbEncoder::write(Message& message, const PbField& field, ValueId member) {
  if (!member.is_valid()) return;
  schema::Value wrapped;
  value(member, wrapped);
  pb_mutable_submessage(message, field).CopyFrom(wrapped.tensor());
}

void PbEncoder::write(Message& message, const PbField& field, MetaRange member) {
  google::protobuf::RepeatedPtrField<schema::MetaEntry> items;
  meta(member.range, items);
  for (const schema::MetaEntry& item : items) pb_add_submessage(message, field).CopyFrom(item);
}

// ---- arguments

void PbEncoder::args(ArgRange range, google::protobuf::RepeatedPtrField<schema::Arg>& to) {
  fill_children(range, to, 1);
}

void PbEncoder::fill_children(ArgRange range, google::protobuf::RepeatedPtrField<schema::Arg>& to, uint32_t depth) {
  for (uint32_t i = 0; i < range.count; ++i) arg(ArgIndex(range.first + i), *to.Add(), depth);
}

void PbEncoder::kwargs(ArgRange range, google::protobuf::RepeatedPtrField<schema::NamedArg>& to) {
  for (uint32_t i = 0; i + 1 < range.count; i += 2) {
    schema::NamedArg& item = *to.Add();
    const ArgIndex key(range.first + i);
    item.set_name(string(pool_->arg(key).as_string()));
    arg(ArgIndex(range.first + i + 1), *item.mutable_arg(), 1);
    if (pool_->arg(key).has_unknown()) restore(item, pool_->arg_unknown(key));
  }
}

void PbEncoder::meta(ArgRange range, google::protobuf::RepeatedPtrField<schema::MetaEntry>& to) {
  for (uint32_t i = 0; i + 1 < range.count; i += 2) {
    schema::MetaEntry& item = *to.Add();
    const ArgIndex key(range.first + i);
    item.set_key(string(pool_->arg(key).as_string()));
    arg(ArgIndex(range.first + i + 1), *item.mutable_value(), 1);
    if (pool_->arg(key).has_unknown()) restore(item, pool_->arg_unknown(key));
  }
}

void PbEncoder::arg(ArgIndex index, schema::Arg& to, uint32_t depth) {
  const Arg& item = pool_->arg(index);
  if (!item.has_unknown()) {
    fill(item, to, depth, nullptr);
    return;
  }
  schema::Arg kept;
  kept.ParseFromString(pool_->arg_unknown(index));  // restore() reports parse failures
  fill(item, to, depth, &kept);
  restore(to, pool_->arg_unknown(index));
}

void PbEncoder::fill(const Arg& arg, schema::Arg& to, uint32_t depth, const schema::Arg* kept) {
  switch (arg.kind()) {
    case ArgKind::kNone:
      return to.set_none(true);
    case ArgKind::kEllipsis:
      return to.set_ellipsis(true);
    case ArgKind::kBool:
      return to.set_bool_value(arg.as_bool());
    case ArgKind::kInt:
      return to.set_int_value(arg.as_int());
    case ArgKind::kFloat:
      return to.set_float_bits(arg.as_bits());
    case ArgKind::kNode:
      FXOPT_CHECK(graph_ != nullptr && !(*graph_)[arg.as_node()].erased, "the node of an argument does not exist");
      return to.set_node(graph_->position(arg.as_node()));
    case ArgKind::kExpr:
      return to.set_expr(expr(arg.as_expr()));
    case ArgKind::kGroupExpr:
      return to.set_group_expr(expr(arg.as_expr()));
    case ArgKind::kDType:
      return to.set_dtype(static_cast<schema::DType>(arg.as_dtype()));
    case ArgKind::kLayout:
      return to.set_layout(static_cast<schema::Layout>(arg.as_layout()));
    case ArgKind::kMemoryFormat:
      return to.set_memory_format(static_cast<schema::MemoryFormat>(arg.as_memory_format()));
    case ArgKind::kBytes:
      return to.set_bytes_value(std::string(module_.text(arg.as_string())));
    case ArgKind::kUidRef:
      return to.set_uid_ref(arg.as_uid());
    case ArgKind::kValue:
      return value(arg.as_value(), *to.mutable_value(), depth + 1);
    case ArgKind::kUnknown:
      return restore(to, module_.text(arg.as_string()));
    case ArgKind::kDict:
      return fill_dict(arg, to, depth);
    case ArgKind::kComplex:
    case ArgKind::kEnum:
    case ArgKind::kOpaque:
      return fill_parts(arg, to);
    case ArgKind::kList:
    case ArgKind::kTuple:
    case ArgKind::kSlice:
    case ArgKind::kSet:
      return fill_list(arg, to, depth, kept);
    default:
      return fill_name(arg, to);
  }
}

void PbEncoder::fill_name(const Arg& arg, schema::Arg& to) {
  const uint32_t name = string(arg.as_string());
  switch (arg.kind()) {
    case ArgKind::kString:
      return to.set_string(name);
    case ArgKind::kDevice:
      return to.set_device(name);
    case ArgKind::kOp:
      return to.set_op(name);
    case ArgKind::kGraph:
      return to.set_graph(name);
    case ArgKind::kGroup:
      return to.set_group(name);
    case ArgKind::kMesh:
      return to.set_mesh(name);
    case ArgKind::kRngSlot:
      return to.set_rng_slot(name);
    default:
      FXOPT_CHECK(false, "argument kind without a writer");
  }
}

void PbEncoder::fill_parts(const Arg& arg, schema::Arg& to) {
  const std::span<const Arg> parts = pool_->children(arg);
  if (arg.is(ArgKind::kComplex)) {
    to.mutable_complex_value()->set_real_bits(parts[0].as_bits());
    to.mutable_complex_value()->set_imag_bits(parts[1].as_bits());
  } else if (arg.is(ArgKind::kEnum)) {
    schema::Enum& entry = *to.mutable_enum_value();
    entry.set_type(string(parts[0].as_string()));
    entry.set_name(string(parts[1].as_string()));
    if (parts[2].is(ArgKind::kInt)) entry.set_number(parts[2].as_int());
  } else {
    schema::Opaque& entry = *to.mutable_opaque();
    entry.set_type(string(parts[0].as_string()));
    entry.set_text(string(parts[1].as_string()));
    entry.set_payload(std::string(module_.text(parts[2].as_string())));
  }
}

namespace {

// Whether `arg` is written in the short form for lists of plain integers. If `kept` has a form,
// that form is used where it is equivalent.
bool is_packed(const Pool& pool, const Arg& arg, const schema::Arg* kept) {
  const bool is_plain = !arg.type().is_valid() || arg.type().index() == 0;
  if ((!arg.is(ArgKind::kList) && !arg.is(ArgKind::kTuple)) || !is_plain) return false;
  const schema::Arg::KindCase packed = arg.is(ArgKind::kList) ? schema::Arg::kInts : schema::Arg::kIntTuple;
  const bool either = kept == nullptr || kept->kind_case() == schema::Arg::KIND_NOT_SET;
  const bool wanted = either ? arg.range().count > 0 : kept->kind_case() == packed;
  if (!wanted) return false;
  for (const Arg& item : pool.children(arg)) {
    if (!item.is(ArgKind::kInt) || item.has_unknown()) return false;
  }
  return true;
}

}  // namespace

void PbEncoder::fill_list(const Arg& arg, schema::Arg& to, uint32_t depth, const schema::Arg* kept) {
  if (!is_depth(depth)) return;
  if (is_packed(*pool_, arg, kept)) {
    schema::IntList& list = arg.is(ArgKind::kList) ? *to.mutable_ints() : *to.mutable_int_tuple();
    for (const Arg& item : pool_->children(arg)) list.add_values(item.as_int());
    return;
  }
  schema::ArgList& list = arg.is(ArgKind::kList)    ? *to.mutable_list()
                          : arg.is(ArgKind::kTuple) ? *to.mutable_tuple()
                          : arg.is(ArgKind::kSlice) ? *to.mutable_slice()
                                                    : *to.mutable_set();
  fill_children(arg.range(), *list.mutable_items(), depth + 1);
  list.set_type(string(arg.type()));
}

void PbEncoder::fill_dict(const Arg& arg, schema::Arg& to, uint32_t depth) {
  if (!is_depth(depth)) return;
  schema::ArgDict& dict = *to.mutable_dict();
  const ArgRange range = arg.range();
  for (uint32_t i = 0; i + 1 < range.count; i += 2) {
    schema::ArgItem& item = *dict.add_items();
    const ArgIndex key(range.first + i);
    schema::ArgItem kept;  // unknown fields of the item and of its key
    if (pool_->arg(key).has_unknown()) kept.ParseFromString(pool_->arg_unknown(key));
    fill(pool_->arg(key), *item.mutable_key(), depth + 1, &kept.key());
    this->arg(ArgIndex(range.first + i + 1), *item.mutable_value(), depth + 1);
    if (pool_->arg(key).has_unknown()) restore(item, pool_->arg_unknown(key));
  }
  dict.set_type(string(arg.type()));
}

// ---- values

void PbEncoder::value(ValueId id, schema::Value& to, uint32_t depth) {
  const Value& item = pool_->value(id);
  fill(item, id, to, depth);
  if (item.has_unknown) restore(to, pool_->value_unknown(id));
  // Normally, an offset of 0 is not written. If the fragment restored the field, the field still
  // needs its value.
  if (item.kind == ValueKind::kTensor && to.tensor().has_offset() && !to.tensor().offset().has_expr()) {
    to.mutable_tensor()->mutable_offset()->set_value(pool_->tensor(item).offset.value);
  }
}

void PbEncoder::children(const Value& value, google::protobuf::RepeatedPtrField<schema::Value>& to, uint32_t depth) {
  if (!is_depth(depth)) return;
  for (uint32_t i = 0; i < value.count; ++i) this->value(ValueId(value.first + i), *to.Add(), depth + 1);
}

void PbEncoder::fill(const Value& value, ValueId id, schema::Value& to, uint32_t depth) {
  switch (value.kind) {
    case ValueKind::kAbsent:
    case ValueKind::kUnknown:
      return;
    case ValueKind::kNone:
      return to.set_none(true);
    case ValueKind::kTensor:
      return tensor(pool_->tensor(value), *to.mutable_tensor());
    case ValueKind::kTuple:
      return children(value, *to.mutable_tuple()->mutable_items(), depth);
    case ValueKind::kList:
      return children(value, *to.mutable_list()->mutable_items(), depth);
    case ValueKind::kDict:
      for (const StringId key : pool_->keys(value)) to.mutable_dict()->add_keys(string(key));
      return children(value, *to.mutable_dict()->mutable_values(), depth);
    case ValueKind::kSymbolic:
      to.mutable_symbolic()->set_type(static_cast<schema::SymbolType>(value.symbol_type));
      return to.mutable_symbolic()->set_expr(expr(ExprId(value.first)));
    case ValueKind::kScalar:
      return arg(ArgIndex(value.first), *to.mutable_scalar(), depth + 1);
    case ValueKind::kOpaque: {
      schema::OpaqueValue& opaque = *to.mutable_opaque();
      opaque.set_type(string(value.name));
      opaque.set_mesh(string(value.mesh));
      opaque.set_group(string(value.group));
      return opaque.set_text(string(value.text));
    }
    case ValueKind::kGraph:
      return to.set_graph(string(value.name));
  }
  FXOPT_CHECK(false, "value kind without a writer: " + std::to_string(id.index()));
}

namespace {

template <class Expr>
void fill_dims(const std::vector<Dim>& dims, google::protobuf::RepeatedField<int64_t>& to,
               google::protobuf::RepeatedPtrField<schema::SymbolicEntry>& symbolic, Expr expr) {
  to.Reserve(static_cast<int>(dims.size()));
  for (const Dim& dim : dims) {
    if (!dim.is_static()) {
      schema::SymbolicEntry& entry = *symbolic.Add();
      entry.set_index(static_cast<uint32_t>(to.size()));
      entry.set_expr(expr(dim.expr));
    }
    to.Add(dim.is_static() ? dim.value : 0);
  }
}

void fill_placement(const Placement& placement, uint32_t reduce_op, schema::Placement& to) {
  to.set_kind(static_cast<schema::PlacementKind>(placement.kind));
  if (placement.has_dim) to.set_dim(placement.dim);
  if (placement.has_split_factor) to.set_split_factor(placement.split_factor);
  to.set_reduce_op(reduce_op);
}

}  // namespace

void PbEncoder::tensor(const Tensor& tensor, schema::Tensor& to) {
  const auto text = [this](ExprId id) { return expr(id); };
  to.set_dtype(static_cast<schema::DType>(tensor.dtype));
  if (tensor.sizes.is_valid()) {
    fill_dims(module_.dims(tensor.sizes), *to.mutable_sizes(), *to.mutable_symbolic_sizes(), text);
  }
  if (tensor.strides.is_valid() && !are_strides_implied(module_, tensor)) {
    fill_dims(module_.dims(tensor.strides), *to.mutable_strides(), *to.mutable_symbolic_strides(), text);
  }
  if (!tensor.offset.is_static()) {
    to.mutable_offset()->set_expr(expr(tensor.offset.expr));
  } else if (tensor.offset.value != 0) {
    to.mutable_offset()->set_value(tensor.offset.value);
  }
  to.set_device(string(tensor.device));
  to.set_layout(static_cast<schema::Layout>(tensor.layout));
  to.set_requires_grad(tensor.requires_grad);
  to.set_conjugate(tensor.conjugate);
  to.set_negative(tensor.negative);
  if (tensor.storage.is_valid()) to.set_storage(module_.storage(tensor.storage).id);
  to.set_pinned(tensor.pinned);
  if (tensor.placements != 0) {
    for (const Placement& placement : module_.placements(tensor.placements)) {
      fill_placement(placement, string(placement.reduce_op), *to.add_placements());
    }
  }
  to.set_mesh(string(tensor.mesh));
  to.set_subclass(string(tensor.subclass));
}

}  // namespace fxopt
