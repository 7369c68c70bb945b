#include "passes/collective/bucket.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "ir/alias/collective_table.h"
#include "ir/alias/effects.h"
#include "ir/alias/order.h"
#include "ir/alias/rank_order.h"
#include "ir/alias/sizes.h"
#include "ir/step/tags.h"
#include "ir/values/values.h"
#include "passes/collective/bucket_plan.h"
#include "passes/collective/peak_bound.h"
#include "passes/pass/nodes.h"
#include "passes/pass/provenance.h"
#include "passes/pass/replacer.h"

namespace fxopt {
namespace {

constexpr std::string_view kBucket = "bucket";

// Whether the collective has a recompute tag that is not carried out yet.
bool wants_copies(const Graph& graph, NodeId start) {
  const NodeExtra* extra = graph.extra(start);
  return wants_recompute(graph[start].tag) && (extra == nullptr || !extra->verdict.has_value());
}

RewriteRule rule_of(const Collective& one) {
  return one.kind == CollectiveKind::kAllGather ? RewriteRule::kBucket : RewriteRule::kBucketedReduction;
}

// Replaces the members of a bucket by one collective. The starts of the members must be adjacent,
// and so must their waits.
class BucketWriter {
 public:
  // `order`: the present order of the graph.
  BucketWriter(Graph& graph, Facts& facts, const std::vector<NodeId>& order, BucketForm form, PassResult& result)
      : graph_(graph),
        storages_(facts.storages()),
        form_(form),
        result_(result),
        replacer_(graph, facts.phases(), kBucket) {
    find_escaping();
    for (size_t i = 0; i < order.size(); ++i) places_[order[i]] = static_cast<uint32_t>(i);
  }

  std::vector<NodeId> run(const BucketPlan& plan, const std::vector<size_t>& bucket) {
    members_.clear();
    made_.clear();
    for (const size_t member : bucket) members_.push_back(&plan.collectives[member]);
    if (plan.payload == BucketPayload::kParameters) {
      std::ranges::stable_sort(members_, {}, [](const Collective* one) { return one->parameter.value_or(UINT32_MAX); });
    }
    ranks_ = members_[0]->ranks;
    before_ = first_of([](const Collective& one) { return one.start; });
    if (form_of_bucket() == BucketForm::kCoalesced) {
      issue_together();
    } else {
      const NodeId start = issue(pack());
      before_ = first_of([](const Collective& one) { return one.waits.front(); });
      unpack(wait_for(start, members_[0]->waits.front()));
    }
    result_.count("buckets");
    result_.count("bucketed", static_cast<int64_t>(members_.size()));
    return std::move(made_);
  }
  void finish() {
    replacer_.finish();
    if (num_tagged_ > 0) {
      result_.warn(graph_, "form",
                   std::to_string(num_tagged_) + (num_tagged_ == 1 ? " bucket is" : " buckets are") +
                       " written as form=functional, because members have recompute tags that are not carried out yet. "
                       "Run bucket after partition or remat");
    }
    if (num_placeless_ == 0) return;
    result_.warn(graph_, "form",
                 std::to_string(num_placeless_) +
                     (num_placeless_ == 1 ? " bucket of gathers is" : " buckets of gathers are") +
                     " written as form=functional, because this rank's place in the result is unknown: the file "
                     "does not record the rank, the rank is not in the group, or the file is for all ranks");
  }

 private:
  // A bucket that is to be recomputed must not be coalesced. remat copies only waits that have
  // users, but a coalesced call needs the waits for all its results.
  BucketForm form_of_bucket() {
    const bool is_tagged =
        std::ranges::any_of(members_, [this](const Collective* one) { return wants_copies(graph_, one->start); });
    if (form_ != BucketForm::kCoalesced || !is_tagged) return form_;
    ++num_tagged_;
    return BucketForm::kFunctional;
  }

  NodeId first_of(const std::function<NodeId(const Collective&)>& node_of) const {
    NodeId first;
    for (const Collective* one : members_) {
      const NodeId node = node_of(*one);
      if (!first.is_valid() || places_[node] < places_[first]) first = node;
    }
    return first;
  }

  CollectiveKind kind() const { return members_[0]->kind; }
  RewriteRule rule() const { return rule_of(*members_[0]); }
  int64_t elements_in(const Collective& one) const { return *one.input_bytes / element_size(one.input->dtype); }
  int64_t elements_out(const Collective& one) const { return *one.output_bytes / element_size(one.output->dtype); }

  // -- nodes

