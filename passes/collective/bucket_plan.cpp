#include "passes/collective/bucket_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "core/saturate.h"
#include "core/text.h"
#include "ir/alias/effects.h"
#include "ir/alias/order.h"
#include "ir/step/marks.h"
#include "ir/values/geometry.h"
#include "ir/values/values.h"
#include "passes/pass/nodes.h"

namespace fxopt {
namespace {

int64_t cap_of(const BucketOptions& options, CollectiveKind kind) {
  if (kind == CollectiveKind::kAllGather) return options.all_gather.value;
  if (kind == CollectiveKind::kReduceScatter) return options.reduce_scatter.value;
  return kind == CollectiveKind::kAllReduce ? options.all_reduce.value : 0;
}

bool is_plain(const Graph& graph, NodeId start) {
  const std::string_view name = graph.op(start).name;
  return name == "_c10d_functional.all_gather_into_tensor.default" ||
         name == "_c10d_functional.reduce_scatter_tensor.default" || name == "_c10d_functional.all_reduce.default";
}

// The properties that all members of a bucket share.
struct Key {
  CollectiveKind kind;
  GroupKey group;
  StringId reduce_op;
  DType dtype;
  StringId device;
  std::array<std::optional<StringId>, 2> streams;  // start, wait
  Phase phase;
  Tag tag;
  bool is_marked;  // its result is marked as saved
  std::string module;
  auto operator<=>(const Key&) const = default;
};

// The beginning of the path that matches the pattern, component by component; '*' matches any
// characters within a component. Empty if the path does not match.
std::string_view module_within(std::string_view path, std::string_view pattern) {
  size_t end = 0;
  for (size_t at = 0; at <= pattern.size();) {
    const std::string_view wanted = pattern.substr(at, pattern.find('.', at) - at);
    const size_t begin = end == 0 ? 0 : end + 1;
    if (begin > path.size() || (end != 0 && path[end] != '.')) return {};
    const std::string_view own = path.substr(begin, path.find('.', begin) - begin);
    if (own.empty() || !matches_pattern(own, wanted)) return {};
    end = begin + own.size();
    at += wanted.size() + 1;
  }
  return path.substr(0, end);
}

class Filter {
 public:
  Filter(const Graph& graph, Facts& facts, const BucketOptions& options, const std::vector<Collective>& collectives)
      : graph_(graph), dependences_(facts.dependences()), options_(options), integers_(graph.module()) {
    if (options.groups == BucketGroups::kPrimary) find_primary(collectives);
  }

