// The structural verifier. The list below contains its invariants by group. The verifier checks the
// entries of the module outside of graphs first, and then the nodes of each graph in schedule
// order. On each node, it checks structure and order first.
//
// structure   FX0401
//   module    The module has a graph. Graphs have names, which Module keeps unique. Storage ids are
//             below next_storage.
//   graph     The last node is the only output node. If output specs exist, each output has one.
//             num_forward_outputs is at most the number of outputs. Each subclass layout covers
//             existing inputs or outputs. The use-lists have exactly one edge for each argument
//             that is a node. The edge has the right user and slot.
//   node      The kind is known. The name is not empty, and the graph finds the node by its name.
//             The uid is unique in the module and below next_uid. Placeholders come before any
//             call. Placeholders and get_attrs have no inputs. The output has no users. A call and
//             a get_attr have a target. Each keyword is given once. Only placeholders have an input
//             spec.
// order       FX0402
//   node      Every input and every control dependency comes before the node. A control dependency
//             is not erased.
// value       FX0403
//   module    A storage's size is not negative. A symbol's lower bound is not above its upper
//             bound. A constant has a tensor.
//   tensor    The dtype is known. Sizes are given. No size, stride or offset is negative. Each size
//             has a stride. Only layouts that are not strided may lack all strides. Only complex
//             tensors have a conjugate bit. No byte is outside the tensor's storage.
//   getitem   The index is within the tuple, list or dict. The recorded value has the kind, dtype
//             and sizes of the element.
//   anywhere  Expressions use only declared symbols. Each undeclared name is reported once, at its
//             first use.
// reference   FX0407. References to meshes, groups, attributes, RNG slots and streams are checked
//             only if the file lists entries of this kind.
//   module    Names of groups, meshes, constants, symbols, RNG slots and streams are unique and not
//             empty. Meshes name existing groups. Groups name existing meshes. Symbols name
//             existing graphs. A constant with a key has a path. Op schemas parse, are unique, and
//             describe their op. If a schema and the built-in op differ in their number of
//             arguments, the additional arguments have defaults. Invocations name a graph, bind
//             inputs of this graph, and read outputs of earlier invocations.
//   graph     The owner is a graph. Attribute paths are unique. Each attribute refers to one
//             constant, graph or object. Output specs alias existing inputs and outputs. No graph
//             calls itself, directly or through other graphs. This is reported last.
//   node      A get_attr names an attribute. An input spec aliases an existing input. Graphs,
//             groups, meshes, RNG slots and streams exist. The same is true for the group_name of a
//             collective.
// alias       FX0404
//   call      Only calls of ops with a schema are checked. The call has at most as many positional
//             arguments as the schema, and only keywords of the schema. No argument is given by
//             position and by keyword. All required arguments are given. A schema in the file takes
//             precedence over the built-in schema.
// collective  FX0405
//   module    Ranks of a group or mesh are unique, not negative and below the world size. If ranks,
//             dimension names, groups or coordinates of a mesh are given, they fit its shape.
//   node      A wait completes a collective's result before a call reads its elements. Views,
//             getitems, queries for sizes and the output do not read elements. A wait does not take
//             the result of a plain computation. group_size is the number of the group's ranks.
// phase       FX0406
//   node      Phase, recompute tag and verdict (the outcome of a tag) are known. A verdict has a
//             known rule, or 0 for no rule. The verdict of an overridden tag has a rule, and that
//             of a dropped tag has a pass. A checkpoint region with an id is not marked as a region
//             without id. A tangent is not forward.
//
// Some facts are deliberately not checked. Any node may have a tag, because traces have tags on
// placeholders and outputs. Storage ids may disagree with the op. Metadata is arbitrary.

#include "ir/check/verify.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/check/verifier.h"

