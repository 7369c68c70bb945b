// One step of the search:
//
//  smallest case so far --parse--> module --edit--> verifier --print--> seen before? --> checker
//
// A case that fails in the expected way becomes the smallest case so far. Each edit parses the
// module again, since most edits are discarded. Delta debugging identifies its items (nodes,
// modules, named entries) by name, because printing and parsing keeps names but not ids.

#include "passes/reduce/reduce.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/delta_debug.h"
#include "core/hash.h"
#include "core/text.h"
#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "ir/values/values.h"
#include "passes/reduce/details.h"
#include "passes/reduce/edits.h"

namespace fxopt {
namespace {

using NodeKey = std::pair<std::string, std::string>;  // the names of a graph and of a node

// Ways to remove nodes, in the order in which they are tried. The way with the smallest result
// comes first.
struct Way {
  StandIn stand_in;
  Sweep sweep;
};
constexpr std::array kWays = {Way{StandIn::kInput, Sweep::kUnread}, Way{StandIn::kInput, Sweep::kNone},
                              Way{StandIn::kPlaceholder, Sweep::kUnread}, Way{StandIn::kNothing, Sweep::kUnread}};

std::unique_ptr<Module> parse_case(const std::string& text) {
  Result<std::unique_ptr<Module>> module = parse_text(text, "case");
  FXOPT_CHECK(module.ok(), "a graph that was printed does not parse: " + module.error().message);
  return std::move(*module);
}

NodeKey key_of(const Graph& graph, NodeId node) {
  return {std::string(graph.module().text(graph.name())), std::string(graph.name_of(node))};
}

std::vector<NodeKey> nodes_of(const Module& module) {
  std::vector<NodeKey> keys;
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    for (const NodeId node : graph.nodes()) {
      if (graph[node].kind != NodeKind::kOutput) keys.push_back(key_of(graph, node));
    }
  }
  return keys;
}

// The first `depth` parts of a module path; empty if it has fewer.
std::string_view outer_path(std::string_view path, size_t depth) {
  size_t end = 0;
  for (size_t i = 0; i < depth; ++i) {
    if (i > 0 && end == path.size()) return {};
    end = std::min(path.find('.', i == 0 ? 0 : end + 1), path.size());
  }
  return path.substr(0, end);
}

class Reducer {
 public:
  Reducer(ReduceCase& best, const Judge& judge, const ReduceOptions& options)
      : best_(best), judge_(judge), options_(options) {
    known_[hash_of(best_)] = true;
    report_.nodes = parse_case(best_.graph)->num_nodes();
  }

  Result<ReduceReport> run() {
    for (bool has_changed = true; has_changed && report_.is_complete;) {
      const ReduceCase before = best_;
      passes();
      tidy();
      outputs(Sweep::kUnread);
      modules();
      nodes();
      outputs(Sweep::kNone);
      inputs_of_outputs();
      records();
      details();
      has_changed = best_.graph != before.graph || best_.passes != before.passes;
    }
    return report_;
  }

 private:
  static uint64_t hash_of(const ReduceCase& candidate) {
    return hash_combine(hash_bytes(candidate.graph), hash_bytes(candidate.passes.value_or("")));
  }

  // Makes `candidate` the smallest case if it is interesting.
  bool accept(ReduceCase candidate) {
    if (!report_.is_complete) return false;
    if (candidate.graph == best_.graph && candidate.passes == best_.passes) return false;
    const auto [known, is_new] = known_.emplace(hash_of(candidate), false);
    if (is_new) {
      if (options_.observer) options_.observer(stage_, report_);
      const Interest interest = judge_(candidate);
      if (interest == Interest::kStop) {
        report_.is_complete = false;
        return false;
      }
      ++report_.judged;
      known->second = interest == Interest::kInteresting;
    } else {
      ++report_.repeated;
    }
    if (known->second) best_ = std::move(candidate);
    return known->second;
  }

  // Tries an edit of the smallest case. The edit returns false if it changes nothing.
  bool try_edit(const std::function<bool(Module&)>& edit) {
    if (!report_.is_complete) return false;
    const std::unique_ptr<Module> module = parse_case(best_.graph);
    if (!edit(*module)) return false;
    if (is_tidy_) renumber(*module);
    if (!verify(*module, 1).empty()) {
      ++report_.invalid;
      return false;
    }
    if (!accept({is_tidy_ ? print_without_unused_storages(*module) : print_text(*module), best_.passes})) return false;
    report_.nodes = module->num_nodes();
    return true;
  }

  // -- the pipeline
  Pipeline pipeline() const {
    Result<Pipeline> parsed = parse_pipeline(*best_.passes);
    FXOPT_CHECK(parsed.ok(), "a pipeline that was printed does not parse");
    return std::move(*parsed);
  }

  bool try_pipeline(const Pipeline& smaller) {
    const std::string text = smaller.text();
    if (!parse_pipeline(text).ok()) {
      ++report_.invalid;
      return false;
    }
    return accept({best_.graph, text});
  }

