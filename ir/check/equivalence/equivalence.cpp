#include "ir/check/equivalence/equivalence.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/hash_table.h"
#include "ir/alias/effect_map.h"
#include "ir/check/equivalence/execution.h"
#include "ir/check/equivalence/keys.h"
#include "ir/graph/top_level.h"
#include "ir/step/autograd.h"
#include "ir/step/compose.h"
#include "ir/step/halves.h"
#include "ir/step/phases.h"
#include "ir/step/step.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

// Returns the graphs that only run as subgraphs. Each graph comes after the graphs that it runs.
std::vector<GraphId> subgraphs_first(const Module& module, const std::vector<GraphId>& tops) {
  std::vector<bool> is_top(module.num_graph_ids(), false);
  for (const GraphId id : tops) is_top[id.index()] = true;
  std::vector<GraphId> order;
  std::vector<uint8_t> state(module.num_graph_ids(), 0);  // 1: open, 2: done
  std::vector<GraphId> open;
  const auto names = [&module](GraphId id) {
    std::vector<GraphId> out;
    const Graph& graph = module.graph(id);
    const auto add = [&](StringId name) {
      if (const GraphId other = module.find_graph(name); other.is_valid()) out.push_back(other);
    };
    for (const Attribute& attribute : graph.attributes) {
      if (attribute.graph.is_valid()) add(attribute.graph);
    }
    for (size_t i = 0; i < graph.pool().num_args(); ++i) {
      const Arg& arg = graph.pool().arg(ArgIndex(i));
      if (arg.is(ArgKind::kGraph)) add(arg.as_string());
    }
    return out;
  };
  for (const GraphId root : module.graphs()) {
    if (is_top[root.index()] || state[root.index()] != 0) continue;
    open.push_back(root);
    while (!open.empty()) {
      const GraphId id = open.back();
      if (state[id.index()] == 0) {
        state[id.index()] = 1;
        for (const GraphId other : names(id)) {
          if (state[other.index()] == 0) open.push_back(other);
        }
        continue;
      }
      open.pop_back();
      if (state[id.index()] == 1) {
        state[id.index()] = 2;
        order.push_back(id);
      }
    }
  }
  return order;
}

// The execution state of one module. Both modules share `axioms`, so equal values get equal value
// numbers.
struct ModuleRun {
  ModuleRun(const Module& module, Axioms& axioms) : keys(module, axioms.geometries), effects(module) {}
  ModuleKeys keys;
  CallRules rules;
  SubgraphEffects effects;
  HashMap<StringId, Hash128> subgraphs;
};

ExecutionEnd run_graph(const Graph& graph, ModuleRun& run, Axioms& axioms, bool is_differentiated, bool names_calls,
                       const std::vector<Claim>* claims = nullptr, const std::vector<StringId>* input_names = nullptr) {
  EffectMap effects(graph, run.effects);
  return execute({graph, run.keys, run.rules, effects, axioms, run.subgraphs, is_differentiated, false, names_calls,
                  claims, input_names});
}

// Returns the key of a subgraph.
Hash128 called_graph_key(const Graph& graph, ModuleRun& run, Axioms& axioms, bool is_differentiated) {
  EffectMap effects(graph, run.effects);
  return execute({graph, run.keys, run.rules, effects, axioms, run.subgraphs, is_differentiated, true, false, nullptr,
                  nullptr})
      .key();
}

bool is_differentiated(const Graph& graph, const PhasesOf& phases) {
  std::optional<PhaseMap> own;
  return may_be_differentiated(graph, [&]() -> const PhaseMap& {
    if (phases) return phases(graph);
    if (!own.has_value()) own = resolve_phases(graph);
    return *own;
  });
}