namespace fxopt {
namespace {

constexpr uint64_t kSparseUidFactor = 8;  // use a bit per uid up to this many uids per node

bool is_branch(const Arg& arg) {
  return arg.is(ArgKind::kList) || arg.is(ArgKind::kTuple) || arg.is(ArgKind::kDict) || arg.is(ArgKind::kSet);
}

bool is_within(const std::optional<int64_t>& position, int64_t count) {
  return !position.has_value() || (*position >= 0 && *position < count);
}

}  // namespace

std::vector<Error> verify(const Module& module, size_t max_diagnostics, const std::vector<bool>& is_known) {
  VerifyContext context(module, max_diagnostics);
  check_records(context);
  for (const GraphId id : module.graphs()) {
    if (id.index() >= is_known.size() || !is_known[id.index()]) {
      GraphVerifier(context, id).run();
      continue;
    }
    const Graph& graph = module.graph(id);
    for (const NodeId node : graph.nodes()) context.take_uid(graph[node].uid);
  }
  check_graph_recursion(context);
  return std::move(context.report).finish();
}

VerifyContext::VerifyContext(const Module& checked, size_t max_diagnostics)
    : module(checked), report(checked, max_diagnostics) {
  if (module.next_uid / kSparseUidFactor <= module.num_nodes()) uids_.resize(module.next_uid);
}

bool VerifyContext::take_uid(uint64_t uid) {
  if (uid >= uids_.size()) return sparse_uids_.insert(uid).second;
  const bool is_new = !uids_[uid];
  uids_[uid] = true;
  return is_new;
}

void VerifyContext::check_verdict(const TagVerdict& verdict, const Place& place) {
  const std::string_view name = name_of(verdict.verdict);
  if (name.empty()) {
    add(ErrorCode::kVerifyPhase, place,
        "this build does not support verdict " + std::to_string(static_cast<int>(verdict.verdict)));
  }
  if (name_of(verdict.rule).empty()) {
    add(ErrorCode::kVerifyPhase, place,
        "this build does not support rule " + std::to_string(static_cast<int>(verdict.rule)));
  }
  if (verdict.verdict == Verdict::kOverridden && verdict.rule == TagRule::kNone) {
    add(ErrorCode::kVerifyPhase, place, "the verdict `overridden` does not name the rule that overrode the tag");
  }
  if (verdict.verdict == Verdict::kDropped && is_blank(verdict.pass)) {
    add(ErrorCode::kVerifyPhase, place, "the verdict `dropped` does not name the pass that dropped the tag");
  }
}

GraphShape shape_of(const Graph& graph) {
  GraphShape shape;
  for (const NodeId node : graph.nodes()) shape.placeholders += graph[node].kind == NodeKind::kPlaceholder ? 1 : 0;
  const NodeId output = graph.output();
  if (!output.is_valid()) return shape;
  ArgWalk walk(graph.module(), graph.pool());
  size_t leaf_depth = 0;  // if not 0, deeper arguments belong to a leaf or to a key
  for (walk.start("args", graph[output].args, ArgWalk::Keys::kNone); walk.next();) {
    if (leaf_depth != 0 && walk.depth() > leaf_depth) continue;
    leaf_depth = 0;
    if (is_branch(walk.arg()) && !walk.is_key()) continue;
    if (walk.arg().has_children()) leaf_depth = walk.depth();
    if (!walk.is_key()) ++shape.leaves;
  }
  return shape;
}

GraphVerifier::GraphVerifier(VerifyContext& context, GraphId id)
    : context_(context),
      module_(context.module),
      graph_(context.module.graph(id)),
      id_(id),
      shape_(context.shapes[id.index()]),
      args_(context.module, graph_.pool()),
      seen_(graph_.num_ids()) {}

void GraphVerifier::run() {
  check_record();
  check_subclasses();
  check_attributes();
  check_output_specs();
  index_uses();
  for (const NodeId node : graph_.nodes()) check_node(node);
  if (num_outputs_ == 0) structure(at(NodeId()), "graph has no output node");
  if (num_edges_ != num_listed_edges_) {
    structure(at(NodeId()), "use-lists have " + std::to_string(num_listed_edges_) + " edges, but arguments have " +
                                std::to_string(num_edges_));
  }
}

void GraphVerifier::check_record() {
  if (!context_.is_blank(graph_.owner)) {
    context_.check_graph_reference(graph_.owner, [&] { return at(NodeId(), "owner"); });
  }
  const int64_t forward = graph_.num_forward_outputs.value_or(0);
  if (forward < 0 || forward > shape_.leaves) {
    structure(at(NodeId(), "num_forward_outputs"),
              std::to_string(forward) + " forward outputs, but the graph returns " + std::to_string(shape_.leaves));
  }
}

void GraphVerifier::check_subclasses() {
  for (size_t i = 0; i < graph_.subclasses.size(); ++i) {
    const SubclassLayout& layout = graph_.subclasses[i];
    const Place place = at(NodeId(), "subclasses[" + std::to_string(i) + "]");
    const bool is_input = context_.text(layout.side) == "input";
    if (!is_input && context_.text(layout.side) != "output") {
      structure(place, "subclass layout with side " + context_.quoted_name(layout.side),
                "the side must be \"input\" or \"output\"");
      continue;
    }
    const int64_t limit = is_input ? shape_.placeholders : shape_.leaves;
    if (layout.first < 0 || layout.count < 0 || layout.first > limit || layout.count > limit - layout.first) {
      const std::string side = is_input ? "input" : "output";
      if (layout.count < 0) {
        structure(place, "a subclass has " + std::to_string(layout.count) + " parts");
        continue;
      }
      const bool begins_inside = layout.first >= 0 && layout.first < limit;
      const int64_t missing = begins_inside ? limit : layout.first;
      structure(place, beyond("a subclass with " + std::to_string(layout.count) + " parts includes " + side, missing,
                              limit, side + "s"));
    }
  }
}

void GraphVerifier::check_attributes() {
  for (size_t i = 0; i < graph_.attributes.size(); ++i) {
    const Attribute& attribute = graph_.attributes[i];
    const Place place = at(NodeId(), "attributes[" + std::to_string(i) + "]");
    const std::string name = "attribute " + context_.quoted_name(attribute.path);
    const bool has_constant = !context_.is_blank(attribute.constant);
    const bool has_graph = !context_.is_blank(attribute.graph);
    const int kinds = (has_constant ? 1 : 0) + (has_graph ? 1 : 0) + (attribute.opaque.has_value() ? 1 : 0);
    if (!attributes_.insert(attribute.path)) {
      context_.add(ErrorCode::kVerifyReference, place, name + " is listed twice");
    }
    if (kinds != 1) {
      context_.add(ErrorCode::kVerifyReference, place,
                   name + " must refer to exactly one constant, graph or object, but " +
                       (kinds == 0 ? std::string("refers to none") : "has " + std::to_string(kinds) + " references"));
    }
    if (has_constant && !context_.constants.contains(attribute.constant)) {
      context_.add(ErrorCode::kVerifyReference, place,
                   name + " refers to constant " + context_.quoted_name(attribute.constant) +
                       ", which the module does not list");
    }
    if (has_graph) {
      const GraphId runs = context_.check_graph_reference(attribute.graph, [&] { return place; });
      if (runs.is_valid()) context_.graph_edges.emplace_back(id_, runs);
    }
  }
}

void GraphVerifier::check_output_specs() {
  if (graph_.outputs.empty()) return;
  if (graph_.outputs.size() != static_cast<size_t>(shape_.leaves)) {
    structure(at(NodeId(), "outputs"), std::to_string(graph_.outputs.size()) + " output specs for " +
                                           std::to_string(shape_.leaves) + " outputs");
  }
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const OutputSpec& spec = graph_.outputs[i];
    const Place place = at(NodeId(), "outputs[" + std::to_string(i) + "]");
    if (!is_within(spec.alias_of_input, shape_.placeholders)) {
      context_.add(ErrorCode::kVerifyReference, place,
                   beyond("the output is an alias of input", *spec.alias_of_input, shape_.placeholders, "inputs"));
    }
    if (!is_within(spec.alias_of_output, shape_.leaves)) {
      context_.add(ErrorCode::kVerifyReference, place,
                   beyond("the output is an alias of output", *spec.alias_of_output, shape_.leaves, "outputs"));
    }
  }
}

