#include "passes/collective/fuse_gathers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "ir/alias/collective_table.h"
#include "ir/alias/effects.h"
#include "ir/alias/order.h"
#include "ir/alias/rank_order.h"
#include "ir/alias/sizes.h"
#include "ir/alias/view_geometry.h"
#include "ir/step/marks.h"
#include "ir/values/values.h"
#include "passes/collective/obstacle.h"
#include "passes/collective/peak_bound.h"
#include "passes/pass/provenance.h"
#include "passes/pass/replacer.h"

namespace fxopt {
namespace {

constexpr std::string_view kFuseGathers = "fuse-gathers";

// The gather that feeds an outer gather, and the views between them.
struct Link {
  size_t inner = 0;           // index among the collectives
  std::vector<NodeId> views;  // from the inner gather's wait to the outer gather's input
};

// Gathers that become one gather. The last gather stays, with other arguments.
struct Fusion {
  std::vector<size_t> members;  // in order of issue, two or more
  std::vector<int64_t> ranks;
  const DeviceMesh* mesh = nullptr;
  StringId group;  // invalid: to be created
  bool is_early = false;
};

class Planner {
 public:
  Planner(const Graph& graph, Facts& facts, const FuseGathersOptions& options, const PassContext& context,
          PassResult& result)
      : graph_(graph), facts_(facts), options_(options), context_(context), result_(result) {}

  std::vector<Fusion> run() {
    for (size_t i = 0; i < collectives_.size(); ++i) by_start_.emplace(collectives_[i].start, i);
    std::vector<bool> is_inner(collectives_.size(), false);
    for (size_t i = 0; i < collectives_.size(); ++i) {
      if (collectives_[i].kind != CollectiveKind::kAllGather) continue;
      links_[i] = find_link(i);
      if (links_[i].has_value()) is_inner[links_[i]->inner] = true;
    }
    for (size_t i = 0; i < collectives_.size(); ++i) {
      if (!links_[i].has_value() || is_inner[i]) continue;
      std::vector<size_t> chain = {i};
      while (links_[chain.back()].has_value()) chain.push_back(links_[chain.back()]->inner);
      std::reverse(chain.begin(), chain.end());
      fuse(chain);
    }
    std::ranges::sort(fusions_, {}, [](const Fusion& fusion) { return fusion.members.back(); });
    report_unchanged();
    return std::move(fusions_);
  }

  const std::vector<Collective>& collectives() const { return collectives_; }
  const Link& link(size_t place) const { return *links_[place]; }

 private:
  // -- chains

  // Finds the gather that feeds the gather at `place` only through views. Records the obstacle if
  // the two gathers cannot be fused.
  std::optional<Link> find_link(size_t place) {
    const Collective& outer = collectives_[place];
    Link link;
    NodeId node = first_argument(graph_, outer.start);
    while (node.is_valid() && is_pure_view(node)) {
      link.views.push_back(node);
      node = first_argument(graph_, node);
    }
    std::reverse(link.views.begin(), link.views.end());
    if (!node.is_valid() || !graph_[node].is_call() || !graph_.op(node).has(Effect::kWaits)) return std::nullopt;
    const auto inner = by_start_.find(first_argument(graph_, node));
    if (inner == by_start_.end() || collectives_[inner->second].kind != CollectiveKind::kAllGather) return std::nullopt;
    link.inner = inner->second;
    const Obstacle obstacle = find_obstacle(collectives_[link.inner], node, link.views, outer);
    if (obstacle.code.empty()) return link;
    leave(place, obstacle);
    return std::nullopt;
  }

  bool is_pure_view(NodeId node) const {
    if (!graph_[node].is_call() || !graph_.op(node).is_pure()) return false;
    const ViewKind kind = graph_.op(node).view;
    return kind != ViewKind::kNone && kind != ViewKind::kProjection;
  }

