// Common-subexpression elimination by value numbering in schedule order.
//
//   %a = mm(%x, %w)                %a = mm(%x, %w)
//   %b = mm(%x, %w)        =>      %c = add(%a, %a)
//   %c = add(%a, %b)
//
// Key    Two nodes compute the same value if these are equal:
//        - the target, the stream, the gradient mode and the autocast state
//        - the arguments, where merged nodes count as one node. Arguments of different kinds, such
//          as 1, 1.0 and True, differ. Floats are compared by their bits.
//        - the keyword arguments, in order
//        - the phase, where loss counts as forward
// Legal  Two nodes are merged only if these conditions hold:
//        - The op is pure, and neither node has an event. With the option `collectives`,
//          collectives and waits are also merged, but never sends and receives.
//        - No write between the two nodes changes the data of an operand. Views read no data, so
//          they are merged across writes.
//        - No op between the two nodes, such as `t_` or `set_`, changes the sizes, strides or
//          storage of an operand.
//        - No op writes to a result or changes its metadata in place, because the change would
//          reach both results.
//        - The graph does not return both results, or tensors on the storages of both, because the
//          caller must get two tensors.
//        - No op that writes has both results as operands. Many such ops refuse the same tensor
//          twice, but accept two equal views.
//        - If autograd may run through the graph, no gradient flows through the two nodes. After
//          the merge, their gradients would be summed before the backward of the op instead of
//          after it, which rounds differently.
//        - The recorded metadata of both results agrees.
//        - The earlier node has all control dependencies of the later node.
//        An op with unknown writes may write any of its operands.
// Tags   Replacer::merge() gives the tags, save marks and origins of both nodes to the remaining
//        node.
//
// With the option `across-phases`, nodes of different phases are also merged.

#include "passes/clean/cse.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "core/hash_table.h"
#include "ir/alias/collectives.h"
#include "ir/alias/effect_map.h"
#include "ir/alias/operands.h"
#include "ir/alias/order.h"
#include "ir/alias/storages.h"
#include "ir/graph/module.h"
#include "ir/step/autograd.h"
#include "ir/step/phases.h"
#include "ir/step/replay.h"
#include "ir/values/values.h"
#include "passes/pass/replacer.h"

namespace fxopt {
namespace {

constexpr std::string_view kCse = "cse";

using Merge = std::pair<NodeId, NodeId>;  // the removed node, and the node that replaces it

class CsePlanner {
 public:
  CsePlanner(Facts& facts, const CseOptions& options, const IdMap<NodeId, uint32_t>* classes, const MayMerge& may_merge,
             PassResult& result)
      : facts_(facts), options_(options), classes_(classes), may_merge_(may_merge), result_(result) {}

  std::vector<Merge> run() {
    table_.reserve(graph_.num_nodes());
    for (const NodeId node : graph_.nodes()) {
      if (is_candidate(node)) look_up(node);
    }
    return std::move(plan_);
  }

 private:
  bool is_candidate(NodeId node) {
    if (has_events(graph_, node)) return false;
    if (graph_[node].kind == NodeKind::kGetAttr) return true;
    if (!graph_[node].is_call() || is_message(graph_, node)) return false;
    Effect allowed = Effect::kHostSync | Effect::kNondeterministic;
    if (options_.collectives) allowed = allowed | Effect::kCollective | Effect::kWaits;
    return without(effects_.of(node), allowed) == Effect::kNone;
  }

  // -- equality of computed values

  NodeId resolve(NodeId node) const {
    const NodeId other = stands_for_[node];
    return other.is_valid() ? other : node;
  }

  uint64_t hash(NodeId node) const {
    uint64_t seed = hash_combine(static_cast<uint64_t>(graph_[node].kind), graph_[node].target.index());
    seed = hash_combine(seed, stream_of(graph_, node).value_or(StringId()).index());
    if (graph_[node].is_call()) seed = hash_combine(seed, modes_.of(node));
    seed = hash_args(seed, graph_[node].args);
    return hash_args(seed, graph_[node].kwargs);
  }

  uint64_t hash_args(uint64_t seed, ArgRange range) const {
    seed = hash_combine(seed, range.count);
    for (const Arg& arg : graph_.pool().args(range)) {
      seed = hash_combine(seed, static_cast<uint64_t>(arg.kind()));
      if (arg.is(ArgKind::kNode)) {
        seed = hash_combine(seed, resolve(arg.as_node()).index());
      } else if (arg.has_children()) {
        seed = hash_args(hash_combine(seed, arg.type().index()), arg.range());
      } else {
        seed = hash_combine(seed, arg.as_bits());
      }
    }
    return seed;
  }

  bool computes_same(NodeId a, NodeId b) const {
    const Node& one = graph_[a];
    const Node& other = graph_[b];
    return one.kind == other.kind && one.target == other.target && stream_of(graph_, a) == stream_of(graph_, b) &&
           (!one.is_call() || modes_.of(a) == modes_.of(b)) && same_args(one.args, other.args) &&
           same_args(one.kwargs, other.kwargs);
  }

