#include "ir/alias/collective_table.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/alias/effects.h"
#include "ir/alias/sizes.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

// For each node, the only placeholder that its data come from, if there is exactly one.
class Sources {
 public:
  explicit Sources(const Graph& graph) : of_(graph.num_ids()) {
    for (const NodeId node : graph.nodes()) {
      if (graph[node].kind == NodeKind::kPlaceholder) {
        of_[node] = {node, false};
        continue;
      }
      Source& all = of_[node];
      graph.for_each_input(node, [&](NodeId input) {
        const Source& one = of_[input];
        all.is_many =
            all.is_many || one.is_many || (all.only.is_valid() && one.only.is_valid() && one.only != all.only);
        if (!all.only.is_valid()) all.only = one.only;
      });
    }
  }

  // Invalid if the node's data come from no placeholder or from several placeholders.
  NodeId only(NodeId node) const { return of_.get(node).is_many ? NodeId() : of_.get(node).only; }

 private:
  struct Source {
    NodeId only;
    bool is_many = false;
  };
  IdMap<NodeId, Source> of_;
};

// For each node, whether every direct and indirect user reads only one node. The output may read
// several nodes.
IdMap<NodeId, bool> unary_to_the_end(const Graph& graph) {
  IdMap<NodeId, bool> is_unary(graph.num_ids(), false);
  IdMap<NodeId, bool> reads_one(graph.num_ids(), false);
  for (NodeId node = graph.last(); node.is_valid(); node = graph.prev(node)) {
    NodeId first;
    bool is_one = true;
    graph.for_each_input(node, [&](NodeId input) {
      is_one = is_one && (!first.is_valid() || input == first);
      first = input;
    });
    reads_one[node] = is_one && first.is_valid();
    bool holds = true;
    for (UseId use = graph.first_use(node); use.is_valid(); use = graph.use(use).next) {
      const NodeId user = graph.use(use).user;
      holds = holds && (graph[user].kind == NodeKind::kOutput || (reads_one[user] && is_unary[user]));
    }
    is_unary[node] = holds;
  }
  return is_unary;
}

// For each node, whether every path of uses ends in the output and leads only through nodes that
// read a single node.
IdMap<NodeId, bool> returned_alone(const Graph& graph, const IdMap<NodeId, bool>& is_unary) {
  IdMap<NodeId, bool> is_returned(graph.num_ids(), false);
  for (NodeId node = graph.last(); node.is_valid(); node = graph.prev(node)) {
    bool holds = is_unary.get(node) && graph.has_users(node);
    for (UseId use = graph.first_use(node); use.is_valid(); use = graph.use(use).next) {
      const NodeId user = graph.use(use).user;
      holds = holds && (graph[user].kind == NodeKind::kOutput || is_returned[user]);
    }
    is_returned[node] = holds;
  }
  return is_returned;
}

class Finder {
 public:
  Finder(const Graph& graph, const SymbolValues& values)
      : graph_(graph), values_(values), sources_(graph), is_returned_(returned_alone(graph, unary_to_the_end(graph))) {
    for (const ProcessGroup& group : graph.module().groups) {
      if (group.uid.is_valid()) listed_.emplace(group.uid, &group);
    }
    find_parameters();
  }