  void passes() {
    if (!best_.passes.has_value()) return;
    stage_ = "passes";
    const Pipeline all = pipeline();
    std::vector<bool> gone(all.steps.size(), false);
    const auto without = [&](const std::vector<size_t>& steps) {
      std::vector<bool> more = gone;
      for (const size_t step : steps) more[step] = true;
      Pipeline smaller;
      for (size_t i = 0; i < all.steps.size(); ++i) {
        if (!more[i]) smaller.steps.push_back(all.steps[i]);
      }
      if (smaller.steps.empty() || !try_pipeline(smaller)) return false;
      gone = std::move(more);
      return true;
    };
    delta_debug(all.steps.size(), without, [&](size_t step) { return !gone[step]; });
    stage_ = "options of passes";
    for (size_t step = 0; step < pipeline().steps.size(); ++step) {
      for (size_t option = pipeline().steps[step].bound.options.size(); option-- > 0;) {
        Pipeline smaller = pipeline();
        PipelineStep& one = smaller.steps[step];
        OptionTexts& options = one.bound.options;
        options.erase(options.begin() + static_cast<std::ptrdiff_t>(option));
        one.text = step_text(*one.pass, options);
        try_pipeline(smaller);
      }
    }
  }

  // -- the graph
  // Renumbers nodes and removes unused storages. If the checker accepts the result, every later
  // edit does the same.
  void tidy() {
    if (is_tidy_) return;
    stage_ = "unused storages";
    const std::string before = best_.graph;
    const std::unique_ptr<Module> module = parse_case(before);
    renumber(*module);
    const std::string text = print_without_unused_storages(*module);
    is_tidy_ = text == before || accept({text, best_.passes});
  }

  void outputs(Sweep sweep) {
    stage_ = "outputs";
    const std::unique_ptr<Module> module = parse_case(best_.graph);
    for (const GraphId id : module->graphs()) outputs(module->graph(id), id, sweep);
  }

  void outputs(const Graph& graph, GraphId id, Sweep sweep) {
    std::vector<bool> gone(output_leaves(graph).size(), false);
    const auto without = [&](const std::vector<size_t>& leaves) {
      std::vector<bool> more = gone;
      for (const size_t leaf : leaves) more[leaf] = true;
      std::vector<bool> of_left;  // places shift when leaves are removed
      for (size_t i = 0; i < gone.size(); ++i) {
        if (!gone[i]) of_left.push_back(more[i]);
      }
      if (!try_edit([&](Module& module) { return remove_outputs(module.graph(id), of_left, sweep); })) return false;
      gone = std::move(more);
      return true;
    };
    delta_debug(gone.size(), without, [&](size_t leaf) { return !gone[leaf]; });
  }

  // Makes the output return an input of a returned node in place of the node. This removes the last
  // steps of a computation, even if sizes change.
  void inputs_of_outputs() {
    stage_ = "last steps";
    for (bool has_moved = true; has_moved && report_.is_complete;) {
      const std::unique_ptr<Module> module = parse_case(best_.graph);  // ids fit the edited module
      has_moved = false;
      for (const GraphId id : module->graphs()) has_moved = has_moved || move_up_output(*module, id);
    }
  }

  bool move_up_output(const Module& module, GraphId id) {
    const Graph& graph = module.graph(id);
    for (const NodeId leaf : output_leaves(graph)) {
      if (!leaf.is_valid()) continue;
      for (const NodeId input : graph.inputs(leaf)) {
        const auto edit = [&](Module& edited) { return return_input(edited.graph(id), leaf, input, Sweep::kUnread); };
        if (try_edit(edit)) return true;
      }
    }
    return false;
  }

  bool try_without(const std::set<NodeKey>& keys) {
    return std::ranges::any_of(kWays, [&](const Way& way) {
      return try_edit([&](Module& module) {
        bool has_changed = false;
        for (const GraphId id : module.graphs()) {
          Graph& graph = module.graph(id);
          std::vector<NodeId> nodes;
          for (const NodeId node : graph.nodes()) {
            if (graph[node].kind != NodeKind::kOutput && keys.contains(key_of(graph, node))) nodes.push_back(node);
          }
          if (!nodes.empty()) has_changed = remove_nodes(graph, nodes, way.stand_in, way.sweep) || has_changed;
        }
        return has_changed;
      });
    });
  }

  void remove_groups(const std::vector<std::vector<NodeKey>>& groups) {
    const auto without = [&](const std::vector<size_t>& chosen) {
      std::set<NodeKey> keys;
      for (const size_t group : chosen) keys.insert(groups[group].begin(), groups[group].end());
      return try_without(keys);
    };
    std::string text;
    std::set<NodeKey> left;
    const auto is_there = [&](size_t group) {
      if (text != best_.graph) {
        text = best_.graph;
        const std::vector<NodeKey> keys = nodes_of(*parse_case(text));
        left = {keys.begin(), keys.end()};
      }
      return std::ranges::any_of(groups[group], [&](const NodeKey& key) { return left.contains(key); });
    };
    delta_debug(groups.size(), without, is_there);
  }

