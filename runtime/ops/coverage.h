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
  kOwn,      // fxopt's own kernel table has a row for the operator
  kPyTorch,  // PyTorch registers a kernel for the device of the call
  kNone,
};
std::string_view provider_name(KernelProvider provider);

// The remedy for an operator that is not in fxopt's own kernel table (op_rows()).
enum class Remedy : uint8_t {
  kNothing,      // the operator is in the table, so no remedy is needed
  kDecompose,    // trace with PyTorch's decomposition
  kPyTorch,      // use PyTorch's kernel
  kOtherDevice,  // PyTorch has a kernel for another device
  kTraceBody,    // the operator belongs to another library: trace its Python function instead
  kAttention,    // flex attention, which takes graphs as arguments: compilers generate its kernels
  kGraphs,       // the operator runs graphs (FxPlan::graphs) that it takes as arguments
  kRanks,        // the operator communicates with other ranks
  kRow,          // none of the above: add a row to the kernel table
};
inline constexpr size_t kNumRemedies = static_cast<size_t>(Remedy::kRow) + 1;
// remedy_name() returns a short name. remedy_hint() returns an instruction for the user, as one
// line without a full stop. Both return an empty string for kNothing.
std::string_view remedy_name(Remedy remedy);
std::string_view remedy_hint(Remedy remedy);

// All calls of one operator in a plan and in the graphs that the plan calls.
struct OpCoverage {
  std::string_view name;
  const KernelRow* row = nullptr;
  KernelProvider provider = KernelProvider::kNone;
  Remedy remedy = Remedy::kNothing;
  size_t calls = 0;
  // The first call: a step of `plan`.
  const FxPlan* plan = nullptr;
  uint32_t step = 0;
};

// Lists the operators that steps of the plan call, sorted by name. Host arithmetic, waits, stream
// operations and assertions are left out, because they need no kernel. `plan` must outlive the
// result. O(steps log operators).
//
// The provider kPyTorch means that PyTorch registers a kernel for the device of the operator's
// first call. If this device is CUDA, the kernel is a CUDA kernel. If the device is not CUDA, or is
// not recorded, the kernel is a CPU kernel. fxopt's operator table (ir/ops) records for each aten
// operator whether PyTorch registers a CPU kernel, and whether PyTorch registers a CUDA kernel. The
// table does not record the dtypes that a kernel supports. The table was made from one PyTorch
// release. The table's list of kernels comes from torchgen, PyTorch's code generator.
std::vector<OpCoverage> cover(const FxPlan& plan);

// A result whose recorded dtype, sizes or strides differ from those that the operator's rule
// (KernelRow::rule) computes.
struct RowDifference {
  const FxPlan* plan = nullptr;
  uint32_t step = 0;
  uint32_t result = 0;
  std::optional<TensorShape> rule;  // absent if the rule does not return this result
  std::optional<TensorShape> recorded;
  bool is_chosen = false;  // the operator may choose the result's layout, and plans keep the recorded layout
};

struct RowCheck {
  std::vector<RowDifference> differences;
  size_t checked = 0;  // number of results that were compared
  // For each operator, the number of results that were not compared, because the rule returns no
  // shape or the plan records none.
  std::map<std::string_view, size_t> unknown;
  size_t num_unknown() const;
};

// Compares the shapes that the operators' rules compute with the shapes that the plan records. No
// kernel runs. `symbols` returns values of symbols, which override the hints in the graph file.
// O(steps).
RowCheck check_rows(const FxPlan& plan, const ScalarValues::SymbolOf& symbols = no_symbol_value);

// Formats a shape with its sizes and strides, such as "f32[2, 16](1, 2)". Strides of a contiguous
// shape are omitted.
std::string shape_text(const TensorShape& shape);

}  // namespace fxopt
