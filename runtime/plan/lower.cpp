// Lowers a graph to a plan in one pass over the schedule. The nodes become these parts of the plan:
//
//   placeholder, get_attr   storages that no step makes, and tensors in these storages
//   view, getitem           tensors in the storages of the inputs
//   size, host arithmetic   words, see scalars.h
//   any other node          a step
//
// Storage i of the plan is buffer i of the StorageMap.

#include "runtime/plan/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/hash_table.h"
#include "ir/alias/collectives.h"
#include "ir/alias/effects.h"
#include "ir/alias/storages.h"
#include "ir/alias/subgraphs.h"
#include "ir/values/elements.h"
#include "ir/values/values.h"
#include "runtime/plan/lifetimes.h"
#include "runtime/plan/scalars.h"

namespace fxopt {
namespace {

constexpr int kMaxDepth = 64;  // largest nesting depth of graphs that run graphs

class Lowering {
 public:
  Lowering(const Graph& graph, const DrawKeys& draw_key, int depth)
      : graph_(graph),
        module_(graph.module()),
        draw_key_(draw_key),
        depth_(depth),
        plan_(std::make_unique<Plan>()),
        scalars_(module_, *plan_),
        effects_(graph),
        storages_(graph, effects_),
        subgraphs_(graph),
        elements_(graph) {}

  Result<std::unique_ptr<Plan>> run() {
    plan_->name = string_of(graph_.name());
    add_groups();
    add_storages();
    bind_inputs();
    const std::vector<NodeId> schedule(graph_.nodes().begin(), graph_.nodes().end());
    steps_before_.reserve(schedule.size() + 1);
    for (const NodeId node : schedule) {
      steps_before_.push_back(num_steps());
      lower_node(node);
      if (error_.has_value()) return *std::move(error_);
    }
    steps_before_.push_back(num_steps());
    set_sizes(graph_, storages_, scalars_, *plan_);
    check_extents();
    set_lifetimes(graph_, storages_, steps_before_, has_tensor_, *plan_);
    mark_transfers(*plan_);
    if (error_.has_value()) return *std::move(error_);
    return std::move(plan_);
  }

 private:
  struct Slice {
    uint32_t first = 0;
    uint32_t count = 0;
  };

  uint32_t num_steps() const { return static_cast<uint32_t>(plan_->steps.size()); }

  void fail(NodeId node, ErrorCode code, std::string message, std::string hint) {
    if (error_.has_value()) return;
    error_ = Error{code, std::move(message), std::move(hint), {}};
    error_->where.graph = module_.text(graph_.name());
    error_->where.node = graph_.name_of(node);
  }

  // -- names

  uint32_t string_of(StringId id) {
    if (!id.is_valid()) return FX_NONE;
    uint32_t& index = string_index_[id];
    if (index == FX_NONE) index = plan_->add_string(module_.text(id));
    return index;
  }

  uint32_t node_of(NodeId id) {
    if (node_index_.get(id) != FX_NONE) return node_index_.get(id);
    const Node& record = graph_[id];
    FxNode node{};
    node.uid = record.uid;
    node.name = string_of(record.name);
    node.module = string_of(record.module_path);
    node.file = FX_NONE;
    if (record.source.is_valid()) {
      const Source& source = module_.source(record.source);
      node.file = string_of(source.file);
      node.line = static_cast<int32_t>(source.line);
    }
    plan_->nodes.push_back(node);
    return node_index_[id] = static_cast<uint32_t>(plan_->nodes.size() - 1);
  }

  uint32_t op_of(NodeId node) {
    const TargetId target = graph_[node].target;
    if (op_index_.get(target) != FX_NONE) return op_index_.get(target);
    plan_->ops.push_back({plan_->add_string(graph_.op(node).name), FX_NONE});
    return op_index_[target] = static_cast<uint32_t>(plan_->ops.size() - 1);
  }

  // -- storages and tensors

  void add_storages() {
    plan_->storages.resize(storages_.num_buffers());
    has_tensor_.resize(storages_.num_buffers(), false);
    IdMap<BufferId, uint32_t> first_of_class(storages_.num_buffers(), FX_NONE);
    for (uint32_t i = 0; i < storages_.num_buffers(); ++i) {
      const Buffer& buffer = storages_.buffer(BufferId(i));
      FxStorage& storage = plan_->storages[i];
      storage.first = storage.last = FX_NONE;
      storage.device = string_of(buffer.device);
      storage.node = node_of(buffer.producer);
      storage.source = static_cast<uint8_t>(source_of(buffer));
      if (storages_.is_returned(BufferId(i))) storage.flags |= FX_STORAGE_RETURNED;
      const BufferId alias = storages_.alias_class(BufferId(i));
      if (first_of_class[alias] == FX_NONE) first_of_class[alias] = i;
      storage.alias_class = first_of_class[alias];
    }
  }

