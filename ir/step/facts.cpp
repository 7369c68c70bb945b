#include "ir/step/facts.h"

namespace fxopt {

EffectMap& Facts::effects() {
  if (!effects_.has_value()) {
    effects_.emplace(*graph_, *subgraphs_);
    ++counts_->effects;
  }
  return *effects_;
}

const StorageMap& Facts::storages() {
  if (!storages_.has_value()) {
    storages_.emplace(*graph_, effects());
    ++counts_->storages;
  }
  return *storages_;
}

const DependenceMap& Facts::dependences() {
  if (!dependences_.has_value()) {
    dependences_.emplace(*graph_, effects(), storages());
    ++counts_->dependences;
  }
  return *dependences_;
}

const PhaseMap& Facts::phases() {
  if (!phases_.has_value()) {
    phases_ = resolve_phases(*graph_, [this]() -> const StorageMap& { return storages(); });
    ++counts_->phases;
  }
  return *phases_;
}

const ModeMap& Facts::modes() {
  if (!modes_.has_value()) {
    modes_.emplace(*graph_);
    ++counts_->modes;
  }
  return *modes_;
}

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
