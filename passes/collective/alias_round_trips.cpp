#include "passes/collective/alias_round_trips.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/alias/collective_table.h"
#include "ir/alias/effects.h"
#include "ir/alias/order.h"
#include "ir/alias/rank_order.h"
#include "ir/alias/sizes.h"
#include "ir/alias/view_geometry.h"
#include "ir/step/marks.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"
#include "passes/collective/obstacle.h"
#include "passes/pass/nodes.h"
#include "passes/pass/provenance.h"
#include "passes/pass/replacer.h"

namespace fxopt {
namespace {

constexpr std::string_view kAliasRoundTrips = "alias-round-trips";

// A slice (`cut`) of a gathered tensor, which the gather's input (the source) can replace.
struct RoundTrip {
  NodeId cut;
  NodeId gather;
  bool is_same;    // the cut has the source's sizes and strides
  bool is_on_all;  // the slice index is a rank symbol: on every rank, the slice is the own shard
  bool is_copied;  // the cut is not row-major, and all of its users copy it
};

class Finder {
 public:
  Finder(const Graph& graph, Facts& facts, PassResult& result) : graph_(graph), facts_(facts), result_(result) {}

  std::vector<RoundTrip> run(const std::vector<Collective>& collectives) {
    for (const Collective& one : collectives) {
      if (one.kind == CollectiveKind::kAllGather) look_behind(one);
    }
    if (stays_ > 0) {
      result_.remark(graph_, "left-out",
                     count_with_first(stays_, " slice of a gathered tensor is not replaced by the rank's own shard",
                                      " slices of gathered tensors are not replaced by the rank's own shard", first_));
    }
    if (!is_rank_known_) {
      result_.warn(
          graph_, "rank-unknown",
          "the file does not record a rank, or the rank is not in the gather's group. No slice is therefore known "
          "to be the rank's own shard");
    }
    return std::move(found_);
  }

 private:
  void look_behind(const Collective& one) {
    if (!graph_.op(one.start).writes.empty()) return;  // writes into an existing tensor
    if (one.listed == nullptr || !one.sizes_fit() || one.waits.empty() || one.input_bytes == 0) return;
    if (one.ranks != static_cast<int64_t>(one.listed->ranks.size())) return;
    std::optional<Geometry> given = geometry_of(graph_.module(), integers_, *one.input);
    std::optional<Geometry> made = geometry_of(graph_.module(), integers_, *one.output);
    if (!given.has_value() || !made.has_value() || !is_row_major(*given) || !is_row_major(*made)) return;
    if (!(made->num_elements() == given->num_elements() * SymInt(one.ranks)) || one.ranks < 2) return;
    if (!given->num_elements().is_static() || given->dtype != made->dtype) return;
    if (!own_place(graph_.module(), one.listed->ranks).has_value()) {
      is_rank_known_ = false;
      return;
    }
    gather_ = &one;
    given_ = *given;
    seen_.clear();
    joined_.clear();
    for (const NodeId wait : one.waits) follow(wait, *made);
    std::vector<NodeId> joined = std::move(joined_);
    std::ranges::sort(joined, {}, [this](NodeId node) { return graph_.position(node); });
    joined.erase(std::unique(joined.begin(), joined.end()), joined.end());
    for (const NodeId node : joined) follow_joined(node);
  }

