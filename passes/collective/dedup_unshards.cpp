#include "passes/collective/dedup_unshards.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/alias/collective_table.h"
#include "ir/alias/effects.h"
#include "ir/alias/order.h"
#include "ir/alias/sizes.h"
#include "ir/step/unshard.h"
#include "ir/values/values.h"
#include "passes/clean/cse.h"
#include "passes/collective/peak_bound.h"
#include "passes/pass/ledger.h"

namespace fxopt {
namespace {

constexpr std::string_view kPass = "dedup-unshards";

// -- gathers

std::vector<NodeId> inputs_of(const Graph& graph) {
  std::vector<NodeId> found;
  for (const NodeId node : graph.nodes()) {
    if (graph[node].kind == NodeKind::kPlaceholder) found.push_back(node);
  }
  return found;
}

// What may be merged with what: nodes of one class. Each node outside of gathers has one of its own.
class Classes {
 public:
  Classes(const Graph& graph, Facts& facts, bool across_phases)
      // torchtitan asks of no input what it is.
      : unshards_(find_unshards(graph, across_phases ? inputs_of(graph) : parameters_of(graph, facts.storages(), true),
                                [](NodeId) { return true; })),
        class_of_(graph.num_ids(), 0),
        is_looked_at_(graph.num_ids(), false) {
    next_ = 2;
    for (const NodeId node : graph.nodes()) {
      is_looked_at_[node] = unshards_.is_part(node) && graph[node].is_call();
      class_of_[node] = !is_looked_at_[node] ? next_++ : !across_phases && facts.phases().is_backward(node) ? 1 : 0;
    }
  }

  const IdMap<NodeId, uint32_t>& get() const { return class_of_; }

  // The gather is merged with none before that stretch of the schedule, only with others after it.
  void cut(NodeId gather, uint32_t stretch) {
    const auto [found, is_new] = cut_.try_emplace({class_of_[gather], stretch}, next_);
    next_ += is_new ? 1 : 0;
    class_of_[gather] = found->second;
  }
  bool is_looked_at(NodeId node) const { return is_looked_at_.get(node); }

 private:
  UnshardMap unshards_;
  IdMap<NodeId, uint32_t> class_of_;
  IdMap<NodeId, bool> is_looked_at_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> cut_;  // class, stretch -> class
  uint32_t next_ = 0;
};

CseOptions all_equal() {
  CseOptions options;
  options.collectives = true;
  return options;
}

// Gathers that another stands for, each with that one.
std::vector<std::pair<NodeId, NodeId>> merged_gathers(const Graph& before, const Graph& merged,
                                                      const Classes& classes) {
  std::map<uint64_t, NodeId> by_uid;
  for (const NodeId node : before.nodes()) {
    if (classes.is_looked_at(node) && is_all_gather(before, node)) by_uid.emplace(before[node].uid, node);
  }
  std::vector<std::pair<NodeId, NodeId>> found;
  for (const auto& [uid, node] : by_uid) {
    const NodeExtra* extra = merged[node].erased ? nullptr : merged.extra(node);
    if (extra == nullptr) continue;
    for (const Origin& origin : extra->origins) {
      const auto gone = by_uid.find(origin.uid);
      if (origin.kind == OriginKind::kMerged && gone != by_uid.end() && merged[gone->second].erased) {
        found.emplace_back(gone->second, node);
      }
    }
  }
  return found;
}

// Cuts classes until merging keeps each device's peak within the bound. Returns how many gathers stay for it.
int64_t bound_peak(const Graph& graph, Facts& facts, Classes& classes, double max_growth, const MemoryOptions& memory) {
  const PeakBound bound(graph, facts, memory, max_growth);
  int64_t stays = 0;
  for (;;) {
    const std::unique_ptr<Module> copy = graph.module().clone();
    Graph& merged = copy->graph(graph.id());
    PassContext context(*copy);
    const Result<PassResult> done = cse_within(merged, classes.get(), all_equal(), context);
    if (!done.ok() || !done->changed()) return stays;
    context.facts.forget();
    const PeakBound::Growth growth = bound.measure(merged, context.facts.of(merged));
    if (growth.is_within()) return stays;
    // Places as the graph has them, which has more nodes.
    std::vector<NodeId> nodes;
    for (const NodeId node : merged.nodes()) nodes.push_back(node);
    std::vector<uint32_t> begins;
    for (const auto& [first, last] : growth.stretches()) begins.push_back(graph.position(nodes[first]));
    const auto stretch_before = [&begins](uint32_t place) {
      return static_cast<uint32_t>(std::lower_bound(begins.begin(), begins.end(), place) - begins.begin());
    };
    const std::vector<std::pair<NodeId, NodeId>> gone = merged_gathers(graph, merged, classes);
    bool is_any = false;
    for (const bool all : {false, true}) {  // those that lie across such a stretch; where none does, all
      for (const auto& [node, by] : gone) {
        const uint32_t after = stretch_before(graph.position(node));
        if (!all && after == stretch_before(graph.position(by))) continue;
        classes.cut(node, after);
        ++stays;
        is_any = true;
      }
      if (is_any) break;
    }
    if (!is_any) return stays;
  }
}

// -- reductions

class ReductionMerger {
 public:
  ReductionMerger(Graph& graph, PassContext& context, PassResult& result)
      : graph_(graph), context_(context), result_(result), pass_(graph.module().intern(kPass)) {}

