// Decodes strings, expressions, records and arguments. pb_decode_value.cpp decodes values.
#include "ir/io/pb_decode.h"

#include "fxgraph.pb.h"

#include "core/bytes.h"
#include "core/check.h"
#include "ir/io/pb_unknown.h"

namespace fxopt {
void PbDecoder::enter(Pool& pool, size_t num_nodes) {
  pool_ = &pool;
  stack_.emplace(pool);
  num_nodes_ = num_nodes;
  edges_allowed_ = false;
  values_.clear();
  values_unknown_.clear();
}

bool PbDecoder::fail(ErrorCode code, std::string message, std::string hint) {
  error_ = Error();
  error_.code = code;
  error_.message = std::move(message);
  error_.hint = std::move(hint);
  return false;
}

bool PbDecoder::in(std::string_view step) {
  std::string& path = error_.where.field;
  const bool joined = path.empty() || path.front() == '[';
  path = std::string(step) + (joined ? "" : ".") + path;
  return false;
}

bool PbDecoder::at(size_t index) { return in("[" + std::to_string(index) + "]"); }

bool PbDecoder::in(std::string_view step, size_t index) {
  at(index);
  return in(step);
}

bool PbDecoder::is_enum_number(int number) {
  if (number >= 0 && number <= UINT8_MAX) return true;
  return fail(ErrorCode::kLimit, "enumeration number " + std::to_string(number) + " is not between 0 and 255");
}

bool PbDecoder::is_depth(uint32_t depth) {
  if (depth <= limits_.max_depth) return true;
  return fail(ErrorCode::kLimit, "nested more than " + std::to_string(limits_.max_depth) + " deep");
}

// ---- strings, and the objects they name

bool PbDecoder::add_string(std::string_view text) {
  if (strings_.empty() && !text.empty()) {
    fail(ErrorCode::kBadValue, "the first string of the table is not the empty string");
    return in("strings", 0);
  }
  if (text.size() > limits_.max_string_bytes) {
    fail(ErrorCode::kLimit, "string of " + std::to_string(text.size()) + " bytes");
    return in("strings", strings_.size());
  }
  if (!is_utf8(text)) {
    fail(ErrorCode::kBadValue, "string is not valid UTF-8: " + quote(text.substr(0, 64)));
    return in("strings", strings_.size());
  }
  strings_.push_back(module_->intern(text));
  return true;
}

std::optional<StringId> PbDecoder::string(uint32_t index) {
  if (index < strings_.size()) return strings_[index];
  if (index == 0) return module_->intern("");
  fail(ErrorCode::kBadReference,
       "string index " + std::to_string(index) + ", but the number of strings is " + std::to_string(strings_.size()));
  return std::nullopt;
}

std::optional<StringId> PbDecoder::optional_string(uint32_t index) {
  return index == 0 ? std::optional<StringId>(StringId()) : string(index);
}

std::optional<ExprId> PbDecoder::expr(uint32_t index) {
  const std::optional<StringId> text = string(index);
  if (!text.has_value()) return std::nullopt;
  if (exprs_.size() <= index) exprs_.resize(strings_.size() + 1);
  ExprId& id = exprs_[index];
  if (id.is_valid()) return id;
  Result<ExprId> parsed = module_->exprs.parse(module_->text(*text));
  if (!parsed.ok()) {
    fail(parsed.error().code, "expression " + quote(module_->text(*text)) + ": " + parsed.error().message,
         parsed.error().hint);
    return std::nullopt;
  }
  id = *parsed;
  return id;
}

std::optional<TargetId> PbDecoder::target(uint32_t index) {
  if (index == 0) return TargetId();
  const std::optional<StringId> text = string(index);
  if (!text.has_value()) return std::nullopt;
  if (targets_.size() <= index) targets_.resize(strings_.size() + 1);
  TargetId& id = targets_[index];
  if (!id.is_valid()) id = module_->target(module_->text(*text));
  return id;
}

// ---- fields of records

bool PbDecoder::read(const Message& message, const PbField& field, std::vector<int64_t>& member) {
  const int size = pb_count(message, field);
  member.reserve(static_cast<size_t>(size));
  for (int i = 0; i < size; ++i) member.push_back(pb_get_item_int64(message, field, i));
  return true;
}

bool PbDecoder::read(const Message& message, const PbField& field, std::vector<StringId>& member) {
  const int size = pb_count(message, field);
  member.reserve(static_cast<size_t>(size));
  for (int i = 0; i < size; ++i) {
    if (!set(string(pb_get_item_uint32(message, field, i)), member.emplace_back())) return at(member.size() - 1);
  }
  return true;
}

bool PbDecoder::read(const Message& message, const PbField& field, StringId& member) {
  if (!pb_has(message, field)) return true;
  uint32_t index = 0;
  pb_get(message, field, index);
  return set(string(index), member);
}

bool PbDecoder::read(const Message& message, const PbField& field, ExprField& member) {
  if (!pb_has(message, field)) return true;
  uint32_t index = 0;
  pb_get(message, field, index);
  return set(expr(index), member.id);
}

bool PbDecoder::read(const Message& message, const PbField& field, Integer& member) {
  if (!pb_has(message, field)) return true;
  const schema::Int& number = static_cast<const schema::Int&>(pb_submessage(message, field));
  if (number.has_value() && number.has_expr()) {
    return fail(ErrorCode::kBadValue, "a field has both a number and an expression");
  }
  if (number.has_value()) member.value = number.value();
  return !number.has_expr() || set(expr(number.expr()), member.expr);
}

bool PbDecoder::read(const Message& message, const PbField& field, ValueId& member) {
  if (!pb_has(message, field)) return true;
  schema::Value wrapped;
  *wrapped.mutable_tensor() = static_cast<const schema::Tensor&>(pb_submessage(message, field));
  return set(value(wrapped), member);
}

bool PbDecoder::read(const Message& message, const PbField& field, MetaRange& member) {
  google::protobuf::RepeatedPtrField<schema::MetaEntry> items;
  for (int i = 0; i < pb_count(message, field); ++i) {
    *items.Add() = static_cast<const schema::MetaEntry&>(pb_submessage(message, field, i));
  }
  return set(meta(items), member.range);
}

bool PbDecoder::text(uint32_t index, StringId& to, std::string_view name) {
  return store(optional_string(index), to, name);
}

std::optional<Source> PbDecoder::source(const schema::Source& message) {
  Source result;
  if (!text(message.file(), result.file, "file") || !text(message.function(), result.function, "function") ||
      !text(message.code(), result.code, "code")) {
    return std::nullopt;
  }
  result.line = message.line();
  result.unknown = own_unknown(message);
  return result;
}

std::optional<Region> PbDecoder::region(const schema::Region& message) {
  Region result;
  if (!text(message.name(), result.name, "name")) return std::nullopt;
  if (message.has_id()) result.id = message.id();
  result.id_is_none = message.id_is_none();
  result.has_backward_hook = message.has_backward_hook();
  result.unknown = own_unknown(message);
  return result;
}

// ---- arguments

std::optional<ArgRange> PbDecoder::args(const google::protobuf::RepeatedPtrField<schema::Arg>& items) {
  edges_allowed_ = true;
  const size_t mark = stack_->mark();
  if (!push_args(items, 1, "args")) return std::nullopt;
  return stack_->take(mark);
}

template <class Entry>
bool PbDecoder::push_key(uint32_t name, const Entry& entry) {
  const std::optional<StringId> key = string(name);
  if (!key.has_value()) return false;
  stack_->push(Arg::string(*key), own_unknown(entry));
  return true;
}

std::optional<ArgRange> PbDecoder::kwargs(const google::protobuf::RepeatedPtrField<schema::NamedArg>& items) {
  edges_allowed_ = true;
  const size_t mark = stack_->mark();
  for (int i = 0; i < items.size(); ++i) {
    const schema::NamedArg& item = items[i];
    if (!push_key(item.name(), item) || !push_arg(item.arg(), 1, arg_unknown(item.arg()))) {
      in("kwargs", static_cast<size_t>(i));
      return std::nullopt;
    }
  }
  return stack_->take(mark);
}

std::optional<ArgRange> PbDecoder::meta(const google::protobuf::RepeatedPtrField<schema::MetaEntry>& items) {
  edges_allowed_ = false;
  const size_t mark = stack_->mark();
  for (int i = 0; i < items.size(); ++i) {
    const schema::MetaEntry& item = items[i];
    if (!push_key(item.key(), item) || !push_arg(item.value(), 1, arg_unknown(item.value()))) {
      in("meta", static_cast<size_t>(i));
      return std::nullopt;
    }
  }
  return stack_->take(mark);
}

bool PbDecoder::push_args(const google::protobuf::RepeatedPtrField<schema::Arg>& items, uint32_t depth,
                          std::string_view name) {
  for (int i = 0; i < items.size(); ++i) {
    if (!push_arg(items[i], depth, arg_unknown(items[i]))) return in(name, static_cast<size_t>(i));
  }
  return true;
}

std::string PbDecoder::arg_unknown(const schema::Arg& arg) {
  switch (arg.kind_case()) {
    case schema::Arg::KIND_NOT_SET:
      return std::string();  // it has only unknown fields
    case schema::Arg::kList:
      return unknown_with(arg, arg.list());
    case schema::Arg::kTuple:
      return unknown_with(arg, arg.tuple());
    case schema::Arg::kSlice:
      return unknown_with(arg, arg.slice());
    case schema::Arg::kSet:
      return unknown_with(arg, arg.set());
    case schema::Arg::kDict:
      return unknown_with(arg, arg.dict());
    case schema::Arg::kInts:
      return unknown_with(arg, arg.ints());
    case schema::Arg::kIntTuple:
      return unknown_with(arg, arg.int_tuple());
    case schema::Arg::kComplexValue:
      return unknown_with(arg, arg.complex_value());
    case schema::Arg::kEnumValue:
      return unknown_with(arg, arg.enum_value());
    case schema::Arg::kOpaque:
      return unknown_with(arg, arg.opaque());
    default:
      return own_unknown(arg);
  }
}

bool PbDecoder::push_arg(const schema::Arg& arg, uint32_t depth, std::string unknown) {
  switch (arg.kind_case()) {
    case schema::Arg::kComplexValue:
    case schema::Arg::kList:
    case schema::Arg::kTuple:
    case schema::Arg::kDict:
    case schema::Arg::kSlice:
    case schema::Arg::kEnumValue:
    case schema::Arg::kOpaque:
    case schema::Arg::kSet:
    case schema::Arg::kInts:
    case schema::Arg::kIntTuple:
      return is_depth(depth) && push_children(arg, depth, std::move(unknown));
    default: {
      const std::optional<Arg> plain = leaf(arg, depth);
      if (plain.has_value()) stack_->push(*plain, std::move(unknown));
      return plain.has_value();
    }
  }
}

bool PbDecoder::push_children(const schema::Arg& arg, uint32_t depth, std::string unknown) {
  switch (arg.kind_case()) {
    case schema::Arg::kList:
      return push_list(ArgKind::kList, arg.list(), "list", depth, std::move(unknown));
    case schema::Arg::kTuple:
      return push_list(ArgKind::kTuple, arg.tuple(), "tuple", depth, std::move(unknown));
    case schema::Arg::kSet:
      return push_list(ArgKind::kSet, arg.set(), "set", depth, std::move(unknown));
    case schema::Arg::kSlice:
      if (arg.slice().items_size() != 3) {
        fail(ErrorCode::kBadValue, "slice of " + std::to_string(arg.slice().items_size()) + " items instead of 3");
        return in("slice");
      }
      return push_list(ArgKind::kSlice, arg.slice(), "slice", depth, std::move(unknown));
    case schema::Arg::kInts:
      return push_ints(ArgKind::kList, arg.ints(), std::move(unknown));
    case schema::Arg::kIntTuple:
      return push_ints(ArgKind::kTuple, arg.int_tuple(), std::move(unknown));
    case schema::Arg::kDict:
      return push_dict(arg.dict(), depth, std::move(unknown));
    case schema::Arg::kEnumValue:
      return push_enum(arg, std::move(unknown));
    case schema::Arg::kOpaque:
      return push_opaque(arg, std::move(unknown));
    default: {
      const size_t mark = stack_->mark();
      stack_->push(Arg::floating_bits(arg.complex_value().real_bits()));
      stack_->push(Arg::floating_bits(arg.complex_value().imag_bits()));
      stack_->close(ArgKind::kComplex, mark, StringId(), std::move(unknown));
      return true;
    }
  }
}

bool PbDecoder::push_list(ArgKind kind, const schema::ArgList& list, std::string_view name, uint32_t depth,
                          std::string unknown) {
  const size_t mark = stack_->mark();
  if (!push_args(list.items(), depth + 1, name)) return false;
  const std::optional<StringId> type = optional_string(list.type());
  if (!type.has_value()) {
    in("type");
    return in(name);
  }
  stack_->close(kind, mark, *type, std::move(unknown));
  return true;
}

bool PbDecoder::push_ints(ArgKind kind, const schema::IntList& list, std::string unknown) {
  const size_t mark = stack_->mark();
  for (const int64_t number : list.values()) stack_->push(Arg::integer(number));
  stack_->close(kind, mark, StringId(), std::move(unknown));
  return true;
}

bool PbDecoder::push_dict(const schema::ArgDict& dict, uint32_t depth, std::string unknown) {
  const size_t mark = stack_->mark();
  for (int i = 0; i < dict.items_size(); ++i) {
    const schema::ArgItem& item = dict.items(i);
    // The unknown fields of the item and of its key are stored with the key.
    const bool is_plain = !has_own_unknown(item) && arg_unknown(item.key()).empty();
    std::string beside_key;
    if (!is_plain) {
      schema::ArgItem fragment;
      fragment.ParseFromString(unknown_fragment(item));
      if (item.key().kind_case() == schema::Arg::KIND_NOT_SET) fragment.clear_key();
      beside_key = fragment.SerializeAsString();
    }
    if (!push_arg(item.key(), depth + 1, std::move(beside_key)) ||
        !push_arg(item.value(), depth + 1, arg_unknown(item.value()))) {
      return in("dict", static_cast<size_t>(i));
    }
  }
  const std::optional<StringId> type = optional_string(dict.type());
  if (!type.has_value()) return in("dict.type");
  stack_->close(ArgKind::kDict, mark, *type, std::move(unknown));
  return true;
}

bool PbDecoder::push_enum(const schema::Arg& arg, std::string unknown) {
  const schema::Enum& entry = arg.enum_value();
  const std::optional<StringId> type = string(entry.type());
  if (!type.has_value()) return in("enum_value.type");
  const std::optional<StringId> name = string(entry.name());
  if (!name.has_value()) return in("enum_value.name");
  const size_t mark = stack_->mark();
  stack_->push(Arg::string(*type));
  stack_->push(Arg::string(*name));
  stack_->push(entry.has_number() ? Arg::integer(entry.number()) : Arg::none());
  stack_->close(ArgKind::kEnum, mark, StringId(), std::move(unknown));
  return true;
}

bool PbDecoder::push_opaque(const schema::Arg& arg, std::string unknown) {
  const schema::Opaque& entry = arg.opaque();
  const std::optional<StringId> type = string(entry.type());
  if (!type.has_value()) return in("opaque.type");
  const std::optional<StringId> text = string(entry.text());
  if (!text.has_value()) return in("opaque.text");
  const size_t mark = stack_->mark();
  stack_->push(Arg::string(*type));
  stack_->push(Arg::string(*text));
  stack_->push(Arg::named(ArgKind::kBytes, module_->intern(entry.payload())));
  stack_->close(ArgKind::kOpaque, mark, StringId(), std::move(unknown));
  return true;
}

std::optional<Arg> PbDecoder::named(ArgKind kind, uint32_t index) {
  const std::optional<StringId> name = string(index);
  return name.has_value() ? std::optional<Arg>(Arg::named(kind, *name)) : std::nullopt;
}

std::optional<NodeId> PbDecoder::node_id(uint32_t position) {
  if (position < num_nodes_) return NodeId(position);
  fail(ErrorCode::kBadReference,
       "node index " + std::to_string(position) + " in a graph of " + std::to_string(num_nodes_) + " nodes");
  return std::nullopt;
}

std::optional<Arg> PbDecoder::node(uint32_t position) {
  if (!edges_allowed_) {
    fail(ErrorCode::kBadValue, "metadata contains a node", "refer to the node by uid_ref, which creates no edge");
    return std::nullopt;
  }
  return make_arg(node_id(position), Arg::node);
}

std::optional<Arg> PbDecoder::leaf(const schema::Arg& arg, uint32_t depth) {
  switch (arg.kind_case()) {
    case schema::Arg::kNone:
    case schema::Arg::kEllipsis:
      if (!arg.none() && !arg.ellipsis()) {
        fail(ErrorCode::kBadValue, "none and ellipsis can only be true");
        return std::nullopt;
      }
      return arg.none() ? Arg::none() : Arg::ellipsis();
    case schema::Arg::kBoolValue:
      return Arg::boolean(arg.bool_value());
    case schema::Arg::kIntValue:
      return Arg::integer(arg.int_value());
    case schema::Arg::kFloatBits:
      return Arg::floating_bits(arg.float_bits());
    case schema::Arg::kString:
      return named(ArgKind::kString, arg.string());
    case schema::Arg::kNode:
      return node(arg.node());
    case schema::Arg::kExpr:
      return make_arg(expr(arg.expr()), Arg::expr);
    case schema::Arg::kGroupExpr:
      return make_arg(expr(arg.group_expr()), Arg::group_expr);
    case schema::Arg::kUidRef:
      return Arg::uid_ref(uid_base_ + arg.uid_ref());
    case schema::Arg::kBytesValue:
      return Arg::named(ArgKind::kBytes, module_->intern(arg.bytes_value()));
    case schema::Arg::kValue: {
      if (!is_depth(depth)) return std::nullopt;
      const size_t mark = values_.size();
      const bool edges_allowed = std::exchange(edges_allowed_, false);
      if (!push_value(arg.value(), depth + 1)) return std::nullopt;
      edges_allowed_ = edges_allowed;
      return Arg::value(take_values(mark));
    }
    case schema::Arg::KIND_NOT_SET:
      return Arg::named(ArgKind::kUnknown, module_->intern(unknown_fragment(arg)));
    default:
      return simple_leaf(arg);
  }
}

std::optional<Arg> PbDecoder::simple_leaf(const schema::Arg& arg) {
  switch (arg.kind_case()) {
    case schema::Arg::kDtype:
      return make_arg(enumeration<DType>(arg.dtype()), Arg::dtype);
    case schema::Arg::kLayout:
      return make_arg(enumeration<Layout>(arg.layout()), Arg::layout);
    case schema::Arg::kMemoryFormat:
      return make_arg(enumeration<MemoryFormat>(arg.memory_format()), Arg::memory_format);
    case schema::Arg::kDevice:
      return named(ArgKind::kDevice, arg.device());
    case schema::Arg::kOp:
      return named(ArgKind::kOp, arg.op());
    case schema::Arg::kGraph:
      return named(ArgKind::kGraph, arg.graph());
    case schema::Arg::kGroup:
      return named(ArgKind::kGroup, arg.group());
    case schema::Arg::kMesh:
      return named(ArgKind::kMesh, arg.mesh());
    case schema::Arg::kRngSlot:
      return named(ArgKind::kRngSlot, arg.rng_slot());
    default:
      FXOPT_CHECK(false, "argument kind without a reader");
  }
}

}  // namespace fxopt