  // Follows a cat that joins all shards, whole and in order, along a dimension after the first.
  void follow_joined(NodeId node) {
    const Tensor* recorded = single_tensor(graph_, node);
    const CallArgs args(graph_, node);
    const std::optional<int64_t> dim = args[1].as_int();
    if (recorded == nullptr || !dim.has_value()) return;
    const std::span<const Arg> parts = args[0].items();
    if (static_cast<int64_t>(parts.size()) != gather_->ranks) return;
    Geometry part;
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto found = parts[i].is(ArgKind::kNode) ? seen_.find(parts[i].as_node()) : seen_.end();
      if (found == seen_.end() || !is_part(found->second, static_cast<int64_t>(i))) return;
      if (i == 0) part = found->second;
      if (found->second.sizes != part.sizes) return;
    }
    const int64_t rank = static_cast<int64_t>(part.rank());
    const int64_t along = *dim < 0 ? *dim + rank : *dim;
    if (along < 1 || along >= rank) return;
    const size_t at = static_cast<size_t>(along);
    Geometry whole = part;
    whole.offset = SymInt(0);
    whole.sizes[at] = part.sizes[at] * SymInt(gather_->ranks);
    whole.strides = row_major_strides(whole.sizes);
    const std::optional<Geometry> made = geometry_of(graph_.module(), integers_, *recorded);
    const SymInt step = whole.strides[at] * part.sizes[at];
    if (!made.has_value() || !same_geometry(whole, *made) || !step.is_static()) return;
    slice_ = Slice{node, part.sizes, whole.strides, step.value()};
    follow(node, whole);
    slice_.reset();
  }
  bool is_part(const Geometry& shown, int64_t place) const {
    return is_shard(shown) && shown.offset.is(place * given_.num_elements().value());
  }
  // Whether the view has as many elements as a shard, in row-major order.
  bool is_shard(const Geometry& shown) const {
    return shown.dtype == given_.dtype && !shown.conjugate && !shown.negative && is_row_major(shown) &&
           shown.num_elements().is(given_.num_elements().value());
  }

  // Follows views, and elements of lists of views, up to the first node on each path that is the
  // rank's own shard.
  void follow(NodeId from, const Geometry& shown) {
    struct Step {
      NodeId node;
      std::vector<Geometry> shown;
    };
    std::vector<Step> open = {{from, {shown}}};
    std::set<NodeId> met;
    std::vector<std::pair<NodeId, Geometry>> own;
    while (!open.empty()) {
      const Step step = take_last(open);
      for (const NodeId user : graph_.users(step.node)) {
        if (!slice_.has_value() && is_cat(user)) joined_.push_back(user);
        std::optional<std::vector<Geometry>> seen = shown_by(user, step.node, step.shown);
        if (!seen.has_value() || !met.insert(user).second) continue;
        if (seen->size() == 1 && !is_list(user)) {
          if (!slice_.has_value()) seen_.insert_or_assign(user, (*seen)[0]);
          if (slice_.has_value() ? is_own_slice((*seen)[0]) : is_own((*seen)[0])) {
            own.emplace_back(user, (*seen)[0]);
            continue;
          }
        }
        open.push_back({user, std::move(*seen)});
      }
    }
    for (const auto& [node, geometry] : own) {
      if (slice_.has_value() || !is_among_shards(node)) offer(node, geometry);
    }
  }

  // Whether the only users are cats that also take other views of the gather. The gather is needed
  // anyway then.
  bool is_among_shards(NodeId node) const {
    return graph_.has_users(node) && std::ranges::all_of(graph_.users(node), [&](NodeId user) {
             return is_cat(user) &&
                    any_input(graph_, user, [&](NodeId input) { return input != node && seen_.contains(input); });
           });
  }

  bool is_cat(NodeId node) const { return graph_[node].is_call() && graph_.op(node).name == "aten.cat.default"; }
  bool is_list(NodeId node) const { return single_tensor(graph_, node) == nullptr; }

  // The geometry of a view's results; nothing if the node is not a view.
  std::optional<std::vector<Geometry>> shown_by(NodeId node, NodeId of, const std::vector<Geometry>& shown) {
    if (!graph_[node].is_call() || !graph_.op(node).is_pure()) return std::nullopt;
    const ViewKind kind = view_of_call(graph_, node);
    if (kind == ViewKind::kProjection) {
      const std::optional<int64_t> index = CallArgs(graph_, node)[1].as_int();
      if (!index.has_value() || !is_list(of)) return std::nullopt;
      const int64_t count = static_cast<int64_t>(shown.size());
      const int64_t place = *index < 0 ? *index + count : *index;
      if (place < 0 || place >= count) return std::nullopt;
      return std::vector<Geometry>{shown[static_cast<size_t>(place)]};
    }
    if (kind == ViewKind::kNone || is_list(of) || first_argument(graph_, node) != of) return std::nullopt;
    ViewGeometry seen = view_geometry(graph_, node, shown[0], [](NodeId) { return std::nullopt; });
    if (seen.outcome == ViewGeometry::Outcome::kSame) return shown;
    if (seen.outcome == ViewGeometry::Outcome::kView) return std::move(seen.tensors);
    // view_geometry() does not know the bounds of symbols: use the recorded geometry.
    const Tensor* recorded = single_tensor(graph_, node);
    if (seen.outcome != ViewGeometry::Outcome::kUnknown || recorded == nullptr) return std::nullopt;
    std::optional<Geometry> believed = geometry_of(graph_.module(), integers_, *recorded);
    if (!believed.has_value() || !is_slice(node, shown[0], *believed)) return std::nullopt;
    return std::vector<Geometry>{std::move(*believed)};
  }