  // The obstacle to merging the collective. The code is empty if the collective may be merged.
  Obstacle obstacle(const Collective& one) {
    if (options_.groups == BucketGroups::kPrimary && !is_primary(one)) {
      return {
          "other-group",
          primary_.contains(one.kind)
              ? "for this kind of collective, another group is the primary group: the group with the most gathers of "
                "parameters or reductions of gradients. Use groups=all to bucket all groups"
              : "no collective of its kind gathers a parameter or reduces a gradient. Use groups=all to bucket all "
                "groups"};
    }
    if (!module_of(graph_, one.start, options_.modules).has_value()) {
      return {"no-module", "no entry of option `modules` matches its module"};
    }
    if (graph_[one.start].kwargs.count != 0) return {"form", "its call has keyword arguments"};
    if (one.listed == nullptr) return {"unlisted-group", "its group is not in the table of process groups"};
    if (!one.bytes().has_value()) return {"unknown-sizes", "its sizes are not recorded"};
    for (const Tensor* tensor : {&*one.input, &*one.output}) {
      const bool is_known = std::ranges::all_of(graph_.module().dims(tensor->sizes), &Dim::is_static);
      if (!is_known) return {"symbolic-sizes", "its sizes depend on symbols"};
    }
    if (*one.bytes() == 0) return {"empty", "its tensors have no elements"};
    if (!one.sizes_fit() && one.kind == CollectiveKind::kReduceScatter) {
      return {"indivisible", "the input size is not the result size times the number of ranks"};
    }
    if (!one.sizes_fit()) {
      return {"sizes", "the size of its recorded result does not match its input and number of ranks"};
    }
    if (one.input->sizes.is_valid() && graph_.module().dims(one.input->sizes).empty()) {
      return {"scalar", "its input has no dimensions"};
    }
    const std::optional<Geometry> made = geometry_of(graph_.module(), integers_, *one.output);
    if (!made.has_value() || !is_row_major(*made)) {
      return {"not-row-major", "its recorded result is not row-major"};
    }
    const std::optional<Geometry> geometry = geometry_of(graph_.module(), integers_, *one.input);
    const bool is_laid_out = geometry.has_value() && is_row_major(*geometry) && !geometry->conjugate &&
                             !geometry->negative && geometry->layout == Layout::kStrided && geometry->rank() > 0 &&
                             !one.input->subclass.is_valid();
    if (!is_laid_out) return {"not-row-major", "its input is not a plain row-major tensor"};
    const NodeId by = find_reader(graph_, one.waits, [this](NodeId reader) { return sees_storage(graph_, reader); });
    if (by.is_valid()) {
      return {"storage", "%" + std::string(graph_.name_of(by)) +
                             " may read memory outside the elements of the collective's result"};
    }
    return held(one);
  }

 private:
  // For each kind, finds the group with most collectives for parameters and gradients. If several
  // groups have equally many, takes the group whose first call comes first.
  void find_primary(const std::vector<Collective>& collectives) {
    struct Count {
      size_t calls = 0, first = 0;
    };
    std::map<CollectiveKind, std::map<GroupKey, Count>> counts;
    for (size_t i = 0; i < collectives.size(); ++i) {
      const Collective& one = collectives[i];
      if (one.of != CollectiveClass::kUnshard && one.of != CollectiveClass::kGradient) continue;
      ++counts[one.kind].try_emplace(one.group, Count{0, i}).first->second.calls;
    }
    for (const auto& [kind, groups] : counts) {
      Count most;
      for (const auto& [group, count] : groups) {
        if (count.calls < most.calls || (count.calls == most.calls && count.first > most.first)) continue;
        most = count;
        primary_[kind] = group;
      }
    }
  }
  bool is_primary(const Collective& one) const {
    const auto found = primary_.find(one.kind);
    return found != primary_.end() && found->second == one.group;
  }

  Obstacle held(const Collective& one) const {
    if (one.waits.empty()) return {"unwaited", "nothing waits for it"};
    if (is_held(graph_, one.start)) return {"held", "it has a control dependency or an event"};
    for (UseId use = graph_.first_use(one.start); use.is_valid(); use = graph_.use(use).next) {
      const NodeId user = graph_.use(use).user;
      if (std::ranges::count(one.waits, user) > 0) continue;
      return {"read-early", "%" + std::string(graph_.name_of(user)) + " reads the result before a wait"};
    }
    for (const NodeId wait : one.waits) {
      if (is_held(graph_, wait)) return {"held", "its wait node has a control dependency or an event"};
      for (const Dependence& dependence : dependences_.of(wait)) {
        if (dependence.on == one.start || follows(one.start, dependence.on)) continue;
        return {"held", "its wait must follow %" + std::string(graph_.name_of(dependence.on)) + " (" +
                            std::string(name_of(dependence.why)) + ")"};
      }
    }
    return {};
  }

  // Whether the start also depends directly on `on`, such as on another collective that fills its
  // input.
  bool follows(NodeId start, NodeId on) const {
    return std::ranges::any_of(dependences_.of(start), [on](const Dependence& each) { return each.on == on; });
  }

