// One walk over the schedule gives every tensor a buffer and an object:
//
//   node                buffer                                     object
//   placeholder         new. Placeholders with the same recorded   new, in one class for all
//                       storage (tied weights) share one buffer.   placeholders with the same
//                       If a placeholder may be a region's         recorded storage
//                       result, it shares only the class
//   call of a region    an operand's or new, as in the region's    new, in the operand's class
//                       body
//   get_attr            one for each attribute                     one for each attribute
//   identity, in place  argument 0's                               argument 0's
//   view                argument 0's                               new
//   may be a view       argument 0's for a view, new for a copy.   new, in argument 0's class if
//                       The two tensors or the file's storage ids  the result may be a view
//                       decide. If neither decides, new, in
//                       argument 0's class
//   getitem of a tuple  the element's. If the element is unknown,  the element's. If the element
//                       new, in the class of all elements          is unknown, new, in the class
//                                                                  of all elements
//   schema's (a), (a!)  that of the argument with the same alias   (a): new, (a!): the argument's
//                       set
//   unknown writes      that of the input with the same recorded   new, in the class of every input
//                       storage, otherwise new. In both cases, in
//                       the class of every input
//   anything else       new                                        new
//
// `set_` moves an object to another buffer. Nodes that take the object later read the new buffer.
// Both buffers belong to one class.

#include "ir/alias/storages.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/alias/effects.h"
#include "ir/graph/module.h"
#include "ir/values/call_args.h"
#include "ir/values/elements.h"
#include "ir/values/values.h"

namespace fxopt {

class StorageMap::Builder {
 public:
  Builder(const Graph& graph, EffectMap& effects, RegionBodies& regions, StorageMap& map)
      : graph_(graph), effects_(effects), regions_(regions), map_(map), names_(graph), elements_(graph) {}

  void run() {
    map_.values_.resize(graph_.num_ids());
    map_.first_objects_.resize(graph_.num_ids());
    map_.reads_.resize(graph_.num_ids());
    map_.writes_.resize(graph_.num_ids());
    for (const NodeId node : graph_.nodes()) visit(node);
    finish_classes();
    finish_objects();
  }

 private:
  struct Leaf {
    ValueId value;  // invalid if no value is recorded
    StorageId carried;
  };
  // The object of a tensor, and its buffer at one place of the schedule.
  struct Held {
    BufferId buffer;  // invalid if the tensor has no storage
    ObjectId object;
  };

  void visit(NodeId node) {
    collect_leaves(node);
    result_.assign(leaves_.size(), Held());
    takes_element_ = false;
    view_ = view_of_call(graph_, node);
    const bool is_projected = view_ == ViewKind::kProjection && project(node);
    if (!takes_element_) collect_inputs(node);
    if (!is_projected) visit_kind(node);
    if (effects_.has(node, Effect::kUnknownWrites)) join_all();
    for (Held& held : result_) {
      if (!held.object.is_valid()) held.object = make_object();
    }
    map_.first_objects_[node.index()] = static_cast<uint32_t>(map_.objects_.size());
    for (const Held& held : result_) map_.objects_.push_back(held.object);
    map_.values_[node.index()] = append(result_);
    map_.reads_[node.index()] = append_sorted(takes_element_ ? result_ : inputs_);
    visit_writes(node);
    visit_metadata(node);
  }

  void visit_kind(NodeId node) {
    const NodeKind kind = graph_[node].kind;
    if (kind == NodeKind::kPlaceholder) return visit_placeholder(node);
    if (kind == NodeKind::kGetAttr) return visit_attribute(node);
    if (kind != NodeKind::kOutput) return visit_call(node);
    result_.clear();
  }

  // -- tensors among a node's inputs, on their present buffers

  Held held(NodeId node, size_t i) const {
    const ObjectId object = map_.objects(node)[i];
    const BufferId moved = moved_.get(object);
    return {moved.is_valid() ? moved : map_.buffers(node)[i], object};
  }