  // Whether the recorded geometry is that of the slice, if the bounds of the slice are in range.
  bool is_slice(NodeId node, const Geometry& from, const Geometry& recorded) {
    if (graph_.op(node).name != "aten.slice.Tensor" || graph_.pool().args(graph_[node].args).size() != 4) return false;
    const CallArgs args(graph_, node);
    const auto of_expr = [this](const Arg& arg) {
      return arg.is(ArgKind::kExpr) ? std::optional<SymInt>(integers_.of(arg.as_expr())) : std::nullopt;
    };
    const std::optional<SymInt> dim = args[1].sym_int(of_expr), start = args[2].sym_int(of_expr);
    const std::optional<SymInt> end = args[3].sym_int(of_expr);
    if (!dim.has_value() || !start.has_value() || !end.has_value() || !dim->is_static()) return false;
    const int64_t at = dim->value() < 0 ? dim->value() + static_cast<int64_t>(from.rank()) : dim->value();
    if (at < 0 || at >= static_cast<int64_t>(from.rank())) return false;
    Geometry cut = from;
    const size_t place = static_cast<size_t>(at);
    cut.sizes[place] = *end - *start;
    cut.offset = from.offset + *start * from.strides[place];
    return same_geometry(cut, recorded) && recorded.offset == cut.offset;
  }

  bool is_own(const Geometry& shown) const {
    return is_shard(shown) &&
           is_own_place(graph_.module(), gather_->listed->ranks, shown.offset, given_.num_elements().value());
  }

  // Like is_own(), but for shards that a cat joined along a later dimension.
  bool is_own_slice(const Geometry& shown) const {
    Geometry wanted = shown;
    wanted.strides = slice_->strides;
    return shown.dtype == given_.dtype && !shown.conjugate && !shown.negative && shown.sizes == slice_->part_sizes &&
           same_geometry(shown, wanted) &&
           is_own_place(graph_.module(), gather_->listed->ranks, shown.offset, slice_->step);
  }

  // -- obstacles

  void offer(NodeId cut, const Geometry& shown) {
    const NodeId source = first_argument(graph_, gather_->start);
    const auto [code, text] = find_obstacle(cut, source);
    if (!code.empty()) {
      result_.remark(graph_, cut, code, "not replaced by the rank's own shard: " + text);
      if (stays_++ == 0) first_ = "%" + std::string(graph_.name_of(cut)) + ". Reason: " + text;
      return;
    }
    Geometry moved = given_;
    moved.offset = shown.offset;
    const bool is_same = slice_.has_value() ? given_.sizes == shown.sizes : same_geometry(moved, shown);
    found_.push_back({cut, gather_->start, is_same, !shown.offset.is_static(), slice_.has_value()});
    if (!slice_.has_value()) taken_.emplace(cut, root_of(source));
  }

