// Strings, sizes, expressions and targets are hashed by id, because equal items have equal ids.
// Arguments, values and records are hashed by content. Hashes are comparable only within one
// process and module.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/hash.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {
namespace {

class Hasher {
 public:
  explicit Hasher(const Pool& pool) : pool_(&pool) {}

  uint64_t value() {
    fold();
    return hash_;
  }

  // Items are hashed in batches, which is several times faster than one at a time.
  void add(uint64_t item) {
    if (num_items_ == items_.size()) fold();
    items_[num_items_++] = item;
  }

  void add_args(ArgRange range) {
    add(range.count);
    for (uint32_t i = 0; i < range.count; ++i) add_arg(ArgIndex(range.first + i));
  }

  void add_value(ValueId id) {
    add(id.is_valid() ? 1 : 0);
    if (!id.is_valid()) return;
    const Value& item = pool_->value(id);
    add(static_cast<uint64_t>(item.kind) << 8 | static_cast<uint64_t>(item.symbol_type));
    if (item.has_unknown) add(hash_bytes(pool_->value_unknown(id)));
    switch (item.kind) {
      case ValueKind::kTensor:
        add_tensor(pool_->tensor(item));
        break;
      case ValueKind::kDict:
        for (const StringId key : pool_->keys(item)) add(key.index());
        [[fallthrough]];
      case ValueKind::kTuple:
      case ValueKind::kList:
        add(item.count);
        for (uint32_t i = 0; i < item.count; ++i) add_value(ValueId(item.first + i));
        break;
      case ValueKind::kScalar:
        add_arg(ArgIndex(item.first));
        break;
      default:
        add(item.first);
        for (const StringId name : {item.name, item.mesh, item.group, item.text}) add(name.index());
        break;
    }
  }

  // Adds any member of a record that Record::visit() passes.
  template <class T>
  void add_field(const T& field) {
    if constexpr (std::is_same_v<T, std::string>) {
      add(hash_bytes(field));
    } else if constexpr (std::is_same_v<T, StringId>) {
      add(field.index());
    } else if constexpr (std::is_same_v<T, ExprField>) {
      add(field.id.index());
    } else if constexpr (std::is_same_v<T, Integer>) {
      add_field(field.value);
      add(field.expr.index());
    } else if constexpr (std::is_same_v<T, ValueId>) {
      add_value(field);
    } else if constexpr (std::is_same_v<T, MetaRange>) {
      add_args(field.range);
    } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      add(static_cast<uint64_t>(field));
    } else {
      add_record(field);
    }
  }
  template <class T>
  void add_field(const std::optional<T>& field) {
    add(field.has_value() ? 1 : 0);
    if (field.has_value()) add_field(*field);
  }
  template <class T>
  void add_field(const std::vector<T>& field) {
    add(field.size());
    for (const T& item : field) add_field(item);
  }
  template <class... Fields>
  void add_fields(const Fields&... fields) {
    (add_field(fields), ...);
  }

 private:
  void fold() {
    const std::string_view bytes(reinterpret_cast<const char*>(items_.data()), num_items_ * sizeof(uint64_t));
    hash_ = hash_combine(hash_, hash_bytes(bytes));
    num_items_ = 0;
  }

  void add_arg(ArgIndex index) {
    const Arg& arg = pool_->arg(index);
    add(static_cast<uint64_t>(arg.kind()));
    if (arg.has_unknown()) add(hash_bytes(pool_->arg_unknown(index)));
    if (arg.is(ArgKind::kNode)) {
      add(arg.as_node().index());
    } else if (arg.is(ArgKind::kValue)) {
      add_value(arg.as_value());
    } else if (arg.has_children()) {
      add(arg.type().index());
      add_args(arg.range());
    } else {
      add(arg.as_bits());
    }
  }

  void add_tensor(const Tensor& tensor) {
    const uint64_t flags = (tensor.requires_grad ? 1U : 0U) + (tensor.conjugate ? 2U : 0U) +
                           (tensor.negative ? 4U : 0U) + (tensor.pinned ? 8U : 0U);
    add(static_cast<uint64_t>(tensor.dtype) << 16 | static_cast<uint64_t>(tensor.layout) << 8 | flags);
    add(uint64_t{tensor.sizes.index()} << 32 | tensor.strides.index());
    add(static_cast<uint64_t>(tensor.offset.value));
    add(uint64_t{tensor.offset.expr.index()} << 32 | tensor.device.index());
    add(uint64_t{tensor.storage.index()} << 32 | tensor.mesh.index());
    add(uint64_t{tensor.subclass.index()} << 32 | tensor.placements);
  }

