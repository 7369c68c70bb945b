#include "passes/partition/transplant.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "ir/values/values.h"

namespace fxopt {
namespace {

Graph& add_graph(Module& module, std::string_view base) {
  std::string name(base);
  for (size_t i = 1; module.find_graph(module.intern(name)).is_valid(); ++i) {
    name = std::string(base) + "_" + std::to_string(i);
  }
  return module.add_graph(module.intern(name));
}

}  // namespace

Transplant::Transplant(Module& module, std::string_view name, GraphKind kind, const Graph& from)
    : graph_(add_graph(module, name)) {
  graph_.kind = kind;
  graph_.class_name = from.class_name;
  copy_meta(from);
  take_from(from);
}

void Transplant::copy_meta(const Graph& from) {
  // Omits the code generator, in_spec and out_spec: they describe all arguments of the source graph
  // at once.
  constexpr std::string_view kCodegen = "fx.codegen";
  const ArgRange all = graph_.copy_args(from, from.meta, IdMap<NodeId, NodeId>());
  const std::span<const Arg> entries = graph_.pool().args(all);
  std::vector<Arg> kept;
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    if (graph_.module().text(entries[i].as_string()) != kCodegen) kept.insert(kept.end(), {entries[i], entries[i + 1]});
  }
  graph_.meta = graph_.pool().append(kept);
}

void Transplant::take_from(const Graph& from) {
  find_aliases();
  if (from_ != nullptr) known_[from_] = {std::move(mapped_), std::move(paths_)};
  from_ = &from;
  const auto known = known_.find(from_);
  mapped_ = known == known_.end() ? IdMap<NodeId, NodeId>(from.num_ids()) : std::move(known->second.mapped);
  paths_ = known == known_.end() ? HashMap<StringId, StringId>() : std::move(known->second.paths);
  attributes_.clear();
  for (const Attribute& each : from.attributes) attributes_.emplace(each.path, &each);
  from_inputs_ = placeholders_of(from);
  read_output();
}

void Transplant::take_unread_attributes() {
  for (const Attribute& each : from_->attributes) placed_path(graph_.module().target(graph_.module().text(each.path)));
}

NodeId Transplant::from_input(int64_t place) const {
  return place >= 0 && place < static_cast<int64_t>(from_inputs_.size()) ? from_inputs_[static_cast<size_t>(place)]
                                                                         : NodeId();
}

void Transplant::read_output() {
  from_leaves_.clear();
  from_entries_.clear();
  const NodeId output = from_->output();
  if (!output.is_valid()) return;
  from_leaves_ = leaves_of(*from_, (*from_)[output].args);
  const ArgRange copied = graph_.copy_args(*from_, (*from_)[output].meta, IdMap<NodeId, NodeId>());
  const std::span<const Arg> entries = graph_.pool().args(copied);
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    if (!entries[i + 1].has_children()) continue;
    const std::span<const Arg> elements = graph_.pool().children(entries[i + 1]);
    if (elements.size() != from_leaves_.size()) continue;
    from_entries_.push_back({entries[i].as_string(), {elements.begin(), elements.end()}});
  }
}

void Transplant::bind(NodeId node, NodeId as) {
  mapped_[node] = as;
  std::vector<StorageId> recorded, other;
  for_each_tensor(*from_, (*from_)[node].value, [&](ValueId, const Tensor& each) { recorded.push_back(each.storage); });
  for_each_tensor(graph_, graph_[as].value, [&](ValueId, const Tensor& each) { other.push_back(each.storage); });
  if (recorded.size() != other.size()) return;
  for (size_t i = 0; i < recorded.size(); ++i) {
    if (recorded[i].is_valid() && other[i].is_valid()) storages_.emplace(recorded[i], other[i]);
  }
}

NodeId Transplant::move(NodeId node) {
  const Node source = (*from_)[node];
  const StringId name = graph_.find(source.name).is_valid() ? graph_.fresh_name(from_->name_of(node)) : source.name;
  const NodeId id = graph_.add_node(source.kind, name, source.target, source.uid);
  fill(node, id);
  return id;
}

NodeId Transplant::copy(NodeId node, std::string_view base) {
  const NodeId id = graph_.insert_node(NodeId(), (*from_)[node].kind, base, (*from_)[node].target);
  fill(node, id);
  return id;
}