  DimsId sizes(std::initializer_list<int64_t> numbers) {
    std::vector<Dim> dims;
    for (const int64_t number : numbers) dims.push_back(Dim{number, ExprId()});
    return graph_.module().dims(dims);
  }

  // A row-major tensor on its own storage, with the dtype and device of the first member's output.
  Tensor own_tensor(DimsId sizes) {
    Tensor tensor;
    tensor.dtype = members_[0]->output->dtype;
    tensor.device = members_[0]->output->device;
    tensor.sizes = sizes;
    tensor.strides = graph_.module().contiguous_strides(sizes);
    int64_t bytes = element_size(tensor.dtype);
    for (const Dim& dim : graph_.module().dims(sizes)) bytes *= dim.value;
    tensor.storage = graph_.module().fresh_storage(Integer::of(bytes), tensor.device);
    return tensor;
  }
  Tensor view_of(const Tensor& base, DimsId sizes, DimsId strides, Dim offset) {
    Tensor tensor = base;
    tensor.sizes = sizes;
    tensor.strides = strides;
    tensor.offset = offset;
    return tensor;
  }

  // A call with the phase, module, region and tag of `like`; `fill` pushes its arguments.
  NodeId call(std::string_view target, std::string_view base, NodeId like, ValueId value,
              const std::function<void(ArgStack&)>& fill, ArgRange kwargs = ArgRange()) {
    const NodeId id = graph_.insert_node(before_, NodeKind::kCallFunction, base, graph_.module().target(target));
    Node& node = graph_[id];
    node.take_context(graph_[like]);
    node.value = value;
    copy_tag(graph_, id, like);
    ArgStack stack(graph_.pool());
    fill(stack);
    graph_.set_args(id, stack.take(0), kwargs);
    made_.push_back(id);
    graph_.mutable_extra(id).stream = stream_of(graph_, like);
    add_origin(graph_, id, like, OriginKind::kReplaced, pass_);
    return id;
  }
  ValueId value(const Tensor& tensor) { return graph_.pool().append_value(graph_.pool().tensor_value(tensor)); }

  static void push_list(ArgStack& stack, const std::vector<int64_t>& numbers) {
    const size_t mark = stack.mark();
    for (const int64_t number : numbers) stack.push(Arg::integer(number));
    stack.close(ArgKind::kList, mark);
  }

  NodeId view(NodeId node, NodeId like, DimsId sizes) {
    const Tensor seen = *single_tensor(graph_, node);
    if (seen.sizes == sizes) return node;
    const Tensor tensor = view_of(seen, sizes, graph_.module().contiguous_strides(sizes), seen.offset);
    return call("aten.view.default", "view", like, value(tensor), [&](ArgStack& stack) {
      stack.push(Arg::node(node));
      std::vector<int64_t> numbers;
      for (const Dim& dim : graph_.module().dims(sizes)) numbers.push_back(dim.value);
      push_list(stack, numbers);
    });
  }

  // -- before the collective

  // Concatenates the inputs. For a reduce-scatter, row g holds rank g's part of each member; other
  // kinds have one row.
  NodeId pack() {
    const bool has_rows = kind() == CollectiveKind::kReduceScatter;
    std::vector<NodeId> parts;
    int64_t sum = 0;
    for (const Collective* one : members_) {
      const int64_t count = elements_in(*one);
      const DimsId shape = has_rows ? sizes({ranks_, count / ranks_}) : sizes({count});
      parts.push_back(view(first_argument(graph_, one->start), one->start, shape));
      sum += count;
    }
    const DimsId all = has_rows ? sizes({ranks_, sum / ranks_}) : sizes({sum});
    Tensor tensor = own_tensor(all);
    tensor.dtype = members_[0]->input->dtype;
    const NodeId packed = call("aten.cat.default", "cat", members_[0]->start, value(tensor), [&](ArgStack& stack) {
      const size_t mark = stack.mark();
      for (const NodeId part : parts) stack.push(Arg::node(part));
      stack.close(ArgKind::kList, mark);
      if (has_rows) stack.push(Arg::integer(1));
    });
    return has_rows ? view(packed, members_[0]->start, sizes({sum})) : packed;
  }

