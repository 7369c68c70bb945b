#include "ir/check/equivalence/execution.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "ir/alias/collectives.h"
#include "ir/alias/effects.h"
#include "ir/alias/layouts.h"
#include "ir/alias/regions.h"
#include "ir/alias/view_geometry.h"
#include "ir/check/equivalence/contents.h"
#include "ir/check/equivalence/memory.h"
#include "ir/check/equivalence/named_values.h"
#include "ir/check/equivalence/rewrite_rules.h"
#include "ir/graph/module.h"
#include "ir/step/autograd.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

using Words = std::vector<uint64_t>;

using Special = CallRule::Special;

class Execution {
 public:
  explicit Execution(const ExecutionInput& input)
      : graph_(input.graph),
        module_(input.graph.module()),
        keys_(input.keys),
        rules_(input.rules),
        effects_(input.effects),
        axioms_(input.axioms),
        subgraphs_(input.subgraphs),
        is_differentiated_(input.is_differentiated),
        names_calls_(input.names_calls),
        input_names_(input.input_names),
        memory_(input.axioms.geometries, input.is_differentiated),
        values_(input.graph),
        rewrites_(graph_, keys_, rules_, axioms_.geometries, memory_, values_, is_differentiated_, input.claims),
        doubtful_(find_doubtful_layouts(graph_)) {
    graph_key_ = input.is_called ? input_shapes_key() : keys_.text(graph_.name());
  }

  ExecutionEnd run() {
    memory_.reserve(graph_.num_nodes());
    if (names_calls_) out_.nodes.reserve(graph_.num_nodes());
    for (const Attribute& attribute : graph_.attributes) attributes_by_name_.emplace(attribute.path, &attribute);
    for (const NodeId node : graph_.nodes()) {
      const NodeKind kind = graph_[node].kind;
      if (kind == NodeKind::kPlaceholder) run_placeholder(node);
      if (kind == NodeKind::kGetAttr) run_attribute(node);
      if (graph_[node].runs()) run_call(node);
      if (rewrites_.has_claims() && graph_[node].is_call()) rewrites_.apply({node, given_, result_objects(node)});
    }
    finish();
    return std::move(out_);
  }

 private:
  static constexpr uint32_t kNone = NamedValues::kNone;

  // Returns the tensors in the argument at `position` of the schema, valid until the next call.
  const std::vector<uint32_t>& argument_objects(NodeId node, size_t position) {
    argument_.clear();
    if (const Arg* arg = call_argument(graph_, node, position)) values_.collect_objects(*arg, argument_);
    return argument_;
  }
  std::optional<SymInt> integer_of(const Arg& arg) { return values_.integer_of(arg, keys_); }
  auto integers() {
    return [this](const Arg& arg) { return integer_of(arg); };
  }

  // -- shapes: recorded values

  void append_shape(ValueId id, ValueShape& shape) {
    const Value& value = graph_.pool().value(id);
    ValueShapeCell cell;
    switch (value.kind) {
      case ValueKind::kTensor: {
        const Tensor& tensor = graph_.pool().tensor(value);
        cell.kind = ValueShapeCell::Kind::kTensor;
        cell.geometry = keys_.geometry(tensor);
        if (tensor.storage.is_valid()) cell.share = static_cast<uint32_t>(tensor.storage.index()) + 1;
        break;
      }
      case ValueKind::kTuple:
      case ValueKind::kList:
      case ValueKind::kDict:
        cell.kind = ValueShapeCell::Kind::kContainer;
        cell.is_dict = value.kind == ValueKind::kDict;
        cell.count = value.count;
        break;
      case ValueKind::kSymbolic:
        if (value.symbol_type == SymbolType::kInt) cell.integer = keys_.integer(ExprId(value.first));
        break;
      case ValueKind::kScalar:
        if (const Arg& scalar = graph_.pool().scalar(value); scalar.is(ArgKind::kInt)) {
          cell.integer = SymInt(scalar.as_int());
        }
        break;
      default:
        break;
    }
    shape.push_back(cell);
    if (cell.kind != ValueShapeCell::Kind::kContainer) return;
    for (uint32_t i = 0; i < value.count; ++i) {
      const size_t at = shape.size();
      append_shape(ValueId(value.first + i), shape);
      if (cell.is_dict) shape[at].name = keys_.text(graph_.pool().keys(value)[i]);
    }
  }

  // Returns the recorded shape of a node's value. The shape is empty if no value is recorded.
  const ValueShape& recorded_shape(NodeId node) {
    recorded_.clear();
    if (graph_.value(node).kind != ValueKind::kAbsent) append_shape(graph_[node].value, recorded_);
    const bool is_doubtful = graph_[node].kind == NodeKind::kPlaceholder && may_be_of_region(graph_, node);
    for (ValueShapeCell& cell : recorded_) cell.may_share = is_doubtful;
    return recorded_;
  }

