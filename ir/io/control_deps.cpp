#include "ir/io/control_deps.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/hash_table.h"
#include "core/scan.h"
#include "ir/io/io.h"

namespace fxopt {
namespace {

constexpr std::string_view kControlDeps = "higher_order.control_deps";
// Metadata keys that PyTorch keeps on the node in the body and removes from the wrapper. The last
// constant is a key inside `custom`.
constexpr std::array<std::string_view, 2> kOfTheBody = {"eager_input_vals", "should_fallback"};
constexpr std::string_view kCustom = "custom";
constexpr std::string_view kCustomOfTheBody = "fallback_to_eager";

const IdMap<NodeId, NodeId> kNoNodes;

std::string body_path(const Graph& graph, NodeId call) { return "subgraph_" + std::string(graph.name_of(call)); }

std::string body_name(const Graph& graph, std::string_view path) {
  return std::string(graph.module().text(graph.name())) + "." + std::string(path);
}

// A call and its distinct inputs, in order of first appearance.
struct Call {
  const Graph* graph;
  NodeId node;
  std::vector<NodeId> inputs;
};

// Fills `body` with the nodes that PyTorch puts around `call`: a placeholder for each input, the
// call and the output. The placeholders get the metadata of `outer`, which are nodes of `from`.
// `fresh_uid` supplies the uids. `mapped` must be empty, and is empty again afterwards, so all
// calls of a graph can use the same table.
void build_body(Graph& body, const Call& call, const Graph& from, std::span<const NodeId> outer,
                const std::function<uint64_t()>& fresh_uid, IdMap<NodeId, NodeId>& mapped) {
  Module& module = body.module();
  body.kind = GraphKind::kSubgraph;
  body.owner = from.name();
  const auto add = [&](NodeKind kind, const std::string& name) {
    return body.add_node(kind, module.intern(name), module.target(name), fresh_uid());
  };
  for (size_t i = 0; i < outer.size(); ++i) {
    const NodeId placeholder = add(NodeKind::kPlaceholder, "arg_" + std::to_string(i));
    body.copy_fields(from, outer[i], placeholder);
    body[placeholder].tag = from[outer[i]].tag;
    mapped[call.inputs[i]] = placeholder;
  }
  const Node& original = (*call.graph)[call.node];
  const std::string_view target = module.text(module.target(original.target).name);
  const NodeId inner = add(NodeKind::kCallFunction, fx_name(target, call.graph->op(call.node).schema.has_value()));
  body[inner].target = original.target;
  body[inner].tag = original.tag;
  body.copy_fields(*call.graph, call.node, inner);
  body.set_args(inner, body.copy_args(*call.graph, original.args, mapped),
                body.copy_args(*call.graph, original.kwargs, mapped));
  for (const NodeId input : call.inputs) mapped[input] = NodeId();
  const NodeId output = add(NodeKind::kOutput, "output");
  const Arg result = Arg::node(inner);
  body.set_args(output, body.pool().append(std::span(&result, 1)), ArgRange());
  body[output].value = body[inner].value;
}

// Returns `custom` without the entries that belong to the node in the body. Sets `dropped` if an
// entry was removed.
Arg strip_custom(Graph& graph, const Arg& custom, bool& dropped) {
  const std::span<const Arg> entries = graph.pool().children(custom);
  std::vector<Arg> kept;
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    const Arg& key = entries[i];
    if (key.is(ArgKind::kString) && graph.module().text(key.as_string()) == kCustomOfTheBody) continue;
    kept.insert(kept.end(), {key, entries[i + 1]});
  }
  if (kept.size() == entries.size()) return custom;
  dropped = true;
  return Arg::children(ArgKind::kDict, graph.pool().append(kept), custom.type());
}

// Removes the metadata of `node` that belongs to the node in the body.
void strip_meta(Graph& graph, NodeId node) {
  const std::span<const Arg> view = graph.pool().args(graph[node].meta);
  const std::vector<Arg> entries(view.begin(), view.end());  // the pool may grow
  std::vector<Arg> kept;
  bool dropped = false;
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    const std::string_view key = graph.module().text(entries[i].as_string());
    if (std::find(kOfTheBody.begin(), kOfTheBody.end(), key) != kOfTheBody.end()) {
      dropped = true;
      continue;
    }
    const bool is_custom = key == kCustom && entries[i + 1].is(ArgKind::kDict);
    kept.insert(kept.end(), {entries[i], is_custom ? strip_custom(graph, entries[i + 1], dropped) : entries[i + 1]});
  }
  if (dropped) graph.set_meta(node, graph.pool().append(kept));
}

