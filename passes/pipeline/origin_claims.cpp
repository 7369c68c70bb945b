#include "passes/pipeline/origin_claims.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ir/alias/collectives.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

class Collector {
 public:
  Collector(const Module& before, const Module& after, const std::vector<RewriteRule>& rules)
      : before_(before), after_(after), rewrites_(rules) {}

  std::vector<Claim> run() {
    for (const GraphId id : after_.graphs()) {
      const Graph& graph = after_.graph(id);
      name_ = after_.text(graph.name());
      known_.clear();
      const Graph* other = same_graph();
      read_origins(graph, other);
      // If a bucket is made, every other collective of its kind may move in the schedule. Also,
      // recomputed copies of its members may not be bucketed, but return the same values as the
      // bucket's parts.
      const std::set<RewriteRule> bucketed = rules_of_buckets(graph);
      for (const Graph* each : {other, &graph}) {
        if (each == nullptr) continue;
        for (const NodeId node : each->nodes()) {
          const std::optional<RewriteRule> rule = is_of_bucket(*each, node) ? std::nullopt : bucket_rule(*each, node);
          if (rule.has_value() && bucketed.count(*rule) > 0) claim((*each)[node].uid, *rule);
        }
      }
    }
    return std::move(claims_);
  }

 private:
  const Graph* same_graph() const {
    for (const GraphId id : before_.graphs()) {
      if (before_.text(before_.graph(id).name()) == name_) return &before_.graph(id);
    }
    return nullptr;
  }

  void read_origins(const Graph& graph, const Graph* other) {
    std::map<uint64_t, NodeId> by_uid;
    if (other != nullptr) {
      for (const NodeId node : other->nodes()) by_uid.emplace((*other)[node].uid, node);
    }
    for (const NodeId node : graph.nodes()) {
      const NodeExtra* extra = graph.extra(node);
      if (extra == nullptr) continue;
      for (const Origin& origin : extra->origins) {
        const std::string_view pass = after_.text(origin.pass);
        const auto old = by_uid.find(origin.uid);
        if (pass == "alias-round-trips") {
          claim(origin.uid, RewriteRule::kOwnShard);
          if (is_copy(graph, node) && origin.kind == OriginKind::kReplaced)
            claim(graph[node].uid, RewriteRule::kOwnShard);
        } else if (pass == "fuse-gathers" && graph[node].is_call() && graph.op(node).has(Effect::kCollective)) {
          claim(graph[node].uid, RewriteRule::kGathers);
        } else if (pass == "dedup-unshards" && (origin.kind == OriginKind::kReplaced || is_reduction(graph, node))) {
          claim(graph[node].uid, RewriteRule::kAddedReductions);
          claim(origin.uid, RewriteRule::kAddedReductions);
        } else if (pass == "bucket") {
          // If another pass made the replaced node, such as a recomputed copy, `before` does not
          // contain it.
          const std::optional<RewriteRule> rule =
              old != by_uid.end() ? bucket_rule(*other, old->second) : rule_of_slice(graph, node);
          if (!rule.has_value()) continue;
          if (hands_out(graph, node)) claim(graph[node].uid, *rule);
          claim(origin.uid, *rule);
        }
      }
    }
  }
  static std::set<RewriteRule> rules_of_buckets(const Graph& graph) {
    std::set<RewriteRule> rules;
    for (const NodeId node : graph.nodes()) {
      if (!graph.op(node).has(Effect::kCollective) || !is_of_bucket(graph, node)) continue;
      if (const std::optional<RewriteRule> rule = bucket_rule(graph, node)) rules.insert(*rule);
    }
    return rules;
  }

  // Whether the node is a bucket's call or replaces a member's result. The replacement is the copy
  // of a part, or the part if it is not copied. For a coalesced call, the replacement is the wait
  // for one result.
  static bool hands_out(const Graph& graph, NodeId node) {
    if (!graph[node].is_call()) return false;
    if (graph.op(node).has(Effect::kCollective) || is_copy(graph, node)) return true;
    if (graph.op(node).has(Effect::kWaits)) return is_item_of_call(graph, first_argument(graph, node));
    return graph.op(node).view == ViewKind::kProjection && !is_item_of_call(graph, node) &&
           std::ranges::none_of(graph.users(node),
                                [&graph](NodeId user) { return is_copy(graph, user) && is_of_bucket(graph, user); });
  }
  // The rule of the collective that the node takes its data from, through waits, views and copies.
  static std::optional<RewriteRule> rule_of_slice(const Graph& graph, NodeId node) {
    constexpr int kMaxSteps = 8;
    for (int step = 0; step < kMaxSteps && node.is_valid() && graph[node].is_call(); ++step) {
      if (graph.op(node).has(Effect::kCollective)) return bucket_rule(graph, node);
      node = first_argument(graph, node);
    }
    return std::nullopt;
  }
  static bool is_of_bucket(const Graph& graph, NodeId node) {
    const NodeExtra* extra = graph.extra(node);
    return extra != nullptr && std::ranges::any_of(extra->origins, [&graph](const Origin& origin) {
             return graph.module().text(origin.pass) == "bucket";
           });
  }
  static bool is_copy(const Graph& graph, NodeId node) {
    return graph[node].is_call() && graph.op(node).name == "aten.clone.default";
  }
  // True for a result of a collective that has one result per member.
  static bool is_item_of_call(const Graph& graph, NodeId node) {
    if (!node.is_valid() || !graph[node].is_call() || graph.op(node).view != ViewKind::kProjection) return false;
    const NodeId list = first_argument(graph, node);
    return list.is_valid() && graph[list].is_call() && graph.op(list).has(Effect::kCollective);
  }