  bool same_args(ArgRange a, ArgRange b) const {
    if (a.count != b.count) return false;
    for (uint32_t i = 0; i < a.count; ++i) {
      const Arg& one = graph_.pool().arg(ArgIndex(a.first + i));
      const Arg& other = graph_.pool().arg(ArgIndex(b.first + i));
      if (one.kind() != other.kind() || one.has_unknown() || other.has_unknown()) return false;
      if (one.is(ArgKind::kNode)) {
        if (resolve(one.as_node()) != resolve(other.as_node())) return false;
      } else if (one.has_children()) {
        if (one.type() != other.type() || !same_args(one.range(), other.range())) return false;
      } else if (one.as_bits() != other.as_bits()) {
        return false;
      }
    }
    return true;
  }

  bool same_phase(NodeId a, NodeId b) const {
    if (classes_ != nullptr) return classes_->get(a) == classes_->get(b);
    const Phase one = phases_.phase[a] == Phase::kLoss ? Phase::kForward : phases_.phase[a];
    const Phase other = phases_.phase[b] == Phase::kLoss ? Phase::kForward : phases_.phase[b];
    return options_.across_phases || one == other;
  }

  // The table holds at most one node for each value and phase.
  void look_up(NodeId node) {
    NodeId& head = table_[static_cast<uint32_t>(hash(node))];
    bool in_other_phase = false;
    NodeId previous;
    for (NodeId entry = head; entry.is_valid(); previous = entry, entry = chain_.get(entry)) {
      if (!computes_same(entry, node)) continue;
      if (!same_phase(entry, node)) {
        in_other_phase = true;
      } else if (is_stale(entry, node)) {
        chain_[node] = chain_.get(entry);
        (previous.is_valid() ? chain_[previous] : head) = node;
        return;
      } else {
        try_merge(entry, node);
        return;
      }
    }
    if (in_other_phase && classes_ == nullptr) result_.note("cross-phase");
    chain_[node] = head;
    head = node;
  }

  // -- legality

  bool is_own(NodeId node, BufferId buffer) const {
    return buffer.is_valid() && storages_.buffer(buffer).producer == node &&
           storages_.buffer(buffer).source == BufferSource::kNode;
  }

  // True if neither `node` nor a later node may be merged into `kept`, because an operand or the
  // result of `kept` changes: its data, sizes, strides or storage.
  bool is_stale(NodeId kept, NodeId node) const {
    if (makes_written_storage(kept) || changes_in_place(kept, node)) return true;
    if (storages_.input_metadata_changes(kept, kept, node) || storages_.input_metadata_changes(node, kept, node)) {
      return true;
    }
    return storages_.input_bytes_change(kept, kept, node) || storages_.input_bytes_change(node, kept, node);
  }

  bool makes_written_storage(NodeId node) const {
    return std::ranges::any_of(storages_.buffers(node),
                               [&](BufferId b) { return is_own(node, b) && storages_.is_written(b); });
  }

  // Whether both nodes return the same tensor object, such as two reads of one attribute. They are
  // equal even if the tensor changes.
  bool are_one_tensor(NodeId node, NodeId other) const {
    return std::ranges::equal(storages_.objects(node), storages_.objects(other));
  }

  // True if the metadata of the result of `node` changes later, and `other` is a different tensor.
  bool changes_in_place(NodeId node, NodeId other) const {
    return !are_one_tensor(node, other) && storages_.metadata_changes_after(node);
  }

  bool makes_returned_storage(NodeId node) const {
    return std::ranges::any_of(storages_.buffers(node), [&](BufferId b) {
      return is_own(node, b) && (storages_.is_returned(b) || returned_too_.get(storages_.alias_class(b)));
    });
  }

  bool is_returned(NodeId node) const {
    return std::ranges::any_of(storages_.objects(node), [this](ObjectId id) {
      return storages_.is_returned(id) || returned_objects_too_.get(storages_.object_class(id));
    });
  }

  bool are_both_returned(NodeId kept, NodeId node) const {
    if (makes_returned_storage(kept) && makes_returned_storage(node)) return true;
    return !are_one_tensor(kept, node) && is_returned(kept) && is_returned(node);
  }

  bool waits_for_more(NodeId node, NodeId kept) const {
    const NodeExtra* extra = graph_.extra(node);
    const NodeExtra* other = graph_.extra(kept);
    return extra != nullptr && std::ranges::any_of(extra->control, [other](const ControlDep& dep) {
             return other == nullptr || std::ranges::count(other->control, dep) == 0;
           });
  }