// -- lowering

struct Candidate {
  NodeId call;
  NodeId get_attr;
  GraphId body;
  NodeId inner;  // a node in the body
  std::vector<NodeId> dependencies;
  std::vector<NodeId> inputs;
};

std::optional<std::vector<NodeId>> distinct_nodes(std::span<const Arg> args) {
  std::vector<NodeId> nodes;
  for (const Arg& arg : args) {
    if (!arg.is(ArgKind::kNode)) return std::nullopt;
    nodes.push_back(arg.as_node());
  }
  std::vector<NodeId> sorted = nodes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return std::nullopt;
  return nodes;
}

void count_graph_args(const Graph& graph, ArgRange range, IdMap<StringId, uint32_t>& counts) {
  for (const Arg& arg : graph.pool().args(range)) {
    if (arg.is(ArgKind::kGraph)) ++counts[arg.as_string()];
    if (arg.has_children()) count_graph_args(graph, arg.range(), counts);
  }
}

// Returns how many attributes, arguments and invocations name each graph.
IdMap<StringId, uint32_t> count_references(const Module& module) {
  IdMap<StringId, uint32_t> counts;
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    for (const Attribute& attribute : graph.attributes) {
      if (attribute.graph.is_valid()) ++counts[attribute.graph];
    }
    for (const NodeId node : graph.nodes()) {
      count_graph_args(graph, graph[node].args, counts);
      count_graph_args(graph, graph[node].kwargs, counts);
    }
  }
  for (const Invocation& invocation : module.invocations) {
    if (invocation.graph.is_valid()) ++counts[invocation.graph];
  }
  return counts;
}

class Lowering {
 public:
  Lowering(Module& module, TargetId control_deps)
      : module_(module), control_deps_(control_deps), references_(count_references(module)) {}

  ControlDepsResult run() {
    ControlDepsResult result;
    std::vector<GraphId> bodies;
    for (const GraphId id : module_.graphs()) {
      Graph& graph = module_.graph(id);
      std::vector<NodeId> calls;
      for (const NodeId node : graph.nodes()) {
        if (graph[node].is_call() && graph[node].target == control_deps_) calls.push_back(node);
      }
      if (calls.empty()) continue;
      index_attributes(graph);
      HashSet<StringId> gone;  // paths of attributes
      for (const NodeId call : calls) {
        const std::optional<Candidate> candidate = find(graph, call);
        if (!candidate.has_value() || !is_exact(graph, *candidate)) {
          ++result.left;
          continue;
        }
        gone.insert(module_.target(graph[candidate->get_attr].target).name);
        bodies.push_back(candidate->body);
        apply(graph, *candidate);
        ++result.done;
      }
      std::erase_if(graph.attributes, [&gone](const Attribute& a) { return gone.contains(a.path); });
    }
    module_.remove_graphs(bodies);
    return result;
  }

 private:
  void index_attributes(const Graph& graph) {
    attributes_.clear();
    for (size_t i = 0; i < graph.attributes.size(); ++i) {
      if (!graph.attributes[i].path.is_valid()) continue;
      const auto [entry, is_new] = attributes_.emplace(graph.attributes[i].path, i);
      if (!is_new) entry.value() = kSeveral;
    }
  }

  // Returns the parts of a call if the call and its body have the form that raising creates.
  // is_exact() compares the contents.
  std::optional<Candidate> find(const Graph& graph, NodeId call) {
    Candidate found;
    found.call = call;
    const NodeExtra* extra = graph.extra(call);
    const std::span<const Arg> args = graph.pool().args(graph[call].args);
    if ((extra != nullptr && !extra->control.empty()) || graph[call].kwargs.count != 0) return std::nullopt;
    if (args.size() < 2 || !args[0].is(ArgKind::kTuple) || args[0].type().is_valid()) return std::nullopt;
    const std::optional<std::vector<NodeId>> dependencies = distinct_nodes(graph.pool().children(args[0]));
    const std::optional<std::vector<NodeId>> inputs = distinct_nodes(args.subspan(2));
    if (!dependencies.has_value() || dependencies->empty() || !inputs.has_value()) return std::nullopt;
    found.dependencies = *dependencies;
    found.inputs = *inputs;
    if (!args[1].is(ArgKind::kNode)) return std::nullopt;
    found.get_attr = args[1].as_node();
    found.body = body_of(graph, found);
    if (!found.body.is_valid()) return std::nullopt;
    const Graph& body = module_.graph(found.body);
    for (const NodeId node : body.nodes()) {
      if (!body[node].is_call()) continue;
      if (found.inner.is_valid()) return std::nullopt;
      found.inner = node;
    }
    if (!found.inner.is_valid() || body.inputs(found.inner).size() != found.inputs.size()) return std::nullopt;
    return found;
  }

