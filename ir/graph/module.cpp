#include "ir/graph/module.h"

#include <algorithm>

#include "core/check.h"
#include "core/hash.h"
#include "ir/graph/described_op.h"

namespace fxopt {
namespace {

uint64_t hash_dims(const std::vector<Dim>& dims) {
  uint64_t hash = dims.size();
  for (const Dim& dim : dims) {
    hash = hash_combine(hash, static_cast<uint64_t>(dim.value));
    hash = hash_combine(hash, dim.expr.index());
  }
  return hash;
}

uint64_t hash_source(const Source& source) {
  uint64_t hash = hash_combine(source.file.index(), source.line);
  hash = hash_combine(hash, source.function.index());
  return hash_combine(hash, source.code.index());
}

uint64_t hash_region(const Region& region) {
  uint64_t hash = hash_combine(region.id.has_value() ? 1 : 0, static_cast<uint64_t>(region.id.value_or(0)));
  hash = hash_combine(hash, region.name.index());
  return hash_combine(hash, (region.id_is_none ? 2U : 0U) + (region.has_backward_hook ? 1U : 0U));
}

// Returns the id of an equal entry. If no entry is equal, adds a new entry and returns its id.
template <class IdType, class T>
IdType intern_entry(std::vector<T>& table, std::unordered_multimap<uint64_t, IdType>& index, uint64_t hash,
                    const T& entry) {
  const auto [first, last] = index.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (table[it->second.index()] == entry) return it->second;
  }
  const IdType id(table.size());
  table.push_back(entry);
  index.emplace(hash, id);
  return id;
}

}  // namespace

Module::Module() : exprs(strings) {}

std::unique_ptr<Module> Module::clone() const {
  std::unique_ptr<Module> copy(new Module(*this));
  copy->exprs.set_strings(copy->strings);
  std::unordered_map<const Op*, const Op*> own;
  for (size_t i = 0; i < ops_.size(); ++i) own.emplace(&ops_[i], &copy->ops_[i]);
  for (Target& target : copy->targets_) {
    const auto found = own.find(target.op);
    if (found != own.end()) target.op = found->second;
  }
  for (const std::unique_ptr<Graph>& graph : graphs_) {
    copy->graphs_.emplace_back(graph == nullptr ? nullptr : new Graph(*graph, *copy));
  }
  return copy;
}

DimsId Module::dims(const std::vector<Dim>& dims) { return intern_entry(dims_, dims_index_, hash_dims(dims), dims); }

DimsId Module::contiguous_strides(DimsId sizes) {
  const std::vector<Dim> extent = dims(sizes);
  std::vector<Dim> strides(extent.size());
  Dim stride{1, ExprId()};
  for (size_t i = extent.size(); i-- > 0;) {
    strides[i] = stride;
    const Dim& size = extent[i];
    int64_t product = 0;
    if (size.is_static() && stride.is_static() &&
        !__builtin_mul_overflow(stride.value, std::max<int64_t>(size.value, 1), &product)) {
      stride.value = product;
    } else if (size.is_static() && size.value <= 1) {
      continue;
    } else {
      const ExprId left = size.is_static() ? exprs.constant(size.value) : size.expr;
      const ExprId right = stride.is_static() ? exprs.constant(stride.value) : stride.expr;
      const bool unit = stride.is_static() && stride.value == 1;
      stride = Dim{0, unit ? left : exprs.make(ExprKind::kMul, {right, left})};
    }
  }
  return dims(strides);
}

TargetId Module::target(std::string_view target_name) {
  const StringId text_id = intern(target_name);
  TargetId& id = target_index_[text_id];
  if (!id.is_valid()) {
    id = TargetId(targets_.size());
    targets_.push_back(Target{text_id, resolve(target_name)});
  }
  return id;
}

TargetId Module::find_target(std::string_view target_name) const {
  const StringId text_id = strings.find(target_name);
  return text_id.is_valid() ? target_index_[text_id] : TargetId();
}

Op described_op(const Module& module, const OpSchemaRecord& record) {
  const Result<Schema> schema = parse_schema(module.text(record.schema));
  if (!schema.ok()) return opaque_op();
  std::vector<std::string_view> tags;
  for (const StringId tag : record.tags) tags.push_back(module.text(tag));
  return describe_op(module.text(record.target), *schema, tags, record.pure, record.effectful);
}

const Op* Module::resolve(std::string_view target_name) {
  if (const Op* builtin = find_builtin_op(target_name)) return builtin;
  const auto found = schema_index_.find(strings.find(target_name));
  if (found == schema_index_.end()) return &opaque_op();
  ops_.push_back(described_op(*this, op_schemas[found->second]));
  return &ops_.back();
}

void Module::resolve_targets() {
  schema_index_.clear();
  for (size_t i = 0; i < op_schemas.size(); ++i) schema_index_.emplace(op_schemas[i].target, i);
  for (Target& target : targets_) target.op = resolve(text(target.name));
}

SourceId Module::source(const Source& source) {
  return intern_entry(sources_, source_index_, hash_source(source), source);
}

RegionId Module::region(const Region& region) {
  return intern_entry(regions_, region_index_, hash_region(region), region);
}