  std::vector<Collective> run() {
    std::vector<Collective> found;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].is_call() && graph_.op(node).has(Effect::kCollective)) found.push_back(describe(node));
    }
    return found;
  }

 private:
  Collective describe(NodeId node) {
    Collective collective;
    collective.start = node;
    collective.kind = collective_kind(graph_.op(node));
    collective.group = group_of_call(graph_, node);
    if (const auto found = listed_.find(collective.group.uid); found != listed_.end())
      collective.listed = found->second;
    read_arguments(collective);
    find_waits(collective);
    const NodeId given = first_argument(graph_, node);
    const Tensor* input = given.is_valid() ? single_tensor(graph_, given) : nullptr;
    const Tensor* output = single_tensor(graph_, node);
    if (input != nullptr) collective.input = *input;
    if (output != nullptr) collective.output = *output;
    if (input != nullptr) collective.input_bytes = tensor_bytes(graph_.module(), *input, values_);
    if (output != nullptr) collective.output_bytes = tensor_bytes(graph_.module(), *output, values_);
    collective.of = class_of(collective);
    if (collective.of == CollectiveClass::kUnshard) collective.parameter = graph_.position(sources_.only(node));
    if (collective.of == CollectiveClass::kGradient) collective.parameter = returned_as(collective.waits.front());
    return collective;
  }

  void find_parameters() {
    std::map<StringId, uint32_t> inputs;
    for (const NodeId node : placeholders_of(graph_)) inputs.emplace(graph_[node].name, graph_.position(node));
    const std::vector<NodeId> leaves = output_leaves(graph_);
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!leaves[i].is_valid()) continue;
      const auto input = i < graph_.outputs.size() ? inputs.find(graph_.outputs[i].of) : inputs.end();
      parameters_.emplace(leaves[i], input != inputs.end() ? input->second : static_cast<uint32_t>(i));
    }
  }
  // Follows the first user of each node until a returned node is found.
  std::optional<uint32_t> returned_as(NodeId node) const {
    for (;;) {
      if (const auto found = parameters_.find(node); found != parameters_.end()) return found->second;
      const UseId use = graph_.first_use(node);
      if (!use.is_valid() || graph_[graph_.use(use).user].kind == NodeKind::kOutput) return std::nullopt;
      node = graph_.use(use).user;
    }
  }

  void read_arguments(Collective& collective) {
    if (collective.listed != nullptr) collective.ranks = static_cast<int64_t>(collective.listed->ranks.size());
    if (!graph_.op(collective.start).schema.has_value()) return;
    const CallArgs args(graph_, collective.start);
    if (const std::optional<int64_t> size = args.named("group_size").as_int(); size.has_value())
      collective.ranks = *size;
    const Arg* reduce_op = args.named("reduce_op").given();
    if (reduce_op != nullptr && reduce_op->is(ArgKind::kString)) collective.reduce_op = reduce_op->as_string();
  }

  // Looks through getitems, because each result of a coalesced collective has its own wait. A wait
  // for a list is not a wait for one tensor, so it is left out.
  void find_waits(Collective& collective) {
    for (const NodeId user : graph_.users(collective.start)) {
      if (is_wait(user, collective.start)) collective.waits.push_back(user);
      if (!graph_[user].is_call() || view_of_call(graph_, user) != ViewKind::kProjection) continue;
      for (const NodeId reader : graph_.users(user)) {
        if (is_wait(reader, user)) collective.waits.push_back(reader);
      }
    }
    std::ranges::sort(collective.waits, [this](NodeId a, NodeId b) { return graph_.position(a) < graph_.position(b); });
  }
  bool is_wait(NodeId node, NodeId of) const {
    return graph_[node].is_call() && graph_.op(node).has(Effect::kWaits) && first_argument(graph_, node) == of;
  }

  CollectiveClass class_of(const Collective& collective) const {
    switch (collective.kind) {
      case CollectiveKind::kOther:
        return CollectiveClass::kPointToPoint;
      case CollectiveKind::kAllGather: {
        const NodeId only = sources_.only(collective.start);
        const InputRole role = only.is_valid() ? recorded_role(graph_, only) : InputRole::kInput;
        // A saved value may be a parameter, although its role does not show this.
        const bool is_parameter =
            role == InputRole::kParameter || role == InputRole::kUnspecified || role == InputRole::kSavedValue;
        return only.is_valid() && is_parameter ? CollectiveClass::kUnshard : CollectiveClass::kOther;
      }
      case CollectiveKind::kReduceScatter:
      case CollectiveKind::kAllReduce: {
        bool is_returned = !collective.waits.empty();
        for (const NodeId wait : collective.waits) is_returned = is_returned && is_returned_.get(wait);
        return is_returned ? CollectiveClass::kGradient : CollectiveClass::kOther;
      }
      default:
        return CollectiveClass::kOther;
    }
  }

  const Graph& graph_;
  const SymbolValues& values_;
  Sources sources_;
  IdMap<NodeId, bool> is_returned_;
  std::map<StringId, const ProcessGroup*> listed_;
  std::map<NodeId, uint32_t> parameters_;  // by returned node
};

class BucketReader {
 public:
  BucketReader(const Graph& graph, NodeId start) : graph_(graph) { bucket_.start = start; }

  CollectiveBucket run() {
    const size_t listed = CallArgs(graph_, bucket_.start)[0].items().size();
    if (listed > 1) {
      bucket_.tensors = listed;
      bucket_.makes.push_back(bucket_.start);
      for (const NodeId part : graph_.users(bucket_.start)) read_result(part);
    } else {
      const size_t tensors = read_buffer(first_argument(graph_, bucket_.start));
      if (tensors < 2) return bucket_;
      bucket_.makes.push_back(bucket_.start);
      for (const NodeId user : graph_.users(bucket_.start)) read_result(user);
      if (num_parts_ == tensors) bucket_.tensors = tensors;
    }
    std::ranges::sort(bucket_.makes, [this](NodeId a, NodeId b) { return graph_.position(a) < graph_.position(b); });
    return bucket_;
  }

 private:
  bool is_view(NodeId node) const { return graph_[node].is_call() && view_of_call(graph_, node) != ViewKind::kNone; }
  bool is_called(NodeId node, std::string_view packet) const {
    return graph_[node].is_call() && packet_of(graph_.op(node).name) == packet;
  }

