// One walk over the schedule gives every tensor a buffer:
//
// - a placeholder its own, shared by placeholders to which the file gives one storage (tied weights)
// - a get_attr one per attribute
// - a view or identity argument 0's
// - what may be a view as the file says, else as the two tensors prove; where neither tells, a new one in the same
//   class
// - a getitem that of the element it takes; where that cannot be told, a new one in the class of all
// - by the schema's (a) and (a!) that of the argument with the same alias set
// - a call with unknown writes an input's where the file says so, else a new one; in one class with every input
// - anything else a new one

#include "ir/analysis/storages.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/analysis/effects.h"
#include "ir/analysis/values.h"
#include "ir/graph/module.h"

namespace fxopt {
namespace {

bool yields_no_tensor(const Op& op) {
  return op.schema.has_value() && std::none_of(op.schema->returns.begin(), op.schema->returns.end(),
                                               [](const SchemaArg& item) { return item.is_tensor(); });
}

// Ops that change nothing but the shape.
constexpr std::array<std::string_view, 4> kReshapes = {"aten.flatten.using_ints", "aten.ravel.default",
                                                       "aten.reshape.default", "aten.reshape_as.default"};

// Whether the schema says that the result stands on argument 0 wherever it can, and the call does not ask for a copy.
bool shares_where_it_can(const Graph& graph, NodeId node, const Op& op) {
  if (!op.schema.has_value() || op.schema->returns.empty() || op.schema->returns[0].alias_set.empty()) return false;
  for (size_t i = 0; i < op.schema->args.size(); ++i) {
    if (op.schema->args[i].name != "copy") continue;
    const Arg* arg = call_argument(graph, node, i);
    return arg == nullptr || (arg->is(ArgKind::kBool) && !arg->as_bool());
  }
  return true;
}

}  // namespace

class StorageMap::Builder {
 public:
  Builder(const Graph& graph, EffectMap& effects, StorageMap& map) : graph_(graph), effects_(effects), map_(map) {}

  void run() {
    map_.values_.resize(graph_.num_ids());
    map_.reads_.resize(graph_.num_ids());
    map_.writes_.resize(graph_.num_ids());
    for (const NodeId node : graph_.nodes()) visit(node);
    finish_classes();
  }

 private:
  struct Leaf {
    ValueId value;  // invalid: nothing recorded
    StorageId carried;
  };

  void visit(NodeId node) {
    collect_leaves(node);
    result_.assign(leaves_.size(), BufferId());
    takes_element_ = false;
    const bool is_projected = graph_.op(node).view == ViewKind::kProjection && project(node);
    if (!takes_element_) collect_inputs(node);
    if (!is_projected) visit_kind(node);
    map_.values_[node.index()] = append(result_);
    map_.reads_[node.index()] = append_sorted(takes_element_ ? result_ : inputs_);
    visit_writes(node);
  }

  void visit_kind(NodeId node) {
    switch (graph_[node].kind) {
      case NodeKind::kPlaceholder:
        visit_placeholder(node);
        break;
      case NodeKind::kGetAttr:
        visit_attribute(node);
        break;
      case NodeKind::kOutput:
        result_.clear();
        break;
      default:
        visit_call(node);
        break;
    }
  }

  void collect_inputs(NodeId node) {
    inputs_.clear();
    graph_.for_each_input(node, [this](NodeId input) {
      const std::span<const BufferId> buffers = map_.buffers(input);
      inputs_.insert(inputs_.end(), buffers.begin(), buffers.end());
    });
  }

  // A node of which nothing was recorded counts as one tensor, so that aliasing can be followed through graphs without
  // metadata.
  void collect_leaves(NodeId node) {
    leaves_.clear();
    if (graph_.value(node).kind == ValueKind::kAbsent) {
      if (!yields_no_tensor(graph_.op(node))) leaves_.push_back(Leaf());
      return;
    }
    for_each_tensor(graph_, graph_[node].value, [this](ValueId id, const Tensor& tensor) {
      leaves_.push_back({id, tensor.storage});
    });
  }