  // Until none is left: sums of several are sums of two.
  void run(double max_growth) {
    const PeakBound bound(graph_, context_.facts.of(graph_), context_.measure.memory, max_growth);
    bound_ = &bound;
    for (std::vector<Sum> sums = find(); !sums.empty(); sums = find()) apply(sums);
    if (stays_ > 0) {
      result_.warn(
          graph_, "not-merged",
          std::to_string(stays_) + (stays_ == 1 ? " sum" : " sums") + " of two reductions stay, first %" + first_);
    }
  }

 private:
  struct Sum {
    NodeId add;
    Collective one, other;  // in order of issue
  };

  // All of them, where the peak allows; else each half likewise.
  void apply(const std::vector<Sum>& sums) {
    const std::unique_ptr<Module> copy = graph_.module().clone();
    PassResult ignored;
    ReductionMerger on_copy(copy->graph(graph_.id()), context_, ignored);
    for (const Sum& sum : sums) on_copy.write(sum);
    ModuleFacts known(*copy);
    if (bound_->measure(copy->graph(graph_.id()), known.of(copy->graph(graph_.id()))).is_within()) {
      for (const Sum& sum : sums) write(sum);
      context_.facts.forget();
    } else if (sums.size() == 1) {
      stay(sums[0].add, "peak", "the ideal peak would grow beyond max-growth");
    } else {
      const auto middle = sums.begin() + static_cast<std::ptrdiff_t>(sums.size() / 2);
      apply({sums.begin(), middle});
      apply({middle, sums.end()});
    }
  }

  // Those of which none has to do with another, and that were not refused.
  std::vector<Sum> find() {
    std::map<NodeId, Collective> by_wait;
    for (const Collective& each :
         find_collectives(graph_, symbol_values(graph_.module(), context_.measure.memory.symbols))) {
      const bool is_reduction = each.kind == CollectiveKind::kReduceScatter || each.kind == CollectiveKind::kAllReduce;
      if (is_reduction && each.waits.size() == 1) by_wait.emplace(each.waits[0], each);
    }
    std::vector<Sum> sums;
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || graph_.op(node).name != "aten.add.Tensor" || refused_.contains(node)) continue;
      const Arg* second = call_argument(graph_, node, 1);
      const NodeId a = first_argument(graph_, node);
      const NodeId b = second != nullptr && second->is(ArgKind::kNode) ? second->as_node() : NodeId();
      const auto one = by_wait.find(a), other = by_wait.find(b);
      if (a == b || one == by_wait.end() || other == by_wait.end()) continue;
      const std::string_view why = obstacle(node, one->second, other->second);
      if (!why.empty()) {
        stay(node, "unlike", std::string(why));
        continue;
      }
      const bool in_order = graph_.position(one->second.start) < graph_.position(other->second.start);
      sums.push_back(in_order ? Sum{node, one->second, other->second} : Sum{node, other->second, one->second});
    }
    return sums;
  }

