#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "ir/io/safetensors.h"
#include "runtime/plan/evaluate.h"
#include "runtime/run/host_memory.h"

namespace fxopt {

// How inputs without a given value are made up. The numbers are counter-based, so that other
// programs can reproduce them; see runtime/README.md, "Inputs".
enum class Fill : uint8_t { kNone, kRandom, kRamp, kZeros, kOnes };
std::optional<Fill> fill_by_name(std::string_view name);

// Returns the names of a step's input: the model's, its node's in its own graph, and its node's in
// the step ("F0.x"). The last two are equal for a step of one graph. Names that do not exist are
// empty. O(1).
std::array<std::string_view, 3> names_of(const FxPlan& plan, uint64_t input);
// Returns the first of these names that exists: it is stable when the step is cut into graphs.
std::string_view input_key(const FxPlan& plan, uint64_t input);

// A tensor or a number for one input.
struct GivenInput {
  const SafetensorsTensor* tensor = nullptr;
  std::optional<ScalarValue> number;
  std::string from;  // for messages: "batch.safetensors"
};

struct InputOptions {
  // By any of an input's names.
  std::map<std::string, GivenInput, std::less<>> given;
  Fill fill = Fill::kNone;
  uint64_t seed = 0;
  ScalarValues::SymbolOf symbols;  // values of sizes that no given input determines
};

// Values of a step's symbols, and the memory of its inputs.
class StepInputs {
 public:
  // Every input is checked before anything is copied: dtype, number of dimensions, sizes, and the
  // range of each symbol. Two inputs that give a symbol different values are an error. Tensors that
  // no step writes, and that have the plan's layout, are used in place; others are copied. Errors:
  // kBadInput, kUnknownSize, kOutOfMemory.
  static Result<std::unique_ptr<StepInputs>> bind(const FxPlan& plan, const InputOptions& options);

  const ScalarValues& values() const { return values_; }
  // By storage, for ExecuteOptions.
  const std::vector<void*>& given() const { return given_; }
  // Restores inputs that steps have written. O(bytes written).
  void restore();
  size_t num_made_up() const { return made_up_; }
  int64_t copied_bytes() const { return copied_; }

 private:
  friend class InputBinder;

  explicit StepInputs(const FxPlan& plan) : values_(plan) {}

  ScalarValues values_;
  std::vector<void*> given_;
  std::vector<HostBlock> blocks_;
  struct Written {
    std::byte* data;
    std::vector<std::byte> before;
  };
  std::vector<Written> written_;
  size_t made_up_ = 0;
  int64_t copied_ = 0;
};

// Returns for each storage the smallest number of rows among the tables that its elements index:
// ids must be below it. INT64_MAX if they index none. Follows copies that preserve numbers.
// O(words).
std::vector<int64_t> index_bounds(const FxPlan& plan, const ScalarValues& values);

}  // namespace fxopt
