#include "ir/values/call_args.h"

#include <algorithm>

#include "ir/graph/module.h"

namespace fxopt {
namespace {

using Kind = SchemaDefault::Kind;

const Schema* schema_of(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  return op.schema.has_value() ? &*op.schema : nullptr;
}

const SchemaArg* described_at(const Schema* schema, size_t position) {
  return schema != nullptr && position < schema->args.size() ? &schema->args[position] : nullptr;
}

const Arg* given_at(const Graph& graph, NodeId node, const SchemaArg* described, size_t position) {
  if (described == nullptr) return graph.arg(node, position);
  const Arg* arg = described->keyword_only ? nullptr : graph.arg(node, position);
  return arg != nullptr ? arg : graph.kwarg(node, described->name);
}

// Converts a c10::ScalarType up to complex128. DType has the same order, but starts with
// kUnspecified.
std::optional<DType> dtype_of_scalar_type(int64_t number) {
  const int64_t last = static_cast<int64_t>(DType::kComplex128) - 1;
  return number < 0 || number > last ? std::nullopt : std::optional(static_cast<DType>(number + 1));
}

}  // namespace

const Arg* call_argument(const Graph& graph, NodeId node, size_t position) {
  return given_at(graph, node, described_at(schema_of(graph, node), position), position);
}

CallArgs::CallArgs(const Graph& graph, NodeId node) : graph_(&graph), node_(node), schema_(schema_of(graph, node)) {}

size_t CallArgs::size() const {
  return std::max<size_t>(schema_ == nullptr ? 0 : schema_->args.size(), (*graph_)[node_].args.count);
}

CallArg CallArgs::operator[](size_t position) const {
  const SchemaArg* described = described_at(schema_, position);
  return CallArg(*graph_, given_at(*graph_, node_, described, position), described);
}

CallArg CallArgs::named(std::string_view name) const {
  if (schema_ == nullptr) return CallArg(*graph_, graph_->kwarg(node_, name), nullptr);
  const int16_t position = schema_->find_arg(name);
  return position < 0 ? CallArg(*graph_, nullptr, nullptr) : (*this)[static_cast<size_t>(position)];
}

bool CallArg::is_symbolic() const {
  if (!is_given()) return false;
  return given_->is(ArgKind::kExpr) ||
         (given_->is(ArgKind::kNode) && graph_->value(given_->as_node()).kind == ValueKind::kSymbolic);
}

std::optional<bool> CallArg::as_bool() const {
  if (is_given()) return given_->is(ArgKind::kBool) ? std::optional(given_->as_bool()) : std::nullopt;
  return has_default(Kind::kBool) ? std::optional(default_value()->integer != 0) : std::nullopt;
}

std::optional<int64_t> CallArg::as_int() const {
  if (is_given()) return given_->is(ArgKind::kInt) ? std::optional(given_->as_int()) : std::nullopt;
  return has_default(Kind::kInt) ? std::optional(default_value()->integer) : std::nullopt;
}

std::optional<double> CallArg::as_double() const {
  if (const std::optional<int64_t> whole = as_int(); whole.has_value()) return static_cast<double>(*whole);
  if (is_given()) return given_->is(ArgKind::kFloat) ? std::optional(given_->as_double()) : std::nullopt;
  return has_default(Kind::kFloat) ? std::optional(default_value()->real) : std::nullopt;
}

std::optional<DType> CallArg::as_dtype() const {
  if (is_given()) return given_->is(ArgKind::kDType) ? std::optional(given_->as_dtype()) : std::nullopt;
  if (!has_default(Kind::kInt) || !described_->type.starts_with("ScalarType")) return std::nullopt;
  return dtype_of_scalar_type(default_value()->integer);
}

std::optional<MemoryFormat> CallArg::as_memory_format() const {
  if (is_given()) {
    return given_->is(ArgKind::kMemoryFormat) ? std::optional(given_->as_memory_format()) : std::nullopt;
  }
  const SchemaDefault* value = default_value();
  if (value == nullptr || !described_->type.starts_with("MemoryFormat")) return std::nullopt;
  if (value->text == "0" || value->text == "contiguous_format") return MemoryFormat::kContiguous;
  if (value->text == "1" || value->text == "preserve_format") return MemoryFormat::kPreserve;
  return std::nullopt;
}

NodeId CallArg::as_node() const { return is_given() && given_->is(ArgKind::kNode) ? given_->as_node() : NodeId(); }

std::span<const Arg> CallArg::items() const {
  return is_list() ? graph_->pool().children(*given_) : std::span<const Arg>();
}

}  // namespace fxopt
