#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/plan.h"

namespace fxopt {

// Functions that decode and make words.
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
// Returns the name of a step's operator, such as "aten.mm.default".
inline std::string_view op_name(const FxPlan& plan, const FxStep& step) {
  return text_at(plan, plan.ops[step.op].name);
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