  FxSource source_of(const Buffer& buffer) const {
    if (buffer.source == BufferSource::kAttribute) return FX_SOURCE_CONSTANT;
    if (buffer.source == BufferSource::kNode) return FX_SOURCE_PLANNED;
    return depth_ == 0 ? FX_SOURCE_INPUT : FX_SOURCE_OUTER;
  }

  uint32_t add_tensor(NodeId node, const Tensor& tensor, BufferId buffer) {
    FxTensor row{};
    row.storage = FX_NONE;
    if (buffer.is_valid()) {
      row.storage = buffer.index();
      has_tensor_[row.storage] = true;
      const std::optional<int64_t> extent = storage_bytes(module_, tensor, {});
      if (extent.has_value()) extents_.push_back({node, row.storage, *extent});
    }
    row.node = node_of(node);
    row.dtype = static_cast<uint8_t>(tensor.dtype);
    if (tensor.conjugate) row.flags |= FX_TENSOR_CONJUGATE;
    if (tensor.negative) row.flags |= FX_TENSOR_NEGATIVE;
    if (graph_[node].is_call() && graph_.op(node).chooses_layout) row.flags |= FX_TENSOR_CHOSEN;
    std::vector<FxWord> dims;
    if (tensor.sizes.is_valid() && tensor.dtype != DType::kUnspecified) {
      for (const Dim& dim : module_.dims(tensor.sizes)) dims.push_back(size_word(node, dim));
      row.rank = static_cast<uint8_t>(dims.size());
      if (tensor.strides.is_valid()) {
        for (const Dim& dim : module_.dims(tensor.strides)) dims.push_back(size_word(node, dim));
      } else {
        dims.resize(2 * dims.size(), kNoWord);
      }
      row.offset = size_word(node, tensor.offset);
    } else {
      row.flags |= FX_TENSOR_UNKNOWN;
    }
    row.dims = add_words(dims);
    plan_->tensors.push_back(row);
    return static_cast<uint32_t>(plan_->tensors.size() - 1);
  }

  // Returns the index of the first added word.
  uint32_t add_words(const std::vector<FxWord>& words) {
    plan_->words.insert(plan_->words.end(), words.begin(), words.end());
    return static_cast<uint32_t>(plan_->words.size() - words.size());
  }

  FxWord size_word(NodeId node, const Dim& dim) {
    const FxWord word = scalars_.of(dim);
    if (word == kNoWord) {
      fail(node, ErrorCode::kUnknownSize,
           "the size " + module_.exprs.to_string(dim.expr) + " is needed before an input or a step determines it",
           "save the graph with the sizes of its inputs, or with the call that determines the size");
    }
    return word;
  }

  // -- inputs

  static FxScalarType type_of(SymbolType type) {
    if (type == SymbolType::kFloat) return FX_SCALAR_FLOAT;
    return type == SymbolType::kBool ? FX_SCALAR_BOOL : FX_SCALAR_INT;
  }