bool holds_all(const std::vector<Hash128>& all, const std::vector<Hash128>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

// Whether `all` contains the items of `part` in the same order.
bool is_part_in_order(const std::vector<Hash128>& part, const std::vector<Hash128>& all) {
  size_t found = 0;
  for (size_t i = 0; i < all.size() && found < part.size(); ++i) {
    if (all[i] == part[found]) ++found;
  }
  return found == part.size();
}

class Comparison {
 public:
  Comparison(const Graph& graph, const ExecutionEnd& before, const ExecutionEnd& after, const ProofOptions& options)
      : graph_(graph), before_(before), after_(after), options_(options) {}

  std::vector<ProofDifference> run() {
    if (before_.num_inputs != after_.num_inputs) {
      add("the number of inputs: " + std::to_string(after_.num_inputs) + " instead of " +
          std::to_string(before_.num_inputs));
    }
    if (before_.output_structure != after_.output_structure || before_.outputs.size() != after_.outputs.size()) {
      add("the structure of the outputs");
    }
    compare(before_.outputs, after_.outputs, "", "");
    compare(before_.inputs, after_.inputs, "the value of ", " at the end");
    compare_attributes();
    compare_effects();
    return std::move(out_);
  }

 private:
  void add(std::string what, NodeId node = NodeId()) { out_.push_back({graph_.name(), std::move(what), node}); }

  void compare(const std::vector<EndValue>& before, const std::vector<EndValue>& after, const std::string& begin,
               const std::string& end) {
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      const EndValue& a = before[i];
      const EndValue& b = after[i];
      if (options_.as_step && a.label != b.label) return add("missing " + a.label);
      if (a.content != b.content) {
        add(begin + b.label + end, b.node);
      } else if (a.geometry != b.geometry) {
        add("sizes, strides or dtype of " + b.label, b.node);
      } else if (a.storage != b.storage || a.may_share != b.may_share) {
        add("the tensors that share memory with " + b.label, b.node);
      } else if (a.object != b.object || a.may_be != b.may_be) {
        add("the values that are the same tensor object as " + b.label, b.node);
      }
    }
  }

  static const EndValue* find_label(const std::vector<EndValue>& values, const std::string& label) {
    const auto found =
        std::lower_bound(values.begin(), values.end(), label,
                         [](const EndValue& value, const std::string& wanted) { return value.label < wanted; });
    return found == values.end() || found->label != label ? nullptr : &*found;
  }

  // Compares attributes by name. If only one graph reads an attribute, the other graph leaves the
  // attribute at its initial value.
  void compare_attributes() {
    for (const EndValue& b : after_.attributes) {
      if (b.is_changed && find_label(before_.attributes, b.label) == nullptr) {
        add("the value of " + b.label + " at the end", b.node);
      }
    }
    for (const EndValue& a : before_.attributes) {
      const EndValue* found = find_label(after_.attributes, a.label);
      if (found == nullptr) {
        if (a.is_changed) add("the value of " + a.label + " at the end");
        continue;
      }
      if (a.content != found->content || a.geometry != found->geometry) {
        add("the value of " + a.label + " at the end", found->node);
      } else if (a.storage != found->storage) {
        add("the tensors that share memory with " + a.label, found->node);
      }
    }
  }

  void compare_effects() {
    const bool draws = options_.allow_dead_draws ? is_part_in_order(after_.draws, before_.draws)
                                                 : before_.generator == after_.generator;
    if (!draws) add("the random draws, or their order");
    if (before_.world != after_.world) add("the calls with unknown effects, or their order");
    if (before_.mode != after_.mode) add("the modes that are on at the end (gradients, autocast)");
    if (!same_collectives()) add("the collectives, or their order on a group");
    if (!same_changes()) add("the in-place changes, which autograd counts");
    compare_sets(before_.assertions, after_.assertions, options_.allow_dead_assertions, "the assertions");
    compare_sets(before_.waits, after_.waits, options_.allow_dead_collectives, "the collectives that are waited for");
    compare_sets(before_.pending, after_.pending, options_.allow_dead_collectives, "the collectives without a wait");
  }

  void compare_sets(const std::vector<Hash128>& before, const std::vector<Hash128>& after, bool may_lack,
                    const char* what) {
    if (may_lack ? !holds_all(before, after) : before != after) add(what);
  }

  // Whether the input graph has every in-place change of the output graph. The output graph may
  // have fewer changes, and autograd may have kept a changed tensor for fewer calls.
  bool same_changes() const {
    return std::ranges::all_of(after_.changes, [this](const ChangeInPlace& change) {
      auto at = std::lower_bound(before_.changes.begin(), before_.changes.end(), ChangeInPlace{change.call, {}});
      for (; at != before_.changes.end() && at->call == change.call; ++at) {
        if (holds_all(at->kept_by, change.kept_by)) return true;
      }
      return false;
    });
  }

  // Whether both graphs issue the same collectives. If dead collectives are allowed, the output
  // graph may lack calls, but each group must keep its order. The search includes repeated calls of
  // the input graph, so the first of two equal calls may be missing.
  bool same_collectives() const {
    if (before_.messages != after_.messages) return false;
    if (!options_.allow_dead_collectives) return before_.collectives == after_.collectives;
    return std::ranges::all_of(after_.collectives, [this](const auto& group) {
      const auto found =
          std::ranges::find_if(before_.issued, [&group](const auto& other) { return other.first == group.first; });
      return found != before_.issued.end() && is_part_in_order(group.second, found->second);
    });
  }

  const Graph& graph_;
  const ExecutionEnd& before_;
  const ExecutionEnd& after_;
  const ProofOptions& options_;
  std::vector<ProofDifference> out_;
};

