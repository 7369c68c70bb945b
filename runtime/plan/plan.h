#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/plan.h"

namespace fxopt {

// Functions that decode and make words (FxWord).
inline FxWordKind kind_of(FxWord word) { return static_cast<FxWordKind>(word & 0xFF); }
inline uint32_t index_of(FxWord word) { return static_cast<uint32_t>(word >> 8); }
inline int64_t small_int_of(FxWord word) { return static_cast<int64_t>(word) >> 8; }
inline FxWord make_word(FxWordKind kind, uint64_t payload) { return (payload << 8) | static_cast<uint64_t>(kind); }
inline constexpr FxWord kNoWord = 0;

// Returns the string with this index. Returns an empty string for FX_NONE and for other invalid
// indices.
inline std::string_view text_at(const FxPlan& plan, uint32_t index) {
  if (index >= plan.num_strings) return {};
  return {plan.strings[index].data, plan.strings[index].size};
}
// Returns true if a step makes the storage.
inline bool is_made(const FxStorage& storage) {
  return storage.source == FX_SOURCE_PLANNED || storage.source == FX_SOURCE_LATE;
}
// Returns true if the step starts a collective or a message. A later wait step ends it, if the plan
// has one.
inline bool is_exchange(const FxStep& step) { return step.kind == FX_STEP_COLLECTIVE || step.kind == FX_STEP_MESSAGE; }
// Returns the name of a step's operator, such as "aten.mm.default".
inline std::string_view op_name(const FxPlan& plan, const FxStep& step) {
  return text_at(plan, plan.ops[step.op].name);
}

// Returns the elements of a list.
inline std::span<const FxWord> items_of(const FxPlan& plan, FxWord list) {
  const FxWord* count = plan.words + index_of(list);
  return {count + 1, static_cast<size_t>(small_int_of(*count))};
}

// The arrays to which an FxPlan points. The maker of a plan fills these arrays, and then passes the
// result of view() to users.
class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  std::vector<FxStep> steps;
  std::vector<FxStorage> storages;
  std::vector<FxTensor> tensors;
  std::vector<FxWord> words;
  std::vector<uint32_t> indices;
  std::vector<int64_t> numbers;
  std::vector<FxScalar> scalars;
  std::vector<FxCode> code;
  std::vector<FxInput> inputs;
  std::vector<FxOutput> outputs;
  std::vector<FxDraw> draws;
  std::vector<FxGroup> groups;
  std::vector<FxOp> ops;
  std::vector<FxNode> nodes;
  std::vector<std::unique_ptr<Plan>> graphs;  // graphs that steps call
  uint64_t hash = 0;
  uint32_t name = FX_NONE;

  // Adds a string and returns its index. O(length).
  uint32_t add_string(std::string_view text);
  std::string_view text(uint32_t index) const;  // returns an empty string for FX_NONE

  // Returns a number as a word. O(1).
  FxWord number(int64_t value);
  FxWord real(double value);

  // For each array except strings and graphs, calls visit() with three arguments: the vector in
  // this object, the pointer in `view`, and the number of entries in `view`. `View` is FxPlan,
  // const or not.
  template <class View, class Visit>
  void for_each_array(View& view, const Visit& visit) {
    visit(steps, view.steps, view.num_steps);
    visit(storages, view.storages, view.num_storages);
    visit(tensors, view.tensors, view.num_tensors);
    visit(words, view.words, view.num_words);
    visit(indices, view.indices, view.num_indices);
    visit(numbers, view.numbers, view.num_numbers);
    visit(scalars, view.scalars, view.num_scalars);
    visit(code, view.code, view.num_code);
    visit(inputs, view.inputs, view.num_inputs);
    visit(outputs, view.outputs, view.num_outputs);
    visit(draws, view.draws, view.num_draws);
    visit(groups, view.groups, view.num_groups);
    visit(ops, view.ops, view.num_ops);
    visit(nodes, view.nodes, view.num_nodes);
  }

  // Returns the current arrays. The view is valid until the plan changes. O(strings).
  const FxPlan& view();

 private:
  struct Slice {
    uint64_t first = 0;
    uint64_t size = 0;
  };

  std::string text_;  // all strings, concatenated
  std::vector<Slice> slices_;
  std::vector<FxString> strings_;
  std::vector<const FxPlan*> graph_views_;
  FxPlan view_{};
};

}  // namespace fxopt
