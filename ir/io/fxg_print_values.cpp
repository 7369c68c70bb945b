// Prints arguments and values.

#include <bit>
#include <cmath>
#include <span>

#include "core/check.h"
#include "core/text.h"
#include "ir/io/fxg_print.h"
#include "ir/io/strides.h"

namespace fxopt {
// An expression that looks like a plain integer is printed in parentheses, because `4` without
// parentheses is read as a number.
void TextPrinter::dim(const Dim& dim) {
  if (dim.is_static()) return number(dim.value);
  const std::string text = module_.exprs.to_string(dim.expr);
  const bool reads_as_number = text.find_first_not_of("-0123456789") == std::string::npos;
  if (reads_as_number) out_ += '(';
  out_ += text;
  if (reads_as_number) out_ += ')';
}

void TextPrinter::floating(uint64_t bits) {
  const double value = std::bit_cast<double>(bits);
  if (std::isnan(value) && bits != kPlainNan) {
    word_with("float", [&] { hex(bits); });
  } else {
    out_ += format_double(value);
  }
}

void TextPrinter::placement(const Placement& item) {
  out_ += '{';
  Commas commas(out_);
  member(commas, "kind", item.kind);
  if (item.has_dim) member(commas, "dim", item.dim);
  if (item.has_split_factor) member(commas, "split_factor", item.split_factor);
  member_unless_default(commas, "reduce_op", item.reduce_op);
  out_ += '}';
}

void TextPrinter::meta(ArgRange entries) {
  listed(entries.count / 2, "{", "}", [&](uint32_t i) {
    const ArgIndex key(entries.first + 2 * i);
    text(pool_->arg(key).as_string());
    out_ += ": ";
    entry_unknown(key);
    arg(ArgIndex(key.index() + 1));
  });
}

// Prints the unknown fields of an entry of keyword arguments or metadata. They are stored with the
// entry's key.
void TextPrinter::entry_unknown(ArgIndex key) {
  if (!pool_->arg(key).has_unknown()) return;
  out_ += '~';
  bytes(pool_->arg_unknown(key));
  out_ += ' ';
}

void TextPrinter::arg(ArgIndex index) {
  const Arg& item = pool_->arg(index);
  arg_without_suffix(item);
  if (item.has_unknown()) {
    out_ += '~';
    bytes(pool_->arg_unknown(index));
  }
}

void TextPrinter::arg_without_suffix(const Arg& arg) {
  switch (arg.kind()) {
    case ArgKind::kNone:
      out_ += "None";
      return;
    case ArgKind::kEllipsis:
      out_ += "...";
      return;
    case ArgKind::kBool:
      out_ += arg.as_bool() ? "True" : "False";
      return;
    case ArgKind::kInt:
      return number(arg.as_int());
    case ArgKind::kFloat:
      return floating(arg.as_bits());
    case ArgKind::kNode:
      return node_name(arg.as_node());
    case ArgKind::kExpr:
      return word_with_expr("sym", arg.as_expr());
    case ArgKind::kGroupExpr:
      return word_with_expr("group_expr", arg.as_expr());
    case ArgKind::kDType:
      return word_with_enum("dtype", arg.as_dtype());
    case ArgKind::kLayout:
      return word_with_enum("layout", arg.as_layout());
    case ArgKind::kMemoryFormat:
      return word_with_enum("memory_format", arg.as_memory_format());
    case ArgKind::kUidRef:
      return word_with("uid", [&] { number(arg.as_uid()); });
    case ArgKind::kValue:
      return word_with("value", [&] { value(arg.as_value()); });
    default:
      return arg.has_children() ? collection(arg) : text_arg(arg);
  }
}

// Prints an argument whose payload is a string.
void TextPrinter::text_arg(const Arg& arg) {
  const StringId id = arg.as_string();
  switch (arg.kind()) {
    case ArgKind::kString:
      return text(id);
    case ArgKind::kBytes:
      return bytes(module_.text(id));
    case ArgKind::kGraph:
      out_ += '@';
      return name(module_.text(id));
    case ArgKind::kOp:
      return word_with("op", [&] { name(module_.text(id)); });
    case ArgKind::kUnknown:
      return word_with("unknown", [&] { bytes(module_.text(id)); });
    case ArgKind::kDevice:
      return word_with_text("device", id);
    case ArgKind::kGroup:
      return word_with_text("group", id);
    case ArgKind::kMesh:
      return word_with_text("mesh", id);
    case ArgKind::kRngSlot:
      return word_with_text("rng_slot", id);
    default:
      FXOPT_CHECK(false, "this kind of argument has no text form");
  }
}

void TextPrinter::collection(const Arg& arg) {
  const ArgRange range = arg.range();
  const bool typed = !is_default(arg.type());
  if (typed) {
    out_ += "typed(";
    text(arg.type());
    out_ += ", ";
  }
  switch (arg.kind()) {
    case ArgKind::kTuple:
      items(range, "(", range.count == 1 ? ",)" : ")");
      break;
    case ArgKind::kSlice:
      items(range, "slice(", ")");
      break;
    case ArgKind::kSet:
      items(range, "set(", ")");
      break;
    case ArgKind::kComplex:
      items(range, "complex(", ")");
      break;
    case ArgKind::kDict:
      dict(range);
      break;
    case ArgKind::kEnum:
      enum_arg(arg);
      break;
    case ArgKind::kOpaque:
      opaque_arg(arg);
      break;
    default:
      items(range, "[", "]");
  }
  if (typed) out_ += ')';
}

void TextPrinter::dict(ArgRange range) {
  listed(range.count / 2, "{", "}", [&](uint32_t i) {
    arg(ArgIndex(range.first + 2 * i));
    out_ += ": ";
    arg(ArgIndex(range.first + 2 * i + 1));
  });
}

void TextPrinter::node_name(NodeId id) {
  FXOPT_CHECK(graph_ != nullptr, "the metadata of the module contains a node");
  out_ += '%';
  name(graph_->name_of(id));
}

void TextPrinter::enum_arg(const Arg& arg) {
  const ArgRange range = arg.range();
  const bool has_number = !pool_->arg(ArgIndex(range.first + 2)).is(ArgKind::kNone);
  items({range.first, has_number ? 3U : 2U}, "enum(", ")");
}

void TextPrinter::opaque_arg(const Arg& arg) {
  const std::span<const Arg> parts = pool_->children(arg);
  out_ += "opaque(";
  text(parts[0].as_string());
  const std::string_view payload = module_.text(parts[2].as_string());
  if (!payload.empty() || !module_.text(parts[1].as_string()).empty()) {
    out_ += ", ";
    text(parts[1].as_string());
  }
  if (!payload.empty()) {
    out_ += ", ";
    bytes(payload);
  }
  out_ += ')';
}

void TextPrinter::items(ArgRange range, std::string_view open, std::string_view close) {
  listed(range.count, open, close, [&](uint32_t i) { arg(ArgIndex(range.first + i)); });
}

void TextPrinter::value(ValueId id) {
  value_without_suffix(id);
  const Value& item = pool_->value(id);
  if (item.has_unknown && item.kind != ValueKind::kUnknown) {
    out_ += '~';
    bytes(pool_->value_unknown(id));
  }
}

void TextPrinter::value_without_suffix(ValueId id) {
  const Value& item = pool_->value(id);
  switch (item.kind) {
    case ValueKind::kAbsent:
      out_ += '_';
      return;
    case ValueKind::kNone:
      out_ += "None";
      return;
    case ValueKind::kTensor:
      return tensor(pool_->tensor(item));
    case ValueKind::kTuple:
      return values(item, "(", item.count == 1 ? ",)" : ")");
    case ValueKind::kList:
      return values(item, "[", "]");
    case ValueKind::kDict:
      return value_dict(item);
    case ValueKind::kSymbolic:
      return symbolic(item);
    case ValueKind::kScalar:
      return word_with("const", [&] { arg(ArgIndex(item.first)); });
    case ValueKind::kOpaque:
      return opaque_value(item);
    case ValueKind::kGraph:
      return word_with("graph", [&] {
        out_ += '@';
        name(module_.text(item.name));
      });
    case ValueKind::kUnknown:
      return word_with("unknown", [&] { bytes(pool_->value_unknown(id)); });
  }
}

void TextPrinter::symbolic(const Value& value) {
  const bool is_known = !name_of(value.symbol_type).empty();
  out_ += is_known ? "sym_" : "sym(";
  enumerator(value.symbol_type);
  out_ += is_known ? "(" : ", ";
  expr(ExprId(value.first));
  out_ += ')';
}

void TextPrinter::values(const Value& value, std::string_view open, std::string_view close) {
  listed(value.count, open, close, [&](uint32_t i) { this->value(ValueId(value.first + i)); });
}

void TextPrinter::value_dict(const Value& value) {
  const std::span<const StringId> keys = pool_->keys(value);
  listed(value.count, "{", "}", [&](uint32_t i) {
    text(keys[i]);
    out_ += ": ";
    this->value(ValueId(value.first + i));
  });
}

void TextPrinter::opaque_value(const Value& value) {
  out_ += "opaque(";
  text(value.name);
  Commas commas(out_);
  commas.next();
  member_unless_default(commas, "mesh", value.mesh);
  member_unless_default(commas, "group", value.group);
  member_unless_default(commas, "text", value.text);
  out_ += ')';
}

void TextPrinter::tensor(const Tensor& tensor) {
  enumerator(tensor.dtype);
  dims(tensor.sizes, "[", "]");
  if (tensor.strides.is_valid() && !module_.dims(tensor.strides).empty() && !are_strides_implied(module_, tensor)) {
    dims(tensor.strides, "(", ")");
  }
  if (!tensor.offset.is_static()) {
    word_with_expr("+", tensor.offset.expr);
  } else if (tensor.offset.value != 0) {
    out_ += '+';
    number(tensor.offset.value);
  }
  if (!is_default(tensor.device)) {
    out_ += '@';
    const std::string_view device = module_.text(tensor.device);
    out_ += is_bare_device(device) ? std::string(device) : quote(device);
  }
  if (tensor.storage.is_valid()) {
    out_ += '$';
    number(module_.storage(tensor.storage).id);
  }
  tensor_flags(tensor);
}

void TextPrinter::tensor_flags(const Tensor& tensor) {
  const size_t begin = out_.size();
  out_ += '{';
  Commas commas(out_);
  const auto flag = [&](bool set, std::string_view word) {
    if (!set) return;
    commas.next();
    out_ += word;
  };
  flag(tensor.requires_grad, "requires_grad");
  flag(tensor.conjugate, "conjugate");
  flag(tensor.negative, "negative");
  flag(tensor.pinned, "pinned");
  member_unless_default(commas, "layout", tensor.layout);
  member_unless_default(commas, "mesh", tensor.mesh);
  if (tensor.placements != 0) member(commas, "placements", module_.placements(tensor.placements));
  member_unless_default(commas, "subclass", tensor.subclass);
  if (out_.size() == begin + 1) {
    out_.pop_back();
  } else {
    out_ += '}';
  }
}

void TextPrinter::dims(DimsId id, std::string_view open, std::string_view close) {
  const std::span<const Dim> all = id.is_valid() ? std::span<const Dim>(module_.dims(id)) : std::span<const Dim>();
  listed(static_cast<uint32_t>(all.size()), open, close, [&](uint32_t i) { dim(all[i]); });
}

}  // namespace fxopt