void Transplant::receive(NodeId node, size_t output) {
  const TargetId target = graph_.module().target(from_->name_of(node));
  const NodeId id = graph_.insert_node(NodeId(), NodeKind::kPlaceholder, from_->name_of(node), target);
  graph_.copy_fields(*from_, node, id);
  const InputSpec* known = recorded_input(*from_, node);
  InputSpec spec = known == nullptr ? InputSpec() : *known;
  spec.role = InputRole::kSavedValue;
  spec.saved_from_output = static_cast<int64_t>(output);
  spec.user_index.reset();
  spec.alias_of_input.reset();
  spec.mutated = false;
  spec.donated = false;
  graph_.mutable_extra(id).input = std::move(spec);
  mapped_[node] = id;
}

void Transplant::fill(NodeId node, NodeId id) {
  const Node source = (*from_)[node];
  const ArgRange args = graph_.copy_args(*from_, source.args, mapped_);
  const ArgRange kwargs = graph_.copy_args(*from_, source.kwargs, mapped_);
  graph_.copy_fields(*from_, node, id, [this](Tensor& tensor) {
    const auto found = storages_.find(tensor.storage);
    if (found != storages_.end()) tensor.storage = found->second;
  });
  graph_.set_args(id, args, kwargs);
  graph_[id].tag = source.tag;
  const bool is_forward = graph_.kind == GraphKind::kForward || graph_.kind == GraphKind::kInference;
  if (is_forward && source.phase == Phase::kBackward) {
    graph_[id].phase = Phase::kForward;
    graph_[id].phase_markers = 0;
  }
  mapped_[node] = id;
  if (source.names_attribute() && source.target.is_valid()) {
    const StringId path = placed_path(source.target);
    graph_[id].target = graph_.module().target(graph_.module().text(path));
    if (source.kind == NodeKind::kGetAttr) read_.emplace(path, id);
  }
  const NodeExtra* extra = from_->extra(node);
  if (extra == nullptr) return;
  NodeExtra all = *extra;
  std::erase_if(all.control, [this](const ControlDep& dep) { return !mapped_.get(dep.node).is_valid(); });
  for (ControlDep& dep : all.control) dep.node = mapped_[dep.node];
  if (all.input.has_value() && all.input->alias_of_input.has_value()) {
    input_aliases_.push_back({id, NodeId(), from_input(*all.input->alias_of_input)});
  }
  graph_.mutable_extra(id) = std::move(all);
}

NodeId Transplant::read_attribute(NodeId node) {
  const auto known = read_.find(placed_path((*from_)[node].target));
  if (known == read_.end()) return move(node);
  bind(node, known->second);
  return known->second;
}

// The path of the attribute. If this path names something else in the new graph, makes a new path
// as in compose_step().
StringId Transplant::placed_path(TargetId target) {
  Module& module = graph_.module();
  const StringId path = module.target(target).name;
  const auto found = attributes_.find(path);
  if (found == attributes_.end()) return path;
  if (const auto known = paths_.find(path); known != paths_.end()) return known->second;
  Attribute attribute = *found->second;
  std::string text = std::string(module.text(from_->name())) + "." + std::string(module.text(path));
  while (true) {
    const auto [placed, is_new] = placed_.emplace(attribute.path, graph_.attributes.size());
    if (is_new) graph_.attributes.push_back(attribute);
    if (is_new || name_same_thing(graph_.attributes[placed->second], attribute)) break;
    attribute.path = module.intern(text);
    text += "_";
  }
  paths_.emplace(path, attribute.path);
  return attribute.path;
}

void Transplant::return_leaf(size_t leaf) {
  const Arg& arg = from_leaves_[leaf];
  for (const LeafEntries& from : from_entries_) {
    const auto [place, is_new] = entry_places_.emplace(from.key, entries_.size());
    if (is_new) entries_.push_back({from.key, {}});
    std::vector<Arg>& elements = entries_[place->second].elements;
    elements.resize(leaves_.size(), Arg::none());
    elements.push_back(from.elements[leaf]);
  }
  OutputSpec spec = leaf < from_->outputs.size() ? from_->outputs[leaf] : OutputSpec();
  if (const NodeId of = spec.of.is_valid() ? mapped_.get(from_->find(spec.of)) : NodeId(); of.is_valid()) {
    if (graph_[of].kind == NodeKind::kPlaceholder) spec.of = graph_[of].name;
  }
  if (spec.alias_of_input.has_value() || spec.alias_of_output.has_value()) {
    const NodeId input = from_input(spec.alias_of_input.value_or(-1));
    output_aliases_.push_back(
        {leaves_.size(), input.is_valid() ? mapped_.get(input) : NodeId(), spec.alias_of_output.value_or(-1), from_});
    spec.alias_of_input.reset();
    spec.alias_of_output.reset();
  }
  leaf_places_.emplace(std::make_pair(from_, static_cast<int64_t>(leaf)), static_cast<int64_t>(leaves_.size()));
  leaves_.push_back(arg.is(ArgKind::kNode) ? Arg::node(mapped_[arg.as_node()]) : arg);
  specs_.push_back(std::move(spec));
}