  // The reason why the two nodes are not merged, as a code and a text; empty if they may be merged.
  std::pair<std::string_view, std::string_view> find_obstacle(NodeId kept, NodeId node) {
    if (effects_.has(node, Effect::kCollective) &&
        (is_raced(graph_, storages_, node) || is_raced(graph_, storages_, kept))) {
      return {"written",
              "an in-place op may write to an operand of one of the two collectives while that collective runs"};
    }
    if (makes_written_storage(node)) return {"written", "an in-place op writes to the result of one of the two"};
    if (changes_in_place(node, kept)) {
      return {"changed-in-place", "an in-place op changes the sizes, strides or storage of one of the two"};
    }
    if (!same_metadata(graph_, graph_[kept].value, graph_[node].value)) {
      return {"values-differ", "their recorded sizes, strides, types or other metadata differ"};
    }
    if (are_both_returned(kept, node)) return {"both-returned", "the caller gets both values"};
    if (reached_.get(node) && !are_one_tensor(kept, node)) {
      return {"differentiated",
              "autograd may differentiate this graph. After the merge, autograd would add the gradients of both nodes "
              "before the backward of the op, and so round differently. If the graph is only forward or only backward, "
              "set its kind in the file"};
    }
    if (operands_.has_both(node, kept))
      return {"given-both", "both are arguments of one op that writes to an argument"};
    if (waits_for_more(node, kept)) return {"ordered", "the control dependencies differ"};
    const bool saves_same = saves_.are_kept(node, kept, MergedSaves::Tags::kMerged);
    if (!saves_same) return {"saves-differ", "the merge would change which values a later partition saves"};
    return {};
  }

  void try_merge(NodeId kept, NodeId node) {
    if (const auto [code, why] = find_obstacle(kept, node); !code.empty()) {
      return result_.remark(
          graph_, node, code,
          "not merged with the equal '%" + std::string(graph_.name_of(kept)) + "': " + std::string(why));
    }
    stands_for_[node] = kept;
    if (may_merge_ && !may_merge_(kept, node)) return;
    mark_returned(kept, node);
    saves_.merge(node, kept, MergedSaves::Tags::kMerged);
    operands_.replace(node, kept);
    plan_.emplace_back(node, kept);
  }

  // If the graph returns `node`, records that it returns `kept` after the merge.
  void mark_returned(NodeId kept, NodeId node) {
    if (makes_returned_storage(node)) {
      for (const BufferId buffer : storages_.buffers(kept)) {
        if (buffer.is_valid()) returned_too_[storages_.alias_class(buffer)] = true;
      }
    }
    if (!is_returned(node)) return;
    for (const ObjectId id : storages_.objects(kept)) returned_objects_too_[storages_.object_class(id)] = true;
  }

  Facts& facts_;
  const CseOptions& options_;
  const IdMap<NodeId, uint32_t>* classes_;  // if not null, replaces the phases
  const MayMerge& may_merge_;
  PassResult& result_;
  const Graph& graph_ = facts_.graph();
  const PhaseMap& phases_ = facts_.phases();
  EffectMap& effects_ = facts_.effects();
  const StorageMap& storages_ = facts_.storages();
  WrittenOperands operands_{graph_, effects_};
  const ModeMap& modes_ = facts_.modes();
  MergedSaves saves_{facts_};
  // The nodes that gradients reach. Empty if autograd cannot run through the graph.
  const IdMap<NodeId, bool> reached_ =
      facts_.is_differentiated() ? reached_by_gradients(graph_, storages_) : IdMap<NodeId, bool>();
  IdMap<NodeId, NodeId> stands_for_{graph_.num_ids()};
  IdMap<NodeId, NodeId> chain_{graph_.num_ids()};  // in the table: node -> previous node of that hash
  IdMap<BufferId, bool> returned_too_{storages_.num_buffers(), false};  // by alias class: replaces a returned node
  IdMap<ObjectId, bool> returned_objects_too_;
  // 32 bits keep the table small and thus fast. computes_same() separates equal hashes in a chain.
  HashMap<uint32_t, NodeId> table_;  // hash -> last node of its chain
  std::vector<Merge> plan_;
};

PassResult merge(Graph& graph, const CseOptions& options, const IdMap<NodeId, uint32_t>* classes,
                 const MayMerge& may_merge, PassContext& context) {
  PassResult result;
  const std::vector<Merge> plan = CsePlanner(context.facts.of(graph), options, classes, may_merge, result).run();
  Replacer replacer(graph, context.facts.of(graph).phases(), kCse);
  for (const auto& [gone, kept] : plan) {
    replacer.merge(gone, kept);
    result.count("merged");
  }
  replacer.finish();
  return result;
}

}  // namespace

Result<PassResult> cse(Graph& graph, const CseOptions& options, PassContext& context) {
  return merge(graph, options, nullptr, {}, context);
}

Result<PassResult> cse_within(Graph& graph, const IdMap<NodeId, uint32_t>& classes, const CseOptions& options,
                              PassContext& context, const MayMerge& may_merge) {
  return merge(graph, options, &classes, may_merge, context);
}

}  // namespace fxopt