// Reads all use-lists once. check_edge() compares them with the arguments, so neither has to be
// correct.
void GraphVerifier::index_uses() {
  const Pool& pool = graph_.pool();
  edge_users_.assign(pool.num_args(), NodeId());
  for (const NodeId node : graph_.nodes()) {
    uint32_t count = 0;
    for (UseId id = graph_.first_use(node); id.is_valid() && count < graph_.num_uses(node); ++count) {
      const Use& use = graph_.use(id);
      if (use.slot.index() < pool.num_args()) edge_users_[use.slot.index()] = use.user;
      id = use.next;
    }
    num_listed_edges_ += count;
  }
}

void GraphVerifier::check_node(NodeId id) {
  const Node& node = graph_[id];
  check_kind(id);
  check_identity(id);
  check_args(id, "args", node.args, ArgWalk::Keys::kNone);
  check_args(id, "kwargs", node.kwargs, ArgWalk::Keys::kEven);
  check_keywords(id);
  const NodeExtra* extra = graph_.extra(id);
  if (extra != nullptr) check_extra(id, *extra);
  if (node.value.is_valid()) context_.check_value(graph_.pool(), node.value, "value", at(id));
  if (node.is_call() && node.target.is_valid()) {
    check_getitem(id);
    check_schema(id);
  }
  check_collective(id);
  check_phase(id);
  seen_[id] = true;
}

