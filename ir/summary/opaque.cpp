#include "ir/summary/opaque.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "ir/alias/collectives.h"
#include "ir/alias/effect_map.h"
#include "ir/graph/module.h"

namespace fxopt {
namespace {

// Whether the target is a function of a Python module. Graphs record such functions unchanged.
bool is_python_function(std::string_view target) {
  constexpr std::string_view kModules[] = {"builtins.", "operator.", "math.", "torch.", "functools.", "itertools."};
  return target.find('<') != std::string_view::npos ||  // <lambda>, <locals>
         std::ranges::any_of(kModules, [target](std::string_view prefix) { return target.starts_with(prefix); });
}

bool yields_nothing(const Op& op) { return op.schema.has_value() && op.schema->returns.empty(); }

class Finder {
 public:
  Finder(const Graph& graph, EffectMap* effects) : graph_(graph), module_(graph.module()), effects_(effects) {
    for (const ProcessGroup& group : module_.groups) {
      if (group.uid.is_valid()) groups_[group.uid] = true;
    }
  }

  std::vector<OpaqueRow> run(const std::vector<NodeId>& nodes) {
    for (const NodeId node : nodes) {
      check_call(node);
      check_value(node, graph_.value(node));
    }
    std::ranges::stable_sort(rows_, [](const OpaqueRow& a, const OpaqueRow& b) { return a.count > b.count; });
    return std::move(rows_);
  }

 private:
  void add(OpaqueReason reason, std::string_view what, NodeId node) {
    const auto& [place, is_new] = index_.emplace(std::pair(reason, std::string(what)), rows_.size());
    if (is_new) rows_.push_back({reason, std::string(what), 0, node});
    ++rows_[place->second].count;
  }

  void check_call(NodeId node) {
    const Node& record = graph_[node];
    const std::string_view target = op_name(node);
    if (record.kind == NodeKind::kCallMethod || record.kind == NodeKind::kCallModule) {
      return add(OpaqueReason::kMethodOrModule, target, node);
    }
    if (!record.is_call()) return;
    const Op& op = graph_.op(node);
    if (op.is_opaque()) {
      add(reason_of(op, target), target, node);
    } else if (effects_ != nullptr && effects_->has(node, Effect::kOpaque)) {
      add(OpaqueReason::kRunsUnknown, target, node);
    }
    if (op.has(Effect::kCollective)) check_group(node);
  }

  static OpaqueReason reason_of(const Op& op, std::string_view target) {
    if (find_builtin_op(target) != nullptr) return OpaqueReason::kOtherEffects;
    if (op.schema.has_value()) return OpaqueReason::kNotPromised;
    return is_python_function(target) ? OpaqueReason::kPythonFunction : OpaqueReason::kNoSchema;
  }

  void check_group(NodeId node) {
    const GroupKey key = group_of_call(graph_, node);
    if (key.expr.is_valid()) return;
    if (!key.uid.is_valid()) return add(OpaqueReason::kUnnamedGroup, op_name(node), node);
    if (!groups_.get(key.uid)) add(OpaqueReason::kUnlistedGroup, module_.text(key.uid), node);
  }

  // Returns the target's name. Empty for a call without a target, which is possible in a broken
  // graph.
  std::string_view op_name(NodeId node) const {
    const TargetId target = graph_[node].target;
    return target.is_valid() ? module_.text(module_.target(target).name) : std::string_view();
  }

  void check_value(NodeId node, const Value& value) {
    switch (value.kind) {
      case ValueKind::kAbsent:
        if (graph_[node].kind == NodeKind::kPlaceholder) add(OpaqueReason::kNoValue, "placeholder", node);
        if (graph_[node].is_call() && !yields_nothing(graph_.op(node)) && !takes_none(node))
          add(OpaqueReason::kNoValue, op_name(node), node);
        break;
      case ValueKind::kOpaque:
        add(OpaqueReason::kObject, module_.text(value.name), node);
        break;
      case ValueKind::kUnknown:
        add(OpaqueReason::kNewerValue, name_of(graph_[node].kind), node);
        break;
      case ValueKind::kTensor:
        if (const Tensor& tensor = graph_.pool().tensor(value); !tensor.strides.is_valid()) {
          add(OpaqueReason::kNoStrides, name_of(tensor.layout), node);
        }
        break;
      case ValueKind::kTuple:
      case ValueKind::kList:
      case ValueKind::kDict:
        for (const Value& child : graph_.pool().children(value)) check_element(node, child);
        break;
      default:
        break;
    }
  }

  // Whether the node takes an element that is recorded as None, for example a gradient that is not
  // needed.
  bool takes_none(NodeId node) const {
    if (op_name(node) != "operator.getitem") return false;
    const Arg *tuple = graph_.arg(node, 0), *key = graph_.arg(node, 1);
    if (tuple == nullptr || !tuple->is(ArgKind::kNode) || key == nullptr || !key->is(ArgKind::kInt)) return false;
    const Value& whole = graph_.value(tuple->as_node());
    if (whole.kind != ValueKind::kTuple && whole.kind != ValueKind::kList) return false;
    const auto elements = graph_.pool().children(whole);
    const auto count = static_cast<int64_t>(elements.size());
    const int64_t index = key->as_int() + (key->as_int() < 0 ? count : 0);
    return index >= 0 && index < count && elements[static_cast<size_t>(index)].kind == ValueKind::kNone;
  }

  // Reports only recorded elements of a tuple. Unrecorded elements are common, and are reported at
  // their getitem.
  void check_element(NodeId node, const Value& value) {
    if (value.kind != ValueKind::kAbsent) check_value(node, value);
  }

  const Graph& graph_;
  const Module& module_;
  EffectMap* effects_;  // may be nullptr
  IdMap<StringId, bool> groups_;
  std::map<std::pair<OpaqueReason, std::string>, size_t> index_;
  std::vector<OpaqueRow> rows_;
};

}  // namespace

std::string_view opaque_reason_text(OpaqueReason value) {
  static constexpr std::string_view kTexts[] = {
      "an op that neither the op table nor the file describes",
      "a Python function, which no schema describes",
      "an op that the file describes, but not as pure",
      "an op with unspecified effects",
      "runs a graph that writes memory, or a graph or op whose effects are unknown",
      "a call of a method or a module",
      "the value is a Python object",
      "no value is recorded",
      "the value is of a kind that this version does not know",
      "a tensor without strides: its storage is not known",
      "a collective that names no group",
      "a collective on a group that the file does not list",
  };
  return kTexts[static_cast<size_t>(value)];
}

std::vector<OpaqueRow> find_opaque(const Graph& graph, const std::vector<NodeId>& nodes, EffectMap* effects) {
  return Finder(graph, effects).run(nodes);
}

}  // namespace fxopt
