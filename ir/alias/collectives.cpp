#include "ir/alias/collectives.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "core/hash_table.h"
#include "core/saturate.h"
#include "ir/alias/sizes.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_group_argument(const SchemaArg& arg) {
  return arg.name == "group_name" || arg.name == "process_group" || arg.name == "group";
}

// Returns the group that an argument names, or an empty key if it names no group.
GroupKey group_of_argument(const Graph& graph, const Arg& arg) {
  if (arg.is(ArgKind::kGroup) || arg.is(ArgKind::kString)) return {arg.as_string(), ExprId()};
  if (arg.is(ArgKind::kGroupExpr)) return {StringId(), arg.as_expr()};
  if (arg.is(ArgKind::kNode)) return {graph.value(arg.as_node()).group, ExprId()};
  return {};
}

// Finds the group of a call whose schema names no group argument. Takes an argument of the group
// kind if one exists. Otherwise takes the last string argument, by PyTorch's convention.
GroupKey guess_group(const Graph& graph, NodeId node) {
  GroupKey last;
  const std::span<const Arg> args = graph.pool().args(graph[node].args);
  const std::span<const Arg> kwargs = graph.pool().args(graph[node].kwargs);  // key, value, ...
  for (size_t i = 0; i < args.size() + kwargs.size() / 2; ++i) {
    const Arg& arg = i < args.size() ? args[i] : kwargs[2 * (i - args.size()) + 1];
    if (arg.is(ArgKind::kNode) || arg.is(ArgKind::kNone)) continue;
    const GroupKey key = group_of_argument(graph, arg);
    if (arg.is(ArgKind::kGroup) || arg.is(ArgKind::kGroupExpr)) return key;
    if (key != GroupKey()) last = key;
  }
  return last;
}

// Sums the bytes of all tensors in the arguments. The sum is unknown if the size of any tensor is
// unknown.
class InputSum {
 public:
  InputSum(const Graph& graph, const SymbolValues& values) : graph_(graph), values_(values) {}

  void add(const Arg& arg) {
    if (arg.is(ArgKind::kNode)) {
      add(graph_.value(arg.as_node()));
    } else if (arg.has_children()) {
      for (const Arg& child : graph_.pool().children(arg)) add(child);
    }
  }

  std::optional<int64_t> bytes() const { return is_known_ ? std::optional<int64_t>(bytes_) : std::nullopt; }
  bool by_hint() const { return by_hint_; }

 private:
  void add(const Value& value) {
    switch (value.kind) {
      case ValueKind::kTensor:
        return add(graph_.pool().tensor(value));
      case ValueKind::kTuple:
      case ValueKind::kList:
        for (const Value& child : graph_.pool().children(value)) add(child);
        return;
      case ValueKind::kAbsent:
      case ValueKind::kUnknown:
        is_known_ = false;
        return;
      default:
        return;
    }
  }

  void add(const Tensor& tensor) {
    const std::optional<int64_t> bytes = tensor_bytes(graph_.module(), tensor, values_);
    is_known_ = is_known_ && bytes.has_value();
    if (!bytes.has_value()) return;
    for (const Dim& dim : graph_.module().dims(tensor.sizes)) by_hint_ = by_hint_ || !dim.is_static();
    bytes_ = saturating_add(bytes_, *bytes);
  }

  const Graph& graph_;
  const SymbolValues& values_;
  int64_t bytes_ = 0;
  bool is_known_ = true;
  bool by_hint_ = false;
};

// Returns a * b / c rounded up, or nothing if the result is above 2^63 - 1.
std::optional<int64_t> scaled(int64_t a, int64_t b, int64_t c) {
  const WideSum product = (static_cast<WideSum>(a) * b + (c - 1)) / c;
  return product > INT64_MAX ? std::nullopt : std::optional<int64_t>(static_cast<int64_t>(product));
}