  Obstacle find_obstacle(const Collective& inner, NodeId wait, const std::vector<NodeId>& views,
                         const Collective& outer) {
    std::vector<NodeId> chain = {inner.start, wait};
    chain.insert(chain.end(), views.begin(), views.end());
    for (size_t i = 0; i < chain.size(); ++i) {
      const NodeId next = i + 1 < chain.size() ? chain[i + 1] : outer.start;
      for (const NodeId user : graph_.users(chain[i])) {
        if (user != next) return {"read", "%" + name(user) + " also reads %" + name(chain[i])};
      }
    }
    chain.push_back(outer.start);
    for (const NodeId node : chain) {
      if (is_awaited_[node]) return {"held", "another node has a control dependency on %" + name(node)};
      if (is_held(graph_, node)) return {"held", "%" + name(node) + " has a control dependency or an event"};
      if (graph_[node].phase != graph_[outer.start].phase) {
        return {"phases", both(node, outer) + " are in different phases"};
      }
      if (stream_of(graph_, node) != stream_of(graph_, outer.start)) {
        return {"streams", both(node, outer) + " run on different streams"};
      }
      if (graph_[node].tag != graph_[outer.start].tag) return {"tags", both(node, outer) + " have different tags"};
      const bool is_saved = node != outer.start && !facts_.phases().is_backward(node) && is_marked_saved(graph_, node);
      if (is_saved) return {"marked", "an earlier compilation saved %" + name(node) + " (ap_must_save)"};
    }
    for (const Collective* one : {&inner, &outer}) {
      if (graph_[one->start].kwargs.count != 0) return {"form", "%" + name(one->start) + " has keyword arguments"};
      if (graph_.op(one->start).name != "_c10d_functional.all_gather_into_tensor.default") {
        return {"form", "%" + name(one->start) + " is not an all_gather_into_tensor"};
      }
      if (one->listed == nullptr) {
        return {"unlisted-group", "the group of %" + name(one->start) + " is not in the table of process groups"};
      }
      if (one->ranks != static_cast<int64_t>(one->listed->ranks.size())) {
        return {"ranks",
                "the number of ranks of %" + name(one->start) + " differs from the number of ranks of its group"};
      }
    }
    for (const Collective* one : {&inner, &outer}) {
      const std::optional<Geometry> given =
          one->input.has_value() ? geometry_of(graph_.module(), integers_, *one->input) : std::nullopt;
      if (!one->sizes_fit() || !given.has_value() || !is_row_major(*given) || given->conjugate || given->negative ||
          one->input->dtype != one->output->dtype) {
        return {"sizes",
                "the recorded input or result of %" + name(one->start) + " is unknown, inconsistent or not row-major"};
      }
    }
    if (outer.waits.empty()) return {"unwaited", "nothing waits for it"};
    return is_whole(inner, views, outer);
  }

  // Returns an obstacle if the views do not show the whole result of `inner`, in unchanged order.
  Obstacle is_whole(const Collective& inner, const std::vector<NodeId>& views, const Collective& outer) {
    if (!inner.output.has_value() || !outer.input.has_value()) return {"unknown-sizes", "its sizes are not recorded"};
    std::optional<Geometry> shown = geometry_of(graph_.module(), integers_, *inner.output);
    if (!shown.has_value() || !is_row_major(*shown))
      return {"not-row-major", "the result of the first gather is not row-major"};
    const SymInt count = shown->num_elements();
    const SymInt offset = shown->offset;
    const DType dtype = shown->dtype;
    for (const NodeId view : views) {
      const ViewGeometry seen = view_geometry(graph_, view, *shown, [](NodeId) { return std::nullopt; });
      if (seen.outcome == ViewGeometry::Outcome::kSame) continue;
      if (seen.outcome == ViewGeometry::Outcome::kCopy) return {"copy", "%" + name(view) + " copies its input"};
      if (seen.outcome != ViewGeometry::Outcome::kView || seen.tensors.size() != 1) {
        return {"view", "the layout of %" + name(view) + " is unknown"};
      }
      shown = seen.tensors[0];
    }
    if (shown->dtype != dtype || !(shown->offset == offset) || !(shown->num_elements() == count) ||
        !is_row_major(*shown) || shown->conjugate || shown->negative) {
      return {"order", "the views between the gathers reorder the first result, or leave out a part of it"};
    }
    return is_divisible(inner, outer);
  }

