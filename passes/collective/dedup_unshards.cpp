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
#include "ir/alias/order.h"
#include "ir/alias/sizes.h"
#include "ir/step/marks.h"
#include "ir/step/unshard.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"
#include "passes/clean/cse.h"
#include "passes/clean/gathers.h"
#include "passes/collective/obstacle.h"
#include "passes/collective/peak_bound.h"
#include "passes/pass/provenance.h"
#include "passes/pass/replacer.h"

namespace fxopt {
namespace {

constexpr std::string_view kDedupUnshards = "dedup-unshards";

// -- gathers

// Classes of gathers that may be merged. If merging would raise the peak above the limit, a class
// is cut in two at the peak.
class Classes {
 public:
  Classes(const Graph& graph, Facts& facts, bool across_phases)
      // torchtitan does not check whether an input is a parameter.
      : classes_(gather_classes(graph, facts, across_phases ? GatheredInputs::kAll : GatheredInputs::kParameters,
                                across_phases)) {}

  const IdMap<NodeId, uint32_t>& get() const { return classes_.of; }

  // Allows merging the gather only with gathers after `stretch`, a part of the schedule in which
  // the peak is above the limit.
  void cut(NodeId gather, uint32_t stretch) {
    const auto [found, is_new] = cut_.try_emplace({classes_.of[gather], stretch}, classes_.next);
    classes_.next += is_new ? 1 : 0;
    classes_.of[gather] = found->second;
  }
  bool is_looked_at(NodeId node) const { return classes_.is_part.get(node); }

