#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ops/call.h"
#include "runtime/ops/rows.h"

namespace fxopt {

// The provider of an operator's kernel.
enum class KernelProvider : uint8_t {
  kOwn,      // fxopt has a row for it
  kPyTorch,  // PyTorch registers one for the device of the call
  kNone,
};
std::string_view provider_name(KernelProvider provider);

// The remedy for an operator without a row.
enum class Remedy : uint8_t {
  kNothing,      // it has a row
  kDecompose,    // trace with PyTorch's decomposition
  kPyTorch,      // PyTorch's kernel
  kOtherDevice,  // PyTorch has a kernel for another device
  kTraceBody,    // an operator of another library: trace its Python function instead
  kAttention,    // attention that only compilers have kernels for
  kGraphs,       // runs graphs, which the plan holds
  kRanks,        // communicates with other ranks
  kRow,          // none of these
};
inline constexpr size_t kNumRemedies = static_cast<size_t>(Remedy::kRow) + 1;
// Returns the remedy's name in lists, and its instruction: one line without a full stop, empty for
// kNothing.
std::string_view remedy_name(Remedy remedy);
std::string_view remedy_hint(Remedy remedy);

// The calls of one operator in a plan and in the graphs that it runs.
struct OpCoverage {
  std::string_view name;
  const KernelRow* row = nullptr;
  KernelProvider provider = KernelProvider::kNone;
  Remedy remedy = Remedy::kNothing;
  size_t calls = 0;
  const FxPlan* plan = nullptr;  // plan of the first call
  uint32_t step = 0;
};

// Lists the operators that steps of the plan call, by name. Host arithmetic, waits and assertions
// need no kernel and are left out. PyTorch's kernels are those that torchgen lists for the release
// of the op table: for all dtypes, and for the device of the first call. `plan` must outlive the
// result. O(steps log operators).
std::vector<OpCoverage> cover(const FxPlan& plan);

// A result whose recorded dtype, sizes or strides differ from its row's rule.
struct RowDifference {
  const FxPlan* plan = nullptr;
  uint32_t step = 0;
  uint32_t result = 0;
  std::optional<TensorShape> rule;  // absent: the rule has no such result
  std::optional<TensorShape> recorded;
  bool is_chosen = false;  // the operator's layout is its own choice: the record is held to
};

struct RowCheck {
  std::vector<RowDifference> differences;
  size_t checked = 0;  // results
  // by operator: results unknown to the rule or the record
  std::map<std::string_view, size_t> unknown;
  size_t num_unknown() const;
};

// Compares the rows' rules with the plan's recorded results, without running anything. `symbols`:
// values that override the file's hints. O(steps).
RowCheck check_rows(const FxPlan& plan, const ScalarValues::SymbolOf& symbols = no_symbol_value);

// "f32[2, 16](16, 1)".
std::string shape_text(const TensorShape& shape);

}  // namespace fxopt