  void append_held(NodeId node, std::vector<Held>& out) const {
    for (size_t i = 0; i < map_.buffers(node).size(); ++i) out.push_back(held(node, i));
  }

  void collect_inputs(NodeId node) {
    inputs_.clear();
    graph_.for_each_input(node, [this](NodeId input) { append_held(input, inputs_); });
  }

  void collect_argument(const Arg& arg, std::vector<Held>& out) const {
    if (arg.is(ArgKind::kNode)) {
      append_held(arg.as_node(), out);
    } else if (arg.has_children()) {
      for (const Arg& child : graph_.pool().children(arg)) collect_argument(child, out);
    }
  }

  // Returns the tensors of one argument. The reference is valid until the next call of argument().
  const std::vector<Held>& argument(NodeId node, size_t position) {
    argument_.clear();
    if (const Arg* arg = call_argument(graph_, node, position)) collect_argument(*arg, argument_);
    return argument_;
  }

  // A node without a recorded value counts as one tensor, so that aliasing can be followed through
  // graphs without metadata.
  void collect_leaves(NodeId node) {
    leaves_.clear();
    const ValueKind kind = graph_.value(node).kind;
    if (kind == ValueKind::kAbsent || (kind == ValueKind::kOpaque && may_hand_on(graph_, node))) {
      if (graph_.op(node).yields_tensor()) leaves_.push_back(Leaf());
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
    return id;
  }

  ObjectId make_object() {
    const ObjectId id(object_parents_.size());
    object_parents_.push_back(id);
    return id;
  }

  ObjectId make_object_like(ObjectId other) {
    const ObjectId id = make_object();
    if (other.is_valid()) join(object_parents_, other, id);
    return id;
  }

  void visit_placeholder(NodeId node) {
    // At run time, each tangent has its own storage. The recorded storage may belong to an input,
    // because AOTAutograd traces a mutated input in place of its tangent.
    const bool is_own = is_tangent(graph_, node);
    const bool is_doubtful = may_be_of_region(graph_, node);
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (is_own) leaves_[i].carried = StorageId();
      const StorageId carried = leaves_[i].carried;
      const Held shared = carried.is_valid() ? placeholders_.get(carried) : Held();
      const bool is_shared = shared.buffer.is_valid() && !is_doubtful;
      result_[i].buffer = is_shared ? shared.buffer : make(node, leaves_[i], BufferSource::kPlaceholder);
      result_[i].object = make_object_like(shared.object);
      if (shared.buffer.is_valid()) join(parents_, shared.buffer, result_[i].buffer);
      if (carried.is_valid() && !shared.buffer.is_valid()) placeholders_[carried] = result_[i];
    }
  }

  void visit_attribute(NodeId node) {
    const TargetId target = graph_[node].target;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      result_[i] = target.is_valid() ? attributes_.get(target) : Held();
      if (result_[i].buffer.is_valid()) continue;
      result_[i] = {make(node, leaves_[i], BufferSource::kAttribute), make_object()};
      if (target.is_valid()) attributes_[target] = result_[i];
    }
  }