class Grouper {
 public:
  Grouper(const Graph& graph, const SymbolValues& values) : graph_(graph), values_(values) {
    for (const ProcessGroup& group : graph.module().groups) {
      if (group.uid.is_valid()) listed_.emplace(group.uid, &group);
    }
    for (const DeviceMesh& mesh : graph.module().meshes) {
      for (size_t i = 0; i < std::min(mesh.groups.size(), mesh.dim_names.size()); ++i) {
        if (mesh.groups[i].is_valid()) dims_.emplace(mesh.groups[i], std::pair(mesh.name, mesh.dim_names[i]));
      }
    }
  }

  std::vector<GroupRow> run(const std::vector<NodeId>& nodes) {
    for (const NodeId node : nodes) {
      if (graph_[node].is_call() && graph_.op(node).has(Effect::kCollective)) add(node);
    }
    for (GroupRow& row : rows_) sort_collectives(row);
    std::ranges::stable_sort(rows_, [](const GroupRow& a, const GroupRow& b) {
      const auto figures = [](const GroupRow& row) {
        return std::tuple(row.moved_bytes(), row.input_bytes(), row.calls());
      };
      return figures(a) > figures(b);
    });
    return std::move(rows_);
  }

 private:
  void add(NodeId node) {
    GroupRow& group = row_of(group_of_call(graph_, node));
    CollectiveRow& row = row_of(group, graph_[node].target);
    ++row.calls;
    row.replaces += replaced_calls(graph_, node).size();
    bool by_hint = false;
    const std::optional<int64_t> input = collective_input_bytes(graph_, node, values_, by_hint);
    if (by_hint && input.has_value()) ++row.by_hint;
    row.unknown_input += input.has_value() ? 0 : 1;
    row.input_bytes = saturating_add(row.input_bytes, input.value_or(0));
    std::optional<int64_t> moved;
    const int64_t ranks = group.group == nullptr ? 0 : static_cast<int64_t>(group.group->ranks.size());
    if (input.has_value()) moved = ring_bytes(collective_kind(graph_.op(node)), *input, ranks);
    row.unknown_moved += moved.has_value() ? 0 : 1;
    row.moved_bytes = saturating_add(row.moved_bytes, moved.value_or(0));
  }

  GroupRow& row_of(const GroupKey& key) {
    const auto& [place, is_new] = index_.emplace(key, rows_.size());
    if (is_new) rows_.push_back(make_row(key));
    return rows_[place->second];
  }

  static CollectiveRow& row_of(GroupRow& group, TargetId target) {
    for (CollectiveRow& row : group.collectives) {
      if (row.target == target) return row;
    }
    group.collectives.push_back({target});
    return group.collectives.back();
  }

  GroupRow make_row(const GroupKey& key) const {
    GroupRow row;
    row.key = key;
    const std::map<StringId, const ProcessGroup*>::const_iterator found = listed_.find(key.uid);
    if (found == listed_.end()) return row;
    row.group = found->second;
    row.mesh = row.group->mesh;
    row.mesh_dims = row.group->mesh_dims;
    const std::map<StringId, std::pair<StringId, StringId>>::const_iterator dim = dims_.find(key.uid);
    if (!row.mesh_dims.empty() || dim == dims_.end()) return row;
    row.mesh = dim->second.first;
    row.mesh_dims = {dim->second.second};
    return row;
  }

  void sort_collectives(GroupRow& row) const {
    const Module& module = graph_.module();
    std::ranges::sort(row.collectives, [&](const CollectiveRow& a, const CollectiveRow& b) {
      const auto figures = [](const CollectiveRow& item) { return std::tuple(item.moved_bytes, item.input_bytes); };
      if (figures(a) != figures(b)) return figures(a) > figures(b);
      return module.text(module.target(a.target).name) < module.text(module.target(b.target).name);
    });
  }