uint32_t Module::placements(std::vector<Placement> list) {
  if (list.empty()) return 0;
  uint64_t hash = list.size();
  for (const Placement& placement : list) {
    hash = hash_combine(hash, static_cast<uint64_t>(placement.kind));
    hash = hash_combine(hash, static_cast<uint64_t>(placement.dim));
  }
  const auto [first, last] = placement_index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (placements_[it->second - 1] == list) return it->second;
  }
  placements_.push_back(std::move(list));
  const uint32_t index = static_cast<uint32_t>(placements_.size());
  placement_index_.emplace(hash, index);
  return index;
}

const std::vector<Placement>& Module::placements(uint32_t index) const { return placements_[index - 1]; }

StorageId Module::add_storage(StorageRecord record) {
  const StorageId id(storages_.size());
  const bool is_new = storage_index_.emplace(record.id, id).second;
  FXOPT_CHECK(is_new, "storage id taken: " + std::to_string(record.id));
  next_storage = std::max(next_storage, record.id + 1);
  storages_.push_back(std::move(record));
  return id;
}

StorageId Module::fresh_storage(Integer bytes, StringId device) {
  StorageRecord record;
  record.id = next_storage;
  record.bytes = bytes;
  record.device = device;
  return add_storage(std::move(record));
}

StorageId Module::find_storage(uint64_t id) const {
  const auto found = storage_index_.find(id);
  return found == storage_index_.end() ? StorageId() : found->second;
}

Graph& Module::add_graph(StringId graph_name) {
  FXOPT_CHECK(!find_graph(graph_name).is_valid(), "graph name taken: " + std::string(text(graph_name)));
  const GraphId id(graphs_.size());
  graph_index_[graph_name] = id;
  graphs_.push_back(std::make_unique<Graph>(*this, graph_name, id));
  order_.push_back(id);
  return *graphs_.back();
}

size_t Module::num_nodes() const {
  size_t count = 0;
  for (const GraphId id : order_) count += graph(id).num_nodes();
  return count;
}

GraphId Module::find_graph(StringId graph_name) const {
  return graph_name.is_valid() ? graph_index_[graph_name] : GraphId();
}

void Module::rename_graphs(const IdMap<StringId, StringId>& names) {
  const auto rename = [&names](StringId& named) {
    if (const StringId to = names.get(named); to.is_valid()) named = to;
  };
  for (const GraphId id : order_) graph_index_[graph(id).name()] = GraphId();
  for (const GraphId id : order_) {
    rename(graph(id).name_);
    FXOPT_CHECK(!find_graph(graph(id).name()).is_valid(), "graph name taken: " + std::string(text(graph(id).name())));
    graph_index_[graph(id).name()] = id;
  }
  pool.rename(ArgKind::kGraph, names);
  for (const GraphId each : order_) {
    Graph& other = graph(each);
    rename(other.owner);
    for (Attribute& attribute : other.attributes) rename(attribute.graph);
    other.pool_.rename(ArgKind::kGraph, names);
    for (NodeExtra& extra : other.extras_) {
      for (Origin& origin : extra.origins) rename(origin.graph);
    }
  }
  for (Invocation& invocation : invocations) rename(invocation.graph);
  for (Symbol& symbol : symbols) rename(symbol.graph);
  for (ErasedNode& node : erased) {
    rename(node.graph);
    for (Origin& origin : node.origins) rename(origin.graph);
  }
}

void Module::remove_graphs(const std::vector<GraphId>& ids) {
  if (ids.empty()) return;
  for (const GraphId id : ids) {
    FXOPT_CHECK(has_graph(id), "the graph to remove does not exist");
    graph_index_[graph(id).name()] = GraphId();
    graphs_[id.index()].reset();
  }
  std::erase_if(order_, [this](GraphId id) { return !has_graph(id); });
  std::erase_if(name_counters, [this](const auto& counter) { return !has_graph(counter.first.first); });
  FXOPT_CHECK(!order_.empty(), "a module must keep at least one graph");
}

void Module::replace_graph(GraphId old, const std::vector<GraphId>& by) {
  FXOPT_CHECK(std::find(by.begin(), by.end(), old) == by.end(), "a graph cannot replace itself");
  std::vector<GraphId> order;
  for (const GraphId id : order_) {
    if (id == old) order.insert(order.end(), by.begin(), by.end());
    if (std::find(by.begin(), by.end(), id) == by.end()) order.push_back(id);
  }
  order_ = std::move(order);
  const StringId owner = graph(old).name();
  for (const GraphId id : order_) {
    if (graph(id).owner == owner && !by.empty()) graph(id).owner = graph(by.front()).name();
  }
  remove_graphs({old});
}

uint64_t& Module::name_counter(const Graph& graph, std::string_view base) {
  FXOPT_CHECK(has_graph(graph.id()) && &this->graph(graph.id()) == &graph, "the graph belongs to another module");
  return name_counters.try_emplace({graph.id(), std::string(base)}, 1).first->second;
}

std::vector<Module::PlacedCounter> Module::placed_counters() const {
  std::vector<uint32_t> places(graphs_.size(), 0);
  for (size_t i = 0; i < order_.size(); ++i) places[order_[i].index()] = static_cast<uint32_t>(i);
  std::vector<PlacedCounter> placed;
  for (const auto& [key, next] : name_counters) placed.push_back({places[key.first.index()], key.second, next});
  std::stable_sort(placed.begin(), placed.end(),
                   [](const PlacedCounter& a, const PlacedCounter& b) { return a.graph < b.graph; });
  return placed;
}

}  // namespace fxopt
