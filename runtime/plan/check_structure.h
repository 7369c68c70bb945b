#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/plan/check.h"

namespace fxopt::plan_check {

// Functions that decode words (FxWord). The checker does not use the functions of plan.h, because
// it must not share code with the planner.
inline uint64_t word_kind(FxWord word) { return word & 0xFF; }
inline uint64_t word_index(FxWord word) { return word >> 8; }

// Returns the integer of a word of the kind FX_WORD_INT or FX_WORD_NUMBER. Returns nullopt for
// words of all other kinds. The word must be valid.
inline std::optional<int64_t> word_number(const FxPlan& plan, FxWord word) {
  if (word_kind(word) == FX_WORD_INT) return static_cast<int64_t>(word) >> 8;
  if (word_kind(word) == FX_WORD_NUMBER) return plan.numbers[word_index(word)];
  return std::nullopt;
}

// Returns true if both indices refer to the same device. Strings with different indices may have
// equal text, so the texts are compared. FX_NONE means that no device is recorded, and differs from
// every device.
inline bool is_same_device(const FxPlan& plan, uint32_t a, uint32_t b) {
  if (a == b) return true;
  if (a == FX_NONE || b == FX_NONE) return false;
  const FxString& left = plan.strings[a];
  const FxString& right = plan.strings[b];
  return std::string_view(left.data, left.size) == std::string_view(right.data, right.size);
}
inline bool is_made(const FxStorage& storage) {
  return storage.source == FX_SOURCE_PLANNED || storage.source == FX_SOURCE_LATE;
}
inline bool is_exchange(const FxStep& step) { return step.kind == FX_STEP_COLLECTIVE || step.kind == FX_STEP_MESSAGE; }

inline std::string named(const char* noun, uint64_t index) { return std::string(noun) + " " + std::to_string(index); }

enum class Part : uint8_t {
  kPlan,
  kStep,
  kStorage,
  kTensor,
  kScalar,
  kInput,
  kOutput,
  kDraw,
  kGroup,
  kOp,
  kNode,
  kString,
  kEvent
};

struct Subject {
  Part part = Part::kPlan;
  uint64_t index = 0;
};

inline Subject step_at(uint64_t index) { return {Part::kStep, index}; }
inline Subject storage_at(uint64_t index) { return {Part::kStorage, index}; }
inline Subject tensor_at(uint64_t index) { return {Part::kTensor, index}; }
inline Subject scalar_at(uint64_t index) { return {Part::kScalar, index}; }

// Returns text such as "step 4".
std::string text_of(Subject subject);

// The faults found so far, and the graph under check.
class FaultList {
 public:
  bool full() const { return faults_.size() >= kMaxPlanFaults; }
  size_t size() const { return faults_.size(); }

  // Adds a fault. Its text is `message` after the name of the subject, for example "step 4: ...".
  // `other` is a second part of the plan that the fault involves. If the list is full, nothing is
  // added.
  void add(PlanFaultKind kind, Subject subject, const std::string& message, Subject other = {});

  void enter(uint32_t graph) { graphs_.push_back(graph); }
  void leave() { graphs_.pop_back(); }
  std::vector<PlanFault> take() { return std::move(faults_); }

 private:
  std::vector<PlanFault> faults_;
  std::vector<uint32_t> graphs_;
};

// Facts about a plan whose indices are valid. The rules in check.cpp and check_placement.cpp use
// these facts.
struct PlanFacts {
  // The tensors and scalars that step s takes as arguments and keyword values. If one of these is a
  // list, the elements of the list and of its nested lists count as arguments. For the tensors,
  // entries [tensor_begin[s], tensor_begin[s + 1]) of arg_tensors are indices into FxPlan::tensors.
  // In the same way, scalar_begin and arg_scalars list indices into FxPlan::scalars. A scalar that
  // selects a process group of the step (FxGroup::choice) is also listed.
  std::vector<size_t> tensor_begin, scalar_begin;
  std::vector<uint32_t> arg_tensors, arg_scalars;
  // Each pair is an output and one of its tensors, or an output and one of its scalars. If an
  // output is a list, each tensor or scalar in the list and in its nested lists has a pair.
  std::vector<std::pair<uint32_t, uint32_t>> output_tensors, output_scalars;
  // For each tensor, the number of steps after which its sizes, strides and offset are known.
  std::vector<uint32_t> tensor_ready;

  // check_structure() leaves these members empty, and check_graphs() fills them.
  std::vector<uint32_t> maker;  // by storage: the step that makes the storage, or FX_NONE
  // For each step s: the last step that waits for the collective or message that s starts, or
  // FX_NONE.
  std::vector<uint32_t> last_wait;
};

// Checks that every index, word, enumerator, list and scalar code is valid. Fills all members of
// `facts` except `maker` and `last_wait`. Returns false if there is a fault.
bool check_structure(const FxPlan& plan, FaultList& faults, PlanFacts& facts);

// The level of a plan determines the legal values of FxSource. kTop is a plan that no other plan
// calls. kCalled is a graph that a plan calls. kAny allows the sources of both levels.
enum class Level : uint8_t { kTop, kCalled, kAny };

// Checks all rules of one plan and of the graphs it calls. Returns false if there is a fault.
bool check_graphs(const FxPlan& plan, Level level, FaultList& faults, PlanFacts& facts);

enum class Access : uint8_t { kRead, kWrite, kMake, kAlias };

// Calls see(storage, access) for each storage that step `index` accesses. A storage may be passed
// more than once. A storage that the step writes is never passed with kRead. kAlias means that a
// result of the step uses a storage that the step did not make. `written` is scratch space with one
// entry for each storage. All entries must be FX_NONE, and all entries are FX_NONE again when
// for_each_access() returns.
template <class See>
void for_each_access(const FxPlan& plan, const PlanFacts& facts, uint32_t index, std::vector<uint32_t>& written,
                     const See& see) {
  const FxStep& step = plan.steps[index];
  if (step.kind == FX_STEP_STREAM) return;
  for (uint32_t i = 0; i < step.num_writes; ++i) {
    const uint32_t storage = plan.indices[step.writes + i];
    written[storage] = index;
    see(storage, Access::kWrite);
  }
  for (size_t i = facts.tensor_begin[index]; i < facts.tensor_begin[index + 1]; ++i) {
    const uint32_t storage = plan.tensors[facts.arg_tensors[i]].storage;
    if (storage != FX_NONE && written[storage] != index) see(storage, Access::kRead);
  }
  for (uint32_t i = 0; i < step.num_results; ++i) {
    const FxWord word = plan.words[step.results + i];
    if (word_kind(word) != FX_WORD_TENSOR) continue;
    const uint32_t storage = plan.tensors[word_index(word)].storage;
    if (storage == FX_NONE || written[storage] == index) continue;
    see(storage, facts.maker[storage] == index ? Access::kMake : Access::kAlias);
  }
  for (uint32_t i = 0; i < step.num_writes; ++i) written[plan.indices[step.writes + i]] = FX_NONE;
}

}  // namespace fxopt::plan_check