  void visit_call(NodeId node) {
    const Op& op = graph_.op(node);
    if (calls_region(graph_, node)) return visit_region(node);
    if (view_ == ViewKind::kMaybeView) return maybe_view(node);
    // A projection gets here only if its tuple is written in the arguments.
    const bool shows_first = view_ != ViewKind::kNone && view_ != ViewKind::kProjection;
    if (shows_first && alias_first_argument(node)) return;
    if (op.schema.has_value()) alias_by_schema(node, op);
    const bool ask_file = op.is_opaque() || op.has_subgraphs || op.hands_on != HandsOn::kNothing;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (result_[i].buffer.is_valid()) continue;
      const Held given = ask_file ? input_with_carried(node, leaves_[i].carried) : Held();
      result_[i].buffer = given.buffer.is_valid() ? given.buffer : make(node, leaves_[i], BufferSource::kNode);
      result_[i].object = make_object_like(given.object);
    }
    join_result(node, op);
  }

  // Takes the storages of the results from the region's body. If the body is unknown, each result
  // may be any operand.
  void visit_region(NodeId node) {
    StringId name;
    names_.for_each(graph_, node, [&name](StringId each) { name = name.is_valid() ? name : each; });
    const std::vector<RegionResult>* results = name.is_valid() ? regions_.find(name) : nullptr;
    if (results == nullptr || results->size() != leaves_.size()) {
      for (size_t i = 0; i < leaves_.size(); ++i) result_[i].buffer = make(node, leaves_[i], BufferSource::kNode);
      join_all();
      return;
    }
    std::vector<std::pair<uint32_t, size_t>> made;  // storages of the body, each with its first result
    for (size_t i = 0; i < leaves_.size(); ++i) lay_result(node, i, (*results)[i], made);
  }

  void lay_result(NodeId node, size_t i, const RegionResult& result, std::vector<std::pair<uint32_t, size_t>>& made) {
    if (result.operand != RegionResult::kMade) {
      const std::vector<Held>& from = argument(node, kFirstOperand + result.operand);
      if (result.tensor < from.size()) {
        result_[i] = {from[result.tensor].buffer, make_object_like(from[result.tensor].object)};
        return;
      }
    }
    const auto first = std::ranges::find_if(made, [&](const auto& each) { return each.first == result.made; });
    result_[i].buffer =
        first != made.end() ? result_[first->second].buffer : make(node, leaves_[i], BufferSource::kNode);
    result_[i].object = first != made.end() ? make_object_like(result_[first->second].object) : make_object();
    if (first == made.end()) made.emplace_back(result.made, i);
    for (const uint32_t operand : result.may_share) {
      for (const Held& from : argument(node, kFirstOperand + operand)) join_held(from, result_[i]);
    }
  }

  // Joins the class of the result with the classes of tensors whose memory it may share.
  void join_result(NodeId node, const Op& op) {
    if (view_ == ViewKind::kProjection || may_hand_on(graph_, node)) join_all();
    if (is_unrecorded_tuple(graph_, node)) join_aliased(node, op);
    for (const Held& each : result_) {
      if (op.joins_outputs) join(parents_, result_[0].buffer, each.buffer);
    }
    if (op.shared_arg < 0 || (op.shares_only_empty && holds_elements(node, static_cast<size_t>(op.shared_arg)))) return;
    for (const Held& from : argument(node, static_cast<size_t>(op.shared_arg))) {
      for (const Held& each : result_) join_held(from, each);
    }
  }

  // Joins the single tensor that represents all results with each argument that a result may be.
  void join_aliased(NodeId node, const Op& op) {
    for (const int16_t alias : op.aliases) {
      if (alias < 0 || result_.empty()) continue;
      for (const Held& from : argument(node, static_cast<size_t>(alias))) join_held(from, result_[0]);
    }
  }

  // Whether the recorded sizes show that the argument is a tensor with elements.
  bool holds_elements(NodeId node, size_t position) const {
    const Arg* arg = call_argument(graph_, node, position);
    const Tensor* tensor = arg != nullptr && arg->is(ArgKind::kNode) ? single_tensor(graph_, arg->as_node()) : nullptr;
    if (tensor == nullptr || !tensor->sizes.is_valid()) return false;
    const std::vector<Dim>& sizes = graph_.module().dims(tensor->sizes);
    return std::ranges::all_of(sizes, [](const Dim& size) { return size.is_static() && size.value > 0; });
  }

  // Gives a getitem the tensors of the parent's element. Returns false if the parent is unknown.
  bool project(NodeId node) {
    const NodeId parent = first_argument(graph_, node);
    const Arg* key = graph_.arg(node, 1);
    if (!parent.is_valid()) return false;
    if (!has_elements(graph_.value(parent))) {
      if (map_.buffers(parent).size() != 1) return false;
      // No value is recorded, so a single tensor represents the parent. The result may be an
      // element or a view of this tensor.
      const Held from = held(parent, 0);
      for (Held& each : result_) each = {from.buffer, make_object_like(from.object)};
      return true;
    }
    taken_.clear();
    element_.clear();
    const bool is_known = key != nullptr && elements_.find(parent, *key, taken_);
    for (const size_t element : taken_) {
      const auto [first, count] = elements_.tensors(parent, element);
      for (size_t i = first; i < first + count; ++i) element_.push_back(held(parent, i));
    }
    const bool is_recorded = leaves_.size() != 1 || leaves_[0].value.is_valid();
    if (!is_known || (is_recorded && element_.size() != leaves_.size())) return project_any(node, parent);
    if (is_recorded) {
      for (size_t i = 0; i < element_.size(); ++i) result_[i] = element_[i];
    } else {
      result_ = element_;
    }
    takes_element_ = true;
    return true;
  }

  // The result may be any of the parent's tensors. It gets a new buffer in the class of all these
  // tensors.
  bool project_any(NodeId node, NodeId parent) {
    for (size_t i = 0; i < leaves_.size(); ++i) {
      result_[i] = {make(node, leaves_[i], BufferSource::kNode), make_object()};
      join_held(result_[0], result_[i]);
    }
    if (result_.empty()) return true;
    for (size_t i = 0; i < map_.buffers(parent).size(); ++i) join_held(result_[0], held(parent, i));
    return true;
  }

  // The result may be any input. The inputs are also joined with each other, because the call may
  // give one input the storage of another.
  void join_all() {
    if (inputs_.empty()) return;
    for (const Held& each : inputs_) join_held(inputs_[0], each);
    for (Held& each : result_) {
      if (!each.object.is_valid()) each.object = make_object();
      join_held(inputs_[0], each);
    }
  }

  bool alias_first_argument(NodeId node) {
    const std::vector<Held>& from = argument(node, 0);
    if (from.empty()) return false;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Held& base = from.size() == leaves_.size() ? from[i] : from[0];
      result_[i] = {base.buffer, returned_object(node, base)};
    }
    return true;
  }

  ObjectId returned_object(NodeId node, const Held& base) {
    if (view_ == ViewKind::kIdentity) return base.object;
    return graph_.op(node).may_return_argument ? make_object_like(base.object) : make_object();
  }

  void maybe_view(NodeId node) {
    const std::vector<Held> from = argument(node, 0);
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Held base = from.empty() ? Held() : from[from.size() == leaves_.size() ? i : 0];
      const ViewAnswer answer = base.buffer.is_valid() ? ask_view(node, leaves_[i]) : ViewAnswer::kCopy;
      // If the result is not a copy, the op may have returned the argument itself.
      const ObjectId object = answer == ViewAnswer::kCopy ? make_object() : make_object_like(base.object);
      if (answer == ViewAnswer::kView) {
        result_[i] = {base.buffer, object};
      } else {
        result_[i] = {make(node, leaves_[i], BufferSource::kNode), object};
      }
      if (answer == ViewAnswer::kUnknown) join(parents_, base.buffer, result_[i].buffer);
    }
  }

  // Decides whether the result is a view of the first argument. If the schema allows a view
  // whenever possible, and the layouts of the two tensors fit a view, the result is a view.
  // Otherwise the file's storage ids decide, if both tensors have one.
  ViewAnswer ask_view(NodeId node, const Leaf& leaf) const {
    const NodeId first = first_argument(graph_, node);
    if (!first.is_valid()) return ViewAnswer::kUnknown;
    const Tensor* from = single_tensor(graph_, first);
    const Tensor* to = leaf.value.is_valid() ? &graph_.pool().tensor(graph_.pool().value(leaf.value)) : nullptr;
    // A getitem of a tensor may select some elements, so its layout cannot be compared with the
    // tensor's layout.
    const bool is_comparable = from != nullptr && to != nullptr && graph_.op(node).view != ViewKind::kProjection;
    const ViewAnswer answer = is_comparable ? compare_as_view(graph_.module(), *from, *to) : ViewAnswer::kUnknown;
    if (answer == ViewAnswer::kView && shares_where_it_can(graph_, node)) return answer;
    const StorageId input = carried_of(graph_[first].value);
    if (leaf.carried.is_valid() && input.is_valid()) {
      return leaf.carried == input ? ViewAnswer::kView : ViewAnswer::kCopy;
    }
    return answer == ViewAnswer::kCopy ? answer : ViewAnswer::kUnknown;
  }

  void alias_by_schema(NodeId node, const Op& op) {
    for (size_t r = 0; r < op.aliases.size() && r < op.schema->returns.size(); ++r) {
      if (op.aliases[r] < 0) continue;
      const size_t position = static_cast<size_t>(op.aliases[r]);
      const std::vector<Held>& from = argument(node, position);
      if (from.empty()) continue;
      const bool is_written = std::ranges::find(op.writes, position) != op.writes.end();
      const auto [first, count] = return_leaves(node, *op.schema, r);
      for (size_t i = 0; i < count; ++i) {
        const Held& base = from.size() == count ? from[i] : from[0];
        result_[first + i] = {base.buffer, is_written ? base.object : returned_object(node, base)};
      }
    }
  }

  // Returns the first index and the number of the leaves of return `r`.
  std::pair<size_t, size_t> return_leaves(NodeId node, const Schema& schema, size_t r) {
    if (schema.returns.size() == 1) return {0, leaves_.size()};
    const Value& value = graph_.value(node);
    if (value.kind != ValueKind::kTuple && value.kind != ValueKind::kList) return {0, r == 0 ? leaves_.size() : 0};
    return r < value.count ? elements_.tensors(node, r) : std::pair<size_t, size_t>();
  }

  void visit_writes(NodeId node) {
    if (effects_.has(node, Effect::kUnknownWrites)) {
      map_.writes_[node.index()] = map_.reads_[node.index()];
      return;
    }
    if (!is_writing_call(graph_, node)) return;
    written_.clear();
    for (const uint8_t position : graph_.op(node).writes) {
      const std::vector<Held>& given = argument(node, position);
      written_.insert(written_.end(), given.begin(), given.end());
    }
    map_.writes_[node.index()] = append_sorted(written_);
  }

  // -- metadata that changes in place

  void visit_metadata(NodeId node) {
    if (!graph_[node].runs()) return;
    if (effects_.has(node, Effect::kUnknownWrites)) {
      for (const Held& each : inputs_) change_metadata(each.object, node);
    } else {
      collect_metadata_changes(graph_, node, positions_);
      for (const uint8_t position : positions_) {
        for (const Held& each : argument(node, position)) change_metadata(each.object, node);
      }
    }
    if (graph_.op(node).moves_storage) move_storage(node);
  }

  void change_metadata(ObjectId object, NodeId node) {
    map_.metadata_changes_.push_back({object, graph_.position(node)});
  }

  // After set_(a, b), the object of `a` is on the buffer of `b`.
  void move_storage(NodeId node) {
    const std::vector<Held> from = argument(node, 0);
    if (from.size() != 1) return;
    const std::vector<Held>& to = argument(node, 1);
    const Leaf leaf = leaves_.empty() ? Leaf() : leaves_[0];
    const BufferId buffer =
        to.size() == 1 && to[0].buffer.is_valid() ? to[0].buffer : make(node, leaf, BufferSource::kNode);
    if (from[0].buffer.is_valid()) join(parents_, from[0].buffer, buffer);
    moved_[from[0].object] = buffer;
    if (map_.values_[node.index()].count == 1) map_.pool_[map_.values_[node.index()].first] = buffer;
  }

  StorageId carried_of(ValueId value) const {
    if (!value.is_valid() || graph_.pool().value(value).kind != ValueKind::kTensor) return StorageId();
    return graph_.pool().tensor(graph_.pool().value(value)).storage;
  }

  // Returns the node's first input whose recorded storage is `carried`.
  Held input_with_carried(NodeId node, StorageId carried) {
    if (!carried.is_valid()) return Held();
    if (indexed_ != node) {
      indexed_ = node;
      for (size_t i = inputs_.size(); i-- > 0;) {
        if (!inputs_[i].buffer.is_valid()) continue;
        const StorageId given = map_.buffers_[inputs_[i].buffer.index()].carried;
        if (given.is_valid()) input_with_[given] = {node, inputs_[i]};
      }
    }
    const auto [reader, input] = input_with_.get(carried);
    return reader == node ? input : Held();
  }

  // -- classes, by union-find

  template <class IdType>
  static IdType root(std::vector<IdType>& parents, IdType id) {
    while (parents[id.index()] != id) {
      parents[id.index()] = parents[parents[id.index()].index()];
      id = parents[id.index()];
    }
    return id;
  }

  template <class IdType>
  static void join(std::vector<IdType>& parents, IdType a, IdType b) {
    const IdType root_a = root(parents, a);
    const IdType root_b = root(parents, b);
    if (root_a != root_b) parents[std::max(root_a, root_b).index()] = std::min(root_a, root_b);
  }

  void join_held(const Held& a, const Held& b) {
    if (a.buffer.is_valid() && b.buffer.is_valid()) join(parents_, a.buffer, b.buffer);
    join(object_parents_, a.object, b.object);
  }

  Slice append(const std::vector<Held>& items) {
    const Slice slice{static_cast<uint32_t>(map_.pool_.size()), static_cast<uint32_t>(items.size())};
    for (const Held& item : items) map_.pool_.push_back(item.buffer);
    return slice;
  }

  Slice append_sorted(const std::vector<Held>& items) {
    const Slice all = append(items);
    const auto first = map_.pool_.begin() + all.first;
    std::sort(first, map_.pool_.end());
    map_.pool_.erase(std::unique(first, map_.pool_.end()), map_.pool_.end());
    return {all.first, static_cast<uint32_t>(map_.pool_.size() - all.first)};
  }

  void finish_classes() {
    const size_t count = map_.buffers_.size();
    map_.classes_.resize(count);
    map_.class_writes_.resize(count);
    map_.class_external_.assign(count, false);
    map_.class_returned_.assign(count, false);
    for (size_t i = 0; i < count; ++i) {
      const BufferId top = root(parents_, BufferId(i));
      map_.classes_[i] = top;
      if (map_.buffers_[i].source != BufferSource::kNode) map_.class_external_[top.index()] = true;
    }
    if (graph_.output().is_valid()) {
      for_each_buffer(map_.reads(graph_.output()),
                      [&](BufferId buffer) { map_.class_returned_[map_.classes_[buffer.index()].index()] = true; });
    }
    for (const NodeId node : graph_.nodes()) {
      for_each_buffer(map_.writes(node), [&](BufferId buffer) {
        std::vector<NodeId>& writes = map_.class_writes_[map_.classes_[buffer.index()].index()];
        if (writes.empty() || writes.back() != node) writes.push_back(node);
      });
    }
  }

  void finish_objects() {
    map_.object_classes_.resize(object_parents_.size());
    for (size_t i = 0; i < object_parents_.size(); ++i) {
      map_.object_classes_[i] = root(object_parents_, ObjectId(i));
    }
    map_.object_returned_.assign(object_parents_.size(), false);
    if (graph_.output().is_valid()) {
      graph_.for_each_input(graph_.output(), [this](NodeId leaf) {
        for (const ObjectId id : map_.objects(leaf)) map_.object_returned_[map_.object_class(id).index()] = true;
      });
    }
    for (MetadataChange& change : map_.metadata_changes_) change.object = map_.object_classes_[change.object.index()];
    std::ranges::sort(map_.metadata_changes_);
  }

  const Graph& graph_;
  EffectMap& effects_;
  RegionBodies& regions_;
  StorageMap& map_;
  SubgraphNames names_;
  std::vector<BufferId> parents_;
  std::vector<ObjectId> object_parents_;
  IdMap<StorageId, Held> placeholders_;
  IdMap<TargetId, Held> attributes_;
  IdMap<StorageId, std::pair<NodeId, Held>> input_with_;  // by recorded id; valid only for the node `indexed_`
  NodeId indexed_;
  IdMap<ObjectId, BufferId> moved_;  // buffers on which `set_` has put objects so far
  ElementFinder elements_;
  // State of the current node:
  ViewKind view_ = ViewKind::kNone;
  std::vector<Leaf> leaves_;
  bool takes_element_ = false;  // a getitem whose element is known
  std::vector<size_t> taken_;   // the elements that the getitem takes
  std::vector<Held> element_;   // the tensors of these elements
  std::vector<Held> inputs_, result_, written_, argument_;
  std::vector<uint8_t> positions_;
};