 private:
  GatherClasses classes_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> cut_;  // (class, stretch) -> new class
};

// The gathers that were merged, each with the gather that replaces it.
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

// Cuts classes until merging keeps each device's peak within the limit. Returns the number of
// gathers that are kept for this reason.
int64_t bound_peak(const Graph& graph, Facts& facts, Classes& classes, double max_growth, const MemoryOptions& memory) {
  const PeakBound bound(graph, facts, memory, max_growth);
  int64_t stays = 0;
  for (;;) {
    const std::unique_ptr<Module> copy = graph.module().clone();
    Graph& merged = copy->graph(graph.id());
    PassContext context(*copy);
    const Result<PassResult> done = cse_within(merged, classes.get(), equal_gathers(), context);
    if (!done.ok() || !done->changed()) return stays;
    context.facts.forget();
    const PeakBound::Growth growth = bound.measure(merged, context.facts.of(merged));
    if (growth.is_within()) return stays;
    // Places in the input graph, which has more nodes than `merged`.
    const std::vector<NodeId> nodes(merged.nodes().begin(), merged.nodes().end());
    std::vector<uint32_t> begins;
    for (const auto& [first, last] : growth.stretches()) begins.push_back(graph.position(nodes[first]));
    const auto stretch_before = [&begins](uint32_t place) {
      return static_cast<uint32_t>(std::lower_bound(begins.begin(), begins.end(), place) - begins.begin());
    };
    const std::vector<std::pair<NodeId, NodeId>> gone = merged_gathers(graph, merged, classes);
    bool is_any = false;
    for (const bool all : {false, true}) {  // first merges across a stretch; if there are none, all merges
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

// Merges sums of two reductions, in schedule order. A merged sum counts as a reduction for the next
// sum.
class ReductionMerger {
 public:
  ReductionMerger(Graph& graph, Facts& facts, const SymbolValues& values, PassResult& result)
      : graph_(graph), facts_(facts), result_(result) {
    for (const NodeId node : graph.nodes()) places_[node] = graph.position(node);
    for (const Collective& each : find_collectives(graph, values)) {
      const bool is_reduction = each.kind == CollectiveKind::kReduceScatter || each.kind == CollectiveKind::kAllReduce;
      if (is_reduction && each.waits.size() == 1) by_wait_.emplace(each.waits[0], each);
    }
  }

  // Merges the sums in `allowed`, or all if it is null. Returns the merged sums.
  std::vector<NodeId> run(const std::set<NodeId>* allowed) {
    const std::vector<NodeId> nodes(graph_.nodes().begin(), graph_.nodes().end());
    std::vector<NodeId> merged;
    for (const NodeId node : nodes) {
      if (graph_[node].erased || !graph_[node].is_call() || graph_.op(node).name != "aten.add.Tensor") continue;
      const NodeId a = first_argument(graph_, node);
      const NodeId b = CallArgs(graph_, node)[1].as_node();
      const auto one = by_wait_.find(a), other = by_wait_.find(b);
      if (a == b || one == by_wait_.end() || other == by_wait_.end()) continue;
      const std::string_view why = obstacle(node, one->second, other->second);
      if (!why.empty()) {
        stay(node, "unlike", std::string(why));
        continue;
      }
      if (allowed != nullptr && !allowed->contains(node)) {
        stay(node, "peak", "the ideal peak (live bytes without allocator overhead) would grow beyond max-growth");
        continue;
      }
      const bool in_order = places_[one->second.start] < places_[other->second.start];
      const auto first = in_order ? one : other;
      write({node, first->second, in_order ? other->second : one->second});
      by_wait_.erase(first);
      merged.push_back(node);
    }
    replacer_.finish();
    if (stays_ > 0) {
      result_.remark(graph_, "not-merged",
                     count_with_first(stays_, " sum of two reductions is not turned into one reduction",
                                      " sums of two reductions are not turned into one reduction", first_));
    }
    return merged;
  }

 private:
  struct Sum {
    NodeId add;
    Collective one, other;  // in order of issue
  };

  std::string_view obstacle(NodeId add, const Collective& one, const Collective& other) {
    if (CallArgs(graph_, add)[2].is_given()) return "the addition has a factor (alpha)";
    if (graph_.op(one.start).name != graph_.op(other.start).name || one.group != other.group ||
        one.reduce_op != other.reduce_op || one.ranks != other.ranks) {
      return "the reductions differ in kind, group or operation";
    }
    const std::string_view reduce = one.reduce_op.is_valid() ? graph_.module().text(one.reduce_op) : "";
    if (reduce != "sum" && reduce != "avg") return "the reductions are not linear";
    if (reduce == "avg" && one.input.has_value() && !is_floating(one.input->dtype)) {
      return "an integer average drops the remainder";
    }
    if (!graph_.op(one.start).writes.empty()) return "the reductions write to their inputs";
    if (!one.sizes_fit() || !other.sizes_fit())
      return "the recorded sizes of the reductions are unknown or inconsistent";
    if (!same_metadata_but_place(*one.input, *other.input)) {
      return "the inputs of the reductions differ in sizes or types, or are not row-major";
    }
    for (const Collective* each : {&one, &other}) {
      if (graph_.users(each->start).size() != 1 || graph_.users(each->waits[0]).size() != 1) {
        return "the result of one of the summed reductions has another consumer";
      }
      for (const NodeId node : {each->start, each->waits[0], add}) {
        if (is_held(graph_, node) || is_awaited_.get(node))
          return "the sum or a reduction has a control dependency or an event";
        if (graph_[node].phase != graph_[one.start].phase || graph_[node].tag != graph_[one.start].tag) {
          return "the sum and the reductions differ in phase or tag";
        }
        if (node != add && is_marked_saved(graph_, node))
          return "a first partition saved the result of a reduction (ap_must_save)";
        if (stream_of(graph_, node) != stream_of(graph_, one.start))
          return "the sum and the reductions run on different streams";
      }
    }
    const Tensor* sum = single_tensor(graph_, add);
    if (sum == nullptr || sum->dtype != one.output->dtype ||
        !same_sizes(graph_.module(), sum->sizes, one.output->sizes) ||
        !same_sizes(graph_.module(), one.output->sizes, other.output->sizes)) {
      return "the recorded sizes or type of the sum are missing, or differ from those of the reductions";
    }
    // After the merge, the earlier input is read later: at the start of the other reduction.
    const NodeId first = places_[one.start] < places_[other.start] ? one.start : other.start;
    const NodeId last = first == one.start ? other.start : one.start;
    if (storages_.input_bytes_change(first, first, last)) {
      return "an in-place op changes the input of one reduction before the other reduction starts";
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
    add_merged_origin(graph_, last, sum.one.start, pass_);
    add_origin(graph_, added, sum.add, OriginKind::kReplaced, pass_);
    for (const NodeId node : {sum.add, sum.one.start, last}) result_.claim(graph_, node, RewriteRule::kAddedReductions);
    // The users of the sum come after the sum, and so after this wait.
    graph_.replace_all_uses(sum.add, wait);
    replacer_.stand_in(sum.add, wait, wait);
    for (const NodeId node : {sum.one.waits[0], sum.one.start}) replacer_.erase_unread(node);
    result_.count("merged-reductions");
  }
  void stay(NodeId add, std::string_view code, const std::string& text) {
    result_.remark(graph_, add, code, "not merged: " + text);
    if (stays_++ == 0) first_ = "%" + std::string(graph_.name_of(add)) + ". Reason: " + text;
  }

  Graph& graph_;
  Facts& facts_;
  PassResult& result_;
  const StorageMap& storages_ = facts_.storages();  // in the input graph
  Replacer replacer_{graph_, facts_.phases(), kDedupUnshards};
  IdMap<NodeId, bool> is_awaited_ = control_targets(graph_);  // by a control dependency
  IdMap<NodeId, uint32_t> places_{graph_.num_ids(), 0};       // in the input graph
  StringId pass_ = graph_.module().intern(kDedupUnshards);
  std::map<NodeId, Collective> by_wait_;
  int64_t stays_ = 0;
  std::string first_;
};

// Chooses the sums that can be merged within the limit of the peak, by trials on copies of the
// graph. If all sums together exceed the limit, tries each half in the same way. Makes at most
// kMostTrials trials.
class SumChooser {
 public:
  SumChooser(const Graph& graph, Facts& facts, const MemoryOptions& memory, const SymbolValues& values,
             double max_growth)
      : graph_(graph), bound_(graph, facts, memory, max_growth), values_(values) {}

  std::set<NodeId> run() {
    grow(attempt(nullptr).first);
    return chosen_;
  }

 private:
  static constexpr int kMostTrials = 32;

  // Returns the merged sums, and whether the peak is within the limit.
  std::pair<std::vector<NodeId>, bool> attempt(const std::set<NodeId>* allowed) {
    ++trials_;
    const std::unique_ptr<Module> copy = graph_.module().clone();
    Graph& graph = copy->graph(graph_.id());
    ModuleFacts facts(*copy);
    PassResult ignored;
    std::vector<NodeId> merged = ReductionMerger(graph, facts.of(graph), values_, ignored).run(allowed);
    facts.forget();
    return {std::move(merged), bound_.measure(graph, facts.of(graph)).is_within()};
  }

  void grow(const std::vector<NodeId>& sums) {
    if (sums.empty() || trials_ >= kMostTrials) return;
    std::set<NodeId> more = chosen_;
    more.insert(sums.begin(), sums.end());
    if (attempt(&more).second) {
      chosen_ = std::move(more);
    } else if (sums.size() > 1) {
      const auto middle = sums.begin() + static_cast<std::ptrdiff_t>(sums.size() / 2);
      grow({sums.begin(), middle});
      grow({middle, sums.end()});
    }
  }

  const Graph& graph_;
  const PeakBound bound_;
  const SymbolValues& values_;
  std::set<NodeId> chosen_;
  int trials_ = 0;
};

}  // namespace

Result<PassResult> dedup_unshards(Graph& graph, const DedupUnshardsOptions& options, PassContext& context) {
  PassResult result;
  Facts& facts = context.facts.of(graph);
  if (warn_if_differentiated(facts, "nothing is merged", result)) return result;
  const bool as_titan = options.compat == DedupCompat::kTitan;
  const double max_growth = as_titan ? -1 : options.max_growth.value;
  Classes classes(graph, facts, as_titan);
  const int64_t stays = max_growth < 0 ? 0 : bound_peak(graph, facts, classes, max_growth, context.measure.memory);
  Result<PassResult> merged = cse_within(graph, classes.get(), equal_gathers(), context);
  if (!merged.ok()) return merged;
  result.merge(std::move(*merged));
  if (stays > 0) {
    result.remark(graph, "peak-bound",
                  std::to_string(stays) + (stays == 1 ? " gather is" : " gathers are") +
                      " not merged, because the ideal peak (live bytes without allocator overhead) would grow beyond "
                      "max-growth");
  }
  if (options.reductions == ReductionPolicy::kMerge) {
    context.facts.forget();
    Facts& now = context.facts.of(graph);
    const MemoryOptions& memory = context.measure.memory;
    const SymbolValues values = symbol_values(graph.module(), memory.symbols);
    std::set<NodeId> chosen;
    if (max_growth >= 0) chosen = SumChooser(graph, now, memory, values, max_growth).run();
    ReductionMerger(graph, now, values, result).run(max_growth < 0 ? nullptr : &chosen);
  }
  return result;
}

}  // namespace fxopt