  const Graph& graph_;
  const DependenceMap& dependences_;
  const BucketOptions& options_;
  SymInts integers_;
  std::map<CollectiveKind, GroupKey> primary_;
};

// The dependences of a graph during bucketing. Collectives that may be bucketed need not keep their
// order of issue. All other dependences are kept.
class Order {
 public:
  Order(const Graph& graph, Facts& facts, const BucketPlan& plan)
      : graph_(graph), dependences_(facts.dependences()), before_(graph.num_ids()) {
    std::map<GroupKey, NodeId> last;
    NodeId last_of_any;  // the last collective whose group is unknown
    for (size_t i = 0; i < plan.collectives.size(); ++i) {
      if (plan.is_free[i]) continue;
      const Collective& one = plan.collectives[i];
      const bool is_any = one.group == GroupKey();
      for (const auto& [group, node] : last) {
        if (is_any || group == one.group) before_[one.start].push_back(node);
      }
      if (!last.contains(one.group) && last_of_any.is_valid()) before_[one.start].push_back(last_of_any);
      if (is_any) {
        last.clear();
        last_of_any = one.start;
      }
      last[one.group] = one.start;
    }
  }

  template <class Visit>
  void for_each(NodeId node, const Visit& visit) const {
    for (const Dependence& dependence : dependences_.of(node)) {
      if (dependence.why != DependenceKind::kCollective) visit(dependence.on);
    }
    for (const NodeId first : before_.get(node)) visit(first);
    // If a control dependency is on a collective of the same group, `dependences_` lists it only as
    // kCollective, which was skipped above.
    if (const NodeExtra* extra = graph_.extra(node)) {
      for (const ControlDep& dep : extra->control) visit(dep.node);
    }
  }

 private:
  const Graph& graph_;
  const DependenceMap& dependences_;
  IdMap<NodeId, std::vector<NodeId>> before_;
};

// Forms buckets in one sweep over the schedule. Each node has a bit mask of the buckets that it
// depends on. The masks contain only buckets that may still grow, and the buckets on which those
// depend. Nodes that depend on a bucket also depend on everything that later members depend on.
// closure() finds this by following the dependences from bucket to bucket, so the masks of earlier
// nodes are not updated.
class Grower {
 public:
  // `most_open`: the number of buckets of one key that are open at a time.
  Grower(const Graph& graph, const PhaseMap& phases, const Order& order, const BucketOptions& options, size_t most_open,
         BucketPlan& plan)
      : graph_(graph), phases_(phases), order_(order), options_(options), most_open_(most_open), plan_(plan) {}

  void run() {
    size_t next = 0;
    for (const NodeId node : graph_.nodes()) {
      places_[node] = ++place_;
      uint64_t mask = 0;
      order_.for_each(node, [&](NodeId on) { mask |= alive(on) | bits_of_start_.get(on); });
      masks_[node] = mask;
      if (next == plan_.collectives.size() || plan_.collectives[next].start != node) continue;
      if (plan_.is_free[next]) offer(next);
      ++next;
    }
    for (Slot& slot : slots_)
      end(slot, {"no-other", "no later collective of its kind, group, dtype and phase could join it"});
  }

 private:
  struct Slot {
    bool is_used = false, is_open = false;
    uint32_t born = 0;
    uint64_t depends_on = 0;  // bits of slots
    Key key;
    std::vector<size_t> members;
    int64_t bytes = 0;
    Obstacle obstacle;  // the obstacle to the last collective that could not join
  };

  // The node's mask, without slots that were reused for other buckets since the node was visited.
  uint64_t alive(NodeId node) const {
    uint64_t mask = masks_.get(node), found = 0;
    for (; mask != 0; mask &= mask - 1) {
      const int bit = std::countr_zero(mask);
      if (slots_[bit].is_used && slots_[bit].born <= places_.get(node)) found |= uint64_t{1} << bit;
    }
    return found;
  }