  // Returns a hash of the shapes of all inputs. Shared storages are numbered by first use.
  Hash128 input_shapes_key() {
    Words words = {key_tag(KeyKind::kGraph)};
    HashMap<uint32_t, uint64_t> shared;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind != NodeKind::kPlaceholder) continue;
      const ValueShape& shape = recorded_shape(node);
      words.push_back(shape.size());
      for (const ValueShapeCell& cell : shape) {
        words.push_back(static_cast<uint64_t>(cell.kind) << 32U | uint64_t{cell.count} << 2U |
                        uint64_t{cell.is_dict} << 1U | uint64_t{cell.may_share});
        words.push_back(cell.geometry.is_valid() ? cell.geometry.index() + 1 : 0);
        words.push_back(cell.share == 0 ? 0 : shared.try_emplace(cell.share, shared.size() + 1).first->second);
        add_key(words, cell.integer.has_value() ? cell.integer->key() : Hash128());
        add_key(words, cell.name);
      }
    }
    return make_key(words);
  }

  // Returns the shape that the axiom with the hash `name` gives. If no such axiom exists, returns
  // the recorded shape.
  const ValueShape& believed_shape(NodeId node, const Hash128& name,
                                   HashMap<Hash128, ValueShape, Hash128Hash>& axioms) {
    if (axioms_.is_open) return axioms.emplace(name, recorded_shape(node)).first->second;
    const auto found = axioms.find(name);
    return found != axioms.end() ? found->second : recorded_shape(node);
  }

  // Makes cells for shape[at] and all its elements. `leaf(shape cell, path)` makes each tensor.
  // Returns the cell for shape[at], and moves `at` past its elements.
  template <class Leaf>
  Cell build(const ValueShape& shape, size_t& at, const Hash128& owner, uint64_t path, const Leaf& leaf) {
    const ValueShapeCell& item = shape[at++];
    if (item.kind == ValueShapeCell::Kind::kTensor) return NamedValues::tensor(leaf(item, path));
    if (item.kind == ValueShapeCell::Kind::kPlain) {
      return values_.integer(believed_integer(make_key(KeyKind::kPlain, owner, path), item.integer));
    }
    const bool is_dict = item.is_dict;
    std::vector<Cell> parts(item.count);
    std::vector<Hash128> names;
    for (uint32_t i = 0; i < parts.size(); ++i) {
      if (is_dict) names.push_back(shape[at].name);
      parts[i] = build(shape, at, owner, hash_combine(path, i + 1), leaf);
    }
    return is_dict ? values_.dict(parts, names) : values_.list(parts);
  }

  // Returns the integer that the input graph records under the hash `name`, or a symbol with this
  // hash.
  SymInt believed_integer(const Hash128& name, const std::optional<SymInt>& recorded) {
    if (axioms_.is_open && recorded.has_value()) {
      const auto [known, is_new] = axioms_.integers.emplace(name, *recorded);
      axioms_.has_learned |= is_new && axioms_.asked.contains(name);
      return known->second;
    }
    const auto found = axioms_.integers.find(name);
    if (found != axioms_.integers.end()) return found->second;
    if (axioms_.is_open) axioms_.asked.insert(name);
    return SymInt::symbol(name);
  }

  // -- inputs and attributes

  Hash128 input_name(size_t place) {
    if (input_names_ == nullptr) return make_key(KeyKind::kInput, graph_key_, place);
    return make_key(KeyKind::kInput, keys_.text((*input_names_)[place]));
  }

  void run_placeholder(NodeId node) {
    const Hash128 name = input_name(inputs_.size());
    const ValueShape& shape = believed_shape(node, name, axioms_.inputs);
    // A tangent shares no memory with other inputs (see StorageMap).
    HashMap<uint32_t, uint32_t> own;
    values_.give(node, make_external(shape, name, is_tangent(graph_, node) ? own : shared_inputs_));
    inputs_.push_back(node);
  }

  // `shared` contains storages by ValueShapeCell::share.
  Cell make_external(const ValueShape& shape, const Hash128& name, HashMap<uint32_t, uint32_t>& shared) {
    if (shape.empty()) {
      return NamedValues::whole(memory_.make_object(memory_.make_storage(name), axioms_.geometries.add_unknown(name)));
    }
    size_t at = 0;
    return build(shape, at, name, 0, [&](const ValueShapeCell& item, uint64_t path) {
      const Hash128 content = make_key(KeyKind::kInput, name, path);
      const auto [found, is_new] = item.share == 0 ? std::make_pair(shared.end(), true) : shared.emplace(item.share, 0);
      if (!is_new && !item.may_share) return memory_.make_object(found->second, item.geometry);
      const uint32_t storage = memory_.make_storage(content);
      memory_.storage(storage).is_sized = true;
      if (!is_new) memory_.join_storages(found->second, storage);
      if (is_new && item.share != 0) found.value() = storage;
      return memory_.make_object(storage, item.geometry);
    });
  }

  void run_attribute(NodeId node) {
    const StringId path = module_.target(graph_[node].target).name;
    uint32_t& cell = attributes_.emplace(path, kNone).first.value();
    if (cell == kNone) {
      cell = make_attribute(node, path);
      attribute_order_.push_back({path, node});
    }
    values_.set_cell(node, cell);
  }

  uint32_t make_attribute(NodeId node, StringId path) {
    const auto found = attributes_by_name_.find(path);
    static const Attribute kUnlisted;
    const Attribute& attribute = found == attributes_by_name_.end() ? kUnlisted : *found->second;
    if (attribute.graph.is_valid()) {
      return values_.add(values_.integer(SymInt::symbol(make_key(KeyKind::kAttribute, subgraph_key(attribute.graph)))));
    }
    Words words = {key_tag(KeyKind::kAttribute)};
    add_key(words, keys_.text(path));
    add_constant(words, attribute.constant);
    if (const std::optional<OpaqueRecord>& opaque = attribute.opaque; opaque.has_value()) {
      add_keys(words, keys_.text(opaque->type), keys_.text(opaque->text), hash_text(opaque->payload),
               hash_text(opaque->unknown));
    }
    const Hash128 name = make_key(words);
    const uint32_t cell =
        values_.add(make_external(believed_shape(node, name, axioms_.inputs), name, shared_attributes_));
    std::vector<uint32_t> objects;
    values_.collect_objects(values_[cell], objects);
    for (const uint32_t object : objects) attributes_begin_.emplace(object, memory_.object(object));
    return cell;
  }

  // Whether an attribute's content, sizes or storage differ from those at the start of the graph.
  bool is_changed(uint32_t object) {
    const auto begin = attributes_begin_.find(object);
    if (begin == attributes_begin_.end()) return false;
    const NamedObject& now = memory_.object(object);
    return now.storage != begin->second.storage ||
           axioms_.geometries.key(now.geometry) != axioms_.geometries.key(begin->second.geometry) ||
           memory_.is_unsure(object) || memory_.seen_all_of(now.storage) != memory_.storage(now.storage).made;
  }

  void add_constant(Words& words, StringId name) {
    if (!name.is_valid()) return;
    if (constants_.empty()) {
      for (const Constant& constant : module_.constants) constants_.emplace(constant.name, &constant);
    }
    const auto found = constants_.find(name);
    if (found == constants_.end()) return;
    const Constant& constant = *found->second;
    if (constant.inline_data.has_value()) add_key(words, hash_text(*constant.inline_data));
    if (constant.xxh64.has_value()) words.push_back(*constant.xxh64);
    add_keys(words, keys_.text(constant.path), keys_.text(constant.key));
  }

  Hash128 subgraph_key(StringId name) {
    const auto found = subgraphs_.find(name);
    return found != subgraphs_.end() ? found->second : make_key(KeyKind::kGraph, keys_.text(name));
  }

  // -- naming a call

  void name_arg(const Arg& arg) {
    const auto kind_tag = [&] { return key_tag(KeyKind::kName, static_cast<uint64_t>(arg.kind())); };
    switch (arg.kind()) {
      case ArgKind::kNone:
        return words_.add_all(key_tag(KeyKind::kNone));
      case ArgKind::kBool:
        return words_.add_all(key_tag(KeyKind::kBool), arg.as_bool() ? 1U : 0U);
      case ArgKind::kInt:
        return words_.add_all(key_tag(KeyKind::kInt), SymInt(arg.as_int()).key());
      case ArgKind::kExpr:
        return words_.add_all(key_tag(KeyKind::kInt), keys_.integer(arg.as_expr()).key());
      case ArgKind::kFloat:
        return words_.add_all(key_tag(KeyKind::kFloat), arg.as_bits());
      case ArgKind::kNode:
        if (const Cell* cell = values_.find(arg.as_node()); cell != nullptr) name_cell(*cell);
        return;
      case ArgKind::kGraph:
        return words_.add_all(key_tag(KeyKind::kGraph), subgraph_key(arg.as_string()));
      case ArgKind::kGroupExpr:
        return words_.add_all(kind_tag(), keys_.integer(arg.as_expr()).key());
      case ArgKind::kString:
      case ArgKind::kDevice:
      case ArgKind::kOp:
      case ArgKind::kGroup:
      case ArgKind::kMesh:
      case ArgKind::kBytes:
      case ArgKind::kRngSlot:
      case ArgKind::kUnknown:
        return words_.add_all(kind_tag(), keys_.text(arg.as_string()));
      case ArgKind::kList:
      case ArgKind::kTuple:
        // An operator with a schema accepts lists and tuples alike. An index does not.
        words_.add_all(key_tag(KeyKind::kList, is_schema_call_ ? 0 : static_cast<uint64_t>(arg.kind())));
        return name_children(arg);
      default:
        break;
    }
    if (!arg.has_children()) return words_.add_all(kind_tag(), arg.as_bits());
    words_.add_all(kind_tag(), keys_.text(arg.type()));
    name_children(arg);
  }

  void name_children(const Arg& arg) {
    words_.add(graph_.pool().children(arg).size());
    for (const Arg& child : graph_.pool().children(arg)) name_arg(child);
  }

  // `detail` is 1 + the position among the schema's arguments, or 0 without a schema.
  [[gnu::always_inline]] void name_tensor(uint32_t object, size_t detail = 0) {
    words_.add_all(key_tag(KeyKind::kTensor, detail), memory_.geometry_key(object));
    given_.push_back(object);
    if (is_hidden_by_rule(object)) name_holder(memory_.object(object).storage);
  }

  void name_cell(const Cell& cell) {
    switch (cell.kind) {
      case Cell::Kind::kTensor:
        return name_tensor(cell.first);
      case Cell::Kind::kPlain:
        return words_.add_all(key_tag(KeyKind::kInt), values_.integer_in(cell).key());
      case Cell::Kind::kContainer:
        words_.add_all(key_tag(cell.is_dict ? KeyKind::kDict : KeyKind::kList), cell.count);
        for (uint32_t i = 0; i < cell.count; ++i) {
          if (cell.is_dict) words_.add(values_.name(cell, i));
          name_cell(values_.parts(cell)[i]);
        }
        return;
    }
  }

  // Distinguishes a storage whose content has the hash of another storage's content. Adds the call
  // that created the storage. If a rewrite rule set the hash of the content, adds unique words
  // instead.
  void name_holder(uint32_t storage) {
    if (memory_.storage(storage).holder == 0) return words_.add(memory_.holder_key(storage));
    words_.add_all(key_tag(KeyKind::kSide, axioms_.is_open ? 1 : 0), node_uid_);
  }

  // Adds the words for one argument of the schema. Adds nothing if the argument equals the default.
  void name_schema_arg(const Arg& arg, size_t position, const Words& otherwise) {
    if (const Cell* cell = arg.is(ArgKind::kNode) ? values_.find_tensor(arg.as_node()) : nullptr; cell != nullptr) {
      return name_tensor(cell->first, position + 1);
    }
    const size_t before = words_.size();
    words_.add(key_tag(KeyKind::kDefault, position + 1));
    name_arg(arg);
    if (otherwise.empty()) return;
    const std::span<const uint64_t> given = words_.all().subspan(before + 1);
    if (std::equal(given.begin(), given.end(), otherwise.begin(), otherwise.end())) words_.cut(before);
  }

  // Adds the words for the call and its arguments, without contents of tensors.
  void name_call(NodeId node, const Op& op) {
    words_.clear();
    given_.clear();
    words_.add(key_tag(KeyKind::kCall, static_cast<uint64_t>(graph_[node].kind)));
    const TargetId target = graph_[node].target;
    is_schema_call_ = op.schema.has_value();
    if (rule_->is_fill() && name_fill(node)) return;
    // The rule gives all forms of `reshape` one hash.
    if (target.is_valid()) words_.add(graph_[node].is_call() ? rule_->target : keys_.text(module_.target(target).name));
    const std::span<const Arg> args = graph_.pool().args(graph_[node].args);
    const std::span<const Arg> kwargs = graph_.pool().args(graph_[node].kwargs);
    if (!is_schema_call_) {
      name_plain_args(args, kwargs);
      return;
    }
    const std::vector<Words>& otherwise = rule_->defaults;
    static const Words kNoDefault;
    for (size_t i = 0; i < args.size(); ++i) {
      name_schema_arg(args[i], i, i < otherwise.size() ? otherwise[i] : kNoDefault);
    }
    // Keywords are hashed in the order of the schema, independent of their written order.
    size_t known = 0;
    for (size_t i = args.size(); i < rule_->names.size() && known < kwargs.size() / 2; ++i) {
      for (size_t k = 0; k + 1 < kwargs.size(); k += 2) {
        if (keys_.text(kwargs[k].as_string()) != rule_->names[i]) continue;
        name_schema_arg(kwargs[k + 1], i, otherwise[i]);
        ++known;
      }
    }
    if (known < kwargs.size() / 2) name_plain_args({}, kwargs);
  }

  // Adds the words for a call that fills a new tensor with one number. The words are those of
  // `full`, and the number is converted to the dtype. Returns false if the call gives no dtype, or
  // if it sets other options.
  bool name_fill(NodeId node) {
    const size_t at = rule_->special == Special::kFull ? 1 : 0;
    const CallArgs args(graph_, node);
    const CallArg number = args[at], dtype = args[at + 1], layout = args[at + 2], device = args[at + 3];
    const CallArg pinned = args[at + 4];
    if (!number.is_given() || number.is_none() || !dtype.as_dtype().has_value()) return false;
    if (!layout.is_absent() &&
        !(layout.given()->is(ArgKind::kLayout) && layout.given()->as_layout() == Layout::kStrided))
      return false;
    if (!pinned.is_absent() && pinned.as_bool() != false) return false;
    if (at == 1 && (!args[0].is_given() || args[0].is_none())) return false;
    static const Hash128 kFull = hash_text("aten.full.default");
    words_.add(kFull);
    if (at == 1) {
      name_arg(*args[0].given());
    } else {
      words_.add_all(key_tag(KeyKind::kList), 0U);
    }
    name_number(*number.given(), *dtype.as_dtype());
    name_arg(*dtype.given());
    if (!device.is_absent()) name_arg(*device.given());
    return true;
  }
  void name_number(const Arg& number, DType dtype) {
    constexpr int64_t kExact = int64_t{1} << 53U;  // all integers up to it are exact as doubles
    double value = std::numeric_limits<double>::quiet_NaN();
    if (number.is(ArgKind::kFloat)) value = number.as_double();
    if (number.is(ArgKind::kInt) && number.as_int() >= -kExact && number.as_int() <= kExact) {
      value = static_cast<double>(number.as_int());
    }
    if (!is_floating(dtype) || std::isnan(value)) return name_arg(number);
    constexpr double kLargest = std::numeric_limits<float>::max();
    if (dtype == DType::kFloat32 && std::abs(value) <= kLargest) value = static_cast<float>(value);
    words_.add_all(key_tag(KeyKind::kFloat), std::bit_cast<uint64_t>(value));
  }

  void name_plain_args(std::span<const Arg> args, std::span<const Arg> kwargs) {
    words_.add(args.size());
    for (const Arg& arg : args) name_arg(arg);
    std::vector<std::pair<Hash128, size_t>> order;
    for (size_t k = 0; k + 1 < kwargs.size(); k += 2) order.emplace_back(keys_.text(kwargs[k].as_string()), k + 1);
    std::ranges::sort(order);
    for (const auto& [name, at] : order) {
      words_.add(name);
      name_arg(kwargs[at]);
    }
  }

  // Returns the value number of the call, with the contents of its arguments and with all other
  // dependencies.
  Hash128 call_key(NodeId node, const Op& op, Effect effects) {
    // If the call overwrites argument 0 completely, only the size of the storage matters. The size
    // follows from the call that created the storage, or from the rule that set its hash.
    const bool is_overwritten = op.overwrites && overwrites_all(node);
    for (size_t i = 0; i < given_.size(); ++i) {
      words_.add(i == 0 && is_overwritten ? maker_of(given_[0]) : memory_.data_key(given_[i]));
    }
    if (has_effect(effects, Effect::kCollective)) words_.add(ranks_key(node));
    if (has_effect(effects, Effect::kCollective) && is_message(graph_, node)) {
      // The peer distinguishes equal messages by their order.
      words_.add(Hash128{0, messages_[group_name()]});
    }
    if (writes_anything(node, effects)) {
      // Adds which tensors share memory with a written tensor, and which tensors are the same
      // object. The write is visible through these tensors, and operators may refuse them as
      // arguments.
      written_.clear();
      if (has_effect(effects, Effect::kUnknownWrites)) {
        written_ = given_;
      } else {
        for (const uint8_t position : op.writes) {
          const std::vector<uint32_t>& objects = argument_objects(node, position);
          written_.insert(written_.end(), objects.begin(), objects.end());
        }
      }
      number_by([this](uint32_t object) { return memory_.holder_of(memory_.object(object).storage); });
      number_by([](uint32_t object) { return object; });
    }
    if (has_effect(effects, Effect::kRandom)) name_draw(node);
    if (is_ordered(effects)) {
      words_.add(world_);
      if (!axioms_.draws_by_name) words_.add(generator_);
    }
    if (mode_ != Hash128()) words_.add(mode_);
    if (is_differentiated_ && gradient_mode_ != Hash128()) words_.add(gradient_mode_);
    return name_words(words_.all());
  }
  Hash128 name_words(std::span<const uint64_t> words) const {
    Hash128 key = make_key(words);
    if (axioms_.key_bits <= 64) key = {0, key.low >> (64 - axioms_.key_bits)};
    return key;
  }

  // Returns a hash of the ranks of a collective, or zero if they are unknown. Sets `group_`.
  Hash128 ranks_key(NodeId node) {
    group_ = group_of_call(graph_, node);
    if (!group_.uid.is_valid()) return Hash128();
    if (ranks_.empty()) {
      for (const ProcessGroup& each : module_.groups) {
        ranks_.emplace(each.uid, make_key(Words(each.ranks.begin(), each.ranks.end())));
      }
    }
    const auto found = ranks_.find(group_.uid);
    return found == ranks_.end() ? Hash128() : found->second;
  }

  Hash128 maker_of(uint32_t object) {
    const uint32_t storage = memory_.object(object).storage;
    return memory_.storage(memory_.storage(storage).holder != 0 ? storage : memory_.holder_of(storage)).made;
  }

  // Whether the call overwrites argument 0 completely, so that its result does not depend on the
  // old content.
  bool overwrites_all(NodeId node) {
    const std::vector<uint32_t>& into = argument_objects(node, 0);
    if (is_differentiated_ || into.size() != 1 || given_.empty() || given_[0] != into[0]) return false;
    const std::optional<ByteRange> reach = memory_.byte_range(into[0]);
    return reach.has_value() && reach->is_dense && !memory_.storage_of(into[0]).is_pending;
  }

  static bool is_ordered(Effect effects) {
    return has_effect(effects, Effect::kOpaque) || has_effect(effects, Effect::kBarrier);
  }
  bool writes_anything(NodeId node, Effect effects) const {
    return effects != Effect::kNone && (has_effect(effects, Effect::kUnknownWrites) || is_writing_call(graph_, node));
  }

  // For each tensor argument, adds the index of the first written tensor for which `of` returns the
  // same value.
  template <class Of>
  void number_by(const Of& of) {
    numbers_.clear();
    for (size_t i = 0; i < written_.size(); ++i) numbers_.emplace(of(written_[i]), static_cast<uint32_t>(i));
    for (const uint32_t object : given_) {
      const auto found = numbers_.find(of(object));
      words_.add(found == numbers_.end() ? kNone : found->second);
    }
  }

  void name_draw(NodeId node) {
    if (!is_recorded_draw(graph_, node)) {
      words_.add(axioms_.draws_by_name ? keys_.text(graph_[node].name) : generator_);
      return;
    }
    const RngUse& use = *graph_.extra(node)->rng;
    words_.add(keys_.text(use.slot));
    words_.add(use.offset.value.has_value() ? SymInt(*use.offset.value).key() : keys_.integer(use.offset.expr).key());
  }

  // Returns the hash of the call without the contents of its tensors and without other
  // dependencies.
  const Hash128& geometry_name() {
    if (!geometry_name_.has_value()) geometry_name_ = name_words(words_.all().first(num_argument_words_));
    return *geometry_name_;
  }

  // Returns a cheap hash of the same words, as a hint for messages.
  uint64_t argument_hint() {
    constexpr uint64_t kFnvPrime = 0x100000001b3;  // multiplier of FNV-1a
    uint64_t hint = 0;
    for (const uint64_t word : words_.all().first(num_argument_words_)) hint = (hint ^ word) * kFnvPrime;
    return hint;
  }

  // -- calls

  void run_call(NodeId node) {
    rule_ = &rules_.of(graph_, node);
    const Op& op = *rule_->op;
    if (op.view == ViewKind::kProjection && take_element(node)) return;
    const bool is_plain = rule_->has_own_effects && graph_[node].kind == NodeKind::kCallFunction;
    const Effect effects = is_plain ? op.effects : effects_.of(node);
    sees_storage_ = (memory_.has_renamed() || rewrites_.has_claims()) && sees_storage(effects);
    node_uid_ = graph_[node].uid;
    name_call(node, op);
    lacks_fact_ = false;
    if (answer_size(node, op) || calculate(node, op)) return;
    num_argument_words_ = words_.size();
    geometry_name_.reset();
    Hash128 key;
    if (has_effect(effects, Effect::kRandom) || !run_view(node, op, effects, key)) {
      key = call_key(node, op, effects);
      run_general(node, op, effects, key);
    }
    if (names_calls_) out_.nodes.push_back({node, graph_[node].uid, key, argument_hint(), lacks_fact_});
  }

  // getitem of a tuple, list or dict yields the element itself.
  bool take_element(NodeId node) {
    const Arg* from = graph_.arg(node, 0);
    const Arg* key = graph_.arg(node, 1);
    if (from == nullptr || key == nullptr || !from->is(ArgKind::kNode)) return false;
    const uint32_t at = values_.place(from->as_node());
    if (at == kNone) return false;
    const Cell cell = values_[at];
    if (cell.kind == Cell::Kind::kContainer) {
      if (const std::optional<uint32_t> element = values_.element(cell, *key, keys_); element.has_value()) {
        values_.set_cell(node, cell.first + *element);
        return true;
      }
      const std::optional<std::vector<Cell>> slice = values_.slice(cell, *key);
      if (slice.has_value()) values_.give(node, values_.list(*slice));
      return slice.has_value();
    }
    if (cell.kind != Cell::Kind::kTensor || !cell.is_whole || !key->is(ArgKind::kInt)) return false;
    // The container's elements are unknown. The same index yields the same value until an in-place
    // change.
    const NamedObject whole = memory_.object(cell.first);
    const Hash128 parent = memory_.geometry_key(cell.first);
    const auto [found, is_new] = elements_of_.emplace(std::make_tuple(at, key->as_int(), whole.storage, parent), kNone);
    if (is_new) {
      const Hash128 name = make_key(KeyKind::kElement, parent, key->as_int());
      const uint32_t object = memory_.make_object(whole.storage, believed_element(node, name));
      memory_.join_on_storage(object, cell.first);
      const bool is_tensor = axioms_.geometries.find(memory_.object(object).geometry) != nullptr;
      found->second = values_.add(is_tensor ? NamedValues::tensor(object) : NamedValues::whole(object));
    }
    values_.set_cell(node, found->second);
    return true;
  }

  // Returns the geometry that the input graph records for an element of an unknown value.
  GeometryId believed_element(NodeId node, const Hash128& name) {
    const auto found = axioms_.changed.find(name);
    if (found != axioms_.changed.end()) return found->second;
    if (!axioms_.is_open) return axioms_.geometries.add_unknown(name);
    const ValueShape& shape = recorded_shape(node);
    const bool is_tensor = shape.size() == 1 && shape[0].kind == ValueShapeCell::Kind::kTensor;
    const GeometryId geometry = is_tensor ? shape[0].geometry : axioms_.geometries.add_unknown(name);
    axioms_.changed.emplace(name, geometry);
    return geometry;
  }

  // Answers queries for a size, stride or offset of a tensor.
  bool answer_size(NodeId node, const Op& op) {
    if (op.compute != ComputeClass::kScalar || given_.size() != 1 || !rule_->asks_size()) return false;
    const Special question = rule_->special;
    const Hash128 name = make_key(words_.all());
    std::optional<SymInt> found;
    if (const Geometry* geometry = memory_.known_geometry(given_[0]);
        geometry != nullptr && !is_hidden_by_rule(given_[0]) && is_known_call(given_[0])) {
      if (question == Special::kElements) found = geometry->num_elements();
      if (question == Special::kOffset) found = geometry->offset;
      const Arg* dim = graph_.arg(node, 1);
      const std::optional<SymInt> at = dim == nullptr ? std::nullopt : integer_of(*dim);
      if (at.has_value() && at->is_static()) {
        const auto& list = question == Special::kSize ? geometry->sizes : geometry->strides;
        const int64_t rank = static_cast<int64_t>(list.size());
        const int64_t index = at->value() < 0 ? at->value() + rank : at->value();
        if (index >= 0 && index < rank) found = list[static_cast<size_t>(index)];
      }
    }
    if (!found.has_value()) {
      const ValueShape& shape = recorded_shape(node);
      found = believed_integer(name, shape.empty() ? std::nullopt : shape[0].integer);
    }
    values_.give(node, values_.integer(*found));
    return true;
  }

  // Whether a call of the input graphs creates the same tensor. Recorded sizes of other tensors are
  // not trusted.
  bool is_known_call(uint32_t object) {
    const NamedStorage& storage = memory_.storage(memory_.holder_of(memory_.object(object).storage));
    if (axioms_.is_open || storage.is_sized) return true;
    if (axioms_.made_by_name.empty()) axioms_.made_by_name.insert(axioms_.made.begin(), axioms_.made.end());
    return axioms_.made_by_name.contains(storage.made);
  }

  // Calculates sums and products of integers.
  bool calculate(NodeId node, const Op& op) {
    if (op.compute != ComputeClass::kScalar || !given_.empty() || !op.is_pure()) return false;
    const std::span<const Arg> args = graph_.pool().args(graph_[node].args);
    std::optional<SymInt> found;
    if (args.size() == 2 && graph_[node].kwargs.count == 0) {
      const std::optional<SymInt> a = integer_of(args[0]);
      const std::optional<SymInt> b = integer_of(args[1]);
      const bool is_integer = is_recorded_integer(node);
      if (a.has_value() && b.has_value() && is_integer) {
        if (op.name == "operator.add") found = *a + *b;
        if (op.name == "operator.sub") found = *a - *b;
        if (op.name == "operator.mul") found = *a * *b;
      }
    }
    if (!found.has_value()) {
      const ValueShape& shape = recorded_shape(node);
      found = believed_integer(make_key(words_.all()), shape.size() != 1 ? std::nullopt : shape[0].integer);
    }
    values_.give(node, values_.integer(*found));
    return true;
  }

  // Whether the recorded value is an integer. Plain cells also represent floats, which must not be
  // calculated as integers.
  bool is_recorded_integer(NodeId node) const {
    const Value& value = graph_.value(node);
    return value.kind == ValueKind::kSymbolic
               ? value.symbol_type == SymbolType::kInt
               : value.kind == ValueKind::kScalar && graph_.pool().scalar(value).is(ArgKind::kInt);
  }

  // -- views

  // Returns the lineage of a view of `from`. The result of `detach`, and any view made while
  // gradients are off, is detached from its base. Everything derived from it is detached as well.
  uint32_t lineage_after(uint32_t from, const Op& op) {
    if (!is_differentiated_) return 0;
    const bool is_cut = ends_gradients(op) || op.name == "aten.detach_.default" || gradients_are_off_;
    return is_cut ? NamedMemory::kCutOff : memory_.object(from).lineage;
  }

  // Whether the index is a list of integers. An index of this kind gathers elements.
  bool is_number_list(const Arg& index) const {
    return index.is(ArgKind::kList) &&
           std::ranges::all_of(graph_.pool().children(index), [](const Arg& part) { return part.is(ArgKind::kInt); });
  }

  ViewKind view_kind(NodeId node, const Op& op) {
    if (op.view != ViewKind::kProjection) return op.view;
    const Arg* index = graph_.arg(node, 1);
    if (given_.empty() || index == nullptr || is_number_list(*index)) return ViewKind::kNone;
    const auto is_integer = [this](NodeId input) { return values_.integer_of(input).has_value(); };
    return is_basic_index(graph_, *index, is_integer) ? ViewKind::kView : ViewKind::kMaybeView;
  }

  // Runs a view of one tensor, or a possible copy, and sets `key` to the value number of the call.
  // Returns false for all other calls.
  bool run_view(NodeId node, const Op& op, Effect effects, Hash128& key) {
    const ViewKind kind = view_kind(node, op);
    if (kind != ViewKind::kView && kind != ViewKind::kMultiView && kind != ViewKind::kMaybeView) return false;
    const Arg* first = call_argument(graph_, node, 0);
    if (first == nullptr || !first->is(ArgKind::kNode)) return false;
    const Cell* given = values_.find_tensor(first->as_node());
    if (given == nullptr) return false;
    const uint32_t from = given->first;
    const bool is_whole = given->is_whole;
    const bool depends_on_data = op.reads_index || (op.view == ViewKind::kProjection && given_.size() > 1);
    key = depends_on_data ? call_key(node, op, effects) : geometry_name();
    const ViewFact& fact = view_fact(node, op, kind, from, key);
    // A subgraph may never run, so a `view` in a subgraph does not show that the reshape is a view.
    if (axioms_.is_open && names_calls_ && rule_->special == Special::kView && fact.kind == ViewFact::Kind::kEither) {
      axioms_.has_learned |= axioms_.shown.insert(key).second;
    }
    // A view reads no data, so only the value numbers of other calls contain contents.
    if (fact.kind != ViewFact::Kind::kView && !depends_on_data) key = call_key(node, op, effects);
    if (fact.kind != ViewFact::Kind::kView && rule_->special == Special::kView) {
      // `view` raises if a reshape would copy, so the two calls get different value numbers.
      key = make_key(KeyKind::kView, key);
    }
    if (fact.kind == ViewFact::Kind::kSame) {
      values_.set_cell(node, values_.place(first->as_node()));
      return true;
    }
    if (axioms_.is_open && fact.tensors.size() == 1 && axioms_.geometries.find(fact.tensors[0]) == nullptr) {
      if (const ValueShape& shape = recorded_shape(node); shape.size() == 1) learn(fact.tensors[0], shape[0]);
    }
    if (fact.source == ViewFact::Source::kRecord) ++out_.recorded_views;
    if (fact.source == ViewFact::Source::kStorageIds) ++out_.storage_id_views;
    std::vector<Cell>& made = made_cells_;
    made.clear();
    for (size_t i = 0; i < fact.tensors.size(); ++i) {
      const GeometryId geometry = fact.tensors[i];
      if (fact.kind == ViewFact::Kind::kView) {
        const uint32_t object = memory_.make_object(memory_.object(from).storage, geometry, lineage_after(from, op));
        // The operator may have returned its argument as the same object. A reshape always makes a
        // new object.
        if (op.may_return_argument || (kind == ViewKind::kMaybeView && !rule_->makes_view))
          memory_.join_on_storage(from, object);
        made.push_back(NamedValues::tensor(object));
        continue;
      }
      const Hash128 content = make_key(KeyKind::kResult, key, i);
      const uint32_t object = memory_.make_object(memory_.make_storage(content), geometry);
      if (fact.kind == ViewFact::Kind::kEither) memory_.join_objects(from, object);
      made.push_back(NamedValues::tensor(object));
    }
    if (fact.is_list) {
      values_.give(node, values_.list(made));
    } else {
      // An alias of an unknown value is an unknown value.
      const bool is_unknown = axioms_.geometries.find(fact.tensors[0]) == nullptr;
      const bool is_alias = is_whole && fact.tensors[0] == memory_.object(from).geometry;
      made[0].is_whole = is_unknown && (kind == ViewKind::kMultiView || is_alias);
      values_.give(node, made[0]);
    }
    return true;
  }

  // The reference is valid until the next call. A calculated fact may depend on strides that `name`
  // leaves out, so it is found by a hash with all strides.
  const ViewFact& view_fact(NodeId node, const Op& op, ViewKind kind, uint32_t from, const Hash128& name) {
    const Hash128 exact = make_key(KeyKind::kView, name, axioms_.geometries.exact_key(memory_.object(from).geometry));
    if (const auto found = axioms_.views.find(exact); found != axioms_.views.end()) return found->second;
    std::optional<ViewFact> fact = calculated_fact(node, op, from);
    const bool is_calculated = fact.has_value();
    if (!is_calculated) {
      if (const auto found = axioms_.views.find(name); found != axioms_.views.end()) return found->second;
      if (!axioms_.is_open) {
        // Only the output graph records this view, and its records are not trusted.
        lacks_fact_ = !is_impossible_;  // a call that raises lacks no fact
        unknown_ = unknown_fact(kind, name);
        const ValueShape& shape = recorded_shape(node);
        if (!shape.empty() && shape[0].kind == ValueShapeCell::Kind::kContainer) {
          unknown_.is_list = true;
          unknown_.tensors.clear();
          for (uint32_t i = 0; i < shape[0].count; ++i) {
            unknown_.tensors.push_back(axioms_.geometries.add_unknown(make_key(KeyKind::kElement, name, i)));
          }
        }
        return unknown_;
      }
      fact = recorded_fact(node, op, kind, from, name);
    }
    if (fact->kind == ViewFact::Kind::kEither && axioms_.shown.contains(name)) fact->kind = ViewFact::Kind::kView;
    return axioms_.views.emplace(is_calculated ? exact : name, *std::move(fact)).first->second;
  }

  ViewFact unknown_fact(ViewKind kind, const Hash128& name) {
    ViewFact fact;
    fact.kind = kind == ViewKind::kMaybeView ? ViewFact::Kind::kEither : ViewFact::Kind::kView;
    fact.tensors.push_back(axioms_.geometries.add_unknown(name));
    return fact;
  }

  std::optional<ViewFact> calculated_fact(NodeId node, const Op& op, uint32_t from) {
    if (is_hidden_by_rule(from)) return unknown_fact(ViewKind::kMaybeView, geometry_name());
    is_impossible_ = false;
    const Geometry* geometry = memory_.known_geometry(from);
    if (geometry == nullptr) {
      // A possible alias may have changed the geometry, so the result cannot be calculated.
      if (memory_.is_unsure(from)) return std::nullopt;
      return calculated_without_sizes(node, op, from);
    }
    const ViewGeometry found =
        view_geometry(graph_, node, *geometry, [this](NodeId input) { return values_.integer_of(input); });
    is_impossible_ = found.outcome == ViewGeometry::Outcome::kImpossible;
    if (is_impossible_ || found.outcome == ViewGeometry::Outcome::kUnknown) return std::nullopt;
    ViewFact fact;
    fact.kind = found.outcome == ViewGeometry::Outcome::kSame   ? ViewFact::Kind::kSame
                : found.outcome == ViewGeometry::Outcome::kView ? ViewFact::Kind::kView
                                                                : ViewFact::Kind::kCopy;
    for (const Geometry& each : found.tensors) fact.tensors.push_back(axioms_.geometries.add(each));
    fact.is_list = op.is_multi_output ||
                   (op.schema.has_value() && !op.schema->returns.empty() && op.schema->returns[0].is_tensor_list());
    return fact;
  }

  // Whether the call is a slice of a whole dimension with step 1.
  bool is_whole_slice(NodeId node, const Op& op) {
    if (op.name != "aten.slice.Tensor") return false;
    const CallArgs args(graph_, node);
    const auto is = [&](size_t position, int64_t number) {
      const std::optional<SymInt> integer = args[position].sym_int_or(number, integers());
      return integer.has_value() && integer->is(number);
    };
    return is(2, 0) && is(3, std::numeric_limits<int64_t>::max()) && is(4, 1);
  }

  // Calculates views that do not depend on sizes. An alias has the geometry of its operand. A
  // second equal transposition restores the first geometry.
  std::optional<ViewFact> calculated_without_sizes(NodeId node, const Op& op, uint32_t from) {
    ViewFact fact;
    fact.kind = ViewFact::Kind::kView;
    const GeometryId given = memory_.object(from).geometry;
    if (op.name == "aten.alias.default" || op.name == "aten.detach.default" || is_whole_slice(node, op)) {
      fact.tensors.push_back(given);
      return fact;
    }
    std::string_view name = op.name;
    if (name == "aten.t_.default") name = "aten.t.default";
    if (name == "aten.transpose_.default") name = "aten.transpose.int";
    if (name != "aten.t.default" && name != "aten.transpose.int") return std::nullopt;
    Words words = {key_tag(KeyKind::kView)};
    add_key(words, hash_text(name));
    for (size_t i = 1; i < graph_.pool().args(graph_[node].args).size(); ++i) {
      const std::optional<SymInt> integer = integer_of(*graph_.arg(node, i));
      if (!integer.has_value()) return std::nullopt;
      add_key(words, integer->key());
    }
    const Hash128 how = make_key(words);
    if (const auto found = axioms_.undone.find(given); found != axioms_.undone.end() && found->second.first == how) {
      fact.tensors.push_back(found->second.second);
      return fact;
    }
    const Hash128 key = axioms_.geometries.key(given);
    const GeometryId made = axioms_.geometries.add_unknown(make_key(KeyKind::kView, key, how));
    axioms_.undone.emplace(made, std::make_pair(how, given));
    fact.tensors.push_back(made);
    return fact;
  }

  // Returns the fact that the input graph records.
  ViewFact recorded_fact(NodeId node, const Op& op, ViewKind kind, uint32_t from, const Hash128& name) {
    const ValueShape& shape = recorded_shape(node);
    if (shape.empty()) return unknown_fact(kind, name);
    ViewFact fact;
    fact.source = ViewFact::Source::kRecord;
    fact.kind = ViewFact::Kind::kView;
    fact.is_list = shape[0].kind == ValueShapeCell::Kind::kContainer;
    for (const ValueShapeCell& cell : shape) {
      if (cell.kind == ValueShapeCell::Kind::kTensor) fact.tensors.push_back(cell.geometry);
    }
    if (fact.tensors.empty() && !fact.is_list) return unknown_fact(kind, name);
    if (kind == ViewKind::kMaybeView) fact.kind = view_or_copy(node, op, from, fact);
    return fact;
  }

  // Decides whether a call that may copy is a view or a copy. If the operator shares memory
  // whenever possible, the two geometries can prove a view. Otherwise the file's storage ids
  // decide.
  ViewFact::Kind view_or_copy(NodeId node, const Op& op, uint32_t from, ViewFact& fact) {
    if (fact.tensors.size() != 1) return ViewFact::Kind::kEither;
    const Geometry* given = memory_.known_geometry(from);
    const Geometry* made = axioms_.geometries.find(fact.tensors[0]);
    if (given != nullptr && made != nullptr && op.view == ViewKind::kMaybeView && shares_where_it_can(graph_, node)) {
      if (same_geometry(*given, *made)) return ViewFact::Kind::kView;
      if (show(*given, *made) == Restride::kView) return ViewFact::Kind::kView;
    }
    const Arg* first = call_argument(graph_, node, 0);
    const Tensor* input = single_tensor(graph_, first->as_node());
    const Tensor* output = single_tensor(graph_, node);
    if (input == nullptr || output == nullptr || op.view != ViewKind::kMaybeView) return ViewFact::Kind::kEither;
    if (!input->storage.is_valid() || !output->storage.is_valid()) {
      return given != nullptr && made != nullptr && must_be_copy(*given, *made) ? ViewFact::Kind::kCopy
                                                                                : ViewFact::Kind::kEither;
    }
    fact.source = ViewFact::Source::kStorageIds;
    return input->storage == output->storage ? ViewFact::Kind::kView : ViewFact::Kind::kCopy;
  }

  // Whether the result must be a copy. This is true for conversions, and for reshapes to sizes or
  // strides that no view has.
  static bool must_be_copy(const Geometry& given, const Geometry& made) {
    if (given.dtype != made.dtype || given.conjugate != made.conjugate || given.negative != made.negative) return true;
    if (given.layout != Layout::kStrided || made.layout != Layout::kStrided) return false;
    return show(given, made) == Restride::kCopy;
  }

  // Whether a view of `given` can have the geometry `made`.
  static Restride show(const Geometry& given, const Geometry& made) {
    Geometry shown = given;
    shown.sizes = made.sizes;
    const Restride answer = restride(given, made.sizes, shown.strides);
    return answer == Restride::kView && !same_geometry(shown, made) ? Restride::kCopy : answer;
  }

  // -- all other calls

  void run_general(NodeId node, const Op& op, Effect effects, const Hash128& key) {
    const std::vector<uint32_t>& given = given_;
    make_result(node, op, key);
    if (rule_->special == Special::kConcatenation) {
      lay_side_by_side(node);
      if (rewrites_.has_claims()) rewrites_.note_cat({node, given_, result_objects(node)});
    }
    if (rule_->special == Special::kSum && !is_differentiated_) rename_sum(node);
    if (rule_->special == Special::kSum && rewrites_.has_claims())
      rewrites_.note_sum({node, given_, result_objects(node)});
    if (rule_->only_computes && effects == Effect::kNone && !is_differentiated_) return;
    // For example, a dropout that draws nothing returns its operand.
    if (view_kind(node, op) == ViewKind::kMaybeView) join_with_first(node);
    const std::vector<uint32_t>& made = result_objects(node);
    if (is_differentiated_) note_change(node, effects, key, given, made);
    if (rewrites_.has_claims() && has_effect(effects, Effect::kCollective) && !given.empty())
      rewrites_.note_sent(given[0]);
    if (has_effect(effects, Effect::kUnknownWrites)) {
      write_anything(given, made, key);
    } else {
      write_arguments(node, op, effects, key);
    }
    change_metadata(node, op, effects, key);
    share_results(node, op, made);
    run_effects(node, op, effects, key, given, made);
  }

  // Records that the call changes the tensors in `written_` (see call_key()), and the calls for
  // which autograd may have kept these tensors.
  void note_change(NodeId node, Effect effects, const Hash128& key, const std::vector<uint32_t>& given,
                   const std::vector<uint32_t>& made) {
    if (writes_anything(node, effects)) {
      ChangeInPlace change{key, {}};
      for (const uint32_t object : written_) {
        const auto found = kept_by_.find(memory_.object(object).storage);
        if (found == kept_by_.end()) continue;
        change.kept_by.insert(change.kept_by.end(), found->second.begin(), found->second.end());
        kept_by_.erase(found);
      }
      std::ranges::sort(change.kept_by);
      change.kept_by.erase(std::unique(change.kept_by.begin(), change.kept_by.end()), change.kept_by.end());
      out_.changes.push_back(std::move(change));
    }
    for (const std::vector<uint32_t>* objects : {&given, &made}) {
      for (const uint32_t object : *objects) kept_by_[memory_.object(object).storage].push_back(key);
    }
  }

  void join_with_first(NodeId node) {
    const Arg* first = call_argument(graph_, node, 0);
    if (first == nullptr || !first->is(ArgKind::kNode)) return;
    const Cell* given = values_.find_tensor(first->as_node());
    if (given == nullptr) return;
    for (const uint32_t object : result_objects(node)) {
      if (object != given->first) memory_.join_objects(given->first, object);
    }
  }

  // Returns the tensors in the node's value, valid until the next call.
  const std::vector<uint32_t>& result_objects(NodeId node) {
    results_.clear();
    if (const Cell* cell = values_.find(node); cell != nullptr) values_.collect_objects(*cell, results_);
    return results_;
  }

  // Makes argument 0 the result of the call.
  bool take_first(NodeId node, const Op& op) {
    const Arg* first = call_argument(graph_, node, 0);
    const Cell* same = first == nullptr || !first->is(ArgKind::kNode) ? nullptr : values_.find(first->as_node());
    if (same == nullptr) return false;
    values_.set_cell(node, values_.place(first->as_node()));
    if (same->kind == Cell::Kind::kTensor && !op.changes_metadata) learn(node, same->first);
    return true;
  }

  void make_result(NodeId node, const Op& op, const Hash128& key) {
    if (op.view == ViewKind::kIdentity && take_first(node, op)) return;
    const Value& recorded = graph_.value(node);
    if (recorded.kind == ValueKind::kTensor && !axioms_.keeps_results && rule_->only_computes && !rule_->hands_back) {
      const GeometryId geometry = keys_.geometry(graph_.pool().tensor(recorded));
      values_.give(node, NamedValues::tensor(make_tensor(node, op, key, 0, geometry)));
      return;
    }
    if (axioms_.keeps_results) {
      result_shape_ = believed_shape(node, key, axioms_.results);
    } else {
      recorded_shape(node);
      result_shape_.swap(recorded_);
    }
    const ValueShape& shape = result_shape_;
    if (shape.empty() || (recorded.kind == ValueKind::kOpaque && may_hand_on(graph_, node))) {
      make_unrecorded(node, op, key);
      return;
    }
    const std::vector<Returned> returned = returned_objects(node, op, shape);
    size_t at = 0;
    size_t leaf = 0;
    const Cell cell = build(shape, at, key, 0, [&](const ValueShapeCell& item, uint64_t path) {
      const Returned given = leaf < returned.size() ? returned[leaf] : Returned();
      ++leaf;
      if (given.is_there && given.is_same) return given.object;
      if (given.is_there) {
        const GeometryId geometry = believed_geometry(geometry_name(), path, item.geometry);
        return memory_.make_object(memory_.object(given.object).storage, geometry, lineage_after(given.object, op));
      }
      return make_tensor(node, op, key, path, item.geometry);
    });
    values_.give(node, cell);
  }
  // Returns the recorded geometry of a result. Strides that are not facts become symbols that
  // depend on the call's value number.
  GeometryId shown_geometry(NodeId node, const Hash128& key, uint64_t path, GeometryId recorded) {
    const Geometry* geometry = doubtful_.get(node) ? axioms_.geometries.find(recorded) : nullptr;
    if (geometry == nullptr) return recorded;
    Geometry shown = *geometry;
    for (size_t i = 0; i < shown.rank(); ++i) {
      if (!shown.sizes[i].is(1)) shown.strides[i] = SymInt::symbol(make_key(KeyKind::kView, key, path, i));
    }
    return axioms_.geometries.add(shown);
  }

  // Makes a tensor on a storage of its own.
  uint32_t make_tensor(NodeId node, const Op& op, const Hash128& key, uint64_t path, GeometryId told) {
    const GeometryId recorded = shown_geometry(node, key, path, told);
    const Hash128 geometry = axioms_.geometries.key(recorded);
    const Hash128 content = make_key(KeyKind::kResult, key, path, geometry);
    const uint32_t storage = memory_.make_storage(content);
    memory_.storage(storage).is_sized = op.compute == ComputeClass::kFactory && makes_sizes(node, op, recorded);
    return memory_.make_object(storage, recorded);
  }

  // Whether a factory's arguments determine the recorded result: sizes, row-major layout and dtype.
  bool makes_sizes(NodeId node, const Op& op, GeometryId recorded) {
    const Geometry* geometry = axioms_.geometries.find(recorded);
    if (geometry == nullptr || !op.schema.has_value() || !is_row_major(*geometry) || !geometry->offset.is(0))
      return false;
    const Tensor* tensor = single_tensor(graph_, node);
    if (tensor == nullptr) return false;
    bool has_sizes = false, has_dtype = false, has_value = false;
    std::string_view device = "cpu";
    DType dtype = DType::kFloat32;
    for (size_t i = 0; i < op.schema->args.size(); ++i) {
      const Arg* arg = call_argument(graph_, node, i);
      if (arg == nullptr || arg->is(ArgKind::kNone)) continue;
      const std::string& name = op.schema->args[i].name;
      if (name == "dtype") {
        if (!arg->is(ArgKind::kDType)) return false;
        dtype = arg->as_dtype();
        has_dtype = true;
      } else if (name == "device") {
        if (!arg->is(ArgKind::kDevice)) return false;
        device = module_.text(arg->as_string());
      } else if (name == "fill_value") {
        has_value = true;  // the value determines the dtype if no dtype is given
      } else if (name == "size") {
        if (!arg->has_children()) return false;
        const std::span<const Arg> sizes = graph_.pool().children(*arg);
        has_sizes = sizes.size() == geometry->rank();
        for (size_t d = 0; has_sizes && d < sizes.size(); ++d) has_sizes = integer_of(sizes[d]) == geometry->sizes[d];
      } else if (name != "pin_memory") {
        return false;
      }
    }
    const bool is_there = tensor->device.is_valid() ? module_.text(tensor->device) == device : device == "cpu";
    return has_sizes && is_there && dtype == geometry->dtype && (has_dtype || !has_value);
  }

  // A tensor may have several hashes, and the input graph may record its geometry under only one
  // hash. The geometry then becomes known under the other hash, and the graph is executed again.
  void learn(NodeId node, uint32_t object) {
    if (!axioms_.is_open || memory_.is_unsure(object)) return;
    const ValueShape& shape = recorded_shape(node);
    if (shape.size() == 1) learn(memory_.object(object).geometry, shape[0]);
  }
  void learn(GeometryId shown, const ValueShapeCell& recorded) {
    if (recorded.kind != ValueShapeCell::Kind::kTensor || axioms_.geometries.find(shown) != nullptr) return;
    if (axioms_.geometries.find(recorded.geometry) == nullptr) return;
    axioms_.has_learned |= axioms_.geometries.learn(shown, recorded.geometry);
  }

  // Makes the result of a call without a recorded value. The result is a single value that may
  // contain other values.
  void make_unrecorded(NodeId node, const Op& op, const Hash128& key) {
    if (!op.yields_tensor()) {
      values_.give(node, values_.integer(believed_integer(key, std::nullopt)));
      return;
    }
    if (op.aliases.size() == 1 && hands_back(node, op, op.aliases[0])) {
      const size_t position = static_cast<size_t>(op.aliases[0]);
      const std::vector<uint32_t> from = argument_objects(node, position);
      const bool is_written = std::ranges::find(op.writes, position) != op.writes.end();
      if (from.size() == 1) {
        const uint32_t object = is_written ? from[0]
                                           : memory_.make_object(memory_.object(from[0]).storage,
                                                                 axioms_.geometries.add_unknown(geometry_name()),
                                                                 lineage_after(from[0], op));
        values_.give(node, is_written ? NamedValues::tensor(object) : NamedValues::whole(object));
        return;
      }
    }
    const uint32_t object = memory_.make_object(memory_.make_storage(key), axioms_.geometries.add_unknown(key));
    values_.give(node, NamedValues::whole(object));
  }

  // Whether a tensor of the result is an argument or a view of an argument.
  struct Returned {
    bool is_there = false;
    bool is_same = false;  // true for the argument itself, false for a view
    uint32_t object = 0;
  };

  static size_t count_tensors(const ValueShape& shape, size_t& at) {
    const ValueShapeCell& cell = shape[at++];
    if (cell.kind != ValueShapeCell::Kind::kContainer) return cell.kind == ValueShapeCell::Kind::kTensor ? 1 : 0;
    size_t count = 0;
    for (uint32_t i = 0; i < cell.count; ++i) count += count_tensors(shape, at);
    return count;
  }

  static bool writes_argument(const Op& op, int16_t place) {
    return std::ranges::find(op.writes, place) != op.writes.end();
  }

  // Whether the result contains the argument at `place`. A call that may draw random numbers
  // returns its argument only if it draws nothing. For these calls, the answer is true only if the
  // call writes the argument.
  bool hands_back(NodeId node, const Op& op, int16_t place) {
    return place >= 0 && (writes_argument(op, place) || !has_effect(effects_.of(node), Effect::kRandom));
  }

  // Returns the entries for all tensors of the result, in order.
  std::vector<Returned> returned_objects(NodeId node, const Op& op, const ValueShape& shape) {
    std::vector<Returned> out;
    const bool is_identity = op.view == ViewKind::kIdentity;
    const bool is_view = op.view == ViewKind::kView || op.view == ViewKind::kMultiView;
    size_t begin = 0;
    const size_t all = count_tensors(shape, begin);
    if (is_identity || is_view) {
      const std::vector<uint32_t> from = argument_objects(node, 0);
      if (!from.empty()) {
        for (size_t i = 0; i < all; ++i) out.push_back({true, is_identity, from.size() == all ? from[i] : from[0]});
        return out;
      }
    }
    if (!rule_->hands_back) return out;
    size_t at = shape[0].kind == ValueShapeCell::Kind::kContainer && op.schema->returns.size() > 1 ? 1 : 0;
    for (size_t r = 0; r < op.schema->returns.size() && at < shape.size(); ++r) {
      const size_t count = op.schema->returns.size() == 1 ? all : count_tensors(shape, at);
      if (op.schema->returns.size() == 1) at = shape.size();
      const int16_t alias = r < op.aliases.size() ? op.aliases[r] : int16_t{-1};
      const std::vector<uint32_t> from =
          hands_back(node, op, alias) ? argument_objects(node, static_cast<size_t>(alias)) : std::vector<uint32_t>();
      const bool is_written = writes_argument(op, alias);
      for (size_t i = 0; i < count; ++i) {
        Returned item;
        if (!from.empty()) item = {true, is_written, from.size() == count ? from[i] : from[0]};
        out.push_back(item);
      }
    }
    return out;
  }

  // Returns the geometry after a view or an in-place change. `call` is the hash of the call,
  // without contents if sizes do not depend on contents. `place` distinguishes the tensors of the
  // call.
  GeometryId believed_geometry(const Hash128& call, uint64_t place, GeometryId recorded) {
    const Hash128 name = make_key(KeyKind::kView, call, place);
    const auto found = axioms_.changed.find(name);
    if (found != axioms_.changed.end()) return found->second;
    const GeometryId unknown = axioms_.geometries.add_unknown(name);
    if (!axioms_.is_open) {
      lacks_fact_ = true;
      return unknown;
    }
    const GeometryId geometry = recorded.is_valid() ? recorded : unknown;
    axioms_.changed.emplace(name, geometry);
    return geometry;
  }

  void write_anything(const std::vector<uint32_t>& given, const std::vector<uint32_t>& made, const Hash128& key) {
    uint64_t place = 0;
    for (const uint32_t object : given) memory_.write_all(memory_.object(object).storage, key, place++);
    for (const uint32_t object : given) {
      const Hash128 name = make_key(KeyKind::kView, key, place++);
      memory_.change_geometry(object, axioms_.geometries.add_unknown(name));
      memory_.join_objects(given[0], object);
    }
    if (given.empty()) return;
    for (const uint32_t object : made) memory_.join_objects(given[0], object);
  }

  void write_arguments(NodeId node, const Op& op, Effect effects, const Hash128& key) {
    if (!is_writing_call(graph_, node) || writes_only_metadata(graph_, node)) return;
    uint64_t place = 0;
    for (const uint8_t position : op.writes) {
      const std::vector<uint32_t> objects = argument_objects(node, position);
      for (size_t i = 0; i < objects.size(); ++i) {
        const GeometryId left = geometry_left(node, op, key, position, i);
        const bool stays = !left.is_valid() || left == memory_.object(objects[i]).geometry;
        if (stays && !(position == 0 && op.changes_metadata) && !has_effect(effects, Effect::kBarrier)) {
          memory_.write(objects[i], key, place++, copied_elements(objects[i]));
        } else {
          memory_.write_all(memory_.object(objects[i]).storage, key, place++);
        }
      }
    }
  }

  // -- elements of tensors, independent of their storage

  // Returns the hash of the elements after they were copied to byte `begin` of a storage. Records
  // `source` as their source.
  Hash128 place_elements(const Hash128& elements, int64_t begin, uint32_t source) {
    const Hash128 placed = make_key(KeyKind::kElements, elements, begin);
    rewrites_.note_copy(placed, source);
    return placed;
  }

  // Names the bytes that `copy_` writes, if they are the elements of its source.
  std::optional<Hash128> copied_elements(uint32_t into) {
    if (rule_->special != Special::kCopy || given_.size() != 2) return std::nullopt;
    const Geometry* to = memory_.known_geometry(into);
    const Geometry* from = memory_.known_geometry(given_[1]);
    if (!memory_.storage(memory_.holder_of(memory_.object(into).storage)).is_sized) return std::nullopt;
    // A copy between overlapping tensors may raise.
    if (memory_.may_share(into, given_[1])) return std::nullopt;
    if (to == nullptr || from == nullptr || !is_row_major(*to) || to->sizes != from->sizes) return std::nullopt;
    const std::optional<ByteRange> reach = byte_range_of(*to);
    const std::optional<Hash128> elements = reach.has_value() ? memory_.elements_key(given_[1], *to) : std::nullopt;
    if (!elements.has_value()) return std::nullopt;
    return place_elements(*elements, reach->begin, given_[1]);
  }

  // Names the parts of a `cat` along dimension 0.
  void lay_side_by_side(NodeId node) {
    const std::vector<uint32_t>& made = result_objects(node);
    const Geometry* to = made.size() == 1 ? memory_.known_geometry(made[0]) : nullptr;
    if (to == nullptr || to->rank() == 0) return;
    const SymInt along = CallArgs(graph_, node)[1].sym_int(integers()).value_or(SymInt(1));
    if (!along.is(0) && !along.is(-static_cast<int64_t>(to->rank()))) return;
    const std::optional<ByteRange> whole = byte_range_of(*to);
    if (!whole.has_value() || !is_row_major(*to)) return;
    std::vector<std::pair<ByteRange, Hash128>> parts;
    int64_t at = whole->begin;
    for (const uint32_t object : given_) {
      const Geometry* from = memory_.known_geometry(object);
      const std::optional<Hash128> elements = memory_.elements_key(object, *to);
      const std::optional<ByteRange> reach = elements.has_value() ? byte_range_of(*from) : std::nullopt;
      if (!reach.has_value() || from->rank() != to->rank() ||
          !std::equal(from->sizes.begin() + 1, from->sizes.end(), to->sizes.begin() + 1)) {
        return;
      }
      const int64_t next = at + (reach->end - reach->begin);
      parts.push_back({{at, next, true}, place_elements(*elements, at, object)});
      at = next;
    }
    if (at != whole->end) return;
    for (const auto& [reach, elements] : parts) memory_.put_piece(memory_.object(made[0]).storage, reach, elements);
  }

  // An integer tensor plus or minus 0 has the content of the tensor.
  void rename_sum(NodeId node) {
    const CallArgs args(graph_, node);
    if (args[1].as_int() != 0 || !args[2].as_int().has_value() || given_.size() != 1) return;
    const std::vector<uint32_t>& made = result_objects(node);
    const Geometry* from = memory_.known_geometry(given_[0]);
    const Geometry* to = made.size() == 1 ? memory_.known_geometry(made[0]) : nullptr;
    if (from == nullptr || to == nullptr || !is_integral(from->dtype) || !same_geometry(*from, *to)) return;
    const std::optional<ByteRange> reach = byte_range_of(*from);
    if (!from->offset.is(0) || !reach.has_value() || !reach->is_dense) return;
    const uint32_t storage = memory_.object(given_[0]).storage;
    if (!memory_.is_certain(storage)) return;
    memory_.rename(memory_.object(made[0]).storage, memory_.data_key(given_[0]));
  }
  static bool is_integral(DType dtype) {
    return dtype == DType::kUint8 || dtype == DType::kInt8 || dtype == DType::kInt16 || dtype == DType::kInt32 ||
           dtype == DType::kInt64;
  }

  // Whether the call depends on more than the elements of its tensors, such as their storage. A
  // value whose hash comes from a rule may differ from the real value in these respects.
  bool sees_storage(Effect effects) const {
    return rule_->sees_storage || has_effect(effects, Effect::kUnknownWrites) ||
           has_effect(effects, Effect::kBarrier) || has_effect(effects, Effect::kOpaque);
  }
  bool is_hidden_by_rule(uint32_t object) {
    return sees_storage_ &&
           (memory_.storage_of(object).holder != 0 || memory_.holder_key(memory_.object(object).storage) != Hash128());
  }

  void change_metadata(NodeId node, const Op& op, Effect effects, const Hash128& key) {
    if (has_effect(effects, Effect::kUnknownWrites)) return;
    if (op.changes_metadata) change_in_place(node, op, key);
    for (const uint8_t position : op.writes) {
      const std::vector<uint32_t> objects = argument_objects(node, position);
      for (size_t i = 0; i < objects.size(); ++i) {
        if (const GeometryId left = geometry_left(node, op, key, position, i); left.is_valid()) {
          memory_.change_geometry(objects[i], left);
        }
      }
    }
  }

  // Returns the geometry of tensor `i` of a written argument after the call. Invalid if the call
  // keeps the geometry, or if change_in_place() handles the change. Out variants may resize `out`.
  // Collectives do not (torch/csrc/distributed/c10d/Functional.cpp passes `out` on unchanged).
  // Operators that only the file describes may change the geometry of any written argument.
  GeometryId geometry_left(NodeId node, const Op& op, const Hash128& key, uint8_t position, size_t i) {
    if (!op.schema.has_value() || (position == 0 && op.changes_metadata)) return GeometryId();
    const bool is_out = position < op.schema->args.size() && op.schema->args[position].is_out();
    const bool may_resize = is_out && !op.name.starts_with("_c10d_functional.");
    if (!may_resize && op.is_builtin()) return GeometryId();
    if (is_out && fits_out(node, op, position)) return GeometryId();
    const GeometryId left = believed_geometry(key, hash_combine(position, i + 1), left_by(node, op, position));
    lacks_fact_ = false;  // no fact is missing: the input graph lacks this write
    return left;
  }

  // Whether an elementwise operator keeps the size of `out`, because `out` has the sizes of all
  // operands.
  bool fits_out(NodeId node, const Op& op, uint8_t position) {
    const std::vector<uint32_t> into = argument_objects(node, position);
    const Geometry* out =
        into.size() == 1 && op.compute == ComputeClass::kPointwise ? memory_.known_geometry(into[0]) : nullptr;
    if (out == nullptr) return false;
    const size_t num_given = given_.size() - 1;  // `out` is hashed last
    bool is_met = out->rank() == 0;
    for (size_t i = 0; i < num_given; ++i) {
      const Geometry* geometry = memory_.known_geometry(given_[i]);
      if (geometry == nullptr || (geometry->rank() > 0 && geometry->sizes != out->sizes)) return false;
      is_met = is_met || geometry->rank() > 0;
    }
    return is_met && given_.back() == into[0];
  }

  // Returns the recorded geometry of the tensor that the call returns for a written argument.
  // Invalid if no geometry is recorded.
  GeometryId left_by(NodeId node, const Op& op, uint8_t position) {
    const ValueShape& shape = recorded_shape(node);
    if (shape.empty()) return GeometryId();
    if (shape[0].kind == ValueShapeCell::Kind::kTensor) {
      return op.aliases.size() == 1 && op.aliases[0] == position ? shape[0].geometry : GeometryId();
    }
    const auto found = std::ranges::find(op.aliases, position);
    const size_t r = static_cast<size_t>(found - op.aliases.begin());
    if (found == op.aliases.end() || shape.size() != 1 + size_t{shape[0].count} || 1 + r >= shape.size()) {
      return GeometryId();
    }
    return shape[1 + r].geometry;
  }

  // Runs `t_`, `resize_` and `set_`.
  void change_in_place(NodeId node, const Op& op, const Hash128& key) {
    const std::vector<uint32_t> objects = argument_objects(node, 0);
    if (objects.size() != 1) return;
    const uint32_t object = objects[0];
    const std::optional<ViewFact> calculated = calculated_fact(node, op, object);
    const std::vector<uint32_t> source = op.moves_storage ? argument_objects(node, 1) : std::vector<uint32_t>();
    memory_.object(object).lineage = lineage_after(object, op);
    if (calculated.has_value() && calculated->tensors.size() == 1) {
      memory_.change_geometry(object, calculated->tensors[0]);
    } else {
      const ValueShape& shape = recorded_shape(node);
      const bool is_tensor = !shape.empty() && shape[0].kind == ValueShapeCell::Kind::kTensor;
      memory_.change_geometry(object,
                              believed_geometry(geometry_name(), 0, is_tensor ? shape[0].geometry : GeometryId()));
      // No fact is missing if the call raises, or if the tensor moves to another tensor's storage.
      if (is_impossible_ || source.size() == 1) lacks_fact_ = false;
    }
    if (!op.moves_storage) return;
    const uint32_t storage =
        source.size() == 1 ? memory_.object(source[0]).storage : memory_.make_storage(make_key(KeyKind::kResult, key));
    memory_.move(object, storage, key);
  }

  // Joins the result with all tensors whose memory it may share.
  void share_results(NodeId node, const Op& op, const std::vector<uint32_t>& made) {
    if (made.empty()) return;
    if (op.joins_outputs) {
      for (const uint32_t object : made)
        memory_.join_storages(memory_.object(made[0]).storage, memory_.object(object).storage);
    }
    if (op.shared_arg >= 0) {
      const std::vector<uint32_t> from = argument_objects(node, static_cast<size_t>(op.shared_arg));
      if (op.shares_only_empty && !may_be_empty(from)) return;
      for (const uint32_t a : from) {
        for (const uint32_t b : made) memory_.join_objects(a, b);
      }
    }
    if (is_unrecorded_tuple(graph_, node)) {
      for (const int16_t alias : op.aliases) {
        if (alias < 0) continue;
        for (const uint32_t a : argument_objects(node, static_cast<size_t>(alias))) memory_.join_objects(a, made[0]);
      }
    }
    if (calls_region(graph_, node) && !given_.empty()) {  // the region may return its operands
      for (const uint32_t a : given_) memory_.join_objects(a, made[0]);
      for (const uint32_t b : made) memory_.join_objects(given_[0], b);
    }
    const bool is_any = op.view == ViewKind::kProjection && view_kind(node, op) != ViewKind::kNone;
    if (is_any || may_hand_on(graph_, node) || is_unrecorded_identity(node, op)) {
      for (const uint32_t a : given_) {
        for (const uint32_t b : made) memory_.join_objects(a, b);
      }
    }
  }

  // Whether the call is a Python function that returns its argument, and no value is recorded.
  bool is_unrecorded_identity(NodeId node, const Op& op) const {
    return op.view == ViewKind::kIdentity && !op.schema.has_value() && graph_.value(node).kind == ValueKind::kAbsent;
  }

  bool may_be_empty(const std::vector<uint32_t>& objects) {
    return std::ranges::any_of(objects, [this](uint32_t object) {
      const Geometry* geometry = memory_.known_geometry(object);
      return geometry == nullptr || std::ranges::any_of(geometry->sizes, [](const SymInt& size) {
               return !size.is_static() || size.value() == 0;
             });
    });
  }

  void run_effects(NodeId node, const Op& op, Effect effects, const Hash128& key, const std::vector<uint32_t>& given,
                   const std::vector<uint32_t>& made) {
    if (has_effect(effects, Effect::kRandom) && !is_recorded_draw(graph_, node)) {
      const Hash128 drawn = rule_->draws_by_data ? key : geometry_name();
      generator_ = make_key(KeyKind::kDraw, generator_, drawn);
      if (axioms_.draws_by_name) out_.draws.push_back(keys_.text(graph_[node].name));
    }
    if (is_ordered(effects)) {
      world_ = make_key(KeyKind::kWorld, world_, key);
      if (has_effect(effects, Effect::kOpaque)) {
        generator_ = make_key(KeyKind::kDraw, generator_, key);
      }
    }
    if (has_effect(effects, Effect::kAsserts)) out_.assertions.push_back(key);
    if (has_effect(effects, Effect::kChangesMode)) {
      if (op.name == "torch._C._set_grad_enabled") {
        const Arg* is_on = graph_.arg(node, 0);
        gradients_are_off_ = is_on == nullptr || !is_on->is(ArgKind::kBool) || !is_on->as_bool();
        gradient_mode_ = geometry_name();
      } else {
        mode_ = make_key(KeyKind::kMode, mode_, geometry_name());
      }
    }
    if (has_effect(effects, Effect::kWaits)) {
      for (const uint32_t object : given) wait(memory_.object(object).storage);
    }
    if (has_effect(effects, Effect::kCollective)) issue(node, op, key, given, made);
    if (given.size() == 1 && made.size() == 1) transfer(given[0], made[0]);
  }

  // Runs offloads and reloads. A reload returns the offloaded data.
  void transfer(uint32_t from, uint32_t to) {
    const bool is_offload = rule_->special == Special::kOffload;
    if (!is_offload && rule_->special != Special::kReload) return;
    NamedStorage& made = memory_.storage_of(to);
    if (is_offload) {
      offloaded_.emplace(made.content, std::make_pair(memory_.data_key(from), memory_.geometry_key(from)));
    } else if (const auto found = offloaded_.find(memory_.data_key(from));
               found != offloaded_.end() && found->second.second == memory_.geometry_key(to)) {
      memory_.rename(memory_.object(to).storage, found->second.first);
    }
    made.is_pending = true;
    made.is_transfer = true;
    memory_.add_reader(memory_.object(from).storage, memory_.object(to).storage);
  }

  void wait(uint32_t storage) {
    NamedStorage& item = memory_.storage(storage);
    if (!item.is_pending) return;
    const Hash128 pending = memory_.seen_all_of(storage);
    item.is_pending = false;
    if (item.is_transfer) return;
    rewrites_.end_filling(storage, pending, make_key(KeyKind::kReady, pending), out_.waits);
  }

  // Returns the hash of `group_`, which call_key() set. Returns zero if the group is unknown.
  Hash128 group_name() {
    if (group_.expr.is_valid()) return keys_.integer(group_.expr).key();
    return group_.uid.is_valid() ? keys_.text(group_.uid) : Hash128();
  }

  void issue(NodeId node, const Op& op, const Hash128& key, const std::vector<uint32_t>& given,
             const std::vector<uint32_t>& made) {
    const Hash128 name = group_name();
    if (is_message(graph_, node)) ++messages_[name];
    filled_.clear();
    for (const uint32_t object : made) filled_.push_back(memory_.object(object).storage);
    for (const uint8_t position : op.writes) {
      for (const uint32_t object : argument_objects(node, position)) filled_.push_back(memory_.object(object).storage);
    }
    for (const uint32_t storage : filled_) rewrites_.forget(storage);
    const bool is_named = rewrites_.has_claims() && rewrites_.issue({node, given, made}, name, ranks_key(node), world_);
    const bool is_first = !is_named && issued_.insert(key).second;
    if (is_first && name == Hash128()) {
      // The group may be any group. So the order of this call relative to the calls on every group
      // matters.
      for (const auto& [other, calls] : collectives_) {
        any_group_ = make_key(KeyKind::kIssue, any_group_, calls.back());
      }
    }
    if (!is_named) {
      const Hash128 issue = make_key(KeyKind::kIssue, key, any_group_, world_);
      if (is_first) collectives_[name].push_back(issue);
      issued_all_[name].push_back(issue);
      if (is_message(graph_, node)) message_calls_[name].push_back(issue);
    }
    for (const uint32_t storage : filled_) {
      memory_.begin_filling(storage);
      for (const uint32_t object : given) {
        if (memory_.object(object).storage != storage) memory_.add_reader(memory_.object(object).storage, storage);
      }
    }
  }

  // -- the end

  // Numbers storages or objects by first use.
  struct Numbering {
    std::vector<uint32_t> numbers;
    uint32_t last = 0;

    uint32_t of(uint32_t id, size_t count, bool numbers_all) {
      if (numbers.empty()) numbers.resize(count);
      if (numbers[id] == 0 && numbers_all) numbers[id] = ++last;
      return numbers[id];
    }
  };

  uint32_t number_storage(uint32_t storage) {
    return storage_numbers_.of(memory_.holder_of(storage), memory_.num_storages(), numbers_all_);
  }
  // Returns the number of the first end value that may be the same object, or 0. Only end values
  // are compared. An object that may be the same as a dead object counts as distinct.
  uint32_t find_twin(uint32_t object) {
    if (!numbers_all_) return 0;
    ++num_end_values_;
    const uint32_t group = memory_.group_of(object);
    if (group == 0) return 0;
    const auto& [place, first] = first_of_group_.emplace(group, std::make_pair(num_end_values_, object)).first->second;
    return first == object ? 0 : place;
  }
  // Returns the number of the first storage of an end value that may be the same storage, or 0.
  uint32_t find_sharing(uint32_t storage) {
    if (!numbers_all_) return 0;
    const uint32_t group = memory_.storage_group_of(memory_.holder_of(storage));
    if (group == 0) return 0;
    const uint32_t own = number_storage(storage);
    const uint32_t first = first_sharing_.emplace(group, own).first->second;
    return first == own ? 0 : first;
  }
  uint32_t number_object(uint32_t object) { return object_numbers_.of(object, memory_.num_objects(), numbers_all_); }

  // For an output, adds the visible content. For an input or attribute, adds the content of the
  // whole storage, because the caller may read it through other tensors.
  void add_end_values(const Cell& cell, NodeId node, std::string label, std::vector<EndValue>& out) {
    switch (cell.kind) {
      case Cell::Kind::kTensor: {
        const uint32_t storage = memory_.object(cell.first).storage;
        Hash128 content = &out == &out_.outputs ? memory_.data_key(cell.first) : memory_.seen_all_of(storage);
        if (const Hash128 real = memory_.holder_key(storage); real != Hash128()) {
          content = make_key(KeyKind::kData, content, real);
        }
        out.push_back({node, std::move(label), content, memory_.geometry_key(cell.first), number_storage(storage),
                       number_object(cell.first), find_twin(cell.first), find_sharing(storage),
                       is_changed(cell.first)});
        return;
      }
      case Cell::Kind::kPlain:
        out.push_back({node, std::move(label), values_.integer_in(cell).key(), Hash128(), 0, 0, 0, 0, false});
        return;
      case Cell::Kind::kContainer:
        for (uint32_t i = 0; i < cell.count; ++i) {
          add_end_values(values_.parts(cell)[i], node, label + "[" + std::to_string(i) + "]", out);
        }
        return;
    }
  }

  // Adds the output's argument: the structure of containers, and each leaf.
  void add_output(const Arg& arg, Words& structure) {
    if (arg.is(ArgKind::kNode)) {
      structure.push_back(key_tag(KeyKind::kTensor));
      const Cell* cell = values_.find(arg.as_node());
      std::string label = "output " + std::to_string(out_.outputs.size());
      if (cell != nullptr) add_end_values(*cell, arg.as_node(), std::move(label), out_.outputs);
      return;
    }
    if (!arg.has_children() || arg.is(ArgKind::kSlice)) {
      words_.clear();
      is_schema_call_ = false;
      name_arg(arg);
      structure.insert(structure.end(), words_.all().begin(), words_.all().end());
      return;
    }
    structure.insert(structure.end(), {key_tag(KeyKind::kList, static_cast<uint64_t>(arg.kind())), arg.range().count});
    for (const Arg& child : graph_.pool().children(arg)) add_output(child, structure);
  }

  // Adds the inputs in order, or sorted by name if they are matched by name.
  void add_inputs() {
    std::vector<std::pair<StringId, NodeId>> order;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      order.emplace_back(input_names_ == nullptr ? graph_[inputs_[i]].name : (*input_names_)[i], inputs_[i]);
    }
    if (input_names_ != nullptr) {
      std::ranges::sort(order,
                        [this](const auto& a, const auto& b) { return module_.text(a.first) < module_.text(b.first); });
    }
    out_.inputs.reserve(order.size());
    for (const auto& [name, node] : order) {
      add_end_values(*values_.find(node), node, "input " + std::string(module_.text(name)), out_.inputs);
    }
  }

  void finish() {
    out_.num_inputs = inputs_.size();
    add_inputs();
    Words structure;
    if (const NodeId output = graph_.output(); output.is_valid()) {
      for (const Arg& arg : graph_.pool().args(graph_[output].args)) add_output(arg, structure);
    }
    out_.output_structure = make_key(structure);
    // Attributes come last. They get no new numbers, because an attribute without readers may have
    // been removed.
    numbers_all_ = false;
    std::ranges::sort(attribute_order_,
                      [this](const auto& a, const auto& b) { return module_.text(a.first) < module_.text(b.first); });
    out_.attributes.reserve(attribute_order_.size());
    for (const auto& [path, node] : attribute_order_) {
      add_end_values(*values_.find(node), node, "attribute " + std::string(module_.text(path)), out_.attributes);
    }
    std::ranges::stable_sort(out_.attributes, {}, &EndValue::label);
    out_.refused = std::move(rewrites_.refused());
    out_.generator = generator_;
    out_.world = world_;
    out_.mode = make_key(KeyKind::kMode, mode_, is_differentiated_ ? gradient_mode_ : Hash128());
    for (auto& [group, calls] : collectives_) out_.collectives.emplace_back(group, std::move(calls));
    for (auto& [group, calls] : message_calls_) out_.messages.emplace_back(group, std::move(calls));
    for (auto& [group, calls] : issued_all_) out_.issued.emplace_back(group, std::move(calls));
    for (auto& [group, members] : rewrites_.counted()) {
      std::ranges::sort(members);
      members.erase(std::unique(members.begin(), members.end()), members.end());
      out_.issued.emplace_back(make_key(KeyKind::kMember, group), members);
      out_.collectives.emplace_back(make_key(KeyKind::kMember, group), std::move(members));
    }
    for (uint32_t i = 0; i < memory_.num_storages(); ++i) {
      const NamedStorage& storage = memory_.storage(i);
      if (storage.is_pending && !storage.is_transfer) {
        rewrites_.add_pending(i, out_.pending);
      }
      if (axioms_.is_open) axioms_.made.push_back(storage.made);
    }
    std::ranges::sort(out_.changes);
    for (std::vector<Hash128>* set : {&out_.assertions, &out_.waits, &out_.pending}) {
      std::ranges::sort(*set);
      set->erase(std::unique(set->begin(), set->end()), set->end());
    }
  }

  const Graph& graph_;
  const Module& module_;
  ModuleKeys& keys_;
  CallRules& rules_;
  EffectMap& effects_;
  Axioms& axioms_;
  const HashMap<StringId, Hash128>& subgraphs_;
  const bool is_differentiated_;
  const bool names_calls_;
  const std::vector<StringId>* const input_names_;
  Hash128 graph_key_;

  NamedMemory memory_;
  NamedValues values_;
  RewriteRules rewrites_;
  HashMap<uint32_t, std::vector<Hash128>> kept_by_;  // by storage: calls for which autograd may keep it
  HashMap<StringId, Hash128> ranks_;                 // process groups by uid
  // by cell of the container, index, storage and geometry
  std::map<std::tuple<uint32_t, int64_t, uint32_t, Hash128>, uint32_t> elements_of_;
  std::vector<NodeId> inputs_;
  HashMap<uint32_t, uint32_t> shared_inputs_, shared_attributes_;  // by ValueShapeCell::share
  HashMap<StringId, const Attribute*> attributes_by_name_;
  HashMap<StringId, uint32_t> attributes_;
  HashMap<uint32_t, NamedObject> attributes_begin_;  // by object
  std::vector<std::pair<StringId, NodeId>> attribute_order_;
  HashMap<StringId, const Constant*> constants_;

  Hash128 generator_, world_, mode_, gradient_mode_, any_group_;
  // data and geometry of the offloaded tensor, by content of the copy
  HashMap<Hash128, std::pair<Hash128, Hash128>, Hash128Hash> offloaded_;
  std::map<Hash128, std::vector<Hash128>> collectives_, issued_all_, message_calls_;
  std::map<Hash128, uint64_t> messages_;  // by group: number of sends and receives so far
  HashSet<Hash128, Hash128Hash> issued_;
  Numbering storage_numbers_, object_numbers_;
  HashMap<uint32_t, std::pair<uint32_t, uint32_t>> first_of_group_;  // end value's number, object
  HashMap<uint32_t, uint32_t> first_sharing_;  // by group of storages: number of the first storage
  uint32_t num_end_values_ = 0;
  bool numbers_all_ = true;
  ExecutionEnd out_;

  // The current call:
  KeyWords words_;
  size_t num_argument_words_ = 0;
  std::vector<uint32_t> given_, argument_, results_, written_, filled_;
  HashMap<uint32_t, uint32_t> numbers_;
  std::vector<Cell> made_cells_;
  ViewFact unknown_;
  const IdMap<NodeId, bool> doubtful_;  // results whose recorded strides are not facts
  ValueShape recorded_, result_shape_;
  std::optional<Hash128> geometry_name_;
  const CallRule* rule_ = nullptr;
  GroupKey group_;  // group of the current collective
  bool is_schema_call_ = false;
  bool gradients_are_off_ = false;
  bool lacks_fact_ = false;
  bool is_impossible_ = false;  // whether the last calculated view raises
  bool sees_storage_ = false;
  uint64_t node_uid_ = 0;
};