  // Returns the number of tensors that are packed side by side in the collective's input. Returns 0
  // if the input is not a packed buffer.
  size_t read_buffer(NodeId node) {
    while (node.is_valid() && graph_[node].is_call()) {
      if (is_called(node, "copy_")) {  // into a slice of the result
        NodeId whole = first_argument(graph_, node);
        while (whole.is_valid() && is_view(whole)) whole = first_argument(graph_, whole);
        if (whole.is_valid()) bucket_.makes.push_back(whole);
        node = CallArgs(graph_, node)[1].as_node();
        continue;
      }
      const bool packs = is_called(node, "cat") || is_called(node, "_pre_bucket_all_gather") ||
                         is_called(node, "_pre_bucket_reduce_scatter") || is_called(node, "all_gather_copy_in");
      if (packs) {
        bucket_.makes.push_back(node);
        return CallArgs(graph_, node)[0].items().size();
      }
      if (!is_view(node)) return 0;
      node = first_argument(graph_, node);
    }
    return 0;
  }

  // Whether the split separates the members of the bucket. A gathered result has one row for each
  // rank, so it is split along a later dimension. Other results are split along dimension 0.
  bool is_along_members(NodeId split) const {
    const CallArg dim = CallArgs(graph_, split)[2];
    const bool is_first = dim.is_missing() || dim.as_int() == 0;
    return is_first != (collective_kind(graph_.op(bucket_.start)) == CollectiveKind::kAllGather);
  }

  // Follows waits and views from `from` to the split, and from the split to copies of its results.
  void read_result(NodeId from) {
    std::vector<NodeId> open = {from};
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      if (!graph_[node].is_call() || !met_.insert(node).second) continue;
      if (graph_.op(node).has(Effect::kWaits)) {
        const bool is_later =
            !bucket_.last_wait.is_valid() || graph_.position(node) > graph_.position(bucket_.last_wait);
        if (is_later) bucket_.last_wait = node;
      } else if (is_called(node, "split_with_sizes") || is_called(node, "split")) {
        if (num_parts_ > 0 || !is_along_members(node)) continue;
        num_parts_ = graph_.value(node).count;
      } else if (is_called(node, "clone") && num_parts_ > 0) {
        const NodeId part = first_argument(graph_, node);
        if (graph_[part].is_call() && graph_.op(part).view == ViewKind::kProjection) bucket_.makes.push_back(node);
        continue;
      } else if (!is_view(node)) {
        continue;
      }
      for (const NodeId user : graph_.users(node)) open.push_back(user);
    }
  }

  const Graph& graph_;
  CollectiveBucket bucket_;
  std::set<NodeId> met_;
  size_t num_parts_ = 0;
};

}  // namespace

bool Collective::sizes_fit() const {
  if (!input_bytes.has_value() || !output_bytes.has_value() || ranks < 1) return false;
  const bool shrinks = kind == CollectiveKind::kReduceScatter;
  const int64_t factor = shrinks || kind == CollectiveKind::kAllGather ? ranks : 1;
  int64_t product = 0;
  return !__builtin_mul_overflow(shrinks ? *output_bytes : *input_bytes, factor, &product) &&
         product == (shrinks ? *input_bytes : *output_bytes);
}

std::vector<Collective> find_collectives(const Graph& graph, const SymbolValues& values) {
  return Finder(graph, values).run();
}

std::vector<CollectiveBucket> find_buckets(const Graph& graph) {
  std::vector<CollectiveBucket> found;
  for (const NodeId node : graph.nodes()) {
    if (!graph[node].is_call() || !graph.op(node).has(Effect::kCollective)) continue;
    CollectiveBucket bucket = BucketReader(graph, node).run();
    if (bucket.tensors > 1) found.push_back(std::move(bucket));
  }
  return found;
}

FsdpRecognisers fsdp_recognisers(const Graph& graph) {
  const Sources sources(graph);
  const IdMap<NodeId, bool> is_unary = unary_to_the_end(graph);
  FsdpRecognisers found = {IdMap<NodeId, bool>(graph.num_ids(), false), IdMap<NodeId, bool>(graph.num_ids(), false)};
  for (const NodeId node : graph.nodes()) {
    if (!graph[node].is_call()) continue;
    if (graph.op(node).name == "_c10d_functional.all_gather_into_tensor.default") {
      found.is_fsdp_all_gather[node] = sources.only(node).is_valid();
    }
    const NodeId start = first_argument(graph, node);
    if (graph.op(node).name != "_c10d_functional.wait_tensor.default" || !start.is_valid() || !graph[start].is_call()) {
      continue;
    }
    if (graph.op(start).name == "_c10d_functional.reduce_scatter_tensor.default") {
      found.is_fsdp_reduce_scatter[node] = graph.has_users(node) && is_unary.get(node);
    }
  }
  return found;
}

}  // namespace fxopt