  // Calls the first member's operator on the buffer.
  NodeId issue(NodeId packed) {
    int64_t sum = 0;
    for (const Collective* one : members_) sum += elements_out(*one);
    const std::optional<int64_t> place = place_in_result();
    if (!place.has_value()) return start("", {packed}, value(own_tensor(sizes({sum}))));
    const NodeId like = members_[0]->start;
    const Tensor whole = own_tensor(sizes({sum}));
    const NodeId buffer = empty(like, whole);
    const int64_t width = sum / ranks_, begin = *place * width;
    const Tensor part = view_of(whole, sizes({width}), whole.strides, Dim{begin, ExprId()});
    const NodeId slot = call("aten.slice.Tensor", "slice", like, value(part), [&](ArgStack& stack) {
      stack.push(Arg::node(buffer));
      for (const int64_t number : {int64_t{0}, begin, begin + width}) stack.push(Arg::integer(number));
    });
    const NodeId filled = call("aten.copy_.default", "copy_", like, value(part), [&](ArgStack& stack) {
      stack.push(Arg::node(slot));
      stack.push(Arg::node(packed));
    });
    return start("_out", {filled}, value(whole), keyword("out", Arg::node(buffer)));
  }
  // With form=out, this rank's place in the result of a gather, if known.
  std::optional<int64_t> place_in_result() {
    if (form_ != BucketForm::kOut || kind() != CollectiveKind::kAllGather) return std::nullopt;
    const Module& module = graph_.module();
    const std::vector<int64_t>& ranks = members_[0]->listed->ranks;
    const std::optional<size_t> place = own_place(module, ranks);
    const int64_t number = static_cast<int64_t>(place.value_or(0));
    if (place.has_value() && is_own_place(module, ranks, SymInt(number), 1)) return number;
    ++num_placeless_;
    return std::nullopt;
  }
  NodeId empty(NodeId like, const Tensor& tensor) {
    ArgStack keywords(graph_.pool());
    const auto push = [&](std::string_view name, const Arg& arg) {
      keywords.push(Arg::string(graph_.module().intern(name)));
      keywords.push(arg);
    };
    push("dtype", Arg::dtype(tensor.dtype));
    if (tensor.device.is_valid()) push("device", Arg::named(ArgKind::kDevice, tensor.device));
    push("pin_memory", Arg::boolean(false));
    const ArgRange kwargs = keywords.take(0);
    return call(
        "aten.empty.memory_format", "empty", like, value(tensor),
        [&](ArgStack& stack) { push_list(stack, {graph_.module().dims(tensor.sizes)[0].value}); }, kwargs);
  }
  ArgRange keyword(std::string_view name, const Arg& arg) {
    ArgStack keywords(graph_.pool());
    keywords.push(Arg::string(graph_.module().intern(name)));
    keywords.push(arg);
    return keywords.take(0);
  }

  // Calls the first member's operator, or its variant, on `given` and the member's other arguments.
  NodeId start(std::string_view variant, const std::vector<NodeId>& given, ValueId value,
               ArgRange kwargs = ArgRange()) {
    const NodeId old = members_[0]->start;
    std::string target(graph_.module().text(graph_.module().target(graph_[old].target).name));
    target.insert(target.rfind('.'), variant);
    const NodeId start = call(
        target, graph_.name_of(old), old, value,
        [&](ArgStack& stack) {
          const size_t mark = stack.mark();
          for (const NodeId node : given) stack.push(Arg::node(node));
          if (variant == "_coalesced") stack.close(ArgKind::kList, mark);
          for (const Arg& arg : graph_.pool().args(graph_[old].args).subspan(1)) stack.push(arg);
        },
        kwargs);
    for (const Collective* one : members_) note(one->start, start);
    result_.claim(graph_, start, rule());
    return start;
  }

  NodeId wait_for(NodeId start, NodeId like) {
    return call("_c10d_functional.wait_tensor.default", "wait_tensor", like, value(*single_tensor(graph_, start)),
                [start](ArgStack& stack) { stack.push(Arg::node(start)); });
  }

  // -- without a buffer

  void issue_together() {
    std::vector<NodeId> given;
    std::vector<Tensor> made;
    for (const Collective* one : members_) {
      given.push_back(first_argument(graph_, one->start));
      made.push_back(own_tensor(one->output->sizes));
    }
    const NodeId together = start("_coalesced", given, list_value(made));
    before_ = first_of([](const Collective& one) { return one.waits.front(); });
    std::vector<NodeId> waits;
    for (size_t i = 0; i < members_.size(); ++i) {
      const NodeId like = members_[i]->waits.front();
      waits.push_back(wait_for(item(together, i, like, made[i]), like));
      hand_over(*members_[i], waits.back(), waits.back());
    }
    erase_members(waits, waits, together);
  }