  // Removes whole modules, one depth of module paths after the other. All modules of a depth are
  // one list, so that one edit can remove half of all layers.
  void modules() {
    stage_ = "modules";
    std::set<std::vector<std::vector<NodeKey>>> tried;
    for (size_t depth = 1; report_.is_complete; ++depth) {
      const std::vector<std::vector<NodeKey>> groups = modules_at(depth);
      if (groups.empty()) return;
      if (tried.insert(groups).second) remove_groups(groups);
    }
  }

  // The nodes of each module at that depth, in order of first appearance.
  std::vector<std::vector<NodeKey>> modules_at(size_t depth) const {
    const std::unique_ptr<Module> module = parse_case(best_.graph);
    std::vector<std::vector<NodeKey>> groups;
    std::map<std::string, size_t, std::less<>> places;
    for (const GraphId id : module->graphs()) {
      const Graph& graph = module->graph(id);
      for (const NodeId node : graph.nodes()) {
        const std::string_view path = outer_path(module->text(graph[node].module_path), depth);
        if (path.empty() || graph[node].kind == NodeKind::kOutput) continue;
        const size_t place = places.emplace(path, groups.size()).first->second;
        if (place == groups.size()) groups.emplace_back();
        groups[place].push_back(key_of(graph, node));
      }
    }
    return groups;
  }

  void nodes() {
    stage_ = "nodes";
    std::vector<std::vector<NodeKey>> groups;
    for (NodeKey& key : nodes_of(*parse_case(best_.graph))) groups.push_back({std::move(key)});
    remove_groups(groups);
  }

  void records() {
    stage_ = "records";
    const std::vector<std::string> all = named_records(*parse_case(best_.graph));
    const auto without = [&](const std::vector<size_t>& chosen) {
      std::set<std::string> names;
      for (const size_t record : chosen) names.insert(all[record]);
      return try_edit([&](Module& module) { return remove_records(module, names); });
    };
    const auto is_there = [&](size_t record) {
      return std::ranges::count(named_records(*parse_case(best_.graph)), all[record]) > 0;
    };
    delta_debug(all.size(), without, is_there);
  }

  // -- metadata of nodes and the module
  void details() {
    stage_ = "everything but nodes and values";
    if (try_edit(drop_all_details)) return;
    for (const ModuleDetail& detail : module_details()) {
      stage_ = detail.name;
      try_edit(detail.drop);
    }
    for (const NodeDetail& detail : node_details()) {
      stage_ = detail.name;
      drop_detail(detail);
    }
  }

  static bool drop_all_details(Module& module) {
    bool has_changed = false;
    for (const ModuleDetail& detail : module_details()) has_changed = detail.drop(module) || has_changed;
    for (const NodeDetail& detail : node_details()) {
      for (const GraphId id : module.graphs()) {
        Graph& graph = module.graph(id);
        for (const NodeId node : graph.nodes()) has_changed = detail.drop(graph, node) || has_changed;
      }
    }
    return has_changed;
  }

  void drop_detail(const NodeDetail& detail) {
    std::vector<std::pair<GraphId, NodeId>> places;  // no node is removed here, so ids stay valid
    const std::unique_ptr<Module> scratch = parse_case(best_.graph);
    for (const GraphId id : scratch->graphs()) {
      Graph& graph = scratch->graph(id);
      for (const NodeId node : graph.nodes()) {
        if (detail.drop(graph, node)) places.emplace_back(id, node);
      }
    }
    const auto without = [&](const std::vector<size_t>& chosen) {
      return try_edit([&](Module& module) {
        bool has_changed = false;
        for (const size_t place : chosen) {
          has_changed = detail.drop(module.graph(places[place].first), places[place].second) || has_changed;
        }
        return has_changed;
      });
    };
    delta_debug(places.size(), without, [](size_t) { return true; });
  }

  ReduceCase& best_;
  const Judge& judge_;
  const ReduceOptions& options_;
  ReduceReport report_;
  std::unordered_map<uint64_t, bool> known_;  // hash of a case -> interesting; never iterated
  std::string_view stage_;
  bool is_tidy_ = false;
};

}  // namespace

Result<ReduceReport> reduce_case(ReduceCase& smallest, const Judge& judge, const ReduceOptions& options) {
  const Result<std::unique_ptr<Module>> module = parse_text(smallest.graph, "case");
  if (!module.ok()) return module.error();
  FXOPT_CHECK(verify(**module, 1).empty(), "a case to reduce must pass the verifier");
  if (smallest.passes.has_value()) {
    Result<Pipeline> pipeline = parse_pipeline(*smallest.passes);
    if (!pipeline.ok()) return std::move(pipeline).error();
    smallest.passes = pipeline->text();
  }
  return Reducer(smallest, judge, options).run();
}

}  // namespace fxopt
