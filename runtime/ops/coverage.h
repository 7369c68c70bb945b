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
  kOwn,      // fxopt has a row for the operator
  kPyTorch,  // PyTorch registers a kernel for the device of the call
  kNone,
};
std::string_view provider_name(KernelProvider provider);

// The remedy for an operator without a row.
enum class Remedy : uint8_t {
  kNothing,      // the operator has a row, so no remedy is needed
  kDecompose,    // trace with PyTorch's decomposition
  kPyTorch,      // use PyTorch's kernel
  kOtherDevice,  // PyTorch has a kernel for another device
  kTraceBody,    // the operator belongs to another library: trace its Python function instead
  kAttention,    // attention for which only compilers have kernels
  kGraphs,       // the operator runs graphs, and the plan contains these graphs
  kRanks,        // the operator communicates with other ranks
  kRow,          // none of the above: add a row to fxopt
};
inline constexpr size_t kNumRemedies = static_cast<size_t>(Remedy::kRow) + 1;
// remedy_name() returns the name of a remedy in lists. remedy_hint() returns the instruction of the
// remedy, as one line without a full stop. Both return an empty string for kNothing.
std::string_view remedy_name(Remedy remedy);
std::string_view remedy_hint(Remedy remedy);

// All calls of one operator in a plan and in the graphs that the plan runs.
struct OpCoverage {
  std::string_view name;
  const KernelRow* row = nullptr;
  KernelProvider provider = KernelProvider::kNone;
  Remedy remedy = Remedy::kNothing;
  size_t calls = 0;
  const FxPlan* plan = nullptr;  // plan of the first call
  uint32_t step = 0;
};

// Lists the operators that steps of the plan call, sorted by name. Host arithmetic, waits, stream
// operations and assertions are left out, because they need no kernel. torchgen's list of kernels
// determines whether PyTorch provides a kernel for the device of the first call. The list is that
// of the op table's PyTorch release and does not distinguish dtypes. `plan` must outlive the
// result. O(steps log operators).
std::vector<OpCoverage> cover(const FxPlan& plan);

// A result whose recorded dtype, sizes or strides differ from the result of the row's rule.
struct RowDifference {
  const FxPlan* plan = nullptr;
  uint32_t step = 0;
  uint32_t result = 0;
  std::optional<TensorShape> rule;  // absent if the rule does not have this result
  std::optional<TensorShape> recorded;
  bool is_chosen = false;  // the operator may choose its layout, and plans keep the recorded one
};

struct RowCheck {
  std::vector<RowDifference> differences;
  size_t checked = 0;  // number of results that were compared
  // For each operator, the number of results that the rule or the plan does not provide.
  std::map<std::string_view, size_t> unknown;
  size_t num_unknown() const;
};

// Compares the results of the rows' rules with the results that the plan records. No step is run.
// `symbols` returns values that override the file's hints. O(steps).
RowCheck check_rows(const FxPlan& plan, const ScalarValues::SymbolOf& symbols = no_symbol_value);

// Formats a shape with its sizes and strides, such as "f32[2, 16](1, 2)". Strides of a contiguous
// shape are omitted.
std::string shape_text(const TensorShape& shape);

}  // namespace fxopt