  // Returns an obstacle if a rank's shard is not a whole number of rows of the last gather's input.
  Obstacle is_divisible(const Collective& inner, const Collective& outer) const {
    const std::span<const Dim> dims = graph_.module().dims(outer.input->sizes);
    if (!std::ranges::all_of(dims, &Dim::is_static)) return {"symbolic-sizes", "its sizes depend on symbols"};
    if (outer.input_bytes == 0) return {"empty", "its input has no elements"};
    if (!dims.empty() && dims[0].value % inner.ranks == 0) return {};
    return {"rows", "the number of rows of its input is not a multiple of the number of ranks of the earlier gather"};
  }

  // -- fusion of chains

  // Fuses the longest possible run of two or more gathers. Then fuses the gathers before and after
  // the run in the same way.
  void fuse(const std::vector<size_t>& chain) {
    for (size_t length = chain.size(); length > 1; --length) {
      for (size_t at = 0; at + length <= chain.size(); ++at) {
        const std::vector<size_t> run(chain.begin() + static_cast<std::ptrdiff_t>(at),
                                      chain.begin() + static_cast<std::ptrdiff_t>(at + length));
        if (!try_run(run)) continue;
        fuse({chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(at)});
        fuse({chain.begin() + static_cast<std::ptrdiff_t>(at + length), chain.end()});
        return;
      }
    }
  }

  bool try_run(const std::vector<size_t>& run) {
    Fusion fusion;
    fusion.members = run;
    const Obstacle obstacle = complete(fusion);
    if (!obstacle.code.empty()) {
      leave(run.back(), obstacle);
      return false;
    }
    reasons_.erase(run.back());
    fusions_.push_back(std::move(fusion));
    return true;
  }

  Obstacle complete(Fusion& fusion) {
    const Collective& first = collectives_[fusion.members.front()];
    const Collective& last = collectives_[fusion.members.back()];
    if (!own_place(graph_.module(), first.listed->ranks).has_value()) {
      return {"rank-unknown",
              "the file does not record its rank, or this rank is not in the group of the first gather"};
    }
    fusion.ranks = first.listed->ranks;
    for (size_t i = 1; i < fusion.members.size(); ++i) {
      std::optional<RankOrder> both =
          ranks_of_both(graph_.module(), fusion.ranks, collectives_[fusion.members[i]].listed->ranks);
      if (!both.has_value())
        return {"no-product",
                "the file does not show that the ranks of the two gathers together form one process group"};
      fusion.ranks = std::move(both->ranks);
      fusion.mesh = i == 1 || fusion.mesh == both->mesh ? both->mesh : nullptr;
    }
    // If several groups match, take the first by name: it is the same on all ranks.
    for (const ProcessGroup& group : graph_.module().groups) {
      if (group.ranks != fusion.ranks || group.backend != last.listed->backend) continue;
      const bool is_before =
          !fusion.group.is_valid() || graph_.module().text(group.uid) < graph_.module().text(fusion.group);
      if (is_before) fusion.group = group.uid;
    }
    if (!fusion.group.is_valid() && (!options_.create_groups || fusion.mesh == nullptr)) {
      return {"no-group", "no group of the file has the ranks " + format_numbers(fusion.ranks) + " in this order" +
                              (fusion.mesh == nullptr ? ", and the file has no mesh to create one from" : "")};
    }
    const NodeId source = first_argument(graph_, first.start);
    if (facts_.storages().input_bytes_change(first.start, first.start, last.waits.back())) {
      return {"written", "%" + name(source) + " is written to between the gathers"};
    }
    return is_dearer(fusion);
  }