  uint64_t closure(uint64_t mask) const {
    for (uint64_t open = mask; open != 0;) {
      const int bit = std::countr_zero(open);
      open &= open - 1;
      const uint64_t more = slots_[bit].depends_on & ~mask;
      mask |= more;
      open |= more;
    }
    return mask;
  }

  bool is_marked(const Collective& one) const {
    if (phases_.is_backward(one.start)) return false;
    return is_marked_saved(graph_, one.start) ||
           std::ranges::any_of(one.waits, [this](NodeId wait) { return is_marked_saved(graph_, wait); });
  }

  Key key_of(const Collective& one) const {
    const Node& node = graph_[one.start];
    const Phase phase = phases_.is_backward(one.start) ? Phase::kBackward : Phase::kForward;
    return {one.kind,
            one.group,
            one.reduce_op,
            one.output->dtype,
            one.output->device,
            {stream_of(graph_, one.start), stream_of(graph_, one.waits.front())},
            node.phase == Phase::kUnspecified ? phase : node.phase,
            node.tag,
            is_marked(one),
            module_of(graph_, one.start, options_.modules).value_or("")};
  }

  std::string named(size_t place) const { return "%" + std::string(graph_.name_of(plan_.collectives[place].start)); }

  // Adds the collective to the first open bucket of its key that can take it. If no bucket can,
  // begins a new bucket.
  void offer(size_t place) {
    const Collective& one = plan_.collectives[place];
    const Key key = key_of(one);
    const uint64_t mask = closure(masks_[one.start]);
    Obstacle obstacle;
    for (const uint32_t at : open_[key]) {
      Slot& slot = slots_[at];
      if (!slot.is_open || slot.key != key) continue;  // the slot was reused
      const std::string first = named(slot.members.front());
      const uint32_t span = place_ - places_[plan_.collectives[slot.members.front()].start];
      const int64_t bytes = saturating_add(slot.bytes, *one.bytes());
      if (options_.max_span > 0 && span > options_.max_span) {
        end(slot, {"span", named(place) + " is " + std::to_string(span) +
                               " nodes after this collective, and max-span is " + std::to_string(options_.max_span)});
        obstacle = {"span", "it is " + std::to_string(span) + " nodes after " + first + ", and max-span is " +
                                std::to_string(options_.max_span)};
      } else if (bytes > cap_of(options_, one.kind)) {
        const bool is_exact = bytes < std::numeric_limits<int64_t>::max();
        const std::string sum = (is_exact ? " would have " : " would have at least ") + std::to_string(bytes) +
                                " B, above the cap of " + std::to_string(cap_of(options_, one.kind)) + " B";
        slot.obstacle = {"cap", "a bucket with " + named(place) + sum};
        obstacle = {"cap", "together with the bucket of " + first + ", it" + sum};
      } else if ((mask & (uint64_t{1} << at)) != 0) {
        obstacle = {"dependence", "it depends on the bucket of " + first};
        slot.obstacle = {"dependence", named(place) + " depends on it"};
      } else {
        join(slot, at, place, mask);
        return;
      }
    }
    begin(place, key, mask, obstacle);
  }

  void join(Slot& slot, uint32_t at, size_t place, uint64_t mask) {
    const Collective& one = plan_.collectives[place];
    slot.members.push_back(place);
    slot.bytes = saturating_add(slot.bytes, *one.bytes());
    slot.depends_on |= mask & ~(uint64_t{1} << at);
    bits_of_start_[one.start] = uint64_t{1} << at;
  }

  void begin(size_t place, const Key& key, uint64_t mask, const Obstacle& obstacle) {
    std::vector<uint32_t>& open = open_[key];
    std::erase_if(open, [&](uint32_t at) { return !slots_[at].is_open || slots_[at].key != key; });
    if (open.size() >= most_open_)
      end(slots_[open.front()],
          {"dependence", "its bucket was closed, because newer buckets of its kind, group, dtype and phase are open"});
    const uint32_t at = free_slot();
    Slot& slot = slots_[at];
    slot = {true, true, place_, 0, key, {}, 0, obstacle};
    // Clear the bit, which belonged to the slot's former bucket.
    masks_[plan_.collectives[place].start] &= ~(uint64_t{1} << at);
    std::erase(open, at);
    open.push_back(at);
    join(slot, at, place, mask & ~(uint64_t{1} << at));
  }