  // -- after the collective

  void unpack(NodeId wait) {
    const bool has_rows = kind() == CollectiveKind::kAllGather;
    const int64_t rows = has_rows ? ranks_ : 1;
    int64_t sum = 0;
    std::vector<int64_t> widths;
    for (const Collective* one : members_) {
      widths.push_back(elements_out(*one) / rows);
      sum += widths.back();
    }
    const NodeId like = members_[0]->waits.front();
    const NodeId whole = has_rows ? view(wait, like, sizes({ranks_, sum})) : wait;
    const Tensor seen = *single_tensor(graph_, whole);
    std::vector<Tensor> parts;
    int64_t at = 0;
    for (const int64_t width : widths) {
      const DimsId shape = has_rows ? sizes({ranks_, width}) : sizes({width});
      parts.push_back(view_of(seen, shape, seen.strides, Dim{at, ExprId()}));
      at += width;
    }
    const NodeId split =
        call("aten.split_with_sizes.default", "split_with_sizes", like, list_value(parts), [&](ArgStack& stack) {
          stack.push(Arg::node(whole));
          push_list(stack, widths);
          if (has_rows) stack.push(Arg::integer(1));
        });
    std::vector<NodeId> results;
    for (size_t i = 0; i < members_.size(); ++i) results.push_back(hand_out(*members_[i], split, i, parts[i]));
    erase_members(results, std::vector<NodeId>(members_.size(), wait), first_argument(graph_, wait));
  }
  // Erases the members, which `results` replace. Control dependencies on their waits and starts
  // move to `waits` and `start`.
  void erase_members(const std::vector<NodeId>& results, const std::vector<NodeId>& waits, NodeId start) {
    for (size_t i = 0; i < members_.size(); ++i) {
      for (const NodeId old : members_[i]->waits) replacer_.stand_in(old, results[i], waits[i]);
      replacer_.stand_in(members_[i]->start, results[i], start);
    }
  }

  ValueId list_value(const std::vector<Tensor>& parts) {
    std::vector<Value> values;
    for (const Tensor& part : parts) values.push_back(graph_.pool().tensor_value(part));
    Value list;
    list.kind = ValueKind::kTuple;
    list.first = graph_.pool().append_values(values).index();
    list.count = static_cast<uint32_t>(values.size());
    return graph_.pool().append_value(list);
  }

  NodeId hand_out(const Collective& one, NodeId split, size_t place, const Tensor& part) {
    const NodeId like = one.waits.front();
    NodeId node = item(split, place, like, part);
    // A member's part of a gathered buffer is not contiguous. A part of a reduced buffer is copied
    // if it is returned or written to, because it must not share storage, or viewed as wider
    // elements, which needs alignment.
    const bool is_copied = kind() == CollectiveKind::kAllGather || escapes(one) || is_viewed_as_wider(one);
    if (is_copied) node = clone(node, like, part);
    const NodeId out = view(node, like, one.output->sizes);
    hand_over(one, out, is_copied ? node : out);
    return out;
  }
  NodeId item(NodeId list, size_t place, NodeId like, const Tensor& tensor) {
    return call("operator.getitem", "getitem", like, value(tensor), [&](ArgStack& stack) {
      stack.push(Arg::node(list));
      stack.push(Arg::integer(static_cast<int64_t>(place)));
    });
  }
  // Replaces the member's result by `out`. `named` is the node for which the rewrite rule is
  // claimed.
  void hand_over(const Collective& one, NodeId out, NodeId named) {
    result_.claim(graph_, named, rule());
    for (const NodeId wait : one.waits) {
      result_.claim(graph_, wait, rule());
      note(wait, out);
      graph_.replace_all_uses(wait, out);
    }
  }

  NodeId clone(NodeId node, NodeId like, const Tensor& part) {
    const ArgRange kwargs = keyword("memory_format", Arg::memory_format(MemoryFormat::kContiguous));
    return call(
        "aten.clone.default", "clone", like, value(own_tensor(part.sizes)),
        [node](ArgStack& stack) { stack.push(Arg::node(node)); }, kwargs);
  }

  bool escapes(const Collective& one) const {
    for (const NodeId node : {one.start, one.waits.front()}) {
      for (const BufferId id : storages_.buffers(node)) {
        if (!id.is_valid() || escapes_.get(id)) return true;
      }
    }
    return false;
  }

  // Whether a user views the result as wider elements, directly or through views.
  bool is_viewed_as_wider(const Collective& one) const {
    return find_reader(graph_, one.waits, [this](NodeId reader) { return needs_aligned_place(graph_, reader); })
        .is_valid();
  }

