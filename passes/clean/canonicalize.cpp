// Removes views that change nothing.
//
//   %a = alias(%x)                 %t = t(%x)
//   %b = neg(%a)        =>         %u = permute(%t, [1, 0])       =>      %b = neg(%x)
//                                  %b = neg(%u)
//
// Rule   Two tensors on one storage with the same dtype, sizes, strides, offset, device, conjugate
//        and negative bits are the same tensor. Therefore the pass compares the recorded metadata
//        of a view with that of the tensors up its chain of views. Op names matter only if metadata
//        is not recorded: for an alias, a slice of everything, a transpose of a transpose, and
//        flips of the conjugate or negative bit.
// Legal  By the op table, views are pure and share the storage of their base, so a write through
//        either tensor changes both. A view stays if
//        - it has a control dependency or an event,
//        - a later in-place op such as `t_` or `set_` changes its sizes, strides or storage, or
//          those of an alias,
//        - an op that writes gets both the view and its base, because many ops refuse one tensor
//          twice, or
//        - the graph returns it, and its base is an input, an attribute or another output.
//        Autograd may run through some graphs later (torch.export, Dynamo, pre-dispatch traces). In
//        these graphs, views that stop gradients stay: a detach, or a view as another dtype. Other
//        views are replaced only by a tensor that was made under the same gradient mode.
// Names  Wherever view and _unsafe_view succeed, reshape returns the same tensor. The rule
//        `reshapes` turns both into reshape.
// Marks  Save marks (`ap_must_save`) and save tags of a removed view move to its base
//        (Replacer::replace()). A recompute tag moves to the ledger of erased nodes. A view stays
//        if it is to be saved and its base is tagged for recompute. A view also stays if a value
//        with a save mark is between the view and its base. Otherwise consumers of the view would
//        not read the saved value.
// Cost   The search for an equal tensor goes up at most kMaxChain views.

#include "passes/clean/canonicalize.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"
#include "ir/alias/effect_map.h"
#include "ir/alias/effects.h"
#include "ir/alias/layouts.h"
#include "ir/alias/operands.h"
#include "ir/alias/order.h"
#include "ir/alias/storages.h"
#include "ir/graph/module.h"
#include "ir/step/autograd.h"
#include "ir/step/marks.h"
#include "ir/step/replay.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"
#include "passes/pass/nodes.h"
#include "passes/pass/replacer.h"