  // Returns the body that a get_attr names, if raising would create the same get_attr. This
  // get_attr has no further fields, is right before the call, and is the only reference to the
  // body.
  GraphId body_of(const Graph& graph, const Candidate& found) {
    const Node& node = graph[found.get_attr];
    const std::string path = body_path(graph, found.call);
    if (node.kind != NodeKind::kGetAttr || graph.prev(found.call) != found.get_attr ||
        graph.num_uses(found.get_attr) != 1 || graph.name_of(found.get_attr) != path) {
      return GraphId();
    }
    Graph scratch(module_, graph.name());
    scratch.add_node(NodeKind::kGetAttr, node.name, module_.target(path), 0);
    if (print_node(scratch, scratch.first()) != print_node_alone(graph, found.get_attr)) return GraphId();
    const auto entry = attributes_.find(module_.strings.find(path));
    if (entry == attributes_.end() || entry->second == kSeveral) return GraphId();
    const Attribute& attribute = graph.attributes[entry->second];
    if (attribute.constant.is_valid() || attribute.opaque.has_value() || !attribute.unknown.empty() ||
        references_.get(attribute.graph) != 1 || module_.text(attribute.graph) != body_name(graph, path)) {
      return GraphId();
    }
    const GraphId body = module_.find_graph(attribute.graph);
    return body == module_.main().id() ? GraphId() : body;
  }

  // Returns the text of the node without its uid.
  std::string print_node_alone(const Graph& graph, NodeId node) {
    Graph scratch(module_, graph.name());
    const NodeId copy = scratch.add_node(graph[node].kind, graph[node].name, graph[node].target, 0);
    scratch.copy_fields(graph, node, copy);
    scratch[copy].tag = graph[node].tag;
    if (const NodeExtra* extra = graph.extra(node)) scratch.mutable_extra(copy) = *extra;
    return print_node(scratch, copy);
  }

  // Whether raising would restore the same body and the same wrapper.
  bool is_exact(const Graph& graph, const Candidate& candidate) {
    const Graph& body = module_.graph(candidate.body);
    const Call call{&body, candidate.inner, body.inputs(candidate.inner)};
    Graph expected(module_, body.name());
    IdMap<NodeId, NodeId> mapped(body.num_ids());
    build_body(
        expected, call, graph, candidate.inputs, [] { return uint64_t{0}; }, mapped);
    TextOptions options;
    options.uids = false;
    if (print_text(expected, options) != print_text(body, options)) return false;
    return face(body, candidate.inner) == face(graph, candidate.call);
  }

  // Returns the text of the fields that must be equal in the wrapper and the wrapped node.
  std::string face(const Graph& graph, NodeId node) {
    Graph scratch(module_, graph.name());
    const NodeId copy = scratch.add_node(NodeKind::kCallFunction, module_.intern("x"), module_.target("x"), 0);
    scratch.copy_fields(graph, node, copy);
    scratch[copy].tag = graph[node].tag;
    strip_meta(scratch, copy);
    return print_node(scratch, copy);
  }

  void apply(Graph& graph, const Candidate& candidate) {
    const Graph& body = module_.graph(candidate.body);
    const std::vector<NodeId> inner_inputs = body.inputs(candidate.inner);
    IdMap<NodeId, NodeId> mapped(body.num_ids());
    for (size_t i = 0; i < inner_inputs.size(); ++i) mapped[inner_inputs[i]] = candidate.inputs[i];
    const Node& inner = body[candidate.inner];
    const ArgRange args = graph.copy_args(body, inner.args, mapped);
    const ArgRange kwargs = graph.copy_args(body, inner.kwargs, mapped);
    graph[candidate.call].target = inner.target;
    graph.set_args(candidate.call, args, kwargs);
    graph.set_meta(candidate.call, graph.copy_args(body, inner.meta, kNoNodes));
    std::vector<ControlDep>& control = graph.mutable_extra(candidate.call).control;
    for (const NodeId node : candidate.dependencies) control.push_back({node, ControlKind::kOrder});
    graph.erase(candidate.get_attr);
  }