  std::string_view obstacle(NodeId add, const Collective& one, const Collective& other) {
    if (call_argument(graph_, add, 2) != nullptr) return "one is added times a factor";
    if (graph_.op(one.start).name != graph_.op(other.start).name || one.group != other.group ||
        one.reduce_op != other.reduce_op || one.ranks != other.ranks) {
      return "they are of unlike kinds, groups or reductions";
    }
    const std::string_view reduce = one.reduce_op.is_valid() ? graph_.module().text(one.reduce_op) : "";
    if (reduce != "sum" && reduce != "avg") return "what they do is not linear";
    if (!graph_.op(one.start).writes.empty()) return "they write to what they are given";
    if (!one.sizes_fit() || !other.sizes_fit()) return "their sizes are not known, or not those that they make";
    if (!same_metadata_but_place(*one.input, *other.input)) {
      return "what they are given has unlike sizes or types";
    }
    for (const Collective* each : {&one, &other}) {
      if (graph_.users(each->start).size() != 1 || graph_.users(each->waits[0]).size() != 1) {
        return "somebody else reads what they give";
      }
      if (is_held(graph_, each->start) || is_held(graph_, each->waits[0])) return "something holds them in their place";
      if (graph_[each->start].phase != graph_[one.start].phase || graph_[each->start].tag != graph_[one.start].tag) {
        return "they are of unlike phases or tags";
      }
    }
    // What the earlier one is given is read later than now: where the other begins.
    const NodeId first = graph_.position(one.start) < graph_.position(other.start) ? one.start : other.start;
    const NodeId last = first == one.start ? other.start : one.start;
    if (context_.facts.of(graph_).storages().input_bytes_change(first, first, last)) {
      return "what one is given is written to before the other begins";
    }
    return "";
  }
  bool same_metadata_but_place(Tensor a, const Tensor& b) const {
    a.offset = b.offset;
    return same_metadata(graph_.module(), a, b) && graph_.module().contiguous_strides(a.sizes) == a.strides;
  }

  void write(const Sum& sum) {
    const NodeId x = first_argument(graph_, sum.one.start), y = first_argument(graph_, sum.other.start);
    const NodeId last = sum.other.start, wait = sum.other.waits[0];
    const NodeId added =
        graph_.insert_node(last, NodeKind::kCallFunction, "add", graph_.module().target("aten.add.Tensor"));
    graph_[added].take_context(graph_[sum.add]);
    Tensor tensor = *single_tensor(graph_, y);
    tensor.offset = Dim{0, ExprId()};
    tensor.storage = graph_.module().fresh_storage(Integer::of(*sum.other.input_bytes), tensor.device);
    graph_[added].value = graph_.pool().append_value(graph_.pool().tensor_value(tensor));
    ArgStack stack(graph_.pool());
    stack.push(Arg::node(x));
    stack.push(Arg::node(y));
    graph_.set_args(added, stack.take(0), ArgRange());
    graph_.set_use(graph_.edges(last)[0], added);
    for (const NodeId old : {sum.add, sum.one.start}) add_origin(last, old);
    add_origin(added, sum.add);
    for (const NodeId node : {sum.add, sum.one.start, last}) result_.claim(graph_, node, Law::kAddedReductions);
    // What reads the sum stands after it, and so after this wait.
    graph_.replace_all_uses(sum.add, wait);
    for (const NodeId node : {sum.add, sum.one.waits[0], sum.one.start}) erase_unread(graph_, node, kPass);
    result_.count("merged-reductions");
  }
  void add_origin(NodeId node, NodeId old) {
    Origin origin;
    origin.graph = graph_.name();
    origin.uid = graph_[old].uid;
    origin.kind = OriginKind::kReplaced;
    origin.pass = pass_;
    graph_.mutable_extra(node).origins.push_back(origin);
  }

  void stay(NodeId add, std::string_view code, const std::string& text) {
    refused_.insert(add);
    result_.remark(graph_, add, code, text);
    if (stays_++ == 0) first_ = std::string(graph_.name_of(add)) + ": " + text;
  }

  Graph& graph_;
  PassContext& context_;
  PassResult& result_;
  StringId pass_;
  std::set<NodeId> refused_;
  const PeakBound* bound_ = nullptr;
  int64_t stays_ = 0;
  std::string first_;
};

}  // namespace

Result<PassResult> dedup_unshards(Graph& graph, const DedupUnshardsOptions& options, PassContext& context) {
  PassResult result;
  if (context.facts.of(graph).is_differentiated()) {
    result.warn(graph, "left-alone", "autograd may run through the graph, and has a history of every collective");
    return result;
  }
  const bool as_titan = options.compat == DedupCompat::kTitan;
  const double max_growth = as_titan ? -1 : options.max_growth;
  Facts& facts = context.facts.of(graph);
  Classes classes(graph, facts, as_titan);
  const int64_t stays = max_growth < 0 ? 0 : bound_peak(graph, facts, classes, max_growth, context.measure.memory);
  Result<PassResult> merged = cse_within(graph, classes.get(), all_equal(), context);
  if (!merged.ok()) return merged;
  result.merge(std::move(*merged));
  if (stays > 0) {
    result.warn(graph, "peak-bound",
                std::to_string(stays) + (stays == 1 ? " gather is" : " gathers are") +
                    " made again, as the ideal peak would grow beyond max-growth");
  }
  if (options.reductions == ReductionPolicy::kMerge) {
    context.facts.forget();
    ReductionMerger(graph, context, result).run(max_growth);
  }
  return result;
}

}  // namespace fxopt