  // Ends the oldest buckets until a slot is free.
  uint32_t free_slot() {
    for (;;) {
      free_dead_slots();
      uint32_t oldest = 0;
      for (uint32_t at = 0; at < std::size(slots_); ++at) {
        if (!slots_[at].is_used) return at;
        const bool is_older = !slots_[oldest].is_open || slots_[at].born < slots_[oldest].born;
        if (slots_[at].is_open && is_older) oldest = at;
      }
      end(slots_[oldest], {"full", "64 buckets are open, and its bucket is the oldest"});
    }
  }

  // Ends a bucket, and keeps it if it has at least two members.
  void end(Slot& slot, const Obstacle& why) {
    if (!slot.is_open) return;
    slot.is_open = false;
    if (slot.members.size() > 1) {
      plan_.buckets.push_back(slot.members);
    } else {
      plan_.obstacles[slot.members.front()] = slot.obstacle.code.empty() ? why : slot.obstacle;
    }
  }

  // Frees the slots of ended buckets that no longer add dependences. A bucket adds none if it
  // depends on no open bucket, or if it has a single member.
  void free_dead_slots() {
    uint64_t open = 0;
    for (uint32_t at = 0; at < std::size(slots_); ++at) open |= slots_[at].is_open ? uint64_t{1} << at : 0;
    for (uint32_t at = 0; at < std::size(slots_); ++at) {
      Slot& slot = slots_[at];
      if (!slot.is_used || slot.is_open || (slot.members.size() > 1 && (closure(slot.depends_on) & open) != 0)) {
        continue;
      }
      slot.is_used = false;
      for (Slot& other : slots_) other.depends_on &= ~(uint64_t{1} << at);
      for (const size_t member : slot.members) bits_of_start_[plan_.collectives[member].start] = 0;
    }
  }

  const Graph& graph_;
  const PhaseMap& phases_;
  const Order& order_;
  const BucketOptions& options_;
  const size_t most_open_;
  BucketPlan& plan_;
  IdMap<NodeId, uint64_t> masks_{graph_.num_ids(), 0}, bits_of_start_{graph_.num_ids(), 0};
  IdMap<NodeId, uint32_t> places_{graph_.num_ids(), 0};
  uint32_t place_ = 0;
  Slot slots_[64];
  std::map<Key, std::vector<uint32_t>> open_;
};

// Forms buckets like greedy_bucket_collective_by_mb of torch/_inductor/fx_passes/bucketing.py. Runs
// once for each kind of collective, with the filters of fsdp.py.
class TorchFormer {
 public:
  TorchFormer(const Graph& graph, const BucketOptions& options, BucketPlan& plan)
      : graph_(graph), options_(options), plan_(plan) {
    for (size_t i = 0; i < plan.collectives.size(); ++i) {
      const Collective& one = plan.collectives[i];
      places_[one.start] = i;
      if (recognisers_.is_fsdp_all_gather.get(one.start)) groups_.push_back(one.group);
    }
  }

  void run() {
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}) {
      if (cap_of(options_, kind) > 0) form(kind);
    }
  }

 private:
  bool is_taken(const Collective& one, NodeId wait) const {
    if (one.kind == CollectiveKind::kAllGather) return recognisers_.is_fsdp_all_gather.get(one.start);
    if (one.kind == CollectiveKind::kReduceScatter) return recognisers_.is_fsdp_reduce_scatter.get(wait);
    return std::ranges::find(groups_, one.group) != groups_.end();
  }