  // Binds the symbols of all inputs before any input is lowered, because a size of one input may be
  // a number that is a later input.
  void bind_inputs() {
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind != NodeKind::kPlaceholder) continue;
      const Value& value = graph_.value(node);
      if (value.kind != ValueKind::kSymbolic) continue;
      const StringId symbol = scalars_.symbol_of(ExprId(value.first));
      if (symbol.is_valid() && !scalars_.is_bound(symbol))
        scalars_.bind(symbol, FX_SCALAR_INPUT, type_of(value.symbol_type));
    }
    // The tensors of the plan do not exist yet. lower_placeholder() stores their indices in the
    // scalars.
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind != NodeKind::kPlaceholder) continue;
      uint32_t place = 0;
      for_each_tensor(graph_, graph_[node].value,
                      [&](ValueId, const Tensor& tensor) { bind_dims(node, place++, tensor); });
    }
    if (depth_ > 0) bind_outer();
  }

  void bind_dims(NodeId node, uint32_t place, const Tensor& tensor) {
    if (!tensor.sizes.is_valid()) return;
    std::vector<Dim> dims = sizes_and_strides(tensor);
    dims.push_back(tensor.offset);
    for (uint32_t i = 0; i < dims.size(); ++i) {
      const StringId symbol = scalars_.symbol_of(dims[i]);
      if (!symbol.is_valid() || scalars_.is_bound(symbol)) continue;
      const uint32_t scalar = index_of(scalars_.bind(symbol, FX_SCALAR_DIM));
      plan_->scalars[scalar].dim = i;
      dims_of_inputs_.push_back({node, place, scalar});
    }
  }

  // Returns the sizes, then the strides. Strides that are not recorded are 0.
  std::vector<Dim> sizes_and_strides(const Tensor& tensor) const {
    std::vector<Dim> dims = module_.dims(tensor.sizes);
    const std::vector<Dim> none(dims.size());
    const std::vector<Dim>& strides = tensor.strides.is_valid() ? module_.dims(tensor.strides) : none;
    dims.insert(dims.end(), strides.begin(), strides.end());
    return dims;
  }

  // Binds symbols that an inner graph uses but does not define. The calling graph defines these
  // symbols.
  void bind_outer() {
    const auto bind = [&](ExprId expr) {
      for (const StringId symbol : module_.exprs.symbols(expr)) {
        if (!scalars_.is_bound(symbol) && !is_made_here(symbol)) scalars_.bind(symbol, FX_SCALAR_OUTER);
      }
    };
    for (const NodeId node : graph_.nodes()) {
      for_each_tensor(graph_, graph_[node].value, [&](ValueId, const Tensor& tensor) {
        if (!tensor.sizes.is_valid()) return;
        for (const Dim& dim : module_.dims(tensor.sizes)) {
          if (!dim.is_static()) bind(dim.expr);
        }
      });
      if (graph_.value(node).kind == ValueKind::kSymbolic && graph_[node].kind == NodeKind::kPlaceholder)
        bind(ExprId(graph_.value(node).first));
    }
  }

  // Returns true if a call of this graph determines the symbol.
  bool is_made_here(StringId symbol) {
    if (made_.empty()) {
      for (const Symbol& row : module_.symbols) {
        if (row.graph == graph_.name() && row.kind == SymbolKind::kUnbacked) made_.insert(row.name);
      }
      made_.insert(StringId());
    }
    return made_.count(symbol) > 0;
  }

  void lower_placeholder(NodeId node) {
    const Slice leaves = make_leaves(node, FX_NONE);
    for (; next_dim_ < dims_of_inputs_.size() && dims_of_inputs_[next_dim_].node == node; ++next_dim_) {
      const DimOfInput& dim = dims_of_inputs_[next_dim_];
      plan_->scalars[dim.scalar].tensor = index_of(leaves_[leaves.first + dim.place]);
    }
    FxInput input{};
    input.name = string_of(graph_[node].name);
    input.node = node_of(node);
    if (has_elements(graph_.value(node))) {
      fail(node, ErrorCode::kUnsupportedGraph, "an input of the step is a tuple, a list or a dict",
           "make each element an input");
    }
    input.value = leaves.count == 1 ? leaves_[leaves.first] : kNoWord;
    input.role = static_cast<uint32_t>(recorded_role(graph_, node));
    input.first = num_steps();
    const NodeExtra* extra = graph_.extra(node);
    input.fqn = extra != nullptr && extra->input.has_value() ? string_of(extra->input->fqn) : FX_NONE;
    plan_->inputs.push_back(input);
  }

  // -- values

  // Makes a word for each tensor and number in a node's value, in depth-first order. `step` is the
  // step that computes the value, or FX_NONE.
  Slice make_leaves(NodeId node, uint32_t step) {
    std::vector<FxWord> made;
    size_t tensor = 0;
    if (graph_[node].value.is_valid()) add_leaves(node, graph_[node].value, step, tensor, made);
    const Slice slice{static_cast<uint32_t>(leaves_.size()), static_cast<uint32_t>(made.size())};
    leaves_.insert(leaves_.end(), made.begin(), made.end());
    return of_node_[node] = slice;
  }

  void add_leaves(NodeId node, ValueId id, uint32_t step, size_t& tensor, std::vector<FxWord>& made) {
    const Value& value = graph_.pool().value(id);
    switch (value.kind) {
      case ValueKind::kTensor:
        return made.push_back(tensor_word(node, graph_.pool().tensor(value), step, tensor++));
      case ValueKind::kTuple:
      case ValueKind::kList:
      case ValueKind::kDict:
        for (uint32_t i = 0; i < value.count; ++i) add_leaves(node, ValueId(value.first + i), step, tensor, made);
        return;
      case ValueKind::kSymbolic:
        return made.push_back(symbol_word(value, step));
      case ValueKind::kScalar:
        return made.push_back(scalar_word(node, graph_.pool().scalar(value)));
      case ValueKind::kGraph:
        return made.push_back(graph_word(node, value.name));
      default:
        return made.push_back(kNoWord);
    }
  }

  FxWord tensor_word(NodeId node, const Tensor& tensor, uint32_t step, size_t place) {
    const ObjectId object = storages_.objects(node)[place];
    const BufferId buffer = storages_.buffers(node)[place];
    uint32_t known = tensor_of_object_.get(object);
    // The result of an in-place operator is the tensor of its argument. If the operator changes the
    // tensor's metadata, the result is a new tensor.
    const bool is_changed = graph_[node].is_call() && graph_.op(node).changes_metadata;
    if (known == FX_NONE || is_changed) {
      if (step != FX_NONE) bind_results(tensor, step);
      known = add_tensor(node, tensor, buffer);
      tensor_of_object_[object] = known;
    }
    return make_word(FX_WORD_TENSOR, known);
  }

  // Binds the symbols of sizes that become known only when the step runs, such as the size of
  // `nonzero`.
  void bind_results(const Tensor& tensor, uint32_t step) {
    if (!tensor.sizes.is_valid()) return;
    for (const Dim& dim : sizes_and_strides(tensor)) {
      const StringId symbol = scalars_.symbol_of(dim);
      if (symbol.is_valid() && !scalars_.is_bound(symbol))
        scalars_.bind(symbol, FX_SCALAR_STEP, FX_SCALAR_INT, step + 1);
    }
  }

  FxWord symbol_word(const Value& value, uint32_t step) {
    const ExprId expr(value.first);
    if (expr.is_valid()) {
      if (const FxWord word = scalars_.of(expr); word != kNoWord) return word;
    }
    if (step == FX_NONE) return kNoWord;
    const StringId symbol = expr.is_valid() ? scalars_.symbol_of(expr) : StringId();
    return scalars_.bind(symbol, FX_SCALAR_STEP, type_of(value.symbol_type), step + 1);
  }

  FxWord graph_word(NodeId node, StringId name) {
    const auto found = graph_index_.find(name);
    if (found != graph_index_.end()) return make_word(FX_WORD_GRAPH, found->second);
    const GraphId id = module_.find_graph(name);
    if (!id.is_valid() || depth_ >= kMaxDepth) {
      fail(node, ErrorCode::kUnsupportedGraph,
           id.is_valid() ? "calls of graphs are nested more than " + std::to_string(kMaxDepth) + " deep"
                         : "the graph '" + std::string(module_.text(name)) + "' is not in the file",
           "");
      return kNoWord;
    }
    Result<std::unique_ptr<Plan>> body = Lowering(module_.graph(id), draw_key_, depth_ + 1).run();
    if (!body.ok()) {
      if (!error_.has_value()) error_ = std::move(body).error();
      return kNoWord;
    }
    plan_->graphs.push_back(*std::move(body));
    const uint32_t index = static_cast<uint32_t>(plan_->graphs.size() - 1);
    graph_index_.emplace(name, index);
    return make_word(FX_WORD_GRAPH, index);
  }

  // -- arguments

  FxWord scalar_word(NodeId node, const Arg& arg) {
    switch (arg.kind()) {
      case ArgKind::kBool:
        return make_word(FX_WORD_BOOL, arg.as_bool() ? 1 : 0);
      case ArgKind::kInt:
        return plan_->number(arg.as_int());
      case ArgKind::kFloat:
        return plan_->real(arg.as_double());
      case ArgKind::kString:
      case ArgKind::kRngSlot:
      case ArgKind::kMesh:
      case ArgKind::kOp:
        return make_word(FX_WORD_STRING, string_of(arg.as_string()));
      case ArgKind::kDevice:
        return make_word(FX_WORD_DEVICE, string_of(arg.as_string()));
      case ArgKind::kDType:
        return make_word(FX_WORD_DTYPE, static_cast<uint64_t>(arg.as_dtype()));
      case ArgKind::kLayout:
        return make_word(FX_WORD_LAYOUT, static_cast<uint64_t>(arg.as_layout()));
      case ArgKind::kMemoryFormat:
        return make_word(FX_WORD_FORMAT, static_cast<uint64_t>(arg.as_memory_format()));
      case ArgKind::kExpr:
        return size_word(node, Dim{0, arg.as_expr()});
      case ArgKind::kGroup:
        return make_word(FX_WORD_GROUP, group_index({arg.as_string(), ExprId()}, node));
      case ArgKind::kGroupExpr:
        return make_word(FX_WORD_GROUP, group_index({StringId(), arg.as_expr()}, node));
      case ArgKind::kGraph:
        return graph_word(node, arg.as_string());
      case ArgKind::kComplex: {
        const FxWord word = make_word(FX_WORD_COMPLEX, plan_->numbers.size());
        for (const Arg& part : graph_.pool().children(arg))
          plan_->numbers.push_back(static_cast<int64_t>(part.as_bits()));
        return word;
      }
      case ArgKind::kEnum:
        return scalar_word(node, graph_.pool().args(arg.range())[1]);
      case ArgKind::kNone:
      case ArgKind::kEllipsis:
        return kNoWord;
      default:
        fail(node, ErrorCode::kUnsupportedGraph,
             "an argument of %" + std::string(graph_.name_of(node)) + " is not a value that a plan can store",
             "leave the node out, or save the graph without the object");
        return kNoWord;
    }
  }

  FxWord arg_word(NodeId node, const Arg& arg) {
    if (arg.is(ArgKind::kNode)) return value_word(arg.as_node());
    const bool is_list = arg.is(ArgKind::kList) || arg.is(ArgKind::kTuple) || arg.is(ArgKind::kDict) ||
                         arg.is(ArgKind::kSlice) || arg.is(ArgKind::kSet);
    if (!is_list) return scalar_word(node, arg);
    std::vector<FxWord> items;
    for (const Arg& item : graph_.pool().args(arg.range())) items.push_back(arg_word(node, item));
    return list_word(items);
  }

  FxWord list_word(const std::vector<FxWord>& items) {
    plan_->words.push_back(plan_->number(static_cast<int64_t>(items.size())));
    return make_word(FX_WORD_LIST, add_words(items) - 1);
  }

  // Returns a node's value as a word. A tuple, list or dict becomes a list word.
  FxWord value_word(NodeId node) {
    uint32_t leaf = of_node_.get(node).first;
    if (graph_[node].value.is_valid()) return nested_word(graph_[node].value, leaf);
    if (graph_[node].names_attribute()) return attribute_word(node);
    if (of_node_.get(node).count == 1) return leaves_[leaf];
    fail(node, ErrorCode::kUnknownSize, "the file records no value for this node, but another node uses the value",
         "save the graph with the values of its nodes (meta['val'])");
    return kNoWord;
  }

  FxWord nested_word(ValueId id, uint32_t& leaf) {
    const Value& value = graph_.pool().value(id);
    if (!has_elements(value)) return leaf < leaves_.size() ? leaves_[leaf++] : kNoWord;
    std::vector<FxWord> items;
    for (uint32_t i = 0; i < value.count; ++i) items.push_back(nested_word(ValueId(value.first + i), leaf));
    return list_word(items);
  }

  // Returns the word of an attribute without a recorded value. If the attribute is a graph, this is
  // a graph word. A plan cannot express any other object, so the word is kNoWord.
  FxWord attribute_word(NodeId node) {
    const StringId name = subgraphs_.held_by(graph_, node);
    return name.is_valid() ? graph_word(node, name) : kNoWord;
  }

  // -- steps

  void lower_node(NodeId node) {
    const NodeKind kind = graph_[node].kind;
    if (kind == NodeKind::kPlaceholder) return lower_placeholder(node);
    if (kind == NodeKind::kOutput) return lower_output(node);
    if (kind != NodeKind::kGetAttr) {
      if (has_events(node) || does_run(node)) return lower_step(node);
      if (whole_of(graph_, node).is_valid() && take_part(node)) return;
    }
    make_leaves(node, FX_NONE);
  }

  // Gives a getitem the words of the element that it selects. Returns false if the recorded values
  // do not determine the element.
  bool take_part(NodeId node) {
    const NodeId whole = first_argument(graph_, node);
    const Arg* index = graph_.arg(node, 1);
    if (!whole.is_valid() || index == nullptr || !graph_[whole].value.is_valid()) return false;
    const Value& value = graph_.value(whole);
    std::vector<size_t> taken;
    if (index->is(ArgKind::kSlice) || !elements_.find(whole, *index, taken)) return false;
    const auto element = static_cast<uint32_t>(taken.front());
    const uint32_t* ends = &part_ends_[parts_of(whole, value)];
    const uint32_t begin = element == 0 ? 0 : ends[element - 1];
    of_node_[node] = {of_node_.get(whole).first + begin, ends[element] - begin};
    return true;
  }

  // Returns an index i into part_ends_. Entry i + k is the number of leaves in elements 0 to k of
  // `whole`. These entries are computed once for all getitems of `whole`.
  uint32_t parts_of(NodeId whole, const Value& value) {
    uint32_t& first = first_part_end_[whole];
    if (first != FX_NONE) return first;
    first = static_cast<uint32_t>(part_ends_.size());
    uint32_t end = 0;
    for (uint32_t i = 0; i < value.count; ++i) part_ends_.push_back(end += num_leaves(ValueId(value.first + i)));
    return first;
  }

  uint32_t num_leaves(ValueId id) const {
    const Value& value = graph_.pool().value(id);
    if (!has_elements(value)) return 1;
    uint32_t count = 0;
    for (uint32_t i = 0; i < value.count; ++i) count += num_leaves(ValueId(value.first + i));
    return count;
  }

  bool has_events(NodeId node) const {
    const NodeExtra* extra = graph_.extra(node);
    return extra != nullptr && (!extra->event_record.empty() || !extra->event_wait.empty());
  }

  // Returns true if the node needs a step, because it has an effect, makes a storage, determines a
  // number, or calls an unknown operator.
  bool does_run(NodeId node) {
    constexpr Effect kRuns = Effect::kRandom | Effect::kCollective | Effect::kWaits | Effect::kBarrier |
                             Effect::kAsserts | Effect::kOpaque | Effect::kUnknownWrites;
    const Effect effects = effects_.of(node);
    if (has_effect(effects, kRuns) || graph_.op(node).has_subgraphs) return true;
    if (has_effect(effects, Effect::kMutates) && !writes_only_metadata(graph_, node)) return true;
    const std::span<const BufferId> buffers = storages_.buffers(node);
    const auto is_made = [&](BufferId id) { return id.is_valid() && storages_.buffer(id).producer == node; };
    if (std::any_of(buffers.begin(), buffers.end(), is_made)) return true;
    if (!graph_[node].value.is_valid())
      return !has_effect(effects, Effect::kChangesMode) && !whole_of(graph_, node).is_valid();
    return !has_known_numbers(graph_[node].value);
  }

  bool has_known_numbers(ValueId id) {
    const Value& value = graph_.pool().value(id);
    if (value.kind == ValueKind::kSymbolic)
      return ExprId(value.first).is_valid() && scalars_.of(ExprId(value.first)) != kNoWord;
    if (!has_elements(value)) return true;
    for (uint32_t i = 0; i < value.count; ++i) {
      if (!has_known_numbers(ValueId(value.first + i))) return false;
    }
    return true;
  }

  // Fails if another call has changed the metadata of an input, because the plan has only the
  // recorded metadata.
  void check_metadata(NodeId node) {
    if (storages_.metadata_changes().empty()) return;
    graph_.for_each_input(node, [&](NodeId input) {
      if (!storages_.input_metadata_changes(node, input, node)) return;
      fail(node, ErrorCode::kUnsupportedGraph,
           "it uses %" + std::string(graph_.name_of(input)) +
               " after another call changed the sizes or the storage of this operand in place",
           "use the result of the other call instead, as functionalization does");
    });
  }

  void lower_step(NodeId node) {
    check_metadata(node);
    FxStep step{};
    step.op = op_of(node);
    step.node = node_of(node);
    step.draw = step.group = step.sequence = step.other = step.stream = FX_NONE;
    step.kind = static_cast<uint8_t>(kind_of_step(node));
    add_arguments(node, step);
    const Slice results = make_leaves(node, num_steps());
    const auto first = leaves_.begin() + results.first;
    step.results = add_words({first, first + results.count});
    step.num_results = results.count;
    add_effects(node, step);
    step_of_[node] = num_steps();
    plan_->steps.push_back(step);
  }

  FxStepKind kind_of_step(NodeId node) {
    const Effect effects = effects_.of(node);
    const Op& op = graph_.op(node);
    if (op.has_subgraphs) return FX_STEP_CALL;
    if (has_effect(effects, Effect::kWaits)) return FX_STEP_WAIT;
    if (has_effect(effects, Effect::kCollective))
      return is_message(graph_, node) ? FX_STEP_MESSAGE : FX_STEP_COLLECTIVE;
    if (has_effect(effects, Effect::kAsserts)) return FX_STEP_ASSERT;
    if (op.name.starts_with("streams.") || !does_run(node)) return FX_STEP_STREAM;
    const bool is_host = storages_.buffers(node).empty() && storages_.reads(node).empty();
    return is_host ? FX_STEP_SCALAR : FX_STEP_KERNEL;
  }

  void add_arguments(NodeId node, FxStep& step) {
    const auto add = [&](ArgRange range) {
      std::vector<FxWord> words;
      for (const Arg& arg : graph_.pool().args(range)) words.push_back(arg_word(node, arg));
      return add_words(words);
    };
    step.args = add(graph_[node].args);
    step.num_args = graph_[node].args.count;
    step.keywords = add(graph_[node].kwargs);
    step.num_keywords = graph_[node].kwargs.count / 2;
  }

  void add_effects(NodeId node, FxStep& step) {
    const Effect effects = effects_.of(node);
    if (has_effect(effects, Effect::kOpaque)) step.flags |= FX_STEP_OPAQUE;
    if (has_effect(effects, Effect::kHostSync)) step.flags |= FX_STEP_HOST_WAITS;
    step.writes = static_cast<uint32_t>(plan_->indices.size());
    for (const BufferId id : storages_.writes(node)) {
      if (storages_.buffer(id).producer == node) continue;
      plan_->indices.push_back(id.index());
      plan_->storages[id.index()].flags |= FX_STORAGE_WRITTEN;
    }
    step.num_writes = static_cast<uint32_t>(plan_->indices.size()) - step.writes;
    if (step.num_writes > 0) step.flags |= FX_STEP_WRITES;
    add_order(node, step);
    if (has_effect(effects, Effect::kRandom)) add_draw(node, step);
    if (has_effect(effects, Effect::kCollective)) {
      if (is_raced(graph_, storages_, node)) {
        fail(node, ErrorCode::kUnsupportedGraph, "one of its buffers is written before the wait for the exchange",
             "wait before the write; otherwise the exchanged data depends on timing");
      }
      step.group = group_index(group_of_call(graph_, node), node);
      if (step.kind == FX_STEP_COLLECTIVE) step.sequence = sequences_[step.group]++;
    }
    if (has_effect(effects, Effect::kWaits)) add_waits(node, step);
  }

  void add_order(NodeId node, FxStep& step) {
    step.after = static_cast<uint32_t>(plan_->indices.size());
    if (const NodeExtra* extra = graph_.extra(node)) {
      if (extra->stream.has_value()) step.stream = string_of(*extra->stream);
      for (const ControlDep& dep : extra->control) {
        if (step_of_.get(dep.node) != FX_NONE) plan_->indices.push_back(step_of_.get(dep.node));
      }
      for (const StringId event : extra->event_wait) {
        if (const auto known = recorded_.find(event); known != recorded_.end()) plan_->indices.push_back(known->second);
      }
      for (const StringId event : extra->event_record) recorded_[event] = num_steps();
    }
    step.num_after = static_cast<uint32_t>(plan_->indices.size()) - step.after;
  }

  void add_draw(NodeId node, FxStep& step) {
    const DrawKey key = draw_key_(graph_, node);
    FxDraw draw{key.uid, key.invocation, FX_NONE, UINT64_MAX, UINT64_MAX};
    if (const NodeExtra* extra = graph_.extra(node); extra != nullptr && extra->rng.has_value()) {
      draw.slot = string_of(extra->rng->slot);
      if (extra->rng->seed.value.has_value()) draw.seed = static_cast<uint64_t>(*extra->rng->seed.value);
      if (extra->rng->offset.value.has_value()) draw.offset = static_cast<uint64_t>(*extra->rng->offset.value);
    }
    plan_->draws.push_back(draw);
    step.draw = static_cast<uint32_t>(plan_->draws.size() - 1);
    step.flags |= FX_STEP_DRAWS;
  }

  // Adds the module's groups in the module's order, because expressions of the rank are indices of
  // these groups.
  void add_groups() {
    for (const ProcessGroup& known : module_.groups) {
      groups_.emplace(GroupKey{known.uid, ExprId()}, static_cast<uint32_t>(plan_->groups.size()));
      FxGroup group{string_of(known.uid), static_cast<uint32_t>(plan_->indices.size()),
                    static_cast<uint32_t>(known.ranks.size()), kNoWord};
      for (const int64_t rank : known.ranks) plan_->indices.push_back(static_cast<uint32_t>(rank));
      plan_->groups.push_back(group);
    }
    sequences_.resize(plan_->groups.size(), 0);
  }

  uint32_t group_index(const GroupKey& key, NodeId node) {
    const auto [found, is_new] = groups_.emplace(key, static_cast<uint32_t>(plan_->groups.size()));
    if (!is_new) return found->second;
    FxGroup group{string_of(key.uid), 0, 0, kNoWord};
    if (key.expr.is_valid()) group.choice = size_word(node, Dim{0, key.expr});
    plan_->groups.push_back(group);
    sequences_.push_back(0);
    return found->second;
  }

  // Returns the step that started the exchange whose result is `node`. Returns FX_NONE if no step
  // started an exchange, or if a wait has ended the exchange.
  uint32_t begun_by(NodeId node) const {
    for (; node.is_valid(); node = first_input(node)) {
      const uint32_t step = step_of_.get(node);
      if (step != FX_NONE) return is_exchange(plan_->steps[step]) ? step : FX_NONE;
    }
    return FX_NONE;
  }

  NodeId first_input(NodeId node) const {
    NodeId first;
    graph_.for_each_input(node, [&](NodeId input) {
      if (!first.is_valid()) first = input;
    });
    return first;
  }

  // If a call waits for several exchanges, adds one wait step for each exchange. `step` is the last
  // of these steps.
  void add_waits(NodeId node, FxStep& step) {
    const std::vector<NodeId> inputs = graph_.inputs(node);
    for (size_t i = 0; i + 1 < inputs.size(); ++i) {
      FxStep wait = step;
      wait.args = add_words({value_word(inputs[i])});
      wait.num_args = 1;
      wait.num_keywords = wait.num_results = wait.num_writes = wait.num_after = 0;
      wait.flags = 0;
      wait.other = begun_by(inputs[i]);
      plan_->steps.push_back(wait);
    }
    if (!inputs.empty()) step.other = begun_by(inputs.back());
  }

  void lower_output(NodeId node) {
    input_of_tensor_.assign(plan_->tensors.size(), FX_NONE);
    for (uint32_t k = static_cast<uint32_t>(plan_->inputs.size()); k-- > 0;) {
      const FxWord value = plan_->inputs[k].value;
      if (kind_of(value) == FX_WORD_TENSOR) input_of_tensor_[index_of(value)] = k;
    }
    const std::vector<Arg> leaves = leaves_of(graph_, graph_[node].args);
    for (size_t i = 0; i < leaves.size(); ++i) {
      FxOutput output{};
      output.name = FX_NONE;
      if (i < graph_.outputs.size()) {
        output.role = static_cast<uint32_t>(graph_.outputs[i].role);
        output.name = string_of(graph_.outputs[i].fqn);
      }
      output.value = arg_word(node, leaves[i]);
      output.is_input = FX_NONE;
      if (kind_of(output.value) == FX_WORD_TENSOR) output.is_input = input_of_tensor_.at(index_of(output.value));
      plan_->outputs.push_back(output);
    }
  }

  // Fails if a recorded view reaches beyond its storage, because a device would then access memory
  // out of bounds.
  void check_extents() {
    for (const Extent& extent : extents_) {
      const FxWord bytes = plan_->storages[extent.storage].bytes;
      if (kind_of(bytes) != FX_WORD_INT || extent.bytes <= small_int_of(bytes)) continue;
      fail(extent.node, ErrorCode::kUnsupportedGraph,
           "it is recorded as a tensor that ends at byte " + std::to_string(extent.bytes) + " of a storage of " +
               std::to_string(small_int_of(bytes)) + " bytes",
           "trace the graph again: the recorded layout of this value, or the recorded size of its storage, is wrong");
      return;
    }
  }

  struct Extent {
    NodeId node;
    uint32_t storage;
    int64_t bytes;
  };
  struct DimOfInput {
    NodeId node;
    uint32_t place;  // index of the tensor in the input's value
    uint32_t scalar;
  };

  const Graph& graph_;
  const Module& module_;
  const DrawKeys& draw_key_;
  int depth_;
  std::unique_ptr<Plan> plan_;
  ScalarBuilder scalars_;
  EffectMap effects_;
  StorageMap storages_;
  SubgraphNames subgraphs_;
  ElementFinder elements_;
  std::optional<Error> error_;
  IdMap<StringId, uint32_t> string_index_{0, FX_NONE};
  IdMap<NodeId, uint32_t> node_index_{0, FX_NONE}, step_of_{0, FX_NONE};
  IdMap<TargetId, uint32_t> op_index_{0, FX_NONE};
  IdMap<ObjectId, uint32_t> tensor_of_object_{0, FX_NONE};
  IdMap<NodeId, Slice> of_node_;
  IdMap<NodeId, uint32_t> first_part_end_{0, FX_NONE};
  std::vector<uint32_t> part_ends_;
  std::vector<FxWord> leaves_;
  std::vector<uint32_t> steps_before_;      // by position in the schedule
  std::vector<DimOfInput> dims_of_inputs_;  // in the order of inputs
  size_t next_dim_ = 0;                     // index for the next input
  std::map<GroupKey, uint32_t> groups_;
  std::vector<Extent> extents_;
  std::vector<bool> has_tensor_;  // by storage
  std::vector<uint32_t> input_of_tensor_;
  HashMap<StringId, uint32_t> recorded_;  // by event: the step that last recorded the event
  std::vector<uint32_t> sequences_;       // by group: number of the next collective
  HashMap<StringId, uint32_t> graph_index_;
  std::set<StringId> made_;
};

}  // namespace

Result<std::unique_ptr<Plan>> lower(const Graph& graph, const DrawKeys& draw_key) {
  return Lowering(graph, draw_key, 0).run();
}

}  // namespace fxopt