  // Finds the buffers that the graph returns or that a call may write to.
  void find_escaping() {
    const auto note_all = [this](NodeId node) {
      for (const BufferId id : storages_.buffers(node)) {
        if (id.is_valid()) escapes_[id] = true;
      }
    };
    for (const NodeId node : graph_.nodes()) {
      const bool may_write =
          graph_[node].runs() && !graph_.op(node).is_pure() &&
          (is_writing_call(graph_, node) || !graph_.op(node).has(Effect::kCollective | Effect::kWaits));
      if (may_write || graph_[node].kind == NodeKind::kOutput) graph_.for_each_input(node, note_all);
    }
  }

  // Records that the node `by` also replaces `old`.
  void note(NodeId old, NodeId by) {
    if (graph_[old].uid == graph_.extra(by)->origins.front().uid) return;
    add_origin(graph_, by, old, OriginKind::kReplaced, pass_);
  }

  Graph& graph_;
  const StorageMap& storages_;
  const BucketForm form_;
  PassResult& result_;
  Replacer replacer_;
  StringId pass_ = graph_.module().intern(kBucket);
  std::vector<const Collective*> members_;
  std::vector<NodeId> made_;
  int64_t ranks_ = 0;
  int64_t num_placeless_ = 0, num_tagged_ = 0;
  NodeId before_;
  IdMap<BufferId, bool> escapes_{storages_.num_buffers(), false};
  IdMap<NodeId, uint32_t> places_{graph_.num_ids(), 0};
};

// Writes a remark on each collective that is not bucketed, and one remark with their number.
void report_unchanged(const Graph& graph, const BucketPlan& plan, PassResult& result) {
  std::vector<size_t> left;
  for (size_t i = 0; i < plan.collectives.size(); ++i) {
    if (plan.obstacles[i].code.empty()) continue;
    result.remark(graph, plan.collectives[i].start, plan.obstacles[i].code, "not bucketed: " + plan.obstacles[i].text);
    left.push_back(i);
  }
  if (left.empty()) return;
  const std::string whole = " of " + std::to_string(plan.collectives.size()) + " collectives ";
  result.remark(graph, "left-out",
                count_with_first(std::ssize(left), whole + "is not bucketed", whole + "are not bucketed",
                                 "%" + std::string(graph.name_of(plan.collectives[left[0]].start))) +
                    (left.size() == 1 ? ". Reason: " : ". Reason for the first: ") + plan.obstacles[left[0]].text);
}

bool has_tagged_member(const Graph& graph, const BucketPlan& plan) {
  const auto is_tagged = [&](size_t member) { return wants_copies(graph, plan.collectives[member].start); };
  return std::ranges::any_of(plan.buckets, [&](const auto& bucket) { return std::ranges::any_of(bucket, is_tagged); });
}

// Puts the graph in the plan's order and writes the buckets, which must be independent. Returns the
// nodes of each bucket.
std::vector<std::vector<NodeId>> write(Graph& graph, Facts& facts, const BucketPlan& plan, PassResult& result) {
  const std::vector<NodeId> order = order_for(graph, facts, plan);
  FXOPT_CHECK(order.size() == graph.num_nodes(), "buckets of a plan depend on each other");
  facts.phases();  // computed before the order changes
  facts.storages();
  graph.set_schedule(order);
  BucketWriter writer(graph, facts, order, plan.form, result);
  std::vector<std::vector<NodeId>> made;
  for (const std::vector<size_t>& members : plan.buckets) made.push_back(writer.run(plan, members));
  writer.finish();
  return made;
}

// Splits buckets until the ideal peak is within the limit, by trying plans on copies of the graph.
class PeakKeeper {
 public:
  PeakKeeper(const Graph& graph, Facts& facts, const BucketOptions& options, const MemoryOptions& memory)
      : graph_(graph), bound_(graph, facts, memory, options.compat == Compat::kTorch ? -1 : options.max_growth.value) {}

