#include "ir/graph/graph.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "ir/graph/module.h"

namespace fxopt {
namespace {

const Value kAbsentValue;

}  // namespace

std::string_view Graph::name_of(NodeId id) const { return module_->text(nodes_[id.index()].name); }

const Op& Graph::op(NodeId id) const {
  const Node& node = nodes_[id.index()];
  return node.is_call() && node.target.is_valid() ? *module_->target(node.target).op : opaque_op();
}

const Value& Graph::value(NodeId id) const {
  const ValueId value = nodes_[id.index()].value;
  return value.is_valid() ? pool_.value(value) : kAbsentValue;
}

const NodeExtra* Graph::extra(NodeId id) const {
  const ExtraId extra = nodes_[id.index()].extra;
  return extra.is_valid() ? &extras_[extra.index()] : nullptr;
}

NodeExtra& Graph::mutable_extra(NodeId id) {
  Node& node = nodes_[id.index()];
  if (!node.extra.is_valid()) {
    node.extra = ExtraId(extras_.size());
    extras_.emplace_back();
  }
  return extras_[node.extra.index()];
}

NodeId Graph::find(StringId name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? NodeId() : found->second;
}

NodeId Graph::output() const {
  for (NodeId id = last_; id.is_valid(); id = prev(id)) {
    if (nodes_[id.index()].kind == NodeKind::kOutput) return id;
  }
  return NodeId();
}

uint32_t Graph::position(NodeId id) const {
  if (!positions_valid_) {
    positions_.resize(nodes_.size());
    uint32_t place = 0;
    for (NodeId node = first_; node.is_valid(); node = next(node)) positions_[node.index()] = place++;
    positions_valid_ = true;
  }
  return positions_[id.index()];
}

std::vector<NodeId> Graph::inputs(NodeId id) const {
  std::vector<NodeId> result;
  for_each_input(id, [&result](NodeId input) { result.push_back(input); });
  if (result.size() < 2) return result;
  std::vector<std::pair<NodeId, size_t>> first_seen;
  first_seen.reserve(result.size());
  for (size_t i = 0; i < result.size(); ++i) first_seen.emplace_back(result[i], i);
  std::sort(first_seen.begin(), first_seen.end());
  first_seen.erase(std::unique(first_seen.begin(), first_seen.end(),
                               [](const auto& a, const auto& b) { return a.first == b.first; }),
                   first_seen.end());
  std::sort(first_seen.begin(), first_seen.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  result.clear();
  for (const auto& [node, order] : first_seen) result.push_back(node);
  return result;
}

std::vector<UseId> Graph::edges(NodeId id) const {
  std::vector<UseId> result;
  collect_edges(nodes_[id.index()].args, result);
  collect_edges(nodes_[id.index()].kwargs, result);
  return result;
}

void Graph::collect_edges(ArgRange range, std::vector<UseId>& out) const {
  for (const Arg& arg : pool_.args(range)) {
    if (arg.is(ArgKind::kNode)) {
      out.push_back(arg.use());
    } else if (arg.has_children()) {
      collect_edges(arg.range(), out);
    }
  }
}

std::vector<NodeId> Graph::users(NodeId id) const {
  std::vector<NodeId> result;
  for (UseId use = first_use(id); use.is_valid(); use = uses_[use.index()].next) {
    result.push_back(uses_[use.index()].user);
  }
  if (result.size() < 2) return result;
  position(result.front());  // update the cache of positions once
  std::sort(result.begin(), result.end(),
            [this](NodeId a, NodeId b) { return positions_[a.index()] < positions_[b.index()]; });
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

const Arg* Graph::arg(NodeId id, size_t positional) const {
  const ArgRange args = nodes_[id.index()].args;
  return positional < args.count ? &pool_.arg(ArgIndex(args.first + positional)) : nullptr;
}

const Arg* Graph::kwarg(NodeId id, std::string_view name) const {
  const std::span<const Arg> entries = pool_.args(nodes_[id.index()].kwargs);
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    if (module_->text(entries[i].as_string()) == name) return &entries[i + 1];
  }
  return nullptr;
}

const Arg* Graph::meta_entry(NodeId id, std::string_view key) const {
  const std::span<const Arg> entries = pool_.args(nodes_[id.index()].meta);
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    if (module_->text(entries[i].as_string()) == key) return &entries[i + 1];
  }
  return nullptr;
}

NodeId Graph::new_node(NodeKind node_kind, StringId name, TargetId target, uint64_t uid) {
  FXOPT_CHECK(name.is_valid() && !find(name).is_valid(),
              "the name of a node is missing or taken: " + std::string(module_->text(name)));
  const NodeId id(nodes_.size());
  Node node;
  node.kind = node_kind;
  node.name = name;
  node.target = target;
  node.uid = uid;
  nodes_.push_back(node);
  links_.emplace_back();
  use_heads_.emplace_back();
  by_name_[name] = id;
  module_->next_uid = std::max(module_->next_uid, uid + 1);
  ++live_;
  return id;
}

NodeId Graph::add_node(NodeKind node_kind, StringId name, TargetId target, uint64_t uid) {
  const bool keep_positions = positions_valid_;
  const NodeId id = new_node(node_kind, name, target, uid);
  link_before(id, NodeId());
  if (keep_positions) {
    positions_.push_back(static_cast<uint32_t>(live_ - 1));
    positions_valid_ = true;
  }
  return id;
}

NodeId Graph::insert_node(NodeId before, NodeKind node_kind, std::string_view base, TargetId target) {
  const NodeId id = new_node(node_kind, fresh_name(base), target, module_->fresh_uid());
  link_before(id, before);
  return id;
}

NodeId Graph::clone_node(NodeId original, NodeId before, std::string_view base, const IdMap<NodeId, NodeId>& mapped) {
  const Node source = nodes_[original.index()];
  const NodeId id = insert_node(before, source.kind, base, source.target);
  const ArgRange args = copy_args(*this, source.args, mapped);
  const ArgRange kwargs = copy_args(*this, source.kwargs, mapped);
  copy_fields(*this, original, id);
  set_args(id, args, kwargs);
  return id;
}

void Graph::copy_fields(const Graph& from, NodeId original, NodeId to, const Pool::TensorEdit& edit) {
  const Node source = from[original];
  const ArgRange meta_copy = copy_args(from, source.meta, IdMap<NodeId, NodeId>());
  ValueId value = source.value;
  if (&from != this && value.is_valid()) value = pool_.copy_value(from.pool_, value, edit);
  Node& node = nodes_[to.index()];
  node.take_context(source);
  node.value = value;
  node.meta = meta_copy;
  if (const NodeExtra* rare = from.extra(original)) {
    const NodeExtra copy = *rare;
    NodeExtra& own = mutable_extra(to);
    own.stream = copy.stream;
    own.bucket = copy.bucket;
    own.capture = copy.capture;
    own.rng = copy.rng;
    own.unknown = copy.unknown;
  }
}

Arg Graph::copy_arg(const Graph& from, ArgIndex index, const IdMap<NodeId, NodeId>& mapped) {
  const Arg arg = from.pool_.arg(index);
  if (arg.is(ArgKind::kNode)) {
    const NodeId to = mapped[arg.as_node()];
    FXOPT_CHECK(to.is_valid() || &from == this, "argument %" + std::string(from.name_of(arg.as_node())) +
                                                    " belongs to another graph and has no mapping");
    return Arg::node(to.is_valid() ? to : arg.as_node());
  }
  if (arg.is(ArgKind::kValue) && &from != this) {
    return Arg::value(pool_.copy_value(from.pool_, arg.as_value(), [](Tensor&) {}));
  }
  if (!arg.has_children()) return arg;
  return Arg::children(arg.kind(), copy_args(from, arg.range(), mapped), arg.type());
}

ArgRange Graph::copy_args(const Graph& from, ArgRange range, const IdMap<NodeId, NodeId>& mapped) {
  std::vector<Arg> items;
  items.reserve(range.count);
  for (uint32_t i = 0; i < range.count; ++i) items.push_back(copy_arg(from, ArgIndex(range.first + i), mapped));
  const ArgRange copy = pool_.append(items);
  for (uint32_t i = 0; i < range.count; ++i) {
    const ArgIndex original(range.first + i);
    if (from.pool_.arg(original).has_unknown()) {
      pool_.set_arg_unknown(ArgIndex(copy.first + i), from.pool_.arg_unknown(original));
    }
  }
  return copy;
}

void Graph::set_args(NodeId id, ArgRange args, ArgRange kwargs) {
  Node& node = nodes_[id.index()];
  drop_uses(node.args);
  drop_uses(node.kwargs);
  node.args = args;
  node.kwargs = kwargs;
  add_uses(id, args);
  add_uses(id, kwargs);
}

void Graph::add_uses(NodeId user, ArgRange range) {
  for (uint32_t i = 0; i < range.count; ++i) {
    Arg& arg = pool_.args_[range.first + i];
    if (arg.is(ArgKind::kNode)) {
      const NodeId input = arg.as_node();
      FXOPT_CHECK(input.index() < nodes_.size() && !nodes_[input.index()].erased,
                  "an argument of %" + std::string(name_of(user)) + " is a node outside of @" +
                      std::string(module_->text(name_)) + ": it was erased, or belongs to another graph");
      const UseId use(uses_.size());
      uses_.push_back(Use{NodeId(), user, ArgIndex(range.first + i), UseId(), UseId()});
      arg.payload_ = use.index();
      attach(use, input);
    } else if (arg.has_children()) {
      add_uses(user, arg.range());
    }
  }
}

void Graph::drop_uses(ArgRange range) {
  for (uint32_t i = 0; i < range.count; ++i) {
    const Arg& arg = pool_.args_[range.first + i];
    if (arg.is(ArgKind::kNode)) {
      detach(arg.use());
    } else if (arg.has_children()) {
      drop_uses(arg.range());
    }
  }
}

void Graph::attach(UseId id, NodeId input) {
  UseHead& head = use_heads_[input.index()];
  Use& use = uses_[id.index()];
  use.input = input;
  use.prev = head.last;
  use.next = UseId();
  (head.last.is_valid() ? uses_[head.last.index()].next : head.first) = id;
  head.last = id;
  ++head.count;
  ++live_uses_;
}

void Graph::detach(UseId id) {
  Use& use = uses_[id.index()];
  UseHead& head = use_heads_[use.input.index()];
  (use.prev.is_valid() ? uses_[use.prev.index()].next : head.first) = use.next;
  (use.next.is_valid() ? uses_[use.next.index()].prev : head.last) = use.prev;
  --head.count;
  --live_uses_;
}

void Graph::set_use(UseId id, NodeId input) {
  detach(id);
  attach(id, input);
  pool_.args_[uses_[id.index()].slot.index()].count_ = input.index();
}

void Graph::replace_all_uses(NodeId from, NodeId to) {
  FXOPT_CHECK(from != to, "a node cannot replace itself");
  while (use_heads_[from.index()].first.is_valid()) set_use(use_heads_[from.index()].first, to);
}

void Graph::link_before(NodeId id, NodeId before) {
  Links& links = links_[id.index()];
  links.next = before;
  links.prev = before.is_valid() ? links_[before.index()].prev : last_;
  (links.prev.is_valid() ? links_[links.prev.index()].next : first_) = id;
  (before.is_valid() ? links_[before.index()].prev : last_) = id;
  positions_valid_ = false;
}

void Graph::unlink(NodeId id) {
  const Links links = links_[id.index()];
  (links.prev.is_valid() ? links_[links.prev.index()].next : first_) = links.next;
  (links.next.is_valid() ? links_[links.next.index()].prev : last_) = links.prev;
  positions_valid_ = false;
}

void Graph::move_before(NodeId id, NodeId before) {
  if (id == before || next(id) == before) return;
  unlink(id);
  link_before(id, before);
}

void Graph::set_schedule(std::span<const NodeId> order) {
  FXOPT_CHECK(order.size() == live_, "the number of nodes in the schedule differs from that in the graph");
  positions_.assign(nodes_.size(), static_cast<uint32_t>(live_));
  for (size_t i = 0; i < order.size(); ++i) {
    const NodeId id = order[i];
    FXOPT_CHECK(!nodes_[id.index()].erased && positions_[id.index()] == live_, "a node is scheduled twice");
    for_each_input(id, [&](NodeId input) {
      FXOPT_CHECK(positions_[input.index()] < live_, "a node is scheduled before its input");
    });
    positions_[id.index()] = static_cast<uint32_t>(i);
    links_[id.index()] = {i > 0 ? order[i - 1] : NodeId(), i + 1 < order.size() ? order[i + 1] : NodeId()};
  }
  first_ = order.empty() ? NodeId() : order.front();
  last_ = order.empty() ? NodeId() : order.back();
  positions_valid_ = true;
}

void Graph::erase(NodeId id) {
  Node& node = nodes_[id.index()];
  FXOPT_CHECK(!node.erased, "node erased twice");
  FXOPT_CHECK(!has_users(id), "erased node has users: " + std::string(name_of(id)));
  set_args(id, ArgRange(), ArgRange());
  unlink(id);
  by_name_.erase(node.name);
  node.erased = true;
  --live_;
}

void Graph::rename(NodeId id, StringId name) {
  if (nodes_[id.index()].name == name) return;
  FXOPT_CHECK(!find(name).is_valid(), "name is taken: " + std::string(module_->text(name)));
  by_name_.erase(nodes_[id.index()].name);
  nodes_[id.index()].name = name;
  by_name_[name] = id;
}

StringId Graph::fresh_name(std::string_view base) {
  const StringId plain = module_->strings.find(base);
  if (!plain.is_valid() || !find(plain).is_valid()) return module_->intern(base);
  uint64_t& next_suffix = module_->name_counter(*this, base);
  for (;;) {
    const std::string candidate = std::string(base) + "_" + std::to_string(next_suffix++);
    const StringId id = module_->strings.find(candidate);
    if (!id.is_valid() || !find(id).is_valid()) return module_->intern(candidate);
  }
}

void Graph::prune_control() {
  std::vector<ControlDep> pending;
  IdMap<NodeId, NodeId> seen_for(nodes_.size());
  for (NodeId id = first_; id.is_valid(); id = next(id)) {
    const ExtraId extra_id = nodes_[id.index()].extra;
    if (!extra_id.is_valid()) continue;
    std::vector<ControlDep>& control = extras_[extra_id.index()].control;
    if (std::none_of(control.begin(), control.end(),
                     [this](const ControlDep& d) { return nodes_[d.node.index()].erased; })) {
      continue;
    }
    std::vector<ControlDep> kept;
    pending.assign(control.rbegin(), control.rend());
    while (!pending.empty()) {
      const ControlDep dep = pending.back();
      pending.pop_back();
      if (!nodes_[dep.node.index()].erased) {
        if (std::find(kept.begin(), kept.end(), dep) == kept.end()) kept.push_back(dep);
        continue;
      }
      if (seen_for.get(dep.node) == id) continue;
      seen_for[dep.node] = id;
      if (const NodeExtra* gone = extra(dep.node)) {
        pending.insert(pending.end(), gone->control.rbegin(), gone->control.rend());
      }
    }
    control = std::move(kept);
  }
}

}  // namespace fxopt
