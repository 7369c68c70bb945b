#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/abi/kernel.h"
#include "runtime/ops/call.h"

namespace fxopt {

struct KernelRow;

// Returns the address of a storage's first byte, or null for a storage without bytes.
using AddressOf = std::function<void*(uint32_t storage)>;

// A call of an operator in the form that a kernel takes. The views point into storages. A BoundCall
// has no pointer into the plan.
struct BoundCall {
  std::vector<FxView> views;  // results, then operands
  uint32_t num_results = 0;
  std::vector<FxNumber> params;
  FxCompute compute = FX_COMPUTE_FLOAT;

  // Returns the FxCall to pass to the kernel. The FxCall points into `views` and `params`, so it is
  // valid until this object changes. The word at `error` must be FX_NO_ERROR before the kernel
  // runs.
  FxCall call(void* workspace, FxDrawState draw, int64_t* error) const;
  uint32_t num_operands() const { return static_cast<uint32_t>(views.size()) - num_results; }
};

// A tensor that a call uses, with its memory.
struct Operand {
  TensorShape shape;
  void* data = nullptr;    // the element with all indices 0
  bool is_absent = false;  // true for None and for a result that is not requested
};

// Gives binders the arguments and results of a call, and the operator's row in the kernel table. A
// binder is a function of type BindRule.
class Binder {
 public:
  Binder(const StepCall& call, const KernelRow& row, const ScalarValues& values, const AddressOf& address,
         const void* drawn)
      : call_(call), row_(row), values_(values), address_(address), drawn_(drawn) {}

  const StepCall& call() const { return call_; }
  const KernelRow& row() const { return row_; }
  std::optional<Operand> result(uint32_t index) const;
  std::optional<Operand> tensor(std::string_view name) const;
  std::optional<Operand> of_word(FxWord word) const;
  const void* drawn() const { return drawn_; }

 private:
  const StepCall& call_;
  const KernelRow& row_;
  const ScalarValues& values_;
  const AddressOf& address_;
  const void* drawn_;
};

// A function that prepares a call of an operator for the operator's kernel. The returned BoundCall
// contains the views and numbers that the kernel takes. If the kernel does not support the call,
// the function returns nullopt and sets `why` to the reason.
using BindRule = std::optional<BoundCall> (*)(const Binder& binder, std::string& why);

// Converts step `step` of the plan to a call of a kernel. If `drawn` is not null, the call uses
// this row-major mask of bools instead of a random mask. Fails with kUnsupportedOp and the reason
// if fxopt has no kernel for the operator or does not support the call. O(operands * rank +
// arguments).
Result<BoundCall> bind_step(const FxPlan& plan, const ScalarValues& values, uint32_t step, const AddressOf& address,
                            const void* drawn = nullptr);

// The binders of the operators. The headers in ops/kernels document the views and numbers that each
// kernel takes.
namespace bindings {
std::optional<BoundCall> pointwise(const Binder& binder, std::string& why);
std::optional<BoundCall> dropout(const Binder& binder, std::string& why);
// Binds a call that copies its argument `self` to its result, such as aten.clone.
std::optional<BoundCall> copy(const Binder& binder, std::string& why);
// Binds aten.copy_, which copies its argument `src` to `self`. `src` is broadcast to the sizes of
// `self`.
std::optional<BoundCall> copy_into(const Binder& binder, std::string& why);
std::optional<BoundCall> cat(const Binder& binder, std::string& why);
std::optional<BoundCall> slice_backward(const Binder& binder, std::string& why);
std::optional<BoundCall> fill(const Binder& binder, std::string& why);
std::optional<BoundCall> iota(const Binder& binder, std::string& why);
std::optional<BoundCall> reduction(const Binder& binder, std::string& why);
std::optional<BoundCall> softmax(const Binder& binder, std::string& why);
std::optional<BoundCall> layer_norm(const Binder& binder, std::string& why);
std::optional<BoundCall> layer_norm_backward(const Binder& binder, std::string& why);
std::optional<BoundCall> product(const Binder& binder, std::string& why);
std::optional<BoundCall> gather_rows(const Binder& binder, std::string& why);
std::optional<BoundCall> add_rows(const Binder& binder, std::string& why);
std::optional<BoundCall> nll_loss(const Binder& binder, std::string& why);
std::optional<BoundCall> nll_loss_backward(const Binder& binder, std::string& why);
}  // namespace bindings

}  // namespace fxopt
