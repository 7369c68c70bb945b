// One node of a chain, removed in three ways:
//
//   %a = neg(%x)         %a = neg(%x)           %a = neg(%x)              %a = neg(%x)
//   %b = sin(%a)         (kInput)               %b = placeholder()        (kNothing)
//   %c = mul(%b, %x)     %c = mul(%a, %x)       %c = mul(%b, %x)
//   return (%b, %c)      return (%a, %c)        return (%b, %c)           return ()
//
// With Sweep::kUnread the second and the third way also remove %a.
//
// Rules that keep the result well formed:
//  - nodes are removed from the last to the first, so that the users of a removed node are nodes
//    that stay
//  - the replacement of a node is an ancestor or a placeholder, so it comes before the node
//  - a new placeholder comes after all others, so that recorded indices of inputs stay valid

#include "passes/reduce/edits.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/alias/effect_map.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

// Maps old places to places after a removal.
class Places {
 public:
  explicit Places(const std::vector<bool>& gone) {
    for (const bool is_gone : gone) {
      before_.push_back(left_);
      goes_.push_back(is_gone);
      if (!is_gone) ++left_;
    }
    before_.push_back(left_);
  }

  bool any_gone() const { return static_cast<size_t>(left_) < goes_.size(); }
  // The number of places left among the first `count`.
  int64_t left_of(int64_t count) const {
    return before_[static_cast<size_t>(std::clamp<int64_t>(count, 0, static_cast<int64_t>(goes_.size())))];
  }
  // Returns nothing if the place was removed. Places beyond the counted places shift by the number
  // of removed places.
  std::optional<int64_t> of(int64_t place) const {
    const int64_t size = static_cast<int64_t>(goes_.size());
    if (place < 0 || place >= size) return place - size + left_;
    return goes_[static_cast<size_t>(place)] ? std::nullopt : std::optional<int64_t>(left_of(place));
  }
  void follow(std::optional<int64_t>& place) const {
    if (place.has_value()) place = of(*place);
  }

 private:
  std::vector<int64_t> before_;
  std::vector<bool> goes_;
  int64_t left_ = 0;
};

// Updates records that count inputs or outputs.
class Records {
 public:
  Records(Graph& graph, const Places& inputs, const Places& outputs)
      : graph_(graph), inputs_(inputs), outputs_(outputs) {}

  void follow() {
    if (!inputs_.any_gone() && !outputs_.any_gone()) return;
    for (const NodeId node : placeholders_of(graph_)) {
      if (recorded_input(graph_, node) == nullptr) continue;
      inputs_.follow(graph_.mutable_extra(node).input->alias_of_input);
    }
    follow_outputs();
    follow_subclasses();
    follow_invocations();
    if (inputs_.any_gone()) graph_.in_spec = StringId();
    if (outputs_.any_gone()) graph_.out_spec = StringId();
  }

 private:
  void follow_outputs() {
    if (graph_.num_forward_outputs.has_value()) {
      graph_.num_forward_outputs = outputs_.left_of(*graph_.num_forward_outputs);
    }
    std::vector<OutputSpec> specs;
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      if (!outputs_.of(static_cast<int64_t>(i)).has_value()) continue;
      OutputSpec spec = std::move(graph_.outputs[i]);
      inputs_.follow(spec.alias_of_input);
      outputs_.follow(spec.alias_of_output);
      specs.push_back(std::move(spec));
    }
    graph_.outputs = std::move(specs);
  }

  // Drops layouts that lost a part.
  void follow_subclasses() {
    std::vector<SubclassLayout> layouts;
    for (SubclassLayout& layout : graph_.subclasses) {
      const Places& places = graph_.module().text(layout.side) == "input" ? inputs_ : outputs_;
      const int64_t first = places.left_of(layout.first);
      if (places.left_of(layout.first + layout.count) - first != layout.count) continue;
      layout.first = first;
      layouts.push_back(std::move(layout));
    }
    graph_.subclasses = std::move(layouts);
  }

  void follow_invocations() {
    std::vector<Invocation>& invocations = graph_.module().invocations;
    for (Invocation& invocation : invocations) {
      std::vector<Binding> bindings;
      for (Binding& binding : invocation.bindings) {
        const bool is_own = invocation.graph == graph_.name();
        const bool reads_own = binding.invocation.has_value() && *binding.invocation < invocations.size() &&
                               invocations[*binding.invocation].graph == graph_.name();
        const std::optional<int64_t> input = is_own ? inputs_.of(binding.input) : binding.input;
        const std::optional<int64_t> output = reads_own ? outputs_.of(binding.output) : binding.output;
        if (!input.has_value() || !output.has_value()) continue;
        binding.input = static_cast<uint32_t>(*input);
        binding.output = static_cast<uint32_t>(*output);
        bindings.push_back(std::move(binding));
      }
      invocation.bindings = std::move(bindings);
    }
  }

  Graph& graph_;
  const Places& inputs_;
  const Places& outputs_;
};