  BufferId make(NodeId node, const Leaf& leaf, BufferSource source) {
    Buffer buffer;
    buffer.source = source;
    buffer.producer = node;
    buffer.value = leaf.value;
    buffer.carried = leaf.carried;
    if (leaf.value.is_valid()) buffer.device = graph_.pool().tensor(graph_.pool().value(leaf.value)).device;
    const BufferId id(map_.buffers_.size());
    map_.buffers_.push_back(buffer);
    parents_.push_back(id);
    if (leaf.carried.is_valid()) {
      BufferId& first = first_of_carried_[leaf.carried];
      if (first.is_valid()) {
        map_.disagreements_.push_back({node, AliasDisagreement::kFileJoins});
      } else {
        first = id;
      }
    }
    return id;
  }

  void visit_placeholder(NodeId node) {
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const StorageId carried = leaves_[i].carried;
      const BufferId shared = carried.is_valid() ? first_of_carried_.get(carried) : BufferId();
      result_[i] = shared.is_valid() ? shared : make(node, leaves_[i], BufferSource::kPlaceholder);
    }
  }

  void visit_attribute(NodeId node) {
    const TargetId target = graph_[node].target;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      result_[i] = target.is_valid() ? attributes_.get(target) : BufferId();
      if (result_[i].is_valid()) continue;
      result_[i] = make(node, leaves_[i], BufferSource::kAttribute);
      if (target.is_valid()) attributes_[target] = result_[i];
    }
  }

  void visit_call(NodeId node) {
    const Op& op = graph_.op(node);
    switch (op.view) {
      case ViewKind::kView:
      case ViewKind::kMultiView:
      case ViewKind::kIdentity:
        if (alias_first_argument(node)) return;
        break;
      case ViewKind::kMaybeView:
        maybe_view(node);
        return;
      case ViewKind::kProjection:
      case ViewKind::kNone:
        break;
    }
    if (op.schema.has_value()) alias_by_schema(node, op);
    const bool ask_file = op.is_opaque() || op.has_subgraphs;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (result_[i].is_valid()) continue;
      if (ask_file) result_[i] = input_with_carried(node, leaves_[i].carried);
      if (!result_[i].is_valid()) result_[i] = make(node, leaves_[i], BufferSource::kNode);
    }
    if (effects_.has(node, Effect::kUnknownWrites) && !inputs_.empty()) {
      for (const BufferId made : result_) join(inputs_[0], made);
      for (const BufferId input : inputs_) join(inputs_[0], input);
    }
  }

  // getitem(parent, index): the parent's buffers of that element.
  bool project(NodeId node) {
    const Arg* parent_arg = graph_.arg(node, 0);
    const Arg* key = graph_.arg(node, 1);
    if (parent_arg == nullptr || !parent_arg->is(ArgKind::kNode)) return false;
    const NodeId parent = parent_arg->as_node();
    const std::span<const BufferId> from = map_.buffers(parent);
    if (!has_elements(graph_.value(parent))) {
      if (from.size() != 1) return false;  // nothing recorded: the parent's one stand-in
      result_.assign(leaves_.size(), from[0]);
      return true;
    }
    taken_.clear();
    element_.clear();
    const bool is_known = key != nullptr && find_elements(parent, *key);
    for (const size_t element : taken_) {
      const auto [first, count] = element_leaves(parent, element);
      const std::span<const BufferId> leaves = from.subspan(first, count);
      element_.insert(element_.end(), leaves.begin(), leaves.end());
    }
    const bool is_recorded = leaves_.size() != 1 || leaves_[0].value.is_valid();
    if (!is_known || (is_recorded && element_.size() != leaves_.size())) return project_any(node, from);
    if (is_recorded) {
      for (size_t i = 0; i < element_.size(); ++i) take(node, i, element_[i]);
    } else {
      result_ = element_;
    }
    takes_element_ = true;
    return true;
  }

  // It may be any of the parent's tensors: of those bytes, of the class of all.
  bool project_any(NodeId node, std::span<const BufferId> from) {
    for (size_t i = 0; i < leaves_.size(); ++i) {
      result_[i] = make(node, leaves_[i], BufferSource::kNode);
      join(result_[0], result_[i]);
    }
    for (const BufferId each : from) {
      if (each.is_valid() && !result_.empty()) join(result_[0], each);
    }
    return true;
  }

  static bool has_elements(const Value& value) {
    return value.kind == ValueKind::kTuple || value.kind == ValueKind::kList || value.kind == ValueKind::kDict;
  }

  // The elements that a key takes, into `taken_`. False where that cannot be told.
  bool find_elements(NodeId parent, const Arg& key) {
    const int64_t count = graph_.value(parent).count;
    if (graph_.value(parent).kind == ValueKind::kDict) {
      const std::optional<uint32_t> found =
          key.is(ArgKind::kString) ? dict_keys_.find(graph_, parent, key.as_string()) : std::nullopt;
      if (found.has_value()) taken_.push_back(*found);
      return found.has_value();
    }
    if (key.is(ArgKind::kSlice)) return slice_elements(count, graph_.pool().children(key));
    if (!key.is(ArgKind::kInt)) return false;
    const int64_t index = key.as_int() < 0 ? key.as_int() + count : key.as_int();
    if (index < 0 || index >= count) return false;
    taken_.push_back(static_cast<size_t>(index));
    return true;
  }

  // As Python slices a list of `count`: ends behind its ends are its ends, negative ones count from the last.
  bool slice_elements(int64_t count, std::span<const Arg> bounds) {
    const auto is_plain = [](const Arg& bound) { return bound.is(ArgKind::kInt) || bound.is(ArgKind::kNone); };
    if (bounds.size() != 3 || !std::all_of(bounds.begin(), bounds.end(), is_plain)) return false;
    const int64_t step = bounds[2].is(ArgKind::kInt) ? bounds[2].as_int() : 1;
    if (step == 0) return false;
    const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? count : count - 1;
    const auto end = [&](const Arg& bound, int64_t otherwise) {
      if (!bound.is(ArgKind::kInt)) return otherwise;
      return std::clamp(bound.as_int() < 0 ? std::max(bound.as_int(), -count - 1) + count : bound.as_int(), lowest,
                        highest);
    };
    const int64_t first = end(bounds[0], step > 0 ? lowest : highest),
                  last = end(bounds[1], step > 0 ? highest : lowest);
    const int64_t stride = std::clamp(step, -count - 1, count + 1);
    for (int64_t i = first; step > 0 ? i < last : i > last; i += stride) taken_.push_back(static_cast<size_t>(i));
    return true;
  }

  // Which of a node's leaves belong to element `i` of its value: first and count. All elements are
  // counted at the first question, so that getitems of one node take no longer than its outputs.
  std::pair<size_t, size_t> element_leaves(NodeId node, size_t i) {
    uint32_t& start = ends_of_[node];
    if (start == 0) {
      start = static_cast<uint32_t>(ends_.size());
      uint32_t end = 0;
      const Value& value = graph_.value(node);
      for (uint32_t child = 0; child < value.count; ++child) {
        for_each_tensor(graph_, ValueId(value.first + child), [&end](ValueId, const Tensor&) { ++end; });
        ends_.push_back(end);
      }
    }
    const uint32_t first = i == 0 ? 0 : ends_[start + i - 1];
    return {first, ends_[start + i] - first};
  }

  bool alias_first_argument(NodeId node) {
    const std::span<const BufferId> from = argument_buffers(node, 0);
    if (from.empty()) return false;
    for (size_t i = 0; i < leaves_.size(); ++i) take(node, i, from.size() == leaves_.size() ? from[i] : from[0]);
    return true;
  }

  void maybe_view(NodeId node) {
    const std::vector<BufferId> from = call_buffers(node, 0);
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const BufferId base = from.empty() ? BufferId() : from[from.size() == leaves_.size() ? i : 0];
      const ViewAnswer answer = base.is_valid() ? ask_view(node, leaves_[i]) : ViewAnswer::kCopy;
      if (answer == ViewAnswer::kView) {
        take(node, i, base);
      } else {
        result_[i] = make(node, leaves_[i], BufferSource::kNode);
      }
      if (answer == ViewAnswer::kUnknown) join(base, result_[i]);
    }
  }

  // The file's ids decide where both tensors have one, else the tensors themselves. A reshape that changes nothing
  // hands back its input, whatever its id.
  ViewAnswer ask_view(NodeId node, const Leaf& leaf) const {
    const Arg* first = graph_.arg(node, 0);
    if (first == nullptr || !first->is(ArgKind::kNode)) return ViewAnswer::kUnknown;
    const Tensor* from = single_tensor(graph_, first->as_node());
    const Tensor* to = leaf.value.is_valid() ? &graph_.pool().tensor(graph_.pool().value(leaf.value)) : nullptr;
    const StorageId input = carried_of(graph_[first->as_node()].value);
    if (leaf.carried.is_valid() && input.is_valid()) {
      const bool reshapes = std::find(kReshapes.begin(), kReshapes.end(), graph_.op(node).name) != kReshapes.end();
      const bool is_input = reshapes && from != nullptr && to != nullptr && same_metadata(graph_.module(), *from, *to);
      return leaf.carried == input || is_input ? ViewAnswer::kView : ViewAnswer::kCopy;
    }
    if (from == nullptr || to == nullptr) return ViewAnswer::kUnknown;
    const ViewAnswer answer = compare_as_view(graph_.module(), *from, *to);
    const bool is_sure = answer != ViewAnswer::kView || shares_where_it_can(graph_, node, graph_.op(node));
    return is_sure ? answer : ViewAnswer::kUnknown;
  }

  void alias_by_schema(NodeId node, const Op& op) {
    for (size_t r = 0; r < op.aliases.size() && r < op.schema->returns.size(); ++r) {
      if (op.aliases[r] < 0) continue;
      const std::vector<BufferId> from = call_buffers(node, static_cast<size_t>(op.aliases[r]));
      if (from.empty()) continue;
      const auto [first, count] = return_leaves(node, *op.schema, r);
      for (size_t i = 0; i < count; ++i) take(node, first + i, from.size() == count ? from[i] : from[0]);
    }
  }

  // The leaves that belong to return `r`: first and count.
  std::pair<size_t, size_t> return_leaves(NodeId node, const Schema& schema, size_t r) {
    if (schema.returns.size() == 1) return {0, leaves_.size()};
    const Value& value = graph_.value(node);
    if (value.kind != ValueKind::kTuple && value.kind != ValueKind::kList) return {0, r == 0 ? leaves_.size() : 0};
    return r < value.count ? element_leaves(node, r) : std::pair<size_t, size_t>();
  }

  void visit_writes(NodeId node) {
    if (effects_.has(node, Effect::kUnknownWrites)) {
      map_.writes_[node.index()] = map_.reads_[node.index()];
      return;
    }
    if (!is_writing_call(graph_, node)) return;
    written_.clear();
    for (const uint8_t position : graph_.op(node).writes) {
      const std::vector<BufferId> buffers = call_buffers(node, position);
      written_.insert(written_.end(), buffers.begin(), buffers.end());
    }
    map_.writes_[node.index()] = append_sorted(written_);
  }

  std::vector<BufferId> call_buffers(NodeId node, size_t position) const {
    std::vector<BufferId> buffers;
    if (const Arg* arg = call_argument(graph_, node, position)) collect_argument(*arg, buffers);
    return buffers;
  }

  void collect_argument(const Arg& arg, std::vector<BufferId>& out) const {
    if (arg.is(ArgKind::kNode)) {
      const std::span<const BufferId> buffers = map_.buffers(arg.as_node());
      out.insert(out.end(), buffers.begin(), buffers.end());
    } else if (arg.has_children()) {
      for (const Arg& child : graph_.pool().children(arg)) collect_argument(child, out);
    }
  }

  std::span<const BufferId> argument_buffers(NodeId node, size_t position) {
    const Arg* arg = graph_.arg(node, position);
    argument_.clear();
    if (arg != nullptr) collect_argument(*arg, argument_);
    return argument_;
  }

  StorageId carried_of(ValueId value) const {
    if (!value.is_valid() || graph_.pool().value(value).kind != ValueKind::kTensor) return StorageId();
    return graph_.pool().tensor(graph_.pool().value(value)).storage;
  }

  // The first of the node's inputs to which the file gives that storage.
  BufferId input_with_carried(NodeId node, StorageId carried) {
    if (!carried.is_valid()) return BufferId();
    if (indexed_ != node) {
      indexed_ = node;
      for (size_t i = inputs_.size(); i-- > 0;) {
        const StorageId given = map_.buffers_[inputs_[i].index()].carried;
        if (given.is_valid()) input_with_[given] = {node, inputs_[i]};
      }
    }
    const auto [reader, input] = input_with_.get(carried);
    return reader == node ? input : BufferId();
  }

  // Leaf `i` of the current node stands on `buffer`; counts it when the file gives it another storage.
  void take(NodeId node, size_t i, BufferId buffer) {
    result_[i] = buffer;
    const StorageId carried = leaves_[i].carried;
    const StorageId expected = map_.buffers_[buffer.index()].carried;
    if (!carried.is_valid() || !expected.is_valid() || carried == expected) return;
    if (graph_.op(node).view == ViewKind::kProjection) return;  // said once, at the parent
    const BufferId first = first_of_carried_.get(carried);
    if (first.is_valid() && first != buffer) return;  // follows from an earlier disagreement
    map_.disagreements_.push_back({node, AliasDisagreement::kFileSplits});
    first_of_carried_[carried] = buffer;
  }

  BufferId root(BufferId id) {
    while (parents_[id.index()] != id) {
      parents_[id.index()] = parents_[parents_[id.index()].index()];
      id = parents_[id.index()];
    }
    return id;
  }

  void join(BufferId a, BufferId b) {
    const BufferId root_a = root(a);
    const BufferId root_b = root(b);
    if (root_a != root_b) parents_[std::max(root_a, root_b).index()] = std::min(root_a, root_b);
  }

  Slice append(const std::vector<BufferId>& items) {
    const Slice slice{static_cast<uint32_t>(map_.pool_.size()), static_cast<uint32_t>(items.size())};
    map_.pool_.insert(map_.pool_.end(), items.begin(), items.end());
    return slice;
  }

  Slice append_sorted(std::vector<BufferId> items) {
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
    return append(items);
  }

  void finish_classes() {
    const size_t count = map_.buffers_.size();
    map_.classes_.resize(count);
    map_.class_writes_.resize(count);
    map_.class_external_.assign(count, false);
    map_.class_returned_.assign(count, false);
    for (size_t i = 0; i < count; ++i) {
      const BufferId top = root(BufferId(i));
      map_.classes_[i] = top;
      if (map_.buffers_[i].source != BufferSource::kNode) map_.class_external_[top.index()] = true;
    }
    if (graph_.output().is_valid()) {
      for (const BufferId buffer : map_.reads(graph_.output())) {
        if (buffer.is_valid()) map_.class_returned_[map_.classes_[buffer.index()].index()] = true;
      }
    }
    for (const NodeId node : graph_.nodes()) {
      for (const BufferId buffer : map_.writes(node)) {
        std::vector<NodeId>& writes = map_.class_writes_[map_.classes_[buffer.index()].index()];
        if (writes.empty() || writes.back() != node) writes.push_back(node);
      }
    }
  }

  const Graph& graph_;
  EffectMap& effects_;
  StorageMap& map_;
  std::vector<BufferId> parents_;
  IdMap<StorageId, BufferId> first_of_carried_;
  IdMap<TargetId, BufferId> attributes_;
  IdMap<StorageId, std::pair<NodeId, BufferId>> input_with_;  // by what the file says: for `indexed_`, or one before
  NodeId indexed_;
  std::vector<Leaf> leaves_;
  IdMap<NodeId, uint32_t> ends_of_;   // where those of a node's elements begin in `ends_`; 0: nobody asked
  std::vector<uint32_t> ends_ = {0};  // for each element the leaves up to its end
  DictKeys dict_keys_;
  bool takes_element_ = false;     // the node is a getitem whose element is known
  std::vector<size_t> taken_;      // elements, by the getitem at hand
  std::vector<BufferId> element_;  // their buffers
  std::vector<BufferId> inputs_, result_, written_, argument_;
};

StorageMap::StorageMap(const Graph& graph) : graph_(&graph) {
  EffectMap effects(graph);
  Builder(graph, effects, *this).run();
}

StorageMap::StorageMap(const Graph& graph, EffectMap& effects) : graph_(&graph) {
  Builder(graph, effects, *this).run();
}

bool StorageMap::written_between(BufferId buffer, NodeId after, NodeId before) const {
  const std::vector<NodeId>& writes = class_writes_[classes_[buffer.index()].index()];
  const uint32_t low = graph_->position(after);
  const auto first = std::upper_bound(writes.begin(), writes.end(), low,
                                      [this](uint32_t place, NodeId node) { return place < graph_->position(node); });
  return first != writes.end() && graph_->position(*first) < graph_->position(before);
}

}  // namespace fxopt