  void form(CollectiveKind kind) {
    std::vector<size_t> run;
    std::tuple<GroupKey, StringId, DType> key;
    for (const NodeId wait : graph_.nodes()) {
      if (!graph_[wait].is_call() || graph_.op(wait).name != "_c10d_functional.wait_tensor.default") continue;
      const auto found = places_.find(first_argument(graph_, wait));
      if (found == places_.end()) continue;
      const Collective& one = plan_.collectives[found->second];
      if (one.kind != kind || !plan_.is_free[found->second]) continue;
      if (!is_taken(one, wait)) {
        plan_.obstacles[found->second] = {"torch", "PyTorch does not recognise it as a collective of FSDP"};
        continue;
      }
      const std::tuple<GroupKey, StringId, DType> own = {one.group, one.reduce_op, one.output->dtype};
      if (own != key) form(run);
      key = own;
      run.push_back(found->second);
    }
    form(run);
  }

  void form(std::vector<size_t>& run) {
    std::vector<size_t> members;
    int64_t bytes = 0;
    ++generation_;
    const auto close = [&] {
      if (members.size() > 1) plan_.buckets.push_back(members);
      if (members.size() == 1)
        plan_.obstacles[members.front()] = {
            "no-neighbour", "no neighbouring collective of its kind, group and dtype fits into one bucket with it"};
      members.clear();
      bytes = 0;
      ++generation_;
    };
    for (const size_t place : run) {
      const Collective& one = plan_.collectives[place];
      if (reached_.get(one.start) == generation_) {
        plan_.obstacles[place] = {"dependence",
                                  "it depends on a neighbour, and compat=torch tries each collective once"};
        continue;
      }
      if (!members.empty() && saturating_add(bytes, one.bytes().value_or(0)) > cap_of(options_, one.kind)) close();
      members.push_back(place);
      bytes = saturating_add(bytes, one.bytes().value_or(0));
      reach(one.start);
    }
    close();
    run.clear();
  }

  void reach(NodeId start) {
    std::vector<NodeId> open = {start};
    while (!open.empty()) {
      for_each_user(graph_, take_last(open), [&](NodeId user) {
        if (reached_[user] != generation_) open.push_back(user);
        reached_[user] = generation_;
      });
    }
  }

  const Graph& graph_;
  const BucketOptions& options_;
  BucketPlan& plan_;
  FsdpRecognisers recognisers_ = fsdp_recognisers(graph_);
  IdMap<NodeId, uint32_t> reached_{graph_.num_ids(), 0};
  uint32_t generation_ = 0;
  std::map<NodeId, size_t> places_;
  std::vector<GroupKey> groups_;
};

void find_free(const Graph& graph, const BucketOptions& options, BucketPlan& plan, Facts& facts) {
  Filter filter(graph, facts, options, plan.collectives);
  plan.is_free.assign(plan.collectives.size(), false);
  for (size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& one = plan.collectives[i];
    if (!is_plain(graph, one.start) || cap_of(options, one.kind) <= 0) continue;
    plan.obstacles[i] = filter.obstacle(one);
    plan.is_free[i] = plan.obstacles[i].code.empty();
  }
}

int64_t calls_saved(const BucketPlan& plan) {
  int64_t saved = 0;
  for (const std::vector<size_t>& bucket : plan.buckets) saved += static_cast<int64_t>(bucket.size()) - 1;
  return saved;
}

}  // namespace

std::optional<std::string> module_of(const Graph& graph, NodeId node, const std::vector<std::string>& modules) {
  if (modules.empty()) return "";
  const std::string_view path = graph.module().text(graph[node].module_path);
  for (const std::string& entry : modules) {
    for (size_t at = 0; at <= entry.size();) {
      const std::string_view part = std::string_view(entry).substr(at, entry.find('+', at) - at);
      const std::string_view found = module_within(path, part);
      if (!found.empty()) return part.size() == entry.size() ? std::string(found) : entry;
      at += part.size() + 1;
    }
  }
  return std::nullopt;
}