void GraphVerifier::check_kind(NodeId id) {
  const Node& node = graph_[id];
  const bool has_target = node.target.is_valid() && !context_.is_blank(module_.target(node.target).name);
  switch (node.kind) {
    case NodeKind::kPlaceholder:
      if (met_call_) structure(at(id), "placeholder after a call", "placeholders come before every call");
      break;
    case NodeKind::kGetAttr:
      if (has_target) {
        check_get_attr(id);
      } else {
        structure(at(id, "target"), "get_attr without a target");
      }
      break;
    case NodeKind::kCallFunction:
    case NodeKind::kCallMethod:
    case NodeKind::kCallModule:
      met_call_ = true;
      if (!has_target) structure(at(id, "target"), "call without a target");
      break;
    case NodeKind::kOutput:
      check_output(id);
      break;
    default:
      structure(at(id, "kind"), "node of an unknown kind");
  }
}

void GraphVerifier::check_output(NodeId id) {
  ++num_outputs_;
  if (num_outputs_ > 1) structure(at(id), "the graph has more than one output node");
  if (graph_.last() != id) structure(at(id), "output node is not the last node");
  if (graph_.has_users(id)) structure(at(id), "output node has users");
}

void GraphVerifier::check_get_attr(NodeId id) {
  const StringId target = module_.target(graph_[id].target).name;
  if (context_.constants.contains(target) || module_.find_graph(target).is_valid()) return;
  context_.check_reference(attributes_, target, [&] { return at(id, "target"); });
}

void GraphVerifier::check_identity(NodeId id) {
  const Node& node = graph_[id];
  if (context_.is_blank(node.name)) {
    structure(at(id, "name"), "node without a name");
  } else if (graph_.find(node.name) != id) {
    structure(at(id, "name"), "node is not found by its name");
  }
  if (node.uid >= module_.next_uid) {
    structure(at(id, "uid"), "uid " + std::to_string(node.uid) + " is not below the counter next_uid, which is " +
                                 std::to_string(module_.next_uid));
  }
  if (!context_.take_uid(node.uid)) structure(at(id, "uid"), "uid " + std::to_string(node.uid) + " is taken");
}

void GraphVerifier::check_args(NodeId id, std::string_view label, ArgRange range, ArgWalk::Keys keys) {
  const auto place = [&] { return at(id, args_.path()); };
  for (args_.start(label, range, keys); args_.next();) {
    const Arg& arg = args_.arg();
    switch (arg.kind()) {
      case ArgKind::kNode:
        check_edge(id);
        break;
      case ArgKind::kExpr:
      case ArgKind::kGroupExpr:
        context_.check_expression(arg.as_expr(), place);
        break;
      case ArgKind::kGraph: {
        const GraphId runs = context_.check_graph_reference(arg.as_string(), place);
        if (runs.is_valid()) context_.graph_edges.emplace_back(id_, runs);
        break;
      }
      case ArgKind::kGroup:
        context_.check_reference(context_.groups, arg.as_string(), place);
        break;
      case ArgKind::kMesh:
        context_.check_reference(context_.meshes, arg.as_string(), place);
        break;
      case ArgKind::kRngSlot:
        context_.check_reference(context_.slots, arg.as_string(), place);
        break;
      default:
        break;
    }
  }
}

void GraphVerifier::check_edge(NodeId id) {
  const NodeId input = args_.arg().as_node();
  const NodeKind kind = graph_[id].kind;
  if (input.index() >= graph_.num_ids() || graph_[input].erased) {
    structure(at(id, args_.path()), "input is not a node of the graph");
    return;
  }
  ++num_edges_;
  if (kind == NodeKind::kPlaceholder || kind == NodeKind::kGetAttr) {
    structure(at(id, args_.path()), std::string(name_of(kind)) + " with an input");
  }
  if (edge_users_[args_.index().index()] != id) {
    structure(at(id, args_.path()), "edge is missing from the use-list of " + quoted_node(input));
  }
  if (input == id) {
    context_.add(ErrorCode::kVerifyOrder, at(id, args_.path()), "node reads itself");
  } else if (!seen_[input]) {
    context_.add(ErrorCode::kVerifyOrder, at(id, args_.path()),
                 "input " + quoted_node(input) + " comes after its user");
  }
}

