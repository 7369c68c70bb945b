// Removes views that are what they view.
//
//   %a = alias(%x)                 %t = t(%x)
//   %b = neg(%a)        =>         %u = permute(%t, [1, 0])       =>      %b = neg(%x)
//                                  %b = neg(%u)
//
// Law    Two tensors on one storage with the same dtype, sizes, strides, offset, device, conjugate and negative bits
// are
//        the same tensor. So no op's own algebra is needed: the recorded values of a view and of what stands up its
//        chain decide, for any arguments, positional or not. Names matter twice: aliases of values nobody recorded, and
//        conjugations whose bit nobody recorded.
// Legal  The views are pure and on one storage by the op table, so writes to it are seen through either. Kept are views
//        that carry a control dependency or an event, that a later in-place op gives other sizes or strides (such as
//        t_), and returned ones whose removal would hand the caller an input, or the same output twice.
// Tags   A tag on a removed view merges into nothing: it goes to the ledger.
// Cost   A chain is walked up at most kMaxChain steps.

#include "passes/clean/canonicalize.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/analysis/order.h"
#include "ir/analysis/storages.h"
#include "ir/analysis/values.h"
#include "ir/graph/module.h"
#include "passes/pipeline/ledger.h"
#include "passes/pipeline/provenance.h"

namespace fxopt {
namespace {

constexpr std::string_view kPass = "canonicalize";
constexpr std::array<std::string_view, 2> kAliases = {"aten.alias.default", "aten.detach.default"};
// Views that flip the conjugate or negative bit, which some tracers do not record.
constexpr std::array<std::string_view, 3> kBitFlips = {"aten._conj.default", "aten._neg_view.default",
                                                       "aten.conj.default"};
constexpr int kMaxChain = 32;

struct Replacement {
  NodeId view;
  NodeId base;
  bool is_direct = false;  // `base` is the view's own input
};

NodeId viewed(const Graph& graph, NodeId view) {
  const Arg* base = graph.arg(view, 0);
  return base != nullptr && base->is(ArgKind::kNode) ? base->as_node() : NodeId();
}

bool is_view(const Graph& graph, NodeId node) {
  if (!graph[node].is_call()) return false;
  const Op& op = graph.op(node);
  const bool views = op.view == ViewKind::kView || op.view == ViewKind::kMaybeView;
  return views && op.is_pure() && !op.is_multi_output && viewed(graph, node).is_valid();
}

// True for a view that differs from its input in a bit the recorded values do not show: they decide nothing across it.
bool hides_change(const Graph& graph, NodeId view) {
  if (std::find(kBitFlips.begin(), kBitFlips.end(), graph.op(view).name) == kBitFlips.end()) return false;
  const Tensor* before = single_tensor(graph, viewed(graph, view));
  const Tensor* after = single_tensor(graph, view);
  return before == nullptr || after == nullptr ||
         (before->conjugate == after->conjugate && before->negative == after->negative);
}

class Planner {
 public:
  Planner(const Graph& graph, Compat compat, PassResult& result)
      : graph_(graph),
        compat_(compat),
        result_(result),
        storages_(graph),
        stands_for_(graph.num_ids()),
        identities_(graph.num_ids(), false),
        returned_(graph.num_ids(), false),
        changed_(graph.num_ids(), false) {
    if (graph.output().is_valid()) {
      graph.for_each_input(graph.output(), [this](NodeId node) { returned_[node] = true; });
    }
    for (const NodeId node : graph.nodes()) find_changed(node);
  }

  std::vector<Replacement> run() {
    for (const NodeId node : graph_.nodes()) {
      if (is_view(graph_, node) && !hides_change(graph_, node)) consider(node);
    }
    return std::move(plan_);
  }

 private:
  // Arguments that an in-place op gives other sizes or strides: what is recorded for them holds only until then.
  void find_changed(NodeId node) {
    if (!graph_[node].is_call()) return;
    const Tensor* after = single_tensor(graph_, node);
    if (after == nullptr) return;
    for (const uint8_t position : graph_.op(node).writes) {
      const Arg* arg = graph_.arg(node, position);
      if (arg == nullptr || !arg->is(ArgKind::kNode)) continue;
      const Tensor* before = single_tensor(graph_, arg->as_node());
      const bool returns_it = same_buffer(node, arg->as_node());
      if (before == nullptr || (returns_it && !same_metadata(graph_.module(), *before, *after))) {
        changed_[arg->as_node()] = true;
      }
    }
  }

  bool same_buffer(NodeId a, NodeId b) const {
    const std::span<const BufferId> left = storages_.buffers(a);
    const std::span<const BufferId> right = storages_.buffers(b);
    return left.size() == 1 && right.size() == 1 && left[0].is_valid() && left[0] == right[0];
  }

