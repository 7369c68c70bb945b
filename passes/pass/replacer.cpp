#include "passes/pass/replacer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ir/alias/effects.h"
#include "ir/graph/module.h"
#include "ir/step/halves.h"
#include "ir/step/marks.h"
#include "ir/step/tag_rules.h"
#include "ir/step/tags.h"
#include "ir/values/values.h"
#include "passes/pass/provenance.h"

namespace fxopt {
namespace {

ErasedNode entry_of(Graph& graph, NodeId node, std::string_view pass) {
  Module& module = graph.module();
  ErasedNode entry;
  entry.graph = graph.name();
  entry.uid = graph[node].uid;
  entry.name = graph[node].name;
  entry.target = graph[node].target.is_valid() ? module.target(graph[node].target).name : StringId();
  entry.pass = module.intern(pass);
  if (const NodeExtra* extra = graph.extra(node)) entry.origins = extra->origins;
  return entry;
}

TagVerdict verdict_of(Graph& graph, Verdict verdict, TagRule rule, std::string_view pass) {
  return {verdict, rule, graph.module().intern(pass), {}};
}

void forget_tag(Graph& graph, NodeId node) {
  graph[node].tag = Tag::kNone;
  if (graph.extra(node) == nullptr) return;
  graph.mutable_extra(node).tag_source.reset();
  graph.mutable_extra(node).verdict.reset();
}

}  // namespace

bool are_decided_apart(const Graph& graph, const PhaseMap& phases, NodeId view, NodeId base) {
  if (!graph[base].is_call() || !wants_recompute(graph[base].tag) || phases.is_backward(view)) return false;
  if (is_marked_saved(graph, view)) return !is_policy_tag(graph, base);
  const Tag tag = graph[view].tag;
  if (tag == Tag::kNone || wants_recompute(tag)) return false;
  return is_policy_tag(graph, view) || !is_policy_tag(graph, base);
}

void record_tag(Graph& graph, NodeId node, std::string_view pass) {
  if (graph[node].tag == Tag::kNone) return;
  ErasedNode entry = entry_of(graph, node, pass);
  entry.tag = graph[node].tag;
  if (const NodeExtra* extra = graph.extra(node)) {
    entry.verdict = extra->verdict;
    entry.tag_source = extra->tag_source;
  }
  graph.module().erased.push_back(std::move(entry));
}

void copy_tag(Graph& graph, NodeId node, NodeId from) {
  if (graph[from].tag == Tag::kNone) return;
  graph[node].tag = graph[from].tag;
  const NodeExtra* known = graph.extra(from);
  TagSource source = known != nullptr && known->tag_source.has_value() ? *known->tag_source : TagSource();
  source.is_copied = true;
  const std::optional<TagVerdict> verdict = known == nullptr ? std::nullopt : known->verdict;
  NodeExtra& extra = graph.mutable_extra(node);
  extra.tag_source = std::move(source);
  extra.verdict = verdict;
}

Replacer::Replacer(Graph& graph, const PhaseMap& phases, std::string_view pass)
    : graph_(graph), phases_(phases), pass_(pass), has_marks_(may_hold_marks(graph.module())) {
  for (const NodeId node : phases.overruled) is_overruled_[node] = true;
}

void Replacer::record_mark(NodeId node, const std::vector<std::string>& names, const TagVerdict& verdict) {
  for (const std::string& name : names) {
    ErasedNode entry = entry_of(graph_, node, pass_);
    entry.is_mark = true;
    entry.name = graph_.module().intern(name);
    entry.verdict = verdict;
    graph_.module().erased.push_back(std::move(entry));
  }
  num_unmarked_ += static_cast<int64_t>(names.size());
}

bool Replacer::is_backward(NodeId node) const {
  if (is_overruled_.get(node)) return false;
  return graph_[node].phase == Phase::kBackward || phases_.phase.get(node) == Phase::kBackward;
}

bool Replacer::is_policy_recompute(NodeId node) const {
  return wants_recompute(graph_[node].tag) && is_policy_tag(graph_, node);
}

// Whether another forward getitem reads the same result as `node`. A backward getitem, such as a
// recomputed copy, is not a marked value.
bool Replacer::is_taken_twice(NodeId node, NodeId whole) const {
  const Arg* key = graph_.arg(node, 1);
  return std::ranges::any_of(graph_.users(whole), [&](NodeId user) {
    const bool is_other = user != node && is_projection(graph_, user) && !is_backward(user);
    const Arg* other = is_other ? graph_.arg(user, 1) : nullptr;
    return key != nullptr && other != nullptr && other->kind() == key->kind() && other->as_bits() == key->as_bits();
  });
}

// The names of the marked value that would be lost with the node. Empty if the node only has a copy
// of another marked value's metadata (marks.h).
std::vector<std::string> Replacer::effective_names(NodeId node) {
  if (!has_marks_ || !graph_[node].is_call() || is_backward(node)) return {};
  std::vector<std::string> names = marked_names(graph_, node);
  if (names.empty()) return names;
  if (const NodeId whole = whole_of(graph_, node); whole.is_valid()) {
    const bool is_left = mark_carrier(graph_, node) != node && is_taken_twice(node, whole);
    return is_left ? std::vector<std::string>() : names;
  }
  const StringId name = read_mark(graph_, node).name;
  if (!name.is_valid()) return names;
  const std::vector<NodeId>& known = carriers_of(name);
  return known.empty() || known.back() == node ? names : std::vector<std::string>();
}

// The nodes whose mark covers the whole value and has this name, in schedule order.
const std::vector<NodeId>& Replacer::carriers_of(StringId name) {
  if (!is_indexed_) {
    for (const NodeId each : graph_.nodes()) {
      if (!graph_[each].is_call() || is_backward(each) || whole_of(graph_, each).is_valid()) continue;
      const Mark mark = read_mark(graph_, each);
      if (mark.exists && !mark.has_parts && mark.name.is_valid()) named_[mark.name].push_back(each);
    }
    is_indexed_ = true;
  }
  std::vector<NodeId>& known = named_[name];
  std::erase_if(known, [&](NodeId each) { return graph_[each].erased || read_mark(graph_, each).name != name; });
  return known;
}

// Drops the mark of `kept` if it is only a copy of another marked value's metadata. Called before
// `kept` gets another mark.
void Replacer::drop_shadow(NodeId kept) {
  const bool is_shadow = graph_[kept].is_call() && !is_backward(kept) && !whole_of(graph_, kept).is_valid() &&
                         is_marked_saved(graph_, kept) && effective_names(kept).empty();
  if (is_shadow) drop_mark(graph_, kept);
}

// Drops the copies of the removed value's mark on other nodes, because none of these nodes replaces
// the value.
void Replacer::forget_shadows(NodeId node) {
  const StringId name = read_mark(graph_, node).name;
  if (!name.is_valid() || !is_indexed_ || whole_of(graph_, node).is_valid()) return;
  for (const NodeId each : named_[name]) {
    if (each != node && !graph_[each].erased) drop_mark(graph_, each);
  }
}

void Replacer::give_mark(NodeId gone, NodeId kept) {
  if (!has_marks_) return;
  const Mark mark = read_mark(graph_, gone);
  const bool is_call = graph_[gone].is_call() && !is_backward(gone);
  if (is_call && mark.exists && mark.has_parts && !whole_of(graph_, gone).is_valid()) {
    drop_shadow(kept);
    merge_marks(graph_, kept, gone);  // also moves the marks of its results
    return;
  }
  const bool are_one_part = whole_of(graph_, gone).is_valid() && whole_of(graph_, gone) == whole_of(graph_, kept);
  if (are_one_part && mark_carrier(graph_, gone) != gone) return;
  std::vector<std::string> names = effective_names(gone);
  if (names.empty()) return;
  const NodeExtra* extra = graph_.extra(gone);
  const std::optional<TagVerdict> verdict = extra == nullptr ? std::nullopt : extra->mark_verdict;
  forget_shadows(gone);
  drop_mark(graph_, gone);
  if (!graph_[kept].is_call()) {
    // An input or attribute exists in backward anyway.
    record_mark(gone, names, verdict.value_or(verdict_of(graph_, Verdict::kImplied, TagRule::kKeptAnyway, pass_)));
    return;
  }
  drop_shadow(kept);
  if (!is_marked_saved(graph_, kept)) yield_to_mark(kept);
  const Mark own = read_mark(graph_, kept);
  const bool is_unnamed = own.exists && !own.has_parts && !own.name.is_valid() && !whole_of(graph_, kept).is_valid();
  if (is_unnamed && !carriers_of(graph_[kept].name).empty()) {
    // The mark has no name, and another mark already uses the node's name. Record the name in the
    // mark.
    names.emplace_back(graph_.name_of(kept));
    strip_mark(graph_, kept);
  }
  add_mark(graph_, kept, names, std::max(own.total, mark.total));
  if (verdict.has_value() && !graph_.mutable_extra(kept).mark_verdict.has_value()) {
    graph_.mutable_extra(kept).mark_verdict = verdict;
  }
}

// Drops a policy's recompute tag from a node that gets a mark: the mark wins, and the tag moves to
// the ledger.
void Replacer::yield_to_mark(NodeId kept) {
  if (!is_policy_recompute(kept)) return;
  graph_.mutable_extra(kept).verdict = verdict_of(graph_, Verdict::kOverridden, TagRule::kReplay, pass_);
  record_tag(graph_, kept, pass_);
  forget_tag(graph_, kept);
}

void Replacer::merge_tags_of(NodeId gone, NodeId kept) {
  if (graph_[gone].tag == Tag::kNone && !has_marks_) return;
  const bool has_mark = read_mark(graph_, kept).exists && !is_backward(kept);
  const bool brings_mark = read_mark(graph_, gone).exists && !is_backward(gone);
  if (graph_[gone].tag == Tag::kNone && !brings_mark) return;
  if (is_backward(gone) && !is_backward(kept)) return;  // a tag on a backward node has no effect
  if (has_mark && !brings_mark && is_policy_recompute(gone)) return;
  if (brings_mark && !has_mark) yield_to_mark(kept);
  if (graph_[gone].tag == Tag::kNone) return;
  if (graph_[kept].tag == Tag::kNone) return copy_tag(graph_, kept, gone);
  const bool is_author = !is_policy_tag(graph_, gone), was_author = !is_policy_tag(graph_, kept);
  const bool takes =
      is_author != was_author ? is_author : stronger_tag(graph_[kept].tag, graph_[gone].tag) != graph_[kept].tag;
  if (!takes) return;
  const NodeExtra* known = graph_.extra(gone);
  const std::optional<TagSource> source = known == nullptr ? std::nullopt : known->tag_source;
  graph_[kept].tag = graph_[gone].tag;
  if (!source.has_value() && graph_.extra(kept) == nullptr) return;
  graph_.mutable_extra(kept).tag_source = source;
  if (source.has_value()) graph_.mutable_extra(kept).tag_source->is_copied = false;
}

void Replacer::give_save_tag(NodeId gone, NodeId kept) {
  const Tag tag = graph_[gone].tag;
  if (tag == Tag::kNone || wants_recompute(tag) || !graph_[kept].is_call() || is_backward(gone)) return;
  merge_tags_of(gone, kept);
}

std::vector<Replacer::OwnMark> Replacer::own_marks_of_parts(NodeId gone, NodeId kept) {
  std::vector<OwnMark> marks;
  if (!has_marks_) return marks;
  for (const NodeId whole : {gone, kept}) {
    for (const NodeId user : graph_.users(whole)) {
      const bool is_own =
          is_projection(graph_, user) && mark_carrier(graph_, user) == user && is_marked_saved(graph_, user);
      if (is_own) marks.push_back({user, marked_names(graph_, user), read_mark(graph_, user).total});
    }
  }
  return marks;
}

void Replacer::put_in_place(NodeId gone, NodeId kept, const std::vector<OwnMark>& parts) {
  add_merged_origin(graph_, kept, gone, graph_.module().intern(pass_));
  record_tag(graph_, gone, pass_);
  graph_.replace_all_uses(gone, kept);
  // If the mark of `kept` lists a result, `kept` stores the marks of its getitems.
  for (const OwnMark& part : parts) {
    if (mark_carrier(graph_, part.node) == part.node) continue;
    strip_mark(graph_, part.node);
    add_mark(graph_, part.node, part.names, part.total);
  }
  graph_.erase(gone);
  hand_over(gone, kept);
}

void Replacer::merge(NodeId gone, NodeId kept) {
  const std::vector<OwnMark> parts = own_marks_of_parts(gone, kept);
  merge_tags_of(gone, kept);
  give_mark(gone, kept);
  put_in_place(gone, kept, parts);
}

void Replacer::give(NodeId gone, NodeId kept) {
  const bool is_marked = !effective_names(gone).empty();
  give_save_tag(gone, kept);
  give_mark(gone, kept);
  if (is_marked) add_origin(graph_, kept, gone, OriginKind::kMerged, graph_.module().intern(pass_));
}

void Replacer::replace(NodeId gone, NodeId kept) {
  const std::vector<OwnMark> parts = own_marks_of_parts(gone, kept);
  give_save_tag(gone, kept);
  give_mark(gone, kept);
  put_in_place(gone, kept, parts);
}

void Replacer::stand_in(NodeId gone, NodeId value, NodeId by) {
  give_mark(gone, value);
  record_tag(graph_, gone, pass_);
  graph_.erase(gone);
  hand_over(gone, by);
}

void Replacer::erase_unread(NodeId node) {
  if (const std::vector<std::string> names = effective_names(node); !names.empty()) {
    const NodeExtra* extra = graph_.extra(node);
    const std::optional<TagVerdict> verdict = extra == nullptr ? std::nullopt : extra->mark_verdict;
    record_mark(node, names, verdict.value_or(verdict_of(graph_, Verdict::kMoot, TagRule::kNone, pass_)));
    forget_shadows(node);
    drop_mark(graph_, node);
  }
  if (graph_[node].tag != Tag::kNone) {
    std::optional<TagVerdict>& verdict = graph_.mutable_extra(node).verdict;
    if (!verdict.has_value()) verdict = verdict_of(graph_, Verdict::kMoot, TagRule::kNone, pass_);
    record_tag(graph_, node, pass_);
  }
  graph_.erase(node);
}

// Each mark records the total number of marked values. Subtracts the removed values.
void Replacer::lower_totals() {
  for (const NodeId node : graph_.nodes()) {
    if (!graph_[node].is_call()) continue;
    if (const Mark mark = read_mark(graph_, node); mark.exists && mark.total > 0) {
      set_mark_total(graph_, node, std::max<int64_t>(mark.total - num_unmarked_, 0));
    }
  }
  num_unmarked_ = 0;
}

void Replacer::finish() {
  if (num_unmarked_ > 0) lower_totals();
  if (!any_) return;
  for (const NodeId node : graph_.nodes()) {
    if (!graph_[node].extra.is_valid()) continue;
    std::vector<ControlDep>& control = graph_.mutable_extra(node).control;
    bool moved = false;
    for (ControlDep& dep : control) {
      while (replaced_.get(dep.node).is_valid()) {
        dep.node = replaced_.get(dep.node);
        moved = true;
      }
    }
    if (!moved) continue;
    std::vector<ControlDep> distinct;
    for (const ControlDep& dep : control) {
      if (std::ranges::count(distinct, dep) == 0) distinct.push_back(dep);
    }
    control = std::move(distinct);
  }
}

}  // namespace fxopt
