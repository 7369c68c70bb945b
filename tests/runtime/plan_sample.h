#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "runtime/abi/plan.h"

namespace fxopt {

// A plan whose arrays a test may change, and a placement of the plan. The plan is built by hand,
// without code of the planner.
struct PlanSample {
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
  std::vector<FxString> strings;
  std::vector<std::unique_ptr<PlanSample>> graphs;
  std::vector<const FxPlan*> graph_views;  // view() fills an empty list
  FxPlan plan{};                           // version, size and name; view() fills the arrays

  std::vector<FxBlock> blocks, workspaces;
  std::vector<uint16_t> streams, kernels;
  std::vector<FxEvent> events;
  FxPlacement placement{};

  PlanSample();

  // These functions return the index of the new entry.
  uint32_t add_string(const char* text);
  uint32_t add_storage(uint8_t source, int64_t bytes, uint32_t first, uint32_t last);
  // Adds a contiguous float32 tensor.
  uint32_t add_tensor(uint32_t storage, const std::vector<FxWord>& sizes);
  uint32_t add_words(const std::vector<FxWord>& added);
  uint32_t add_indices(const std::vector<uint32_t>& added);
  uint32_t add_step(uint8_t kind, const std::vector<FxWord>& args, const std::vector<FxWord>& results,
                    const std::vector<uint32_t>& frees = {});
  FxWord add_list(const std::vector<FxWord>& items);
  uint32_t add_scalar(uint8_t source, uint32_t ready);
  void add_input(FxWord value);
  void add_output(FxWord value, uint32_t is_input = FX_NONE);

  void set_args(uint32_t step, const std::vector<FxWord>& args);
  void set_results(uint32_t step, const std::vector<FxWord>& results);
  void set_writes(uint32_t step, const std::vector<uint32_t>& storages);
  void set_frees(uint32_t step, const std::vector<uint32_t>& storages);
  void set_after(uint32_t step, const std::vector<uint32_t>& earlier);

  const FxPlan& view();
  const FxPlacement& place();
};

FxWord word_of(FxWordKind kind, uint64_t payload);
FxWord int_word(int64_t value);
FxWord tensor_word(uint32_t index);
FxWord scalar_word(uint32_t index);

// Returns a plan with two streams, a collective and its wait, an in-place write, lists, scalars of
// every source, and a called graph:
//
//   0 kernel      x -> a
//   1 collective  a -> b                              stream 1
//   2 kernel      x -> c
//   3 wait        b
//   4 kernel      [b, [c, size]], key=[] -> d         writes c
//   5 kernel      d -> late[found]
//   6 call        late, graph 0 -> e
//   7 collective  e -> e, written                     stream 1
//   8 wait        e
//
// Outputs: d, x, found, [e].
PlanSample small_sample();
struct Small {
  static constexpr uint32_t kX = 0, kA = 1, kB = 2, kC = 3, kD = 4, kLate = 5, kE = 6;  // storages, and their tensors
  static constexpr uint32_t kSize = 0, kTwice = 1, kFound = 2, kFoundBytes = 3;         // scalars
};

// A plan with `steps` steps on two streams. Every tenth step is a collective. The other steps are
// kernels with lists of tensors. `steps` must be a multiple of 10.
PlanSample long_sample(uint32_t steps);

}  // namespace fxopt