  Obstacle find_obstacle(NodeId cut, NodeId source) {
    const StorageMap& storages = facts_.storages();
    for (const NodeId node : {cut, gather_->start, gather_->waits.front()}) {
      if (stream_of(graph_, node) != stream_of(graph_, source))
        return {"streams", "the streams of the gather, of its input and of the slice are not the same"};
    }
    if (facts_.phases().is_backward(cut) != facts_.phases().is_backward(gather_->start)) {
      return {"phases", "the gather and the slice are in different phases"};
    }
    if (are_decided_apart(graph_, facts_.phases(), cut, source)) {
      return {"saved", "the slice is to be saved, but the gather's input is to be recomputed"};
    }
    if (const NodeId marked = marked_between(cut, source); marked.is_valid()) {
      return {"marked", "a first partition saved %" + std::string(graph_.name_of(marked)) +
                            " (ap_must_save), but not %" + std::string(graph_.name_of(source))};
    }
    if (is_awaited_[cut]) return {"held", "another node has a control dependency on the slice"};
    if (is_held(graph_, cut)) return {"held", "the slice has a control dependency or an event"};
    if (storages.metadata_changes_after(cut) || storages.metadata_changes_after(source)) {
      return {"changed-in-place", "the sizes of the slice or of the gather's input change in place"};
    }
    if (slice_.has_value()) {
      for (const NodeId user : graph_.users(cut)) {
        if (copies_row_by_row(user)) continue;
        return {"strides", "the slice is not row-major, and its user %" + std::string(graph_.name_of(user)) +
                               " is not a plain copy. The result of this user may depend on the strides of the slice"};
      }
    }
    NodeId last = cut;
    if (Obstacle obstacle = find_obstacle_at_users(cut, source, last); !obstacle.code.empty()) return obstacle;
    return find_write(source, graph_.next(last));
  }

  // Sets `last` to the last node that reads the cut or a view of the cut.
  Obstacle find_obstacle_at_users(NodeId cut, NodeId source, NodeId& last) const {
    std::vector<NodeId> open = {cut};
    std::set<NodeId> met;
    while (!open.empty()) {
      const NodeId node = take_last(open);
      for (const NodeId user : graph_.users(node)) {
        if (graph_[user].kind == NodeKind::kOutput) return {"returned", "the graph returns the slice"};
        if (stream_of(graph_, user) != stream_of(graph_, source)) {
          return {"streams", "the slice is read on another stream"};
        }
        // A collective reads its inputs until its wait.
        for (const NodeId end : graph_[user].is_call() && graph_.op(user).has(Effect::kCollective)
                                    ? graph_.users(user)
                                    : std::vector<NodeId>()) {
          if (graph_.position(end) > graph_.position(last)) last = end;
        }
        if (graph_.position(user) > graph_.position(last)) last = user;
        if (sees_storage(graph_, user)) {
          return {"storage", "%" + std::string(graph_.name_of(user)) + " may read memory outside the slice's elements"};
        }
        if (shares_memory(user, node) && met.insert(user).second) open.push_back(user);
      }
    }
    return {};
  }

  // Returns a write, before `end`, to a tensor that would be read instead of the cut, or to the
  // gather's result.
  Obstacle find_write(NodeId source, NodeId end) const {
    const StorageMap& storages = facts_.storages();
    for (const NodeId given : {source, root_of(source)}) {
      if (storages.written_between(storages.buffers(given)[0], gather_->start, end)) {
        return {"written",
                "an in-place op writes to the memory of the shard (%" + std::string(graph_.name_of(given)) + ")"};
      }
    }
    if (storages.written_between(storages.buffers(gather_->start)[0], gather_->waits.front(), end)) {
      return {"written", "the gather's result is written to"};
    }
    if (slice_.has_value() && storages.written_between(storages.buffers(slice_->cat)[0], slice_->cat, end)) {
      return {"written", "the sliced tensor %" + std::string(graph_.name_of(slice_->cat)) + " is written to"};
    }
    return {};
  }
  // If the source is not marked, returns a marked value between the gather and the cut. Backward
  // has the marked value, but would have to recompute the source.
  NodeId marked_between(NodeId cut, NodeId source) const {
    if (!graph_[source].is_call() || is_marked_saved(graph_, source) || facts_.phases().is_backward(cut))
      return NodeId();
    std::vector<NodeId> open = {cut};
    std::set<NodeId> met;
    while (!open.empty()) {
      const NodeId node = take_last(open);
      if (node != cut && is_marked_saved(graph_, node)) return node;
      graph_.for_each_input(node, [&](NodeId input) {
        if (graph_.position(input) >= graph_.position(gather_->start) && met.insert(input).second)
          open.push_back(input);
      });
    }
    return NodeId();
  }
  // If `source` is an earlier cut or a view of an earlier cut, returns the node that replaces that
  // cut. Otherwise returns `source`.
  NodeId root_of(NodeId source) const {
    for (NodeId node = source; node.is_valid();) {
      if (const auto taken = taken_.find(node); taken != taken_.end()) return taken->second;
      const bool is_view = graph_[node].is_call() && view_of_call(graph_, node) != ViewKind::kNone;
      node = is_view ? first_argument(graph_, node) : NodeId();
    }
    return source;
  }
  // Whether the node is a copy that is row-major for any input strides.
  bool copies_row_by_row(NodeId node) {
    if (!graph_[node].is_call() || graph_.op(node).name != "aten.clone.default") return false;
    const MemoryFormat format = CallArgs(graph_, node)[1].as_memory_format().value_or(MemoryFormat::kPreserve);
    if (format != MemoryFormat::kContiguous && format != MemoryFormat::kPreserve) return false;
    const Tensor* recorded = single_tensor(graph_, node);
    const std::optional<Geometry> made =
        recorded == nullptr ? std::nullopt : geometry_of(graph_.module(), integers_, *recorded);
    return made.has_value() && is_row_major(*made) && made->offset.is(0);
  }
  bool shares_memory(NodeId a, NodeId b) const {
    const StorageMap& storages = facts_.storages();
    return std::ranges::any_of(storages.buffers(a), [&](BufferId x) {
      return x.is_valid() && std::ranges::any_of(storages.buffers(b), [&](BufferId y) {
               return y.is_valid() && storages.alias_class(x) == storages.alias_class(y);
             });
    });
  }