  const Graph& graph_;
  const SymbolValues& values_;
  std::map<StringId, const ProcessGroup*> listed_;
  std::map<StringId, std::pair<StringId, StringId>> dims_;  // mesh and mesh dimension, by group
  std::map<GroupKey, size_t> index_;
  std::vector<GroupRow> rows_;
};

}  // namespace

std::string_view collective_kind_name(CollectiveKind value) {
  constexpr std::string_view kNames[] = {"other",      "all-gather", "reduce-scatter",
                                         "all-reduce", "all-to-all", "broadcast"};
  return kNames[static_cast<size_t>(value)];
}

CollectiveKind find_collective_kind(std::string_view name) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
        CollectiveKind::kAllToAll, CollectiveKind::kBroadcast}) {
    if (collective_kind_name(kind) == name) return kind;
  }
  return CollectiveKind::kOther;
}

std::string_view packet_of(std::string_view name) {
  const size_t first = name.find('.');
  if (first == std::string_view::npos) return name;
  name.remove_prefix(first + 1);
  return name.substr(0, name.rfind('.'));
}

CollectiveKind collective_kind(const Op& op) {
  const std::string_view packet = packet_of(op.name);
  if (!op.has(Effect::kCollective) || has(packet, "fused") || has(packet, "copy_in")) return CollectiveKind::kOther;
  if (packet == "flex_cp_allgather_backward") return CollectiveKind::kReduceScatter;
  if (has(packet, "all_gather") || has(packet, "allgather")) return CollectiveKind::kAllGather;
  if (has(packet, "reduce_scatter")) return CollectiveKind::kReduceScatter;
  if (has(packet, "all_reduce") || has(packet, "allreduce")) return CollectiveKind::kAllReduce;
  if (has(packet, "all_to_all") || has(packet, "alltoall")) return CollectiveKind::kAllToAll;
  return has(packet, "broadcast") ? CollectiveKind::kBroadcast : CollectiveKind::kOther;
}

std::string group_text(const Module& module, const GroupKey& key) {
  if (key.uid.is_valid()) return std::string(module.text(key.uid));
  return key.expr.is_valid() ? module.exprs.to_string(key.expr) : "";
}

GroupKey group_of_call(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  // The search starts at the last argument, because it is usually the group.
  for (size_t i = op.schema.has_value() ? op.schema->args.size() : 0; i > 0; --i) {
    if (!is_group_argument(op.schema->args[i - 1])) continue;
    const Arg* arg = call_argument(graph, node, i - 1);
    return arg == nullptr ? GroupKey() : group_of_argument(graph, *arg);
  }
  return guess_group(graph, node);
}

std::optional<int64_t> collective_input_bytes(const Graph& graph, NodeId node, const SymbolValues& values,
                                              bool& by_hint) {
  const Op& op = graph.op(node);
  InputSum sum(graph, values);
  if (op.schema.has_value()) {
    for (size_t i = 0; i < op.schema->args.size(); ++i) {
      const SchemaArg& described = op.schema->args[i];
      if (!described.is_tensor() || described.name.starts_with("out")) continue;
      if (const Arg* arg = call_argument(graph, node, i); arg != nullptr) sum.add(*arg);
    }
  } else {
    for (const Arg& arg : graph.pool().args(graph[node].args)) sum.add(arg);
  }
  by_hint = sum.by_hint();
  return sum.bytes();
}

std::optional<int64_t> ring_bytes(CollectiveKind kind, int64_t input, int64_t ranks) {
  if (ranks < 1) return std::nullopt;
  switch (kind) {
    case CollectiveKind::kAllGather:
      return scaled(input, ranks - 1, 1);
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return scaled(input, ranks - 1, ranks);
    case CollectiveKind::kAllReduce:
      return scaled(input, 2 * (ranks - 1), ranks);
    case CollectiveKind::kBroadcast:
      return ranks == 1 ? 0 : input;
    case CollectiveKind::kOther:
      break;
  }
  return std::nullopt;
}

