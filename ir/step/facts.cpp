#include "ir/step/facts.h"

#include <utility>

namespace fxopt {

// Computes a fact on its first use.
template <class Fact, class... Args>
static Fact& first_use(std::optional<Fact>& fact, size_t& count, Args&&... args) {
  if (!fact.has_value()) {
    fact.emplace(std::forward<Args>(args)...);
    ++count;
  }
  return *fact;
}

EffectMap& Facts::effects() { return first_use(effects_, counts_->effects, *graph_, *subgraphs_); }

const StorageMap& Facts::storages() { return first_use(storages_, counts_->storages, *graph_, effects()); }

const DependenceMap& Facts::dependences() {
  return first_use(dependences_, counts_->dependences, *graph_, effects(), storages());
}

const PhaseMap& Facts::phases() {
  if (!phases_.has_value()) {
    phases_ = resolve_phases(*graph_, [this]() -> const StorageMap& { return storages(); });
    ++counts_->phases;
  }
  return *phases_;
}

const ModeMap& Facts::modes() { return first_use(modes_, counts_->modes, *graph_); }

bool Facts::is_differentiated() {
  if (!is_differentiated_.has_value()) {
    is_differentiated_ = may_be_differentiated(*graph_, [this]() -> const PhaseMap& { return phases(); });
    ++counts_->autograd;
  }
  return *is_differentiated_;
}

void Facts::forget() {
  is_differentiated_.reset();
  modes_.reset();
  phases_.reset();
  dependences_.reset();
  storages_.reset();
  effects_.reset();
}

Facts& ModuleFacts::of(const Graph& graph) {
  std::unique_ptr<Facts>& facts = facts_[graph.id()];
  if (facts == nullptr) facts = std::make_unique<Facts>(graph, subgraphs_, counts_);
  return *facts;
}

void ModuleFacts::forget() {
  facts_.clear();
  subgraphs_.forget();
}

}  // namespace fxopt