  const Graph& graph_;
  Facts& facts_;
  PassResult& result_;
  SymInts integers_{graph_.module()};
  IdMap<NodeId, bool> is_awaited_ = control_targets(graph_);  // by a control dependency
  const Collective* gather_ = nullptr;
  Geometry given_;
  std::map<NodeId, Geometry> seen_;  // views of the gather
  std::vector<NodeId> joined_;       // cats of these views
  // The cat whose views are followed. Its parts are `step` elements apart. Without a value, the
  // views of the gather are followed.
  struct Slice {
    NodeId cat;
    std::vector<SymInt> part_sizes, strides;
    int64_t step;
  };
  std::optional<Slice> slice_;
  std::vector<RoundTrip> found_;
  std::map<NodeId, NodeId> taken_;  // cuts, with the nodes that finally replace them
  bool is_rank_known_ = true;
  int64_t stays_ = 0;
  std::string first_;
};

// Erases the nodes between gathers and cuts that have no users left, and the gathers if allowed.
class Dropper {
 public:
  Dropper(Graph& graph, Replacer& replacer, PassResult& result) : graph_(graph), replacer_(replacer), result_(result) {}

  // Adds the last node of a path from a gather to a cut, and whether the gather may be erased.
  void add(NodeId from, bool may_go) {
    const auto [at, is_new] = ends_.emplace(from, may_go);
    if (!is_new) at->second = at->second && may_go;
  }

  // Returns the gathers without users that are kept.
  std::set<NodeId> run() {
    std::set<NodeId> stays;
    for (const auto& [from, may_go] : ends_) drop(from, may_go, stays);
    return stays;
  }

 private:
  void drop(NodeId from, bool with_gathers, std::set<NodeId>& stays) {
    std::vector<NodeId> open = {from};
    while (!open.empty()) {
      const NodeId node = take_last(open);
      if (graph_[node].erased || !graph_[node].is_call()) continue;
      drop_other_parts(node);
      if (graph_.has_users(node) || is_held(graph_, node)) continue;
      const bool waits = graph_.op(node).has(Effect::kWaits), gathers = graph_.op(node).has(Effect::kCollective);
      if (waits || gathers) {
        const NodeId waited = waits ? first_argument(graph_, node) : node;
        const NodeId start = waited.is_valid() ? waited : node;  // a wait for a list of tensors is kept
        const bool may_go = with_gathers && waited.is_valid() && !is_awaited_.get(start) && !is_awaited_.get(node) &&
                            (!graph_[start].is_call() || !is_held(graph_, start));
        if (!may_go) {
          stays.insert(start);
          continue;
        }
      } else if (is_awaited_.get(node) || !graph_.op(node).is_pure()) {
        continue;
      }
      if (gathers) {
        result_.count("dropped");
      } else {
        graph_.for_each_input(node, [&open](NodeId input) { open.push_back(input); });
      }
      replacer_.erase_unread(node);
    }
  }