// The step of a module as one graph, in a copy of the module.
struct ProofStep {
  std::shared_ptr<const Module> module;
  StepGraph step;

  const Graph& graph() const { return module->graph(step.graph); }
};

// Reduces a joint graph to its forward half. Keeps backward nodes that a forward call uses.
void keep_forward_half(Graph& graph) {
  if (std::ranges::none_of(graph.nodes(), [&graph](NodeId node) { return is_tangent(graph, node); })) {
    const std::vector<NodeId> tangents = infer_tangents(graph, StorageMap(graph));
    if (!tangents.empty()) write_tangents(graph, tangents);
  }
  if (!is_joint(graph) || !graph.output().is_valid()) return;
  const JointHalves halves = joint_halves(graph, resolve_phases(graph), infer_roles(graph));
  const NodeId output = graph.output();
  std::vector<Arg> kept = leaves_of(graph, graph[output].args);
  kept.resize(halves.num_forward_outputs);
  ArgStack stack(graph.pool());
  for (const Arg& leaf : kept) stack.push(leaf);
  stack.close(ArgKind::kTuple, 0);
  graph.set_args(output, stack.take(0), ArgRange());
  if (graph.outputs.size() > kept.size()) graph.outputs.resize(kept.size());
  for (NodeId node = graph.last(), before; node.is_valid(); node = before) {
    before = graph.prev(node);
    if (halves.in_backward[node] && !graph.has_users(node)) graph.erase(node);
  }
  graph.prune_control();
}

// Returns the step of a module. With `forward_only`, joint graphs are reduced to their forward
// half.
Result<ProofStep> step_of(const Module& module, bool forward_only = false) {
  std::unique_ptr<Module> copy = module.clone();
  for (const GraphId id : forward_only ? top_level_graphs(*copy) : std::vector<GraphId>()) {
    keep_forward_half(copy->graph(id));
  }
  Result<Step> step = find_step(*copy);
  if (!step.ok()) return std::move(step).error();
  StepGraph graph = compose_for_proof(*copy, *step);
  return ProofStep{std::move(copy), std::move(graph)};
}

}  // namespace

struct Prover::State {
  static constexpr size_t kMaxRuns = 4;  // limit on executions of the input module

  struct Known {
    std::string name;
    ExecutionEnd summary;
    bool is_differentiated = false;
    Hash128 key;  // key of the ExecutionEnd that was last proved equal
    size_t recorded_views = 0, storage_id_views = 0;

    void keep(const ExecutionEnd& end) {
      key = end.key();
      recorded_views = end.recorded_views;
      storage_id_views = end.storage_id_views;
    }
  };