void GraphVerifier::check_keywords(NodeId id) {
  const std::span<const Arg> entries = graph_.pool().args(graph_[id].kwargs);
  if (entries.empty()) return;
  keywords_.clear();
  bool is_well_formed = entries.size() % 2 == 0;
  for (size_t i = 0; i < entries.size(); i += 2) {
    is_well_formed = is_well_formed && entries[i].is(ArgKind::kString);
    if (entries[i].is(ArgKind::kString)) keywords_.push_back(entries[i].as_string());
  }
  if (!is_well_formed) structure(at(id, "kwargs"), "keyword arguments are not pairs of a name and a value");
  std::sort(keywords_.begin(), keywords_.end());
  const std::vector<StringId>::iterator twice = std::adjacent_find(keywords_.begin(), keywords_.end());
  if (twice != keywords_.end()) {
    structure(at(id, "kwargs"), "keyword " + context_.quoted_name(*twice) + " is given twice");
  }
}

void GraphVerifier::check_extra(NodeId id, const NodeExtra& extra) {
  if (extra.input.has_value()) check_input_spec(id, *extra.input);
  if (!extra.control.empty()) check_control(id, extra);
  if (extra.stream.has_value()) {
    context_.check_reference(context_.streams, *extra.stream, [&] { return at(id, "stream"); });
  }
  if (!extra.rng.has_value()) return;
  const auto place = [&] { return at(id, "rng"); };
  context_.check_integer(extra.rng->seed, place);
  context_.check_integer(extra.rng->offset, place);
  context_.check_integer(extra.rng->increment, place);
  if (!context_.is_blank(extra.rng->slot)) context_.check_reference(context_.slots, extra.rng->slot, place);
}

void GraphVerifier::check_control(NodeId id, const NodeExtra& extra) {
  for (size_t i = 0; i < extra.control.size(); ++i) {
    const NodeId before = extra.control[i].node;
    const Place place = at(id, "control[" + std::to_string(i) + "]");
    if (before.index() >= graph_.num_ids() || graph_[before].erased) {
      context_.add(ErrorCode::kVerifyOrder, place, "control dependency on an erased node");
    } else if (before == id) {
      context_.add(ErrorCode::kVerifyOrder, place, "control dependency on the node itself");
    } else if (!seen_[before]) {
      context_.add(ErrorCode::kVerifyOrder, place,
                   "control dependency " + quoted_node(before) + " comes after the node that depends on it");
    }
  }
}

void GraphVerifier::check_input_spec(NodeId id, const InputSpec& spec) {
  const Place place = at(id, "input");
  if (graph_[id].kind != NodeKind::kPlaceholder) structure(place, "input spec on a node that is not a placeholder");
  if (!is_within(spec.alias_of_input, shape_.placeholders)) {
    context_.add(ErrorCode::kVerifyReference, place,
                 beyond("the input is an alias of input", *spec.alias_of_input, shape_.placeholders, "inputs"));
  }
  if (spec.role == InputRole::kTangent && graph_[id].phase == Phase::kForward) {
    context_.add(ErrorCode::kVerifyPhase, at(id, "phase"), "tangent in the forward phase",
                 "all nodes that depend on a tangent are backward");
  }
}

void GraphVerifier::check_phase(NodeId id) {
  const Node& node = graph_[id];
  const auto unknown = [&](std::string_view field, int number) {
    context_.add(ErrorCode::kVerifyPhase, at(id, std::string(field)),
                 "this build does not support " + std::string(field) + " " + std::to_string(number));
  };
  if (name_of(node.phase).empty()) unknown("phase", static_cast<int>(node.phase));
  if (name_of(node.tag).empty()) unknown("tag", static_cast<int>(node.tag));
  const NodeExtra* extra = graph_.extra(id);
  if (extra != nullptr && extra->verdict.has_value()) context_.check_verdict(*extra->verdict, at(id, "verdict"));
  if (!node.region.is_valid() || context_.visited_regions[node.region]) return;
  context_.visited_regions[node.region] = true;
  const Region& region = module_.region(node.region);
  if (region.id.has_value() && region.id_is_none) {
    context_.add(ErrorCode::kVerifyPhase, at(id, "region"), "region has an id, but is marked as a region without id");
  }
}

}  // namespace fxopt
