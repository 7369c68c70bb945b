#pragma once

#include <cstdint>

#include "runtime/abi/plan.h"
#include "runtime/plan/plan.h"

namespace fxopt {

// Calls visit(word) for a word that is not a list. For a list, calls visit() for each element.
// Lists may be nested to any depth. O(words of the list and of its nested lists).
template <class Visit>
void for_each_leaf(const FxPlan& plan, FxWord word, const Visit& visit) {
  if (kind_of(word) != FX_WORD_LIST) {
    visit(word);
    return;
  }
  for (const FxWord item : items_of(plan, word)) for_each_leaf(plan, item, visit);
}

// Calls visit(FxWord) for each positional argument of a step, then for each keyword value. For a
// list, calls visit() for each element.
template <class Visit>
void for_each_argument(const FxPlan& plan, const FxStep& step, const Visit& visit) {
  for (uint32_t i = 0; i < step.num_args; ++i) for_each_leaf(plan, plan.words[step.args + i], visit);
  for (uint32_t i = 0; i < step.num_keywords; ++i) for_each_leaf(plan, plan.words[step.keywords + 2 * i + 1], visit);
}

// Calls visit(uint32_t storage) if the word is a tensor with a storage.
template <class Visit>
void if_storage(const FxPlan& plan, FxWord word, const Visit& visit) {
  if (kind_of(word) != FX_WORD_TENSOR) return;
  const uint32_t storage = plan.tensors[index_of(word)].storage;
  if (storage != FX_NONE) visit(storage);
}

// Calls visit(uint32_t storage) for each storage that a step reads, writes or makes. A storage may
// be visited several times.
template <class Visit>
void for_each_storage(const FxPlan& plan, const FxStep& step, const Visit& visit) {
  for_each_argument(plan, step, [&](FxWord word) { if_storage(plan, word, visit); });
  for (uint32_t i = 0; i < step.num_results; ++i) if_storage(plan, plan.words[step.results + i], visit);
  for (uint32_t i = 0; i < step.num_writes; ++i) visit(plan.indices[step.writes + i]);
}

// Returns the device of a step, as an index into the plan's strings. The result is the device of
// the first storage that has a recorded device. Storages of results are examined first, then
// storages of arguments, then storages that the step writes. Returns FX_NONE if no storage has a
// recorded device. O(words in the arguments and results of the step).
inline uint32_t device_of(const FxPlan& plan, const FxStep& step) {
  uint32_t device = FX_NONE;
  const auto see = [&](uint32_t storage) {
    if (device == FX_NONE) device = plan.storages[storage].device;
  };
  for (uint32_t i = 0; i < step.num_results; ++i) if_storage(plan, plan.words[step.results + i], see);
  for_each_storage(plan, step, see);
  return device;
}

}  // namespace fxopt