  ProofOptions options;
  std::vector<Claim> claims;         // accepted claims
  std::vector<std::string> refused;  // refused claims, first those with a refused class of numerics
  size_t num_refused = 0;            // number of claims with a refused class of numerics
  Axioms axioms;
  std::vector<Known> graphs;
  std::map<std::string, bool, std::less<>> is_top;  // by name of the input graph: whether it is top-level
  bool any_is_differentiated = false;               // for any top-level graph; applies to all subgraphs
  std::string no_step;                              // the reason why the input module has no step
  const Module* before = nullptr;
  std::unique_ptr<ModuleRun> run;  // for `before`, if proofs are requested for the same module

  // Computes the hashes of all subgraphs. Returns false if all graphs are known, because the
  // earlier hashes are then valid.
  bool run_subgraphs(const Module& module, ModuleRun& with, const std::vector<GraphId>& tops,
                     const std::vector<bool>& is_known = std::vector<bool>()) {
    std::vector<bool> holds = is_known;
    holds.resize(module.num_graph_ids());
    for (const GraphId id : tops) holds[id.index()] = true;
    const std::vector<GraphId>& all = module.graphs();
    if (!is_known.empty() && std::ranges::all_of(all, [&](GraphId id) { return holds[id.index()]; }) &&
        with.subgraphs.size() + tops.size() == all.size()) {
      return false;
    }
    with.effects.forget();
    with.subgraphs.clear();
    for (const GraphId id : subgraphs_first(module, tops)) {
      const Graph& graph = module.graph(id);
      with.subgraphs[graph.name()] = called_graph_key(graph, with, axioms, any_is_differentiated);
    }
    return true;
  }

  // Returns the top-level graphs of the output module. If this module has no new graphs, these are
  // the top-level graphs of the input module.
  std::vector<GraphId> tops_of(const Module& after) const {
    std::vector<GraphId> tops;
    for (const GraphId id : after.graphs()) {
      const auto known = is_top.find(after.text(after.graph(id).name()));
      if (known == is_top.end()) return top_level_graphs(after);
      if (known->second) tops.push_back(id);
    }
    return tops;
  }

  // Executes the `compared` graphs of the input module, or all its top-level graphs if none is
  // given. Repeats this while executions learn facts, which happens if values are only partly
  // recorded.
  void run_before(const Module& module, ModuleRun& with, const std::vector<GraphId>& compared, const PhasesOf& phases,
                  const std::vector<StringId>* input_names = nullptr) {
    const std::vector<GraphId> tops = top_level_graphs(module);
    for (const GraphId id : module.graphs()) is_top.emplace(module.text(module.graph(id).name()), false);
    for (const GraphId id : tops) is_top.find(module.text(module.graph(id).name()))->second = true;
    std::vector<bool> differentiated(module.num_graph_ids(), false);
    for (const std::vector<GraphId>* ids : {&tops, &compared}) {
      for (const GraphId id : *ids) differentiated[id.index()] = is_differentiated(module.graph(id), phases);
    }
    any_is_differentiated = std::ranges::find(differentiated, true) != differentiated.end();
    for (size_t i = 0; i == 0 || (axioms.has_learned && i < kMaxRuns); ++i) {
      // These facts do not include the facts that were learned later, so they are collected again.
      axioms.has_learned = false;
      axioms.views.clear();
      axioms.changed.clear();
      axioms.results.clear();
      axioms.undone.clear();
      axioms.made.clear();
      graphs.clear();
      refused.resize(num_refused);
      run_subgraphs(module, with, tops);
      for (const GraphId id : compared.empty() ? tops : compared) {
        add_known(module.graph(id), differentiated[id.index()], with, input_names);
      }
    }
  }

  void add_known(const Graph& graph, bool differentiated, ModuleRun& with, const std::vector<StringId>* input_names) {
    Known& known = graphs.emplace_back();
    known.name = graph.module().text(graph.name());
    known.is_differentiated = differentiated;
    known.summary = run_graph(graph, with, axioms, known.is_differentiated, true, &claims, input_names);
    known.keep(known.summary);
    add_refused(graph, known.summary, " of the input graph", refused);
  }