  template <class Record>
  void add_record(const Record& record) {
    Record::visit(record, [this](const char*, const auto& field) { this->add_field(field); });
    add(hash_bytes(record.unknown));
  }

  const Pool* pool_;
  uint64_t hash_ = 0;
  std::array<uint64_t, 1024> items_;  // not yet folded into hash_
  size_t num_items_ = 0;
};

void add_extra(Hasher& hasher, const NodeExtra& extra) {
  hasher.add_fields(extra.verdict, extra.mark_verdict, extra.tag_source, extra.origins);
  hasher.add(extra.control.size());
  for (const ControlDep& dep : extra.control) {
    hasher.add(uint64_t{dep.node.index()} << 8 | static_cast<uint64_t>(dep.kind));
  }
  hasher.add_fields(extra.stream, extra.bucket, extra.capture, extra.remarks, extra.input, extra.rng,
                    extra.event_record, extra.event_wait, extra.unknown);
}

bool is_empty(const NodeExtra& extra) {
  return !extra.verdict && !extra.mark_verdict && !extra.tag_source && extra.origins.empty() && extra.control.empty() &&
         !extra.stream && !extra.bucket && extra.capture == Capture::kUnspecified && extra.remarks.empty() &&
         !extra.input && !extra.rng && extra.event_record.empty() && extra.event_wait.empty() && extra.unknown.empty();
}

void add_node(Hasher& hasher, const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  hasher.add(static_cast<uint64_t>(node.kind) << 24 | static_cast<uint64_t>(node.phase) << 16 |
             static_cast<uint64_t>(node.tag) << 8 | (node.has_seq_nr ? 1U : 0U));
  hasher.add(uint64_t{id.index()} << 32 | node.name.index());
  hasher.add(uint64_t{node.target.index()} << 32 | node.phase_markers);
  hasher.add(node.uid);
  hasher.add(static_cast<uint64_t>(node.seq_nr));
  hasher.add(uint64_t{node.module_path.index()} << 32 | node.module_path_source.index());
  hasher.add(uint64_t{node.region.index()} << 32 | node.source.index());
  hasher.add_args(node.args);
  hasher.add_args(node.kwargs);
  hasher.add_args(node.meta);
  hasher.add_value(node.value);
  // Creating the rare fields without setting one is no change.
  const NodeExtra* extra = graph.extra(id);
  const bool has_extra = extra != nullptr && !is_empty(*extra);
  hasher.add(has_extra ? 1 : 0);
  if (has_extra) add_extra(hasher, *extra);
}

uint64_t hash_graph(const Graph& graph) {
  Hasher hasher(graph.pool());
  hasher.add(uint64_t{graph.name().index()} << 8 | static_cast<uint64_t>(graph.kind));
  hasher.add_fields(graph.outputs, graph.attributes, graph.num_forward_outputs, graph.subclasses);
  hasher.add(uint64_t{graph.in_spec.index()} << 32 | graph.out_spec.index());
  hasher.add(uint64_t{graph.owner.index()} << 32 | graph.class_name.index());
  hasher.add_args(graph.meta);
  hasher.add(graph.num_nodes());
  for (const NodeId id : graph.nodes()) add_node(hasher, graph, id);
  return hasher.value();
}

}  // namespace

StructuralHash structural_hash(const Module& module) {
  StructuralHash out;
  Hasher hasher(module.pool);
  hasher.add_fields(module.erased, module.groups, module.rng_slots, module.streams, module.constants, module.meshes,
                    module.op_schemas, module.assertions, module.symbols, module.invocations);
  out.graphs.resize(module.num_graph_ids());
  for (const GraphId id : module.graphs()) {
    hasher.add(id.index());
    out.graphs[id.index()] = hash_graph(module.graph(id));
  }
  out.records = hasher.value();
  return out;
}

std::vector<bool> StructuralHash::unchanged_since(const StructuralHash& before) const {
  if (records != before.records) return {};
  std::vector<bool> out(graphs.size());
  for (size_t i = 0; i < std::min(graphs.size(), before.graphs.size()); ++i) out[i] = graphs[i] == before.graphs[i];
  return out;
}

}  // namespace fxopt