  // All ranks must decide alike, even if their groups are spread over machines in different ways.
  // Therefore the slowest fused gather of all ranks is compared with the fastest gathers that it
  // replaces.
  Obstacle is_dearer(const Fusion& fusion) {
    if (options_.gate == FuseGate::kNone) return {};
    double apart = 0, one = 0;
    for (const size_t member : fusion.members) {
      std::optional<double> least;
      for (const std::vector<int64_t>& ranks : alike(fusion, collectives_[member].listed->ranks)) {
        const std::optional<double> part = seconds(ranks, collectives_[member]);
        if (!part.has_value()) return unknown_cost();
        least = std::min(least.value_or(*part), *part);
      }
      apart += least.value_or(0);
    }
    for (const std::vector<int64_t>& ranks : alike(fusion, fusion.ranks)) {
      const std::optional<double> whole = seconds(ranks, collectives_[fusion.members.front()]);
      if (!whole.has_value()) return unknown_cost();
      one = std::max(one, *whole);
    }
    if (one <= apart) return {};
    return {"dearer", "the fused gather would take " + microseconds(one) + ", but the gathers it replaces take " +
                          microseconds(apart)};
  }
  // The corresponding groups of all ranks of the mesh. Without a mesh, only the group `ranks`.
  static std::vector<std::vector<int64_t>> alike(const Fusion& fusion, const std::vector<int64_t>& ranks) {
    return fusion.mesh == nullptr ? std::vector<std::vector<int64_t>>{ranks} : alike_groups(*fusion.mesh, ranks);
  }
  std::optional<double> seconds(const std::vector<int64_t>& ranks, const Collective& gather) {
    if (!gather.input_bytes.has_value()) return std::nullopt;
    const auto [found, is_new] = seconds_.try_emplace({ranks, *gather.input_bytes});
    if (is_new) {
      const Cost cost = costs_.collective(CollectiveKind::kAllGather, ranks, *gather.input_bytes);
      if (cost.num_collectives(CostBasis::kUnknown) == 0) found->second = cost.link_seconds;
    }
    return found->second;
  }
  static std::string microseconds(double seconds) { return format_double(std::round(seconds * 1e7) / 10) + " us"; }
  Obstacle unknown_cost() {
    has_unknown_cost_ = true;
    return {};
  }

  // -- remarks and warnings

  void leave(size_t place, const Obstacle& obstacle) { reasons_[place] = obstacle; }

  void report_unchanged() {
    for (const auto& [place, obstacle] : reasons_) {
      result_.remark(graph_, collectives_[place].start, obstacle.code, "not fused: " + obstacle.text);
    }
    if (!reasons_.empty()) {
      const auto& [place, obstacle] = *reasons_.begin();
      result_.remark(graph_, "left-out",
                     count_with_first(std::ssize(reasons_), " nested gather is not fused",
                                      " nested gathers are not fused", "%" + name(collectives_[place].start)) +
                         ". Reason: " + obstacle.text);
    }
    if (has_unknown_cost_ && !fusions_.empty()) {
      result_.warn(
          graph_, "cost-unknown",
          "gathers are fused without comparing costs, because the times of gathers are unknown (set --device)");
    }
  }

  std::string name(NodeId node) const { return std::string(graph_.name_of(node)); }
  std::string both(NodeId node, const Collective& outer) const {
    return "%" + name(node) + " and %" + name(outer.start);
  }

  const Graph& graph_;
  Facts& facts_;
  const FuseGathersOptions& options_;
  const PassContext& context_;
  PassResult& result_;
  const std::vector<Collective> collectives_ =
      find_collectives(graph_, symbol_values(graph_.module(), context_.measure.memory.symbols));
  SymInts integers_{graph_.module()};
  CostTable costs_{graph_, context_.costs};
  IdMap<NodeId, bool> is_awaited_ = control_targets(graph_);                           // by a control dependency
  std::map<std::pair<std::vector<int64_t>, int64_t>, std::optional<double>> seconds_;  // by ranks and bytes
  std::map<NodeId, size_t> by_start_;
  std::vector<std::optional<Link>> links_ = std::vector<std::optional<Link>>(collectives_.size());
  std::vector<Fusion> fusions_;
  std::map<size_t, Obstacle> reasons_;  // in schedule order
  bool has_unknown_cost_ = false;
};

// Divides the schedule at calls with unknown effects and at barriers.
class Worlds {
 public:
  Worlds(const Graph& graph, EffectMap& effects) : before_(graph.num_ids(), 0) {
    uint32_t count = 0;
    for (const NodeId node : graph.nodes()) {
      before_[node] = count;
      count += graph[node].runs() && effects.has(node, Effect::kOpaque | Effect::kBarrier) ? 1 : 0;
    }
  }
  bool are_one(NodeId a, NodeId b) const { return before_.get(a) == before_.get(b); }