  // Erases list elements without users, as DTensor leaves them. Looks at each node once.
  void drop_other_parts(NodeId node) {
    if (!asked_.insert(node).second) return;
    for (const NodeId user : graph_.users(node)) {
      const bool is_part = graph_[user].is_call() && view_of_call(graph_, user) == ViewKind::kProjection;
      if (is_part && !graph_.has_users(user) && !is_awaited_.get(user) && !is_held(graph_, user)) {
        replacer_.erase_unread(user);
      }
    }
  }

  Graph& graph_;
  Replacer& replacer_;
  PassResult& result_;
  IdMap<NodeId, bool> is_awaited_ = control_targets(graph_);  // by a control dependency
  std::map<NodeId, bool> ends_;
  std::set<NodeId> asked_;
};

void remark_on_unread(const Graph& graph, const AliasRoundTripsOptions& options, const std::set<NodeId>& gathers,
                      PassResult& result) {
  if (gathers.empty()) return;
  const NodeId first = *gathers.begin();
  const std::string reason =
      options.drop_gathers == DropGathers::kShown ? "the file of a single rank does not show whether the other ranks "
                                                    "also remove the gather. To remove it, set drop-gathers=always, "
                                                    "and run 'fxopt ranks' on the results of all ranks"
      : options.drop_gathers == DropGathers::kNever
          ? "drop-gathers=never"
          : "a control dependency or an event involves the gather or its wait, or one wait takes several tensors";
  result.remark(graph, first, "unread",
                count_with_first(std::ssize(gathers), " gather without consumers is kept",
                                 " gathers without consumers are kept", "%" + std::string(graph.name_of(first))) +
                    ". Reason: " + reason);
}

}  // namespace

Result<PassResult> alias_round_trips(Graph& graph, const AliasRoundTripsOptions& options, PassContext& context) {
  PassResult result;
  Facts& facts = context.facts.of(graph);
  if (warn_if_differentiated(facts, "nothing is replaced", result)) return result;
  const std::vector<Collective> collectives =
      find_collectives(graph, symbol_values(graph.module(), context.measure.memory.symbols));
  const std::vector<RoundTrip> trips = Finder(graph, facts, result).run(collectives);
  Replacer replacer(graph, facts.phases(), kAliasRoundTrips);
  Dropper dropper(graph, replacer, result);
  const StringId pass = graph.module().intern(kAliasRoundTrips);
  int64_t by_number = 0;
  for (const RoundTrip& trip : trips) {
    const NodeId source = first_argument(graph, trip.gather);  // read now: an earlier trip may have replaced it
    const NodeId own =
        trip.is_same ? source : insert_view(graph, source, single_tensor(graph, trip.cut)->sizes, trip.cut, trip.cut);
    const bool may_go =
        options.drop_gathers == DropGathers::kAlways || (options.drop_gathers == DropGathers::kShown && trip.is_on_all);
    if (trip.is_copied) {
      for (const NodeId copy : graph.users(trip.cut)) {
        result.claim(graph, copy, RewriteRule::kOwnShard);
        add_origin(graph, copy, trip.cut, OriginKind::kReplaced, pass);
      }
      graph.replace_all_uses(trip.cut, own);
      replacer.give(trip.cut, own);
      dropper.add(trip.cut, may_go);
    } else {
      result.claim(graph, trip.cut, RewriteRule::kOwnShard);
      dropper.add(first_argument(graph, trip.cut), may_go);
      replacer.replace(trip.cut, own);
    }
    result.count("round-trips");
    by_number += trip.is_on_all ? 0 : 1;
  }
  if (by_number > 0) {
    result.warn(
        graph, "constant-index",
        std::to_string(by_number) + (by_number == 1 ? " slice selects" : " slices select") +
            " this rank's own shard by a constant index. The same index in the file of another rank would not select "
            "that rank's own shard. Run 'fxopt ranks' on the results of all ranks");
  }
  remark_on_unread(graph, options, dropper.run(), result);
  replacer.finish();
  return result;
}

}  // namespace fxopt