StorageMap::StorageMap(const Graph& graph) : graph_(&graph) {
  EffectMap effects(graph);
  RegionBodies regions(graph.module());
  Builder(graph, effects, regions, *this).run();
}

StorageMap::StorageMap(const Graph& graph, EffectMap& effects) : graph_(&graph) {
  RegionBodies regions(graph.module());
  Builder(graph, effects, regions, *this).run();
}

StorageMap::StorageMap(const Graph& graph, RegionBodies& regions) : graph_(&graph) {
  EffectMap effects(graph);
  Builder(graph, effects, regions, *this).run();
}

bool StorageMap::share_storage(NodeId a, NodeId b) const {
  const std::span<const BufferId> left = buffers(a), right = buffers(b);
  return a == b || (left.size() == 1 && right.size() == 1 && left[0] == right[0]);
}

bool StorageMap::reads_data(NodeId node) const {
  if (!graph_->operator[](node).is_call()) return false;
  if (graph_->op(node).reads_index) return true;
  const ViewKind view = view_of_call(*graph_, node);
  if (view != ViewKind::kMaybeView) return view == ViewKind::kNone || view == ViewKind::kIdentity;
  return any_buffer(buffers(node), [&](BufferId id) { return buffer(id).producer == node; });
}

bool StorageMap::changes_between(ObjectId object, uint32_t after, uint32_t before) const {
  const MetadataChange first_later{object_classes_[object.index()], after + 1};
  const auto found = std::lower_bound(metadata_changes_.begin(), metadata_changes_.end(), first_later);
  return found != metadata_changes_.end() && found->object == first_later.object && found->place < before;
}