namespace fxopt {
namespace {

constexpr std::string_view kCanonicalize = "canonicalize";
constexpr std::string_view kDetach = "aten.detach.default";
constexpr std::array<std::string_view, 2> kAliases = {"aten.alias.default", kDetach};
// Views that flip the conjugate or negative bit, which some tracers do not record.
constexpr std::array<std::string_view, 3> kBitFlips = {"aten._conj.default", "aten._neg_view.default",
                                                       "aten.conj.default"};
constexpr std::string_view kSlice = "aten.slice.Tensor";
constexpr std::string_view kTranspose = "aten.t.default";
constexpr std::string_view kReshape = "aten.reshape.default";
constexpr std::array<std::string_view, 2> kReshapes = {"aten.view.default", "aten._unsafe_view.default"};
constexpr int kMaxChain = 32;

template <class List, class Item>
bool contains(const List& list, const Item& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

struct Replacement {
  NodeId view;
  NodeId base;
  bool is_direct = false;  // `base` is the view's own input
};

bool is_view(const Graph& graph, NodeId node) {
  if (!graph[node].is_call()) return false;
  const Op& op = graph.op(node);
  const bool views = op.view == ViewKind::kView || op.view == ViewKind::kMaybeView;
  return views && op.is_pure() && !op.is_multi_output && first_argument(graph, node).is_valid();
}

// Whether a slice argument is absent, or spells out the default `value`.
bool is_default(const CallArg& arg, int64_t value) { return arg.is_absent() || arg.as_int() == value; }

// True for slice(x, dim, 0, end, 1) with `end` at or beyond the size of `dim`.
bool slices_everything(const Graph& graph, NodeId view) {
  if (graph.op(view).name != kSlice) return false;
  const CallArgs args(graph, view);
  if (!is_default(args[2], 0) || !is_default(args[4], 1)) return false;
  const CallArg end = args[3];
  if (is_default(end, std::numeric_limits<int64_t>::max())) return true;
  const Tensor* input = single_tensor(graph, first_argument(graph, view));
  if (!end.as_int().has_value() || input == nullptr || !input->sizes.is_valid()) return false;
  const std::vector<Dim>& sizes = graph.module().dims(input->sizes);
  const CallArg dim = args[1];
  if (!dim.is_absent() && !dim.as_int().has_value()) return false;
  int64_t index = dim.as_int().value_or(0);
  if (index < 0) index += static_cast<int64_t>(sizes.size());
  if (index < 0 || index >= static_cast<int64_t>(sizes.size())) return false;
  const Dim& size = sizes[static_cast<size_t>(index)];
  return size.is_static() && *end.as_int() >= size.value;
}

// True for a view that flips a bit (conjugate or negative), if the recorded metadata does not show
// the change. Metadata cannot prove that tensors on both sides of this view are equal.
bool hides_change(const Graph& graph, NodeId view) {
  if (!contains(kBitFlips, graph.op(view).name)) return false;
  const Tensor* before = single_tensor(graph, first_argument(graph, view));
  const Tensor* after = single_tensor(graph, view);
  return before == nullptr || after == nullptr ||
         (before->conjugate == after->conjugate && before->negative == after->negative);
}

class Planner {
 public:
  Planner(Facts& facts, const CanonicalizeOptions& options, PassResult& result)
      : facts_(facts), rules_(options.rules), compat_(options.compat), result_(result) {
    if (graph_.output().is_valid()) {
      graph_.for_each_input(graph_.output(), [this](NodeId node) {
        mark(node, returned_);
        mark(node, known_);
      });
    }
    for (const NodeId node : graph_.nodes()) {
      const NodeKind kind = graph_[node].kind;
      if (kind == NodeKind::kPlaceholder || kind == NodeKind::kGetAttr) mark(node, known_);
    }
  }

  std::vector<Replacement> run() {
    for (const NodeId node : graph_.nodes()) {
      if (is_view(graph_, node) && !hides_change(graph_, node)) consider(node);
    }
    return std::move(plan_);
  }

 private:
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
    const bool is_direct = base == resolve(first_argument(graph_, view));
    if (!is_wanted(view, is_direct)) return;
    if (const auto [code, why] = find_obstacle(view, base); !code.empty()) {
      result_.remark(graph_, view, code,
                     "not replaced by the equal '%" + std::string(graph_.name_of(base)) + "': " + std::string(why));
      return;
    }
    join(view, base);
    operands_.replace(view, base);
    saves_.merge(view, base, MergedSaves::Tags::kDropped);
    if (marks_[view]) marks_[base] = true;
    stands_for_[view] = base;
    identities_[view] = is_direct;
    plan_.push_back({view, base, is_direct});
  }

  // The reason why the view stays, as a code and a text; empty if `base` may replace it.
  std::pair<std::string_view, std::string_view> find_obstacle(NodeId view, NodeId base) {
    if (reads_outdated(view)) {
      return {"changed-in-place",
              "the equality depends on a recorded size or stride that an earlier op changes in place"};
    }
    if ((doubtful_.get(base) || lacks_elements(base)) && relies_on_strides(view, base)) {
      return {"unsure-strides",
              "the equality depends on recorded strides, and an earlier operator does not guarantee the strides of its "
              "result"};
    }
    if (is_held(graph_, view))
      return {"ordered", "the view that would be replaced has a control dependency or an event"};
    if (are_decided_apart(graph_, phases_, view, base) || passes_marked(view, base) ||
        !saves_.are_kept(view, base, MergedSaves::Tags::kDropped)) {
      return {"saved-view", "only one of the two is to be saved"};
    }
    if (storages_.metadata_changes_after(view) || storages_.metadata_changes_after(base)) {
      return {"changed-in-place", "an in-place op later changes the sizes, strides or storage of one of the two"};
    }
    if (stops_gradients(view, base)) {
      return {"stops-gradients", "autograd may differentiate this graph, and the replacement would let gradients flow"};
    }
    if (is_needed_by_caller(view, base)) return {"returned-alias", "the caller gets both tensors"};
    if (operands_.has_both(view, base))
      return {"given-both", "both are arguments of one op that writes to an argument"};
    return {};
  }

  bool is_wanted(NodeId view, bool is_direct) const {
    if (!is_direct) return contains(rules_, CanonicalizeRule::kRoundTrips);
    const std::string_view name = graph_.op(view).name;
    if (contains(kAliases, name)) return contains(rules_, CanonicalizeRule::kAliases);
    return contains(rules_, name == kSlice ? CanonicalizeRule::kIdentitySlices : CanonicalizeRule::kIdentityViews);
  }

  // The nearest node up the chain of views that equals `view`; invalid if none exists. The search
  // follows the chain of the input graph, so in t(t(t(x))) the last t finds the first t. Only
  // removed views that equal their own input are skipped.
  NodeId find_base(NodeId view) {
    NodeId link = first_argument(graph_, view);
    for (int step = 0; step < kMaxChain; ++step) {
      if (identities_[link]) link = resolve(link);
      if (!same_buffer(view, link)) break;
      if (equals(view, resolve(link))) return resolve(link);
      if (!can_look_through(link)) break;
      link = first_argument(graph_, link);
    }
    return NodeId();
  }

  // Whether an argument of the view is a size or stride that an in-place op changed before. Tracers
  // record the old number.
  bool reads_outdated(NodeId view) const {
    return any_input(graph_, view, [this](NodeId input) { return outdated_.get(input); });
  }

  static IdMap<NodeId, bool> find_outdated(const Graph& graph, const StorageMap& storages) {
    IdMap<NodeId, bool> is_outdated;
    if (storages.metadata_changes().empty()) return is_outdated;
    is_outdated = IdMap<NodeId, bool>(graph.num_ids(), false);
    for (const NodeId node : graph.nodes()) {
      if (!graph[node].is_call() || graph.op(node).compute != ComputeClass::kScalar) continue;
      graph.for_each_input(node, [&](NodeId input) {
        is_outdated[node] =
            is_outdated[node] || is_outdated[input] || storages.input_metadata_changes(node, input, node);
      });
    }
    return is_outdated;
  }

  // Whether `matches` is true for a node of the chain from `first` up to `base`, excluding `base`.
  template <class Matches>
  bool any_link(NodeId first, NodeId base, const Matches& matches) const {
    NodeId link = first;
    for (int step = 0; step < kMaxChain && link.is_valid() && link != base && resolve(link) != base; ++step) {
      if (matches(link)) return true;
      link = first_argument(graph_, link);
    }
    return false;
  }

  // True for a tensor without elements. A kernel may give its views other strides than the recorded
  // strides, which come from fake tensors.
  bool lacks_elements(NodeId node) const {
    const Tensor* tensor = single_tensor(graph_, node);
    if (tensor == nullptr || !tensor->sizes.is_valid()) return false;
    return std::ranges::any_of(graph_.module().dims(tensor->sizes),
                               [](const Dim& size) { return size.is_static() && size.value == 0; });
  }

  // Whether `view`, or a view between `view` and `base`, depends on the strides of its input.
  bool relies_on_strides(NodeId view, NodeId base) const {
    return any_link(view, base, [this](NodeId link) { return reads_layout(graph_, link); });
  }

  // Whether a marked value is between `view` and `base`. Backward has the marked value, but not the
  // unmarked `base`.
  bool passes_marked(NodeId view, NodeId base) const {
    if (!graph_[base].is_call() || marks_.get(base)) return false;
    return any_link(first_argument(graph_, view), base, [this](NodeId link) { return marks_.get(resolve(link)); });
  }

  bool can_look_through(NodeId link) {
    if (!is_view(graph_, link) || hides_change(graph_, link) || storages_.metadata_changes_after(link)) return false;
    const bool is_stop = ends_gradients(graph_.op(link)) || changes_dtype(link);
    return !is_stop || !is_differentiated();
  }

  // No gradient flows through a view of the same bytes as another dtype.
  bool changes_dtype(NodeId link) const {
    const Tensor* before = single_tensor(graph_, first_argument(graph_, link));
    const Tensor* after = single_tensor(graph_, link);
    return before != nullptr && after != nullptr && before->dtype != after->dtype;
  }

  bool equals(NodeId view, NodeId base) const {
    const Tensor* one = single_tensor(graph_, view);
    const Tensor* other = single_tensor(graph_, base);
    if (one != nullptr && other != nullptr) return same_metadata(graph_.module(), *one, *other);
    if (graph_.value(view).kind != ValueKind::kAbsent) return false;
    if (undoes_transpose(view, base)) return true;
    const bool is_input = contains(kAliases, graph_.op(view).name) || slices_everything(graph_, view);
    return is_input && base == resolve(first_argument(graph_, view));
  }

  // Whether `view` is t(t(base)), possibly with removed identity views in between.
  bool undoes_transpose(NodeId view, NodeId base) const {
    if (graph_.op(view).name != kTranspose) return false;
    const NodeId inner = resolve(first_argument(graph_, view));
    return is_view(graph_, inner) && graph_.op(inner).name == kTranspose &&
           resolve(first_argument(graph_, inner)) == base;
  }

  // Whether removing the view would change gradients: the view ends gradients, or it was made under
  // another gradient mode than its base. PyTorch's own passes ignore this.
  bool stops_gradients(NodeId view, NodeId base) {
    const NodeId made_by = maker(base);
    const bool has_one_mode = made_by.is_valid() && modes_.of(view) == modes_.of(made_by);
    return (ends_gradients(graph_.op(view)) || !has_one_mode) && is_differentiated();
  }
  // The call that made the tensor. Looks through getitems of tuples and through in-place ops, which
  // return their input. Invalid after kMaxChain steps.
  NodeId maker(NodeId node) const {
    for (int step = 0; step < kMaxChain; ++step) {
      if (!graph_[node].is_call()) return node;
      const ViewKind kind = view_of_call(graph_, node);
      const NodeId first = first_argument(graph_, node);
      if ((kind != ViewKind::kProjection && kind != ViewKind::kIdentity) || !first.is_valid()) return node;
      node = first;
    }
    return NodeId();
  }
  bool is_differentiated() { return compat_ != Compat::kTorch && facts_.is_differentiated(); }

  bool is_needed_by_caller(NodeId view, NodeId base) {
    return compat_ != Compat::kTorch && is_marked(view, returned_) && is_marked(base, known_);
  }

  // Marks tensors by class of objects. One tensor may have several nodes: an in-place op returns
  // its input object, and a removed view becomes its base.
  void mark(NodeId node, IdMap<ObjectId, bool>& marks) {
    for (const ObjectId id : storages_.objects(node)) marks[tensor(id)] = true;
  }
  bool is_marked(NodeId node, const IdMap<ObjectId, bool>& marks) {
    return std::ranges::any_of(storages_.objects(node), [&](ObjectId id) { return marks.get(tensor(id)); });
  }
  void join(NodeId view, NodeId base) {
    const ObjectId one = tensor(storages_.objects(view)[0]), other = tensor(storages_.objects(base)[0]);
    if (one == other) return;
    joined_[one] = other;
    if (returned_.get(one)) returned_[other] = true;
    if (known_.get(one)) known_[other] = true;
  }
  // The representative of the object's class (union-find).
  ObjectId tensor(ObjectId id) {
    id = storages_.object_class(id);
    while (joined_.get(id).is_valid()) {
      const ObjectId next = joined_.get(id), after = joined_.get(next);
      if (after.is_valid()) joined_[id] = after;
      id = next;
    }
    return id;
  }

  Facts& facts_;
  const std::vector<CanonicalizeRule>& rules_;
  Compat compat_;
  PassResult& result_;
  const Graph& graph_ = facts_.graph();
  const StorageMap& storages_ = facts_.storages();
  WrittenOperands operands_{graph_, facts_.effects()};
  const ModeMap& modes_ = facts_.modes();
  MergedSaves saves_{facts_};
  const IdMap<NodeId, bool> doubtful_ = find_doubtful_layouts(graph_);  // tensors whose strides are not known
  const IdMap<NodeId, bool> outdated_ =
      find_outdated(graph_, storages_);  // numbers whose recorded values are unreliable
  const PhaseMap& phases_ = facts_.phases();
  // Marked values, including nodes that get the mark of a removed view.
  IdMap<NodeId, bool> marks_ = find_marks(graph_, phases_).is_saved;
  IdMap<NodeId, NodeId> stands_for_{graph_.num_ids()};       // removed view -> a node that stays
  IdMap<NodeId, bool> identities_{graph_.num_ids(), false};  // removed views equal to their own input
  IdMap<ObjectId, ObjectId> joined_;  // class of a removed view -> a class closer to its final base
  IdMap<ObjectId, bool> returned_;    // tensors that the caller gets
  IdMap<ObjectId, bool> known_;       // tensors of returned_, inputs and attributes: the caller has them
  std::vector<Replacement> plan_;
};

// A view, and the tensor that its former consumers now read.
struct Passed {
  NodeId view;
  NodeId base;
};

// Erases views that lost their last user to a replacement. The target of a control dependency
// stays.
void erase_dead_views(Graph& graph, std::vector<Passed> pending, Replacer& replacer, PassResult& result) {
  const IdMap<NodeId, bool> named = control_targets(graph);
  while (!pending.empty()) {
    const auto [node, base] = take_last(pending);
    if (graph[node].erased || graph.has_users(node) || !is_view(graph, node)) continue;
    if (is_held(graph, node) || named.get(node)) continue;
    const bool has_heir = node != base && base.is_valid() && !graph[base].erased;
    pending.push_back({first_argument(graph, node), has_heir ? base : NodeId()});
    if (has_heir) replacer.give(node, base);
    replacer.erase_unread(node);
    result.count("dead-views");
  }
}

// The views between a removed round trip and the input that replaces it. Backward may have read one
// of these views instead of the input.
std::vector<Passed> views_of_inputs(const Graph& graph, const std::vector<Replacement>& plan) {
  std::vector<Passed> found;
  for (const auto& [view, base, is_direct] : plan) {
    if (is_direct || graph[base].is_call()) continue;
    NodeId link = first_argument(graph, view);
    for (int step = 0; step < kMaxChain && link.is_valid() && link != base; ++step) {
      found.push_back({link, base});
      link = first_argument(graph, link);
    }
  }
  return found;
}

bool is_read_by_backward(const Graph& graph, const PhaseMap& phases, NodeId node) {
  return std::ranges::any_of(graph.users(node), [&](NodeId user) { return phases.is_backward(user); });
}

void name_reshapes(Graph& graph, PassResult& result) {
  for (const NodeId node : graph.nodes()) {
    if (!graph[node].is_call() || !contains(kReshapes, graph.op(node).name)) continue;
    if (graph[node].kwargs.count != 0) {
      result.remark(graph, node, "by-keyword",
                    "not turned into a reshape, because reshape has another name for this keyword argument");
      continue;
    }
    graph[node].target = graph.module().target(kReshape);
    result.count("reshapes");
  }
}

}  // namespace

Result<PassResult> canonicalize(Graph& graph, const CanonicalizeOptions& options, PassContext& context) {
  PassResult result;
  const std::vector<Replacement> plan = Planner(context.facts.of(graph), options, result).run();
  if (!plan.empty()) {
    const PhaseMap& phases = context.facts.of(graph).phases();
    Replacer replacer(graph, phases, kCanonicalize);
    const std::vector<Passed> of_inputs = views_of_inputs(graph, plan);
    std::vector<Passed> on_the_way;
    for (const auto& [view, base, is_direct] : plan) {
      if (!is_direct) on_the_way.push_back({first_argument(graph, view), base});
      replacer.replace(view, base);
      result.count(is_direct ? "identities" : "round-trips");
    }
    replacer.finish();
    erase_dead_views(graph, std::move(on_the_way), replacer, result);
    for (const auto& [view, base] : of_inputs) {
      if (!graph[view].erased && !is_read_by_backward(graph, phases, view)) replacer.give(view, base);
    }
    replacer.finish();
  }
  if (contains(options.rules, CanonicalizeRule::kReshapes)) name_reshapes(graph, result);
  return result;
}

}  // namespace fxopt