  static void add_refused(const Graph& graph, const ExecutionEnd& end, const std::string& which,
                          std::vector<std::string>& out) {
    for (const RefusedClaim& item : end.refused) {
      out.push_back(std::string(name_of(item.rule)) + " at %" + std::string(graph.name_of(item.node)) + which + ": " +
                    item.why);
    }
  }

  void add_step(const Module& module) {
    const Result<ProofStep> step = step_of(module, options.allow_no_backward);
    if (!step.ok()) {
      no_step = step.error().message;
      return;
    }
    ModuleRun with(*step->module, axioms);
    run_before(*step->module, with, {step->step.graph}, PhasesOf(), &step->step.inputs);
  }

  void compare(Known& known, const Graph& graph, ModuleRun& with, const std::vector<StringId>* input_names,
               ModuleProof& proof) {
    const ExecutionEnd end = run_graph(graph, with, axioms, known.is_differentiated, false, &claims, input_names);
    add_refused(graph, end, "", proof.refused_claims);
    std::vector<ProofDifference> differences = Comparison(graph, known.summary, end, options).run();
    if (differences.empty()) return known.keep(end);
    proof.answer = ProofAnswer::kDiffers;
    if (!proof.graph.is_valid()) find_first_new(known, graph, with, input_names, proof);
    proof.differences.insert(proof.differences.end(), differences.begin(), differences.end());
  }

  void find_first_new(const Known& known, const Graph& graph, ModuleRun& with, const std::vector<StringId>* input_names,
                      ModuleProof& proof) {
    const ExecutionEnd end = run_graph(graph, with, axioms, known.is_differentiated, true, &claims, input_names);
    HashSet<Hash128, Hash128Hash> old;
    HashMap<uint64_t, uint64_t> by_uid;
    for (const NamedNode& node : known.summary.nodes) old.insert(node.key), by_uid.emplace(node.uid, node.arguments);
    const auto first =
        std::ranges::find_if(end.nodes, [&old](const NamedNode& node) { return !old.contains(node.key); });
    if (first == end.nodes.end()) return;
    proof.graph = graph.name();
    proof.first_new = first->node;
    if (const auto was = by_uid.find(first->uid); was != by_uid.end()) {
      proof.change = was->second == first->arguments ? ModuleProof::Change::kData : ModuleProof::Change::kArguments;
    }
    if (first->lacks_fact) {
      proof.answer = ProofAnswer::kUndecided;
      proof.missing = "the geometry of view %" + std::string(graph.name_of(first->node)) +
                      " (the input graph does not contain this view, and the view's sizes cannot be calculated)";
    }
  }

  ModuleProof prove_step(const Module& after) {
    ModuleProof proof;
    proof.refused_claims = refused;
    const Result<ProofStep> step = no_step.empty() ? step_of(after) : Result<ProofStep>(Error());
    if (!step.ok()) {
      proof.answer = ProofAnswer::kUndecided;
      proof.missing =
          no_step.empty() ? "the step: " + step.error().message : "the step of the input module: " + no_step;
      return proof;
    }
    ModuleRun with(*step->module, axioms);
    run_subgraphs(*step->module, with, top_level_graphs(*step->module));
    compare(graphs.front(), step->graph(), with, &step->step.inputs, proof);
    proof.step = step->module;
    return proof;
  }
};

Prover::Prover(const Module& before, const ProofOptions& options, std::vector<Claim> claims, const PhasesOf& phases)
    : state_(std::make_unique<State>()) {
  state_->options = options;
  for (Claim& claim : claims) {
    if (numerics_of(claim.rule) <= options.numerics) {
      state_->claims.push_back(std::move(claim));
    } else {
      state_->refused.push_back(std::string(name_of(claim.rule)) + ": its class of numerics, " +
                                std::string(name_of(numerics_of(claim.rule))) + ", is not allowed");
    }
  }
  state_->axioms.keeps_results = options.recorded_apart;
  state_->axioms.draws_by_name = options.allow_dead_draws;
  state_->axioms.key_bits = options.key_bits;
  state_->num_refused = state_->refused.size();
  if (options.as_step) {
    state_->add_step(before);
  } else {
    state_->before = &before;
    state_->run = std::make_unique<ModuleRun>(before, state_->axioms);
    state_->run_before(before, *state_->run, {}, phases);
  }
  state_->axioms.is_open = false;
}

