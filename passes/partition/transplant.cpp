#include "passes/partition/transplant.h"

#include <algorithm>
#include <cstdint>
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
    : graph_(add_graph(module, name)), from_(&from) {
  graph_.kind = kind;
  graph_.class_name = from.class_name;
  copy_meta(from);
  take_from(from);
}

void Transplant::copy_meta(const Graph& from) {
  // How torch.fx calls the graph, with in_spec and out_spec: of all its arguments at once.
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
  from_ = &from;
  mapped_ = IdMap<NodeId, NodeId>(from.num_ids());
  storages_.clear();
  attributes_.clear();
  for (const Attribute& each : from.attributes) attributes_.emplace(each.path, &each);
  read_output();
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
  mapped_[node] = id;
  if (source.kind == NodeKind::kGetAttr) {
    const StringId path = placed_path(source.target);
    graph_[id].target = graph_.module().target(graph_.module().text(path));
    read_.emplace(path, id);
  }
  const NodeExtra* extra = from_->extra(node);
  if (extra == nullptr) return;
  NodeExtra all = *extra;
  std::erase_if(all.control, [this](const ControlDep& dep) { return !mapped_.get(dep.node).is_valid(); });
  for (ControlDep& dep : all.control) dep.node = mapped_[dep.node];
  graph_.mutable_extra(id) = std::move(all);
}

NodeId Transplant::read_attribute(NodeId node) {
  const auto known = read_.find(placed_path((*from_)[node].target));
  if (known == read_.end()) return move(node);
  bind(node, known->second);
  return known->second;
}

// Its own; another one, as compose_step() names it, where that names something else in the new graph.
StringId Transplant::placed_path(TargetId target) {
  Module& module = graph_.module();
  const StringId path = module.target(target).name;
  const auto found = attributes_.find(path);
  if (found == attributes_.end()) return path;
  Attribute attribute = *found->second;
  std::string text = std::string(module.text(from_->name())) + "." + std::string(module.text(path));
  while (true) {
    const auto [placed, is_new] = placed_.emplace(attribute.path, graph_.attributes.size());
    if (is_new) graph_.attributes.push_back(attribute);
    if (is_new || name_same_thing(graph_.attributes[placed->second], attribute)) return attribute.path;
    attribute.path = module.intern(text);
    text += "_";
  }
}

void Transplant::give_back(size_t leaf) {
  const Arg& arg = from_leaves_[leaf];
  for (const LeafEntries& from : from_entries_) {
    const auto is_same = [&from](const LeafEntries& each) { return each.key == from.key; };
    auto own = std::find_if(entries_.begin(), entries_.end(), is_same);
    if (own == entries_.end()) own = entries_.insert(entries_.end(), LeafEntries{from.key, {}});
    own->elements.resize(leaves_.size(), Arg::none());
    own->elements.push_back(from.elements[leaf]);
  }
  leaves_.push_back(arg.is(ArgKind::kNode) ? Arg::node(mapped_[arg.as_node()]) : arg);
  specs_.push_back(leaf < from_->outputs.size() ? from_->outputs[leaf] : OutputSpec());
}

void Transplant::give_saved(NodeId node) {
  leaves_.push_back(Arg::node(mapped_[node]));
  specs_.emplace_back().role = OutputRole::kSavedValue;
}

void Transplant::write_entries(NodeId output) {
  Pool& pool = graph_.pool();
  const std::span<const Arg> known = pool.args(graph_[output].meta);
  std::vector<Arg> all(known.begin(), known.end());
  for (LeafEntries& entry : entries_) {
    entry.elements.resize(leaves_.size(), Arg::none());
    const Arg list = Arg::children(ArgKind::kList, pool.append(entry.elements));
    size_t at = 0;
    while (at < all.size() && all[at].as_string() != entry.key) at += 2;
    if (at == all.size()) all.insert(all.end(), {Arg::string(entry.key), list});
    all[at + 1] = list;
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
  if (keeps_specs) graph_.outputs = std::move(specs_);
}

}  // namespace fxopt