// True for a list, tuple, dict or set. All other arguments are leaves.
bool is_branch(const Arg& arg) {
  return arg.is(ArgKind::kList) || arg.is(ArgKind::kTuple) || arg.is(ArgKind::kDict) || arg.is(ArgKind::kSet);
}

constexpr size_t kMaxAncestors = 32;

class Editor {
 public:
  Editor(Graph& graph, Sweep sweep) : graph_(graph), sweep_(sweep) {}

  bool remove(const std::vector<NodeId>& nodes, StandIn stand_in) {
    std::vector<NodeId> order = nodes;
    if (stand_in == StandIn::kNothing) order = with_users(nodes);
    IdMap<NodeId, bool> goes(graph_.num_ids());
    for (const NodeId node : order) goes[node] = true;
    if (stand_in == StandIn::kNothing) {
      const std::vector<NodeId> leaves = output_leaves(graph_);
      for (size_t i = 0; i < leaves.size(); ++i) gone_leaves_[i] = leaves[i].is_valid() && goes[leaves[i]];
      rebuild_output();
    }
    for (size_t i = order.size(); i-- > 0;) remove(order[i], stand_in, goes);
    return finish();
  }

  bool return_input(NodeId returned, NodeId input) {
    const NodeId output = graph_.output();
    if (!output.is_valid()) return false;
    for (const UseId edge : graph_.edges(output)) {
      if (graph_.use(edge).input != returned) continue;
      graph_.set_use(edge, input);
      lost_a_user_.push_back(returned);
      has_changed_ = true;
    }
    return finish();
  }

  bool remove_leaves(const std::vector<bool>& gone) {
    for (size_t i = 0; i < gone_leaves_.size(); ++i) gone_leaves_[i] = i < gone.size() && gone[i];
    rebuild_output();
    return finish();
  }