  static constexpr size_t kSeveral = SIZE_MAX;

  Module& module_;
  TargetId control_deps_;
  IdMap<StringId, uint32_t> references_;
  HashMap<StringId, size_t> attributes_;  // path -> index, in the current graph
};

// -- raising

// Returns an attribute path that is free in the graph, and for which the name of the body is free.
std::string fresh_path(const Graph& graph, NodeId node, const HashSet<StringId>& taken) {
  const Module& module = graph.module();
  const auto is_taken = [&](const std::string& path) {
    return taken.contains(module.strings.find(path)) ||
           module.find_graph(module.strings.find(body_name(graph, path))).is_valid();
  };
  const std::string base = body_path(graph, node);
  std::string path = base;
  for (int i = 0; is_taken(path); ++i) path = base + "_" + std::to_string(i);
  return path;
}

// Wraps `node` in a control_deps call. `taken` has the paths of the graph's attributes. For
// `mapped`, see build_body().
void wrap(Graph& graph, NodeId node, HashSet<StringId>& taken, IdMap<NodeId, NodeId>& mapped) {
  Module& module = graph.module();
  const std::string path = fresh_path(graph, node, taken);
  const Call call{&graph, node, graph.inputs(node)};
  Graph& body = module.add_graph(module.intern(body_name(graph, path)));
  build_body(
      body, call, graph, call.inputs, [&module] { return module.fresh_uid(); }, mapped);
  Attribute attribute;
  attribute.path = module.intern(path);
  attribute.graph = body.name();
  graph.attributes.push_back(attribute);
  taken.insert(attribute.path);
  const NodeId get_attr = graph.insert_node(node, NodeKind::kGetAttr, path, module.target(path));

  std::vector<ControlDep>& control = graph.mutable_extra(node).control;
  ArgStack stack(graph.pool());
  std::vector<NodeId> dependencies;
  for (const ControlDep& dep : control) {
    if (std::find(dependencies.begin(), dependencies.end(), dep.node) != dependencies.end()) continue;
    dependencies.push_back(dep.node);
    stack.push(Arg::node(dep.node));
  }
  stack.close(ArgKind::kTuple, 0);
  stack.push(Arg::node(get_attr));
  for (const NodeId input : call.inputs) stack.push(Arg::node(input));
  control.clear();
  graph[node].target = module.target(kControlDeps);
  graph.set_args(node, stack.take(0), ArgRange());
  strip_meta(graph, node);
}

}  // namespace

std::string fx_name(std::string_view target, bool is_operator) {
  const size_t dot = is_operator ? target.find('.') : target.rfind('.');
  if (dot != std::string_view::npos) target.remove_prefix(dot + 1);
  std::string name;
  for (size_t i = 0; i < target.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(target[i]);
    if (std::isupper(c) != 0 && i > 0 && std::islower(static_cast<unsigned char>(target[i - 1])) != 0) name += '_';
    if (is_word(target[i])) {
      name += static_cast<char>(std::tolower(c));
    } else if (i == 0 || name.empty() || name.back() != '_' || target[i - 1] == '_') {
      name += '_';  // one '_' for a run of non-word characters
    }
  }
  if (name.empty()) return "_unnamed";
  return is_digit(name[0]) ? "_" + name : name;
}

ControlDepsResult lower_control_deps(Module& module) {
  const TargetId target = module.find_target(kControlDeps);
  return target.is_valid() ? Lowering(module, target).run() : ControlDepsResult();
}

ControlDepsResult raise_control_deps(Module& module) {
  ControlDepsResult result;
  const std::vector<GraphId> graphs = module.graphs();  // without the bodies added below
  for (const GraphId id : graphs) {
    Graph& graph = module.graph(id);
    std::vector<NodeId> held;
    for (const NodeId node : graph.nodes()) {
      const NodeExtra* extra = graph.extra(node);
      if (extra != nullptr && !extra->control.empty()) held.push_back(node);
    }
    if (held.empty()) continue;
    HashSet<StringId> taken;
    for (const Attribute& attribute : graph.attributes) {
      if (attribute.path.is_valid()) taken.insert(attribute.path);
    }
    IdMap<NodeId, NodeId> mapped(graph.num_ids());
    for (const NodeId node : held) {
      if (!graph[node].is_call()) {
        ++result.left;
        continue;
      }
      wrap(graph, node, taken, mapped);
      ++result.done;
    }
  }
  return result;
}

}  // namespace fxopt