  NodeId resolve(NodeId node) const {
    const NodeId other = stands_for_[node];
    return other.is_valid() ? other : node;
  }

  void consider(NodeId view) {
    const NodeId base = find_base(view);
    if (!base.is_valid()) return;
    if (is_held(graph_, view)) {
      result_.remark(graph_, view, "ordered",
                     "equal to '%" + text(base) + "', but a control dependency or event pins it");
    } else if (changed_.get(view) || changed_.get(base)) {
      result_.remark(graph_, view, "changed-in-place",
                     "equal to '%" + text(base) + "' only until an in-place op changes sizes or strides");
    } else if (is_needed_by_caller(view, base)) {
      result_.remark(graph_, view, "returned-alias", "equal to '%" + text(base) + "', but the caller is handed both");
    } else {
      if (returned_.get(view)) returned_[base] = true;
      stands_for_[view] = base;
      const bool is_direct = base == resolve(viewed(graph_, view));
      identities_[view] = is_direct;
      plan_.push_back({view, base, is_direct});
    }
  }

  std::string text(NodeId node) const { return std::string(graph_.name_of(node)); }

  // The nearest node up the chain of views that `view` equals; invalid when there is none. The chain is that of the
  // graph as it was, so that in t(t(t(x))) the last finds the first; only identities are skipped.
  NodeId find_base(NodeId view) const {
    NodeId link = viewed(graph_, view);
    for (int step = 0; step < kMaxChain; ++step) {
      if (identities_[link]) link = resolve(link);
      if (!same_buffer(view, link)) break;
      if (equals(view, resolve(link))) return resolve(link);
      if (!is_view(graph_, link) || hides_change(graph_, link)) break;
      link = viewed(graph_, link);
    }
    return NodeId();
  }

  bool equals(NodeId view, NodeId base) const {
    const Tensor* one = single_tensor(graph_, view);
    const Tensor* other = single_tensor(graph_, base);
    if (one != nullptr && other != nullptr) return same_metadata(graph_.module(), *one, *other);
    if (graph_.value(view).kind != ValueKind::kAbsent || graph_.value(base).kind != ValueKind::kAbsent) return false;
    const bool names_alias = std::find(kAliases.begin(), kAliases.end(), graph_.op(view).name) != kAliases.end();
    return names_alias && base == resolve(viewed(graph_, view));
  }

  bool is_needed_by_caller(NodeId view, NodeId base) const {
    if (compat_ == Compat::kTorch || !returned_[view]) return false;
    const NodeKind kind = graph_[base].kind;
    return kind == NodeKind::kPlaceholder || kind == NodeKind::kGetAttr || returned_[base];
  }

  const Graph& graph_;
  Compat compat_;
  PassResult& result_;
  StorageMap storages_;
  IdMap<NodeId, NodeId> stands_for_;  // removed view -> a node that stays
  IdMap<NodeId, bool> identities_;    // removed views equal to their own input
  IdMap<NodeId, bool> returned_;
  IdMap<NodeId, bool> changed_;
  std::vector<Replacement> plan_;
};

// Views that lost their last user to a replacement go too, unless a control dependency names them.
void erase_dead_views(Graph& graph, std::vector<NodeId> pending, PassResult& result) {
  IdMap<NodeId, bool> named(graph.num_ids(), false);
  for (const NodeId node : graph.nodes()) {
    const NodeExtra* extra = graph.extra(node);
    if (extra == nullptr) continue;
    for (const ControlDep& dep : extra->control) named[dep.node] = true;
  }
  while (!pending.empty()) {
    const NodeId node = pending.back();
    pending.pop_back();
    if (graph[node].erased || graph.has_users(node) || !is_view(graph, node)) continue;
    if (is_held(graph, node) || named.get(node)) continue;
    pending.push_back(viewed(graph, node));
    erase_unread(graph, node, kPass);
    result.count("dead-views");
  }
}

}  // namespace

Result<PassResult> canonicalize(Graph& graph, const CanonicalizeOptions& options) {
  PassResult result;
  const std::vector<Replacement> plan = Planner(graph, options.compat, result).run();
  if (plan.empty()) return result;
  Replacer replacer(graph, kPass);
  std::vector<NodeId> on_the_way;
  for (const auto& [view, base, is_direct] : plan) {
    if (!is_direct) on_the_way.push_back(viewed(graph, view));
    replacer.replace(view, base);
    result.count(is_direct ? "identities" : "round-trips");
  }
  replacer.finish();
  erase_dead_views(graph, std::move(on_the_way), result);
  return result;
}

}  // namespace fxopt
