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

// Who has a kernel of an operator.
enum class KernelProvider : uint8_t {
  kOwn,      // fxopt: it has a row
  kPyTorch,  // PyTorch registers one for the device of the call
  kNone,
};
std::string_view provider_name(KernelProvider provider);

// What can be done about an operator without a row.
enum class Remedy : uint8_t {
  kNothing,      // it has a row
  kDecompose,    // trace with the decomposition that PyTorch has
  kPyTorch,      // PyTorch's kernel
  kOtherDevice,  // PyTorch has a kernel for another device
  kTraceBody,    // an operator of another library: trace its Python function instead
  kAttention,    // attention that only compilers have kernels for
  kGraphs,       // runs graphs, which the plan holds
  kRanks,        // exchanges with other ranks
  kRow,          // none of these
};
inline constexpr size_t kNumRemedies = static_cast<size_t>(Remedy::kRow) + 1;
// What a list calls the remedy, and how it is done, one line without a full stop; empty for kNothing.
std::string_view remedy_name(Remedy remedy);
std::string_view remedy_hint(Remedy remedy);

// Calls of one operator in a plan and in the graphs that it runs.
struct OpCoverage {
  std::string_view name;
  const KernelRow* row = nullptr;
  KernelProvider provider = KernelProvider::kNone;
  Remedy remedy = Remedy::kNothing;
  size_t calls = 0;
  const FxPlan* plan = nullptr;  // of the first call
  uint32_t step = 0;
};

// The operators that steps of the plan call, by name; host arithmetic, waits and assertions need no kernel and are left out. Whether
// PyTorch has a kernel is what torchgen lists for the release that the op table was made with: for all dtypes, and for what the
// first call runs on. `plan` must stay. O(steps log operators).
std::vector<OpCoverage> cover(const FxPlan& plan);

// A result whose recorded dtype, sizes or strides are not those of its row's rule.
struct RowDifference {
  const FxPlan* plan = nullptr;
  uint32_t step = 0;
  uint32_t result = 0;
  std::optional<TensorShape> rule;  // absent: by the rule there is no such result
  std::optional<TensorShape> recorded;
  bool is_chosen = false;  // the operator's layout is its own choice: the record is held to
};

struct RowCheck {
  std::vector<RowDifference> differences;
  size_t checked = 0;                          // results
  std::map<std::string_view, size_t> unknown;  // by operator: results that the rule, or the record, does not know
  size_t num_unknown() const;
};

// Compares what rows say of the plan's results with what is recorded, running nothing. `symbols`: values that stand before the
// file's hints. O(steps).
RowCheck check_rows(const FxPlan& plan, const ScalarValues::SymbolOf& symbols = no_symbol_value);

// "f32[2, 16](16, 1)".
std::string shape_text(const TensorShape& shape);

}  // namespace fxopt