Prover::~Prover() = default;

void allow(ProofOptions& options, const Module& module, const Certificate& certificate) {
  for (const ProofAllowance& item : kProofAllowances) {
    const bool is_allowed =
        std::ranges::any_of(certificate.allowed, [&](StringId word) { return module.text(word) == item.word; });
    if (is_allowed) options.*item.option = true;
  }
}

bool Prover::is_named_alike(const Module& module, const PhasesOf& phases) const {
  return std::ranges::all_of(state_->graphs, [&](const State::Known& known) {
    const StringId name = module.strings.find(known.name);
    const GraphId graph = name.is_valid() ? module.find_graph(name) : GraphId();
    return graph.is_valid() && is_differentiated(module.graph(graph), phases) == known.is_differentiated;
  });
}

ModuleName Prover::name() const {
  ModuleName out;
  std::vector<uint64_t> words;
  for (const State::Known& known : state_->graphs) {
    add_key(words, hash_text(known.name));
    words.push_back(known.is_differentiated ? 1 : 0);
    add_key(words, known.key);
    out.recorded_views += known.recorded_views;
    out.storage_id_views += known.storage_id_views;
  }
  const Hash128 key = make_key(words);
  for (const uint64_t word : {key.high, key.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) out.text += "0123456789abcdef"[word >> shift & 15U];
  }
  return out;
}

// Rewrite rules use the rank of the file.
static bool same_rank(const Module& a, const Module& b) {
  const RankContext before = a.rank.value_or(RankContext()), after = b.rank.value_or(RankContext());
  return before.rank == after.rank && before.world_size == after.world_size;
}

ModuleProof Prover::prove(const Module& after, const std::vector<bool>& is_known) {
  if (state_->options.as_step) return state_->prove_step(after);
  std::unique_ptr<ModuleRun> other;
  if (&after != state_->before) other = std::make_unique<ModuleRun>(after, state_->axioms);
  ModuleRun& run = other != nullptr ? *other : *state_->run;
  const std::vector<GraphId> tops = state_->tops_of(after);
  const bool is_rerun = state_->run_subgraphs(after, run, tops, other == nullptr ? is_known : std::vector<bool>());
  ModuleProof proof;
  proof.refused_claims = state_->refused;
  if (!same_rank(*state_->before, after)) {
    proof.answer = ProofAnswer::kDiffers;
    proof.differences.push_back({StringId(), "the rank or world size recorded in the file", NodeId()});
  }
  std::vector<bool> is_met(tops.size(), false);
  for (State::Known& known : state_->graphs) {
    const auto found =
        std::ranges::find_if(tops, [&](GraphId id) { return after.text(after.graph(id).name()) == known.name; });
    if (found == tops.end()) {
      proof.answer = ProofAnswer::kDiffers;
      proof.differences.push_back({StringId(), "graph @" + known.name + " is missing", NodeId()});
      proof.has_other_graphs = true;
      continue;
    }
    is_met[static_cast<size_t>(found - tops.begin())] = true;
    if (!is_rerun && is_known[found->index()]) continue;
    state_->compare(known, after.graph(*found), run, nullptr, proof);
  }
  for (size_t i = 0; i < tops.size(); ++i) {
    if (is_met[i]) continue;
    proof.answer = ProofAnswer::kDiffers;
    proof.differences.push_back({after.graph(tops[i]).name(), "the graph is new", NodeId()});
    proof.has_other_graphs = true;
  }
  return proof;
}

}  // namespace fxopt