size_t GroupRow::calls() const {
  size_t sum = 0;
  for (const CollectiveRow& row : collectives) sum += row.calls;
  return sum;
}

static int64_t sum_of(const std::vector<CollectiveRow>& rows, int64_t CollectiveRow::*bytes) {
  int64_t sum = 0;
  for (const CollectiveRow& row : rows) sum = saturating_add(sum, row.*bytes);
  return sum;
}

int64_t GroupRow::input_bytes() const { return sum_of(collectives, &CollectiveRow::input_bytes); }

int64_t GroupRow::moved_bytes() const { return sum_of(collectives, &CollectiveRow::moved_bytes); }

std::vector<NodeId> waits_for(const Graph& graph, NodeId collective) {
  std::vector<NodeId> found, taken = {collective};
  while (!taken.empty()) {
    const NodeId from = taken.back();
    taken.pop_back();
    for (UseId use = graph.first_use(from); use.is_valid(); use = graph.use(use).next) {
      const NodeId user = graph.use(use).user;
      const Op& op = graph.op(user);
      // Only a use as the first argument of a getitem is followed. A getitem that also uses the
      // node as its index is therefore followed once.
      const bool follows = op.view == ViewKind::kProjection && graph.use(use).slot == ArgIndex(graph[user].args.first);
      if (follows) taken.push_back(user);
      if (follows || op.has(Effect::kWaits)) found.push_back(user);
    }
  }
  return found;
}

NodeId last_wait(const Graph& graph, NodeId collective) {
  NodeId last;
  for (const NodeId node : waits_for(graph, collective)) {
    const bool is_later = !last.is_valid() || graph.position(node) > graph.position(last);
    if (graph.op(node).has(Effect::kWaits) && is_later) last = node;
  }
  return last;
}

bool is_message(const Graph& graph, NodeId node) {
  static constexpr std::array<std::string_view, 6> kMessages = {
      "isend", "irecv", "send", "recv_", "recv_any_source_", "batch_p2p_ops"};
  const auto begins = [](const Op& op) {
    return op.has(Effect::kCollective) && std::ranges::find(kMessages, packet_of(op.name)) != kMessages.end();
  };
  if (!graph[node].is_call()) return false;
  if (!graph.op(node).has(Effect::kWaits)) return begins(graph.op(node));
  NodeId start = first_argument(graph, node);
  while (start.is_valid() && graph[start].is_call() && graph.op(start).view == ViewKind::kProjection) {
    start = first_argument(graph, start);
  }
  return start.is_valid() && graph[start].is_call() && begins(graph.op(start));
}

bool is_raced(const Graph& graph, const StorageMap& storages, NodeId collective) {
  const NodeId wait = last_wait(graph, collective), last = wait.is_valid() ? wait : graph.last();
  return any_buffer(storages.reads(collective),
                    [&](BufferId id) { return storages.written_between(id, collective, last); });
}

std::vector<uint64_t> replaced_calls(const Graph& graph, NodeId node) {
  const uint64_t own = graph[node].uid;
  const NodeExtra* extra = graph.extra(node);
  if (extra == nullptr || extra->origins.empty()) return {own};
  std::vector<uint64_t> uids;
  HashSet<uint64_t> known;
  bool is_original = true;
  for (const Origin& origin : extra->origins) {
    if (origin.kind != OriginKind::kReplaced && origin.kind != OriginKind::kMerged) continue;
    if (uids.empty()) is_original = origin.kind == OriginKind::kMerged;
    if (known.insert(origin.uid).second) uids.push_back(origin.uid);
  }
  if (is_original && known.insert(own).second) uids.insert(uids.begin(), own);
  return uids;
}

std::vector<GroupRow> collectives_by_group(const Graph& graph, const std::vector<NodeId>& nodes,
                                           const SymbolValues& values) {
  return Grouper(graph, values).run(nodes);
}

}  // namespace fxopt