BucketPlan plan_buckets(const Graph& graph, Facts& facts, const BucketOptions& options, const SymbolValues& values) {
  BucketPlan plan;
  plan.collectives = find_collectives(graph, values);
  plan.obstacles.resize(plan.collectives.size());
  plan.payload = options.payload;
  plan.form = options.form;
  BucketOptions own = options;
  if (options.compat == Compat::kTorch) own.groups = BucketGroups::kAll;
  find_free(graph, own, plan, facts);
  if (options.compat == Compat::kTorch) {
    TorchFormer(graph, options, plan).run();
  } else {
    const Order order(graph, facts, plan);
    // Several open buckets of a key can take collectives that a single open bucket cannot, but they
    // also close full buckets later. Use the plan that saves more calls.
    BucketPlan one_by_one = plan;
    Grower(graph, facts.phases(), order, options, 4, plan).run();
    Grower(graph, facts.phases(), order, options, 1, one_by_one).run();
    if (calls_saved(one_by_one) > calls_saved(plan)) plan = std::move(one_by_one);
  }
  std::sort(plan.buckets.begin(), plan.buckets.end());
  return plan;
}

std::vector<NodeId> order_for(const Graph& graph, Facts& facts, const BucketPlan& plan) {
  // A unit is a single node, all starts of a bucket, or all waits of a bucket. The first node
  // identifies the unit.
  IdMap<NodeId, NodeId> unit(graph.num_ids());
  IdMap<NodeId, std::vector<NodeId>> nodes_of(graph.num_ids());
  IdMap<NodeId, uint32_t> wanted(graph.num_ids(), 0);
  for (const NodeId node : graph.nodes()) {
    unit[node] = node;
    wanted[node] = graph.position(node);
  }
  for (const std::vector<size_t>& bucket : plan.buckets) {
    std::vector<NodeId> starts, waits;
    for (const size_t member : bucket) {
      starts.push_back(plan.collectives[member].start);
      waits.insert(waits.end(), plan.collectives[member].waits.begin(), plan.collectives[member].waits.end());
    }
    for (std::vector<NodeId>* nodes : {&starts, &waits}) {
      std::ranges::sort(*nodes, {}, [&graph](NodeId node) { return graph.position(node); });
      for (const NodeId node : *nodes) unit[node] = nodes->front();
    }
    wanted[starts.front()] = graph.position(starts.back());
    nodes_of[starts.front()] = starts;
    nodes_of[waits.front()] = waits;
  }
  const Order order(graph, facts, plan);
  IdMap<NodeId, uint32_t> missing(graph.num_ids(), 0);
  IdMap<NodeId, std::vector<NodeId>> followers(graph.num_ids());
  for (const NodeId node : graph.nodes()) {
    order.for_each(node, [&](NodeId on) {
      if (unit[on] == unit[node]) return;
      followers[unit[on]].push_back(unit[node]);
      ++missing[unit[node]];
    });
  }
  using Ready = std::pair<uint32_t, NodeId>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (const NodeId node : graph.nodes()) {
    if (unit[node] == node && missing[node] == 0 && graph[node].kind != NodeKind::kOutput)
      ready.emplace(wanted[node], node);
  }
  std::vector<NodeId> placed;
  placed.reserve(graph.num_nodes());
  while (!ready.empty()) {
    const NodeId first = ready.top().second;
    ready.pop();
    const std::vector<NodeId>& nodes = nodes_of[first];
    if (nodes.empty()) placed.push_back(first);
    placed.insert(placed.end(), nodes.begin(), nodes.end());
    for (const NodeId next : followers[first]) {
      if (--missing[next] == 0 && graph[next].kind != NodeKind::kOutput) ready.emplace(wanted[next], next);
    }
  }
  if (graph.output().is_valid()) placed.push_back(graph.output());
  return placed;
}

}  // namespace fxopt