 private:
  IdMap<NodeId, uint32_t> before_;
};

// Adds the group of a fusion to the module's table, named by its dimensions in the mesh's order.
StringId make_group(Module& module, const Fusion& fusion, const std::vector<Collective>& collectives) {
  ProcessGroup group;
  std::vector<std::string> names;
  for (size_t i = fusion.members.size(); i-- > 0;) {
    const ProcessGroup& part = *find_group(module, collectives[fusion.members[i]].group.uid);
    for (const StringId dim : dims_along(*fusion.mesh, part.ranks)) {
      names.emplace_back(module.text(dim));
      group.mesh_dims.push_back(dim);
    }
    group.backend = part.backend;
  }
  std::string uid = std::string(module.text(fusion.mesh->name)) + "_" + join(names, "_");
  while (find_group(module, module.intern(uid)) != nullptr) uid += "_";
  group.uid = module.intern(uid);
  group.ranks = fusion.ranks;
  group.mesh = fusion.mesh->name;
  group.made_by_pass = true;
  group.made_by = module.intern(kFuseGathers);
  module.groups.push_back(std::move(group));
  return module.groups.back().uid;
}

class FusedWriter {
 public:
  FusedWriter(Graph& graph, const PhaseMap& phases, PassResult& result)
      : graph_(graph), result_(result), replacer_(graph, phases, kFuseGathers) {}

  void run(const Planner& plan, const std::vector<Fusion>& fusions) {
    for (const Fusion& fusion : fusions) write(plan, fusion);
    replacer_.finish();
  }

 private:
  void write(const Planner& plan, const Fusion& fusion) {
    const Collective& first = plan.collectives()[fusion.members.front()];
    const Collective& last = plan.collectives()[fusion.members.back()];
    const NodeId source = first_argument(graph_, first.start);
    const NodeId place = fusion.is_early ? first.start : last.start;
    const NodeId given = in_rows(source, last, static_cast<int64_t>(fusion.ranks.size()), place);
    ArgStack stack(graph_.pool());
    stack.push(Arg::node(given));
    stack.push(Arg::integer(static_cast<int64_t>(fusion.ranks.size())));
    stack.push(Arg::string(fusion.group));
    graph_.set_args(last.start, stack.take(0), ArgRange());
    if (fusion.is_early) graph_.move_before(last.start, first.start);
    result_.claim(graph_, last.start, RewriteRule::kGathers);
    for (size_t i = fusion.members.size(); i-- > 1;) {
      const Link& link = plan.link(fusion.members[i]);
      const Collective& inner = plan.collectives()[link.inner];
      for (auto view = link.views.rbegin(); view != link.views.rend(); ++view) erase(*view, last.start);
      erase(inner.waits.front(), last.start);
      erase(inner.start, last.start);
      result_.count("fused");
    }
  }

  // The gather's input, viewed so that the fused gather has the sizes of the last gather's result.
  NodeId in_rows(NodeId source, const Collective& last, int64_t ranks, NodeId place) {
    Module& module = graph_.module();
    std::vector<Dim> dims = module.dims(last.output->sizes);
    dims[0].value /= ranks;
    const DimsId sizes = module.dims(dims);
    if (single_tensor(graph_, source)->sizes == sizes) return source;
    const NodeId view = insert_view(graph_, source, sizes, place, last.start);
    copy_tag(graph_, view, last.start);
    add_origin(graph_, view, last.start, OriginKind::kReplaced, pass_);
    return view;
  }

  void erase(NodeId node, NodeId by) {
    if (graph_.op(node).has(Effect::kCollective)) add_merged_origin(graph_, by, node, pass_);
    replacer_.erase_unread(node);
    replacer_.hand_over(node, by);
  }

