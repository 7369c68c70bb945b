#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "core/hash_table.h"
#include "ir/alias/dependence.h"
#include "ir/alias/effect_map.h"
#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/step/autograd.h"
#include "ir/step/phases.h"

// Analyses of graphs, computed once for all passes and reports.

namespace fxopt {

// The number of times each analysis was computed.
struct FactCounts {
  size_t effects = 0;
  size_t storages = 0;
  size_t dependences = 0;
  size_t phases = 0;
  size_t modes = 0;
  size_t autograd = 0;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("effects", self.effects);
    field("storages", self.storages);
    field("dependences", self.dependences);
    field("phases", self.phases);
    field("modes", self.modes);
    field("autograd", self.autograd);
  }
};

// Analyses of one graph, each computed on first use and kept until forget(). References to results
// are valid until then, so a pass that changes the graph may still read the state before.
class Facts {
 public:
  // All three arguments are kept by reference.
  Facts(const Graph& graph, SubgraphEffects& subgraphs, FactCounts& counts)
      : graph_(&graph), subgraphs_(&subgraphs), counts_(&counts) {}
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  const Graph& graph() const { return *graph_; }
  EffectMap& effects();
  const StorageMap& storages();
  const DependenceMap& dependences();
  // As resolve_phases(): inferred if nothing is marked.
  const PhaseMap& phases();
  const ModeMap& modes();
  // As may_be_differentiated() of autograd.h.
  bool is_differentiated();

  // Discards all results: the graph has changed.
  void forget();

 private:
  const Graph* graph_;
  SubgraphEffects* subgraphs_;
  FactCounts* counts_;
  std::optional<EffectMap> effects_;
  std::optional<StorageMap> storages_;
  std::optional<DependenceMap> dependences_;
  std::optional<PhaseMap> phases_;
  std::optional<ModeMap> modes_;
  std::optional<bool> is_differentiated_;
};

// The facts of the graphs of one module. The effects of graphs that nodes run are computed once for
// all.
class ModuleFacts {
 public:
  explicit ModuleFacts(const Module& module) : subgraphs_(module) {}
  ModuleFacts(const ModuleFacts&) = delete;
  ModuleFacts& operator=(const ModuleFacts&) = delete;

  // The facts of a graph of the module. O(1).
  Facts& of(const Graph& graph);
  // Discards all facts: any graph may have been changed, added or removed. References to Facts are
  // valid until then.
  void forget();
  const FactCounts& counts() const { return counts_; }

 private:
  SubgraphEffects subgraphs_;
  FactCounts counts_;
  HashMap<GraphId, std::unique_ptr<Facts>> facts_;
};

}  // namespace fxopt