// Resolves aliases among inputs, once all inputs from a graph are in the new graph.
void Transplant::find_aliases() {
  for (InputAlias& alias : input_aliases_) {
    if (alias.original.is_valid()) alias.other = mapped_.get(alias.original);
    alias.original = NodeId();
  }
}

void Transplant::write_aliases() {
  IdMap<NodeId, int64_t> places(graph_.num_ids(), -1);
  int64_t count = 0;
  for (const NodeId node : placeholders_of(graph_)) places[node] = count++;
  for (const InputAlias& alias : input_aliases_) {
    std::optional<int64_t>& own = graph_.mutable_extra(alias.input).input->alias_of_input;
    own.reset();
    if (alias.other.is_valid() && places[alias.other] >= 0) own = places[alias.other];
  }
  for (const OutputAlias& alias : output_aliases_) {
    OutputSpec& spec = specs_[alias.leaf];
    if (alias.input.is_valid() && places[alias.input] >= 0) spec.alias_of_input = places[alias.input];
    const auto leaf = leaf_places_.find({alias.from, alias.leaf_of});
    if (leaf != leaf_places_.end()) spec.alias_of_output = leaf->second;
  }
}

void Transplant::return_saved(NodeId node) {
  leaves_.push_back(Arg::node(mapped_[node]));
  specs_.emplace_back().role = OutputRole::kSavedValue;
}

void Transplant::write_entries(NodeId output) {
  Pool& pool = graph_.pool();
  const std::span<const Arg> known = pool.args(graph_[output].meta);
  std::vector<Arg> all(known.begin(), known.end());
  HashMap<StringId, size_t> places;
  for (size_t at = 0; at < all.size(); at += 2) places.emplace(all[at].as_string(), at);
  for (LeafEntries& entry : entries_) {
    entry.elements.resize(leaves_.size(), Arg::none());
    const Arg list = Arg::children(ArgKind::kList, pool.append(entry.elements));
    const auto [at, is_new] = places.emplace(entry.key, all.size());
    if (is_new) all.insert(all.end(), {Arg::string(entry.key), list});
    all[at->second + 1] = list;
  }
  graph_.set_meta(output, pool.append(all));
}

void Transplant::finish(bool keeps_specs) {
  const NodeId original = from_->output();
  const std::span<const Arg> args = from_->pool().args((*from_)[original].args);
  const bool is_list = args.size() == 1 && args[0].is(ArgKind::kList);
  ArgStack stack(graph_.pool());
  for (const Arg& leaf : leaves_) stack.push(leaf);
  stack.close(is_list ? ArgKind::kList : ArgKind::kTuple, 0);
  const ArgRange returned = stack.take(0);
  const NodeId id =
      graph_.insert_node(NodeId(), NodeKind::kOutput, from_->name_of(original), (*from_)[original].target);
  graph_.copy_fields(*from_, original, id);
  graph_.set_args(id, returned, ArgRange());
  if (!entries_.empty()) write_entries(id);
  find_aliases();
  write_aliases();
  if (keeps_specs) graph_.outputs = std::move(specs_);
}

void rename_in_records(Module& module, StringId old, const std::function<StringId(uint64_t)>& graph_of) {
  const auto rename = [&](std::vector<Origin>& origins) {
    for (Origin& origin : origins) {
      if (origin.graph == old) origin.graph = graph_of(origin.uid);
    }
  };
  for (const GraphId id : module.graphs()) {
    Graph& graph = module.graph(id);
    for (const NodeId node : graph.nodes()) {
      const NodeExtra* extra = graph.extra(node);
      if (extra != nullptr && !extra->origins.empty()) rename(graph.mutable_extra(node).origins);
    }
  }
  for (ErasedNode& erased : module.erased) {
    if (erased.graph == old) erased.graph = graph_of(erased.uid);
    rename(erased.origins);
  }
}

}  // namespace fxopt