  // The rule for a collective, or for the wait for one.
  static std::optional<RewriteRule> bucket_rule(const Graph& graph, NodeId node) {
    if (!graph[node].is_call()) return std::nullopt;
    if (graph.op(node).has(Effect::kWaits)) {
      const NodeId start = first_argument(graph, node);
      return start.is_valid() && graph[start].is_call() && !graph.op(start).has(Effect::kWaits)
                 ? bucket_rule(graph, start)
                 : std::nullopt;
    }
    if (!graph.op(node).has(Effect::kCollective)) return std::nullopt;
    if (collective_kind(graph.op(node)) == CollectiveKind::kAllGather) return RewriteRule::kBucket;
    return is_reduction(graph, node) ? std::optional(RewriteRule::kBucketedReduction) : std::nullopt;
  }
  static bool is_reduction(const Graph& graph, NodeId node) {
    if (!graph[node].is_call() || !graph.op(node).has(Effect::kCollective)) return false;
    const CollectiveKind kind = collective_kind(graph.op(node));
    return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllReduce;
  }

  void claim(uint64_t uid, RewriteRule rule) {
    const bool is_new = std::ranges::count(rewrites_, rule) > 0 && known_.emplace(uid, rule).second;
    if (is_new) claims_.push_back({name_, uid, rule});
  }

  const Module& before_;
  const Module& after_;
  const std::vector<RewriteRule>& rewrites_;
  std::string name_;
  std::map<uint64_t, RewriteRule> known_;  // in this graph; each node has at most one
  std::vector<Claim> claims_;
};

}  // namespace

std::vector<Claim> claims_by_origins(const Module& before, const Module& after, const std::vector<RewriteRule>& rules) {
  return rules.empty() ? std::vector<Claim>() : Collector(before, after, rules).run();
}

bool may_follow_from(const Graph& graph, NodeId call, const std::vector<RewriteRule>& rules) {
  const auto is_allowed = [&rules](RewriteRule rule) { return std::ranges::count(rules, rule) > 0; };
  const auto is_of_law = [&](NodeId node) {
    return graph.op(node).has(Effect::kCollective | Effect::kWaits) &&
           std::ranges::any_of(rules, [](RewriteRule rule) { return rule != RewriteRule::kPart; });
  };
  if (const NodeExtra* extra = graph.extra(call)) {
    for (const Origin& origin : extra->origins) {
      const std::string_view pass = graph.module().text(origin.pass);
      const bool made =
          (pass == "bucket" && (is_allowed(RewriteRule::kBucket) || is_allowed(RewriteRule::kBucketedReduction))) ||
          (pass == "fuse-gathers" && is_allowed(RewriteRule::kGathers)) ||
          (pass == "alias-round-trips" && is_allowed(RewriteRule::kOwnShard)) ||
          (pass == "dedup-unshards" && is_allowed(RewriteRule::kAddedReductions));
      if (made) return true;
    }
  }
  if (is_of_law(call)) return true;
  constexpr int kMaxSteps = 8;
  const auto moves_data = [&graph](NodeId node) {
    return graph[node].is_call() &&
           (graph.op(node).compute == ComputeClass::kView || graph.op(node).compute == ComputeClass::kDataMovement);
  };
  for (const bool is_up : {true, false}) {
    NodeId node = call;
    for (int step = 0; step < kMaxSteps && node.is_valid() && moves_data(node); ++step) {
      const std::vector<NodeId> users = is_up ? std::vector<NodeId>() : graph.users(node);
      node = is_up ? first_argument(graph, node) : users.empty() ? NodeId() : users.front();
      if (node.is_valid() && is_of_law(node)) return true;
    }
  }
  return false;
}

}  // namespace fxopt