  Graph& graph_;
  PassResult& result_;
  Replacer replacer_;
  StringId pass_ = graph_.module().intern(kFuseGathers);
};

bool keeps_peak(const Graph& graph, Facts& facts, const Planner& plan, const std::vector<Fusion>& fusions,
                const MemoryOptions& memory) {
  const PeakBound bound(graph, facts, memory, 0);
  const std::unique_ptr<Module> copy = graph.module().clone();
  PassResult ignored;
  FusedWriter(copy->graph(graph.id()), facts.phases(), ignored).run(plan, fusions);
  ModuleFacts known(*copy);
  return bound.measure(copy->graph(graph.id()), known.of(copy->graph(graph.id()))).is_within();
}

// Finds the fusions that may be issued early. An early gather must not move past a call with
// unknown effects or past another collective.
void find_early(const Graph& graph, Facts& facts, const Planner& plan, std::vector<Fusion>& fusions) {
  const Worlds worlds(graph, facts.effects());
  std::set<uint32_t> places;  // the places of all collectives, updated for each fusion
  for (const Collective& one : plan.collectives()) places.insert(graph.position(one.start));
  for (const Fusion& fusion : fusions) {  // fused members are erased
    for (const size_t member : fusion.members) places.erase(graph.position(plan.collectives()[member].start));
  }
  for (Fusion& fusion : fusions) {
    const uint32_t first = graph.position(plan.collectives()[fusion.members.front()].start);
    const uint32_t last = graph.position(plan.collectives()[fusion.members.back()].start);
    const auto next = places.lower_bound(first);
    const bool passes_one = next != places.end() && *next < last;
    fusion.is_early = !passes_one && worlds.are_one(plan.collectives()[fusion.members.front()].start,
                                                    plan.collectives()[fusion.members.back()].start);
    places.insert(fusion.is_early ? first : last);
  }
}

void say_groups(const Graph& graph, const std::vector<Fusion>& fusions, PassResult& result) {
  std::vector<StringId> said;
  for (const Fusion& fusion : fusions) {
    if (std::ranges::count(said, fusion.group) > 0) continue;
    said.push_back(fusion.group);
    const ProcessGroup& group = *find_group(graph.module(), fusion.group);
    const std::string uid = "'" + std::string(graph.module().text(group.uid)) + "'";
    if (group.made_by_pass && graph.module().text(group.made_by) == kFuseGathers) {
      result.warn(graph, "groups-created",
                  "process group " + uid + " of the ranks " + format_numbers(group.ranks) +
                      " is new: every rank must create it before the step, with the ranks in this order");
    }
    if (fusion.mesh == nullptr) {
      result.warn(graph, "ranks-assumed",
                  "the file lists no device mesh for the groups of the fused gathers. A gather over group " + uid +
                      " (ranks " + format_numbers(group.ranks) +
                      ") returns the tensor's rows in the right order only if the device mesh numbers its ranks in "
                      "row-major order");
    }
  }
}

}  // namespace

Result<PassResult> fuse_gathers(Graph& graph, const FuseGathersOptions& options, PassContext& context) {
  PassResult result;
  Facts& facts = context.facts.of(graph);
  if (warn_if_differentiated(facts, "nothing is fused", result)) return result;
  Planner planner(graph, facts, options, context, result);
  std::vector<Fusion> fusions = planner.run();
  if (fusions.empty()) return result;
  std::map<std::vector<int64_t>, StringId> made;
  for (Fusion& fusion : fusions) {
    if (fusion.group.is_valid()) continue;
    StringId& group = made[fusion.ranks];
    if (!group.is_valid()) {
      group = make_group(graph.module(), fusion, planner.collectives());
      result.count("groups");
    }
    fusion.group = group;
  }
  find_early(graph, facts, planner, fusions);
  if (!keeps_peak(graph, facts, planner, fusions, context.measure.memory)) {
    for (Fusion& fusion : fusions) fusion.is_early = false;
  }
  say_groups(graph, fusions, result);
  FusedWriter(graph, facts.phases(), result).run(planner, fusions);
  return result;
}

}  // namespace fxopt
