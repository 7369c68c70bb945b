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

// The method that generates values for inputs for which the user gives no value. Random numbers are
// counter-based, so other programs can reproduce them. See runtime/README.md, "Inputs".
enum class Fill : uint8_t { kNone, kRandom, kRamp, kZeros, kOnes };
std::optional<Fill> fill_by_name(std::string_view name);

// Returns the three names under which a file may contain a training step's input. The first is the
// name in the model. The second is the name of the input's node in the original graph. The third is
// the name of the input's node in the step, such as "F0.x". The second and the third name are equal
// for a step of one graph. A name that does not exist is empty. O(1).
std::array<std::string_view, 3> names_of(const FxPlan& plan, uint64_t input);
// Returns the first name of names_of() that exists. This name does not change if the step is split
// into graphs.
std::string_view input_key(const FxPlan& plan, uint64_t input);

// The value that the user gives for one input: a tensor or a number.
struct GivenInput {
  const SafetensorsTensor* tensor = nullptr;
  std::optional<ScalarValue> number;
  std::string from;  // the name of the value's source, which messages show, such as "batch.safetensors"
};

struct InputOptions {
  // The values that the user gives for inputs. A key is one of an input's three names (names_of()).
  std::map<std::string, GivenInput, std::less<>> given;
  Fill fill = Fill::kNone;
  uint64_t seed = 0;
  ScalarValues::SymbolOf symbols;  // values of symbols that no given input determines
};

// The values of a training step's symbols, and the memory of the training step's inputs.
class StepInputs {
 public:
  // Checks the dtype, number of dimensions and sizes of every input, and the range of each symbol.
  // All checks come before the first copy. Two inputs that imply different values of a symbol are
  // an error. A given tensor is used without a copy only if it is aligned and has the plan's
  // layout, no step writes its storage, and no other input shares the storage. All other given
  // tensors are copied. Errors: kBadInput, kUnknownSize, kOutOfMemory.
  static Result<std::unique_ptr<StepInputs>> bind(const FxPlan& plan, const InputOptions& options);

  const ScalarValues& values() const { return values_; }
  // Returns pointers to the inputs' memory, indexed by storage, for use in ExecuteOptions.
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

// Storages may contain indices, such as token ids or class numbers. Returns a bound for each
// storage, and each element of the storage must be below its bound. The bound is the smallest size
// among the dimensions that the elements index. The bound is INT64_MAX if the elements index no
// dimension. The bound of a copy's result also applies to the operand of the copy. O(entries of
// FxPlan::words).
std::vector<int64_t> index_bounds(const FxPlan& plan, const ScalarValues& values);

}  // namespace fxopt