bool StorageMap::metadata_changes_after(NodeId node) const {
  if (metadata_changes_.empty()) return false;
  const uint32_t end = std::numeric_limits<uint32_t>::max();
  return std::ranges::any_of(objects(node),
                             [&](ObjectId id) { return changes_between(id, graph_->position(node), end); });
}

bool StorageMap::input_metadata_changes(NodeId reader, NodeId after, NodeId before) const {
  if (metadata_changes_.empty()) return false;
  bool found = false;
  graph_->for_each_input(reader, [&](NodeId input) {
    for (const ObjectId id : objects(input)) {
      found = found || changes_between(id, graph_->position(after), graph_->position(before));
    }
  });
  return found;
}

bool StorageMap::input_bytes_change(NodeId reader, NodeId after, NodeId before) const {
  if (!reads_data(reader)) return false;
  return any_buffer(reads(reader), [&](BufferId id) { return written_between(id, after, before); });
}

bool StorageMap::written_between(BufferId buffer, NodeId after, NodeId before) const {
  const std::vector<NodeId>& writes = class_writes_[classes_[buffer.index()].index()];
  const uint32_t low = graph_->position(after);
  const auto first = std::upper_bound(writes.begin(), writes.end(), low,
                                      [this](uint32_t place, NodeId node) { return place < graph_->position(node); });
  return first != writes.end() && graph_->position(*first) < graph_->position(before);
}

bool StorageMap::written_after(BufferId buffer, NodeId after) const {
  const std::vector<NodeId>& writes = class_writes_[classes_[buffer.index()].index()];
  return !writes.empty() && graph_->position(writes.back()) > graph_->position(after);
}

}  // namespace fxopt
