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

// Analyses of graphs. Each analysis is computed once for all passes and reports.

namespace fxopt {

// How many times each analysis was computed.
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

// Analyses of one graph. Each analysis is computed on first use and kept until forget() is called.
// References to results are valid until that call. A pass that changes the graph can therefore
// still use the results that were computed before. Queries that read the graph itself, such as
// EffectMap::of(), see the changed graph.
class Facts {
 public:
  // The object keeps references to all three arguments.
  Facts(const Graph& graph, SubgraphEffects& subgraphs, FactCounts& counts)
      : graph_(&graph), subgraphs_(&subgraphs), counts_(&counts) {}
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  const Graph& graph() const { return *graph_; }
  EffectMap& effects();
  const StorageMap& storages();
  const DependenceMap& dependences();
  // The result of resolve_phases(). The phases are inferred if no node is marked.
  const PhaseMap& phases();
  const ModeMap& modes();
  // The result of may_be_differentiated() in autograd.h.
  bool is_differentiated();

  // Discards all results. Must be called after the graph has changed.
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

// The facts about all graphs of one module. The effects of subgraphs are computed once for all
// graphs of the module.
class ModuleFacts {
 public:
  explicit ModuleFacts(const Module& module) : subgraphs_(module) {}
  ModuleFacts(const ModuleFacts&) = delete;
  ModuleFacts& operator=(const ModuleFacts&) = delete;

  // Returns the facts about a graph of the module. O(1).
  Facts& of(const Graph& graph);
  // Discards all facts. Must be called after any graph was changed, added or removed. References to
  // Facts are valid until this call.
  void forget();
  const FactCounts& counts() const { return counts_; }

 private:
  SubgraphEffects subgraphs_;
  FactCounts counts_;
  HashMap<GraphId, std::unique_ptr<Facts>> facts_;
};

}  // namespace fxopt