void add_end(Words& words, const std::vector<EndValue>& values) {
  words.push_back(values.size());
  for (const EndValue& value : values) {
    add_keys(words, value.content, value.geometry);
    words.insert(words.end(), {value.storage, value.object, value.may_be, value.may_share});
  }
}

void add_list(Words& words, const std::vector<Hash128>& list) {
  words.push_back(list.size());
  for (const Hash128& key : list) add_key(words, key);
}

}  // namespace

Hash128 ExecutionEnd::key() const {
  Words words = {num_inputs};
  add_key(words, output_structure);
  add_end(words, outputs);
  add_end(words, inputs);
  // Unchanged attributes are left out, because the other graph may not read them.
  std::vector<EndValue> changed;
  for (const EndValue& value : attributes) {
    if (!value.is_changed) continue;
    add_key(words, hash_text(value.label));
    changed.push_back(value);
  }
  add_end(words, changed);
  add_keys(words, generator, world, mode);
  for (const auto& [group, calls] : collectives) {
    add_key(words, group);
    add_list(words, calls);
  }
  add_list(words, draws);
  words.push_back(changes.size());
  for (const ChangeInPlace& change : changes) {
    add_key(words, change.call);
    add_list(words, change.kept_by);
  }
  for (const std::vector<Hash128>* set : {&assertions, &waits, &pending}) add_list(words, *set);
  return make_key(words);
}

ExecutionEnd execute(const ExecutionInput& input) { return Execution(input).run(); }

}  // namespace fxopt