  void run(BucketPlan& plan, PassResult& result) {
    for (;;) {
      std::vector<size_t> over = try_plan(plan);
      if (growth_.is_within()) break;
      const bool is_order = over.empty();  // the order that buckets need raises the peak
      if (is_order) {
        over.resize(plan.buckets.size());
        std::iota(over.begin(), over.end(), 0);
      }
      const std::string why =
          is_order ? "Without the split, the new order of the nodes" : "Without the split, the buckets";
      for (auto at = over.rbegin(); at != over.rend(); ++at) part(plan, *at, why);
      std::sort(plan.buckets.begin(), plan.buckets.end());
    }
    if (num_split_ > 0) {
      result.remark(
          graph_, "bucket-split",
          std::to_string(num_split_) + (num_split_ == 1 ? " bucket is" : " buckets are") +
              " split to keep the growth of this rank's peak within max-growth. If the ranks' graphs differ, run "
              "'fxopt ranks' on the results of all ranks");
    }
    if (growth_.grows()) result.warn(graph_, "peak-grows", growth_.text());
  }

 private:
  // Measures the peak with the plan. If the peak is above the limit, returns the buckets with
  // storages or inputs that are live at a place above the limit.
  std::vector<size_t> try_plan(const BucketPlan& plan) {
    const std::unique_ptr<Module> copy = graph_.module().clone();
    Graph& graph = copy->graph(graph_.id());
    PassResult ignored;
    ModuleFacts known(*copy);
    const std::vector<std::vector<NodeId>> made = write(graph, known.of(graph), plan, ignored);
    known.forget();
    Facts& facts = known.of(graph);
    growth_ = bound_.measure(graph, facts);
    std::vector<size_t> found;
    for (size_t i = 0; i < made.size() && !growth_.is_within(); ++i) {
      const auto is_live = [&](NodeId node) { return growth_.is_live(facts.storages(), node); };
      const auto is_there = [&](NodeId node) { return is_live(node) || any_input(graph, node, is_live); };
      if (std::ranges::any_of(made[i], is_there)) found.push_back(i);
    }
    return found;
  }

  void part(BucketPlan& plan, size_t at, const std::string& why) {
    ++num_split_;
    const std::vector<size_t> members = plan.buckets[at];
    plan.buckets.erase(plan.buckets.begin() + static_cast<std::ptrdiff_t>(at));
    const auto middle = members.begin() + static_cast<std::ptrdiff_t>((members.size() + 1) / 2);
    for (const std::vector<size_t>& half :
         {std::vector<size_t>(members.begin(), middle), std::vector<size_t>(middle, members.end())}) {
      if (half.size() > 1) plan.buckets.push_back(half);
      if (half.size() == 1) {
        plan.obstacles[half[0]] = {
            "peak", "after its bucket was split, it was alone. " + why +
                        " would raise the ideal peak (live bytes without allocator overhead) by " + growth_.percent() +
                        ", which is above max-growth"};
      }
    }
  }

  const Graph& graph_;
  const PeakBound bound_;
  PeakBound::Growth growth_;
  int64_t num_split_ = 0;
};

}  // namespace

Result<PassResult> bucket(Graph& graph, const BucketOptions& options, PassContext& context) {
  PassResult result;
  Facts& facts = context.facts.of(graph);
  if (warn_if_differentiated(facts, "nothing is merged", result)) return result;
  result.remark_unmatched(graph, "modules", options.modules, [&graph](NodeId node, const std::string& name) {
    return graph[node].is_call() && graph.op(node).has(Effect::kCollective) &&
           module_of(graph, node, {name}).has_value();
  });
  BucketPlan plan = plan_buckets(graph, facts, options, symbol_values(graph.module(), context.measure.memory.symbols));
  if (options.compat == Compat::kTorch && order_for(graph, facts, plan).size() != graph.num_nodes()) {
    Error error{ErrorCode::kUnsupportedGraph,
                "buckets formed by 'bucket' depend on each other",
                "leave out compat=torch, which ignores dependences between buckets",
                {}};
    error.where.graph = graph.module().text(graph.name());
    return error;
  }
  if (!plan.buckets.empty()) PeakKeeper(graph, facts, options, context.measure.memory).run(plan, result);
  report_unchanged(graph, plan, result);
  if (plan.buckets.empty()) return result;
  if (has_tagged_member(graph, plan)) {
    result.warn(
        graph, "tagged-members",
        "collectives tagged for recompute are bucketed before the tags are carried out: each bucket is saved or "
        "recomputed as a whole. Run bucket after partition or remat");
  }
  // A collective that can be merged, but is in no bucket, may still change its order within its
  // group.
  for (size_t i = 0; i < plan.collectives.size(); ++i) {
    if (plan.is_free[i]) result.claim(graph, plan.collectives[i].start, rule_of(plan.collectives[i]));
  }
  write(graph, facts, plan, result);
  return result;
}

}  // namespace fxopt