 private:
  // `nodes` and all their transitive users, in schedule order, without the output.
  std::vector<NodeId> with_users(const std::vector<NodeId>& nodes) const {
    IdMap<NodeId, bool> goes(graph_.num_ids());
    for (const NodeId node : nodes) goes[node] = true;
    std::vector<NodeId> all;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind == NodeKind::kOutput) continue;
      bool reads = goes[node];
      graph_.for_each_input(node, [&](NodeId input) { reads = reads || goes.get(input); });
      goes[node] = reads;
      if (reads) all.push_back(node);
    }
    return all;
  }

  void remove(NodeId node, StandIn stand_in, const IdMap<NodeId, bool>& goes) {
    if (graph_.has_users(node)) {
      const NodeId other = stand_in == StandIn::kInput ? alike(node, goes) : NodeId();
      if (!other.is_valid()) return become_placeholder(node);
      graph_.replace_all_uses(node, other);
    }
    erase(node);
  }

  // The nearest ancestor with the same metadata, among the first kMaxAncestors ancestors. If none
  // has it, a placeholder with the same metadata that is not removed. Otherwise invalid.
  NodeId alike(NodeId node, const IdMap<NodeId, bool>& goes) const {
    const auto has_its_value = [&](NodeId other) {
      return other != node && same_metadata(graph_, graph_[other].value, graph_[node].value);
    };
    std::vector<NodeId> ancestors = graph_.inputs(node);
    for (size_t i = 0; i < ancestors.size(); ++i) {
      if (has_its_value(ancestors[i])) return ancestors[i];
      for (const NodeId input : graph_.inputs(ancestors[i])) {
        if (ancestors.size() >= kMaxAncestors) break;
        if (std::ranges::count(ancestors, input) == 0) ancestors.push_back(input);
      }
    }
    for (const NodeId input : inputs_) {
      if (!graph_[input].erased && !goes[input] && has_its_value(input)) return input;
    }
    return NodeId();
  }

  void become_placeholder(NodeId id) {
    if (graph_[id].kind == NodeKind::kPlaceholder) return;
    note_inputs(id);
    graph_.set_args(id, ArgRange(), ArgRange());
    NodeId last;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind == NodeKind::kPlaceholder) last = node;
      if (graph_[node].kind != NodeKind::kPlaceholder && graph_[node].kind != NodeKind::kGetAttr) break;
    }
    graph_.move_before(id, last.is_valid() ? graph_.next(last) : graph_.first());
    Node& node = graph_[id];
    node.kind = NodeKind::kPlaceholder;
    node.target = graph_.module().target(graph_.name_of(id));
    node.tag = Tag::kNone;
    node.extra = ExtraId();
    has_changed_ = true;
  }

  void erase(NodeId node) {
    note_inputs(node);
    graph_.erase(node);
    has_changed_ = true;
  }

  void note_inputs(NodeId node) {
    graph_.for_each_input(node, [this](NodeId input) { lost_a_user_.push_back(input); });
  }

  void rebuild_output() {
    const NodeId output = graph_.output();
    if (!output.is_valid() || std::ranges::count(gone_leaves_, true) == 0) return;
    note_inputs(output);
    ArgStack stack(graph_.pool());
    size_t leaf = 0;
    const ArgRange args = graph_[output].args;
    for (uint32_t i = 0; i < args.count; ++i) push_left(stack, ArgIndex(args.first + i), leaf, 0);
    // The only argument of a plain output is the returned value.
    if (args.count == 1 && stack.mark() == 0) stack.close(ArgKind::kTuple, 0);
    graph_.set_args(output, stack.take(0), graph_[output].kwargs);
    has_changed_ = true;
  }

  // Recursion is safe, because all readers of files limit the nesting depth.
  void push_left(ArgStack& stack, ArgIndex index, size_t& leaf, size_t depth) {
    const Arg arg = graph_.pool().arg(index);
    if (!is_branch(arg)) {
      const bool is_gone = gone_leaves_[leaf++];
      if (!is_gone) push_whole(stack, index);
      return;
    }
    const size_t mark = stack.mark();
    const ArgRange range = arg.range();
    const uint32_t step = arg.is(ArgKind::kDict) ? 2 : 1;
    for (uint32_t i = 0; i + step <= range.count; i += step) {
      const size_t before = stack.mark();
      if (step == 2) push_whole(stack, ArgIndex(range.first + i));
      push_left(stack, ArgIndex(range.first + i + step - 1), leaf, depth + 1);
      if (step == 2 && stack.mark() == before + 1) stack.take(before);  // a key without a value
    }
    if (stack.mark() > mark || depth == 0 || range.count == 0) stack.close(arg.kind(), mark, arg.type());
  }

  // Pushes an argument unchanged; its nodes become new edges.
  void push_whole(ArgStack& stack, ArgIndex index) {
    const ArgRange copy = graph_.copy_args(graph_, ArgRange{index.index(), 1}, IdMap<NodeId, NodeId>());
    stack.push(graph_.pool().arg(ArgIndex(copy.first)));
  }

  void sweep() {
    while (!lost_a_user_.empty()) {
      const NodeId node = lost_a_user_.back();
      lost_a_user_.pop_back();
      if (graph_[node].erased || graph_.has_users(node) || effects_.of(node) != Effect::kNone) continue;
      erase(node);
    }
  }

  bool finish() {
    if (sweep_ == Sweep::kUnread) sweep();
    if (!has_changed_) return false;
    std::vector<bool> gone_inputs;
    for (const NodeId input : inputs_) gone_inputs.push_back(graph_[input].erased);
    Records(graph_, Places(gone_inputs), Places(gone_leaves_)).follow();
    graph_.prune_control();
    return true;
  }

  Graph& graph_;
  Sweep sweep_;
  EffectMap effects_{graph_};
  std::vector<NodeId> inputs_ = placeholders_of(graph_);                             // placeholders before the edit
  std::vector<bool> gone_leaves_ = std::vector<bool>(output_leaves(graph_).size());  // by leaf before the edit
  std::vector<NodeId> lost_a_user_;
  bool has_changed_ = false;
};

}  // namespace

bool remove_nodes(Graph& graph, const std::vector<NodeId>& nodes, StandIn stand_in, Sweep sweep) {
  return Editor(graph, sweep).remove(nodes, stand_in);
}

bool remove_outputs(Graph& graph, const std::vector<bool>& gone, Sweep sweep) {
  return Editor(graph, sweep).remove_leaves(gone);
}

bool return_input(Graph& graph, NodeId returned, NodeId input, Sweep sweep) {
  return Editor(graph, sweep).return_input(returned, input);
}

}  // namespace fxopt
