#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/ops/bind.h"

namespace fxopt {

// The family of a kernel. Kernels of one family share a loop over their operands, which is written
// once for all devices.
enum class KernelFamily : uint8_t {
  kPointwise,  // computes an element of the result from one element of each operand
  kCopy,       // moves or converts elements
  kFill,       // writes one number, or a sequence of numbers
  kReduction,  // reduces dimensions
  kRow,        // softmax and norms, with statistics over the last dimensions
  kLoss,
  kContraction,  // multiplies matrices
  kGather,       // reads rows of a tensor by index
  kScatter,      // adds rows to a tensor by index
  kRandom,
};
std::string_view family_name(KernelFamily family);

// The rule for the dtype of the first result.
enum class Promotion : uint8_t {
  kFirst,    // the dtype of the first input
  kPromote,  // the promoted dtype of all inputs
  kReal,     // the promoted dtype, or the default real dtype for integers and bools
  kBool,
  // The argument `dtype` if given. Otherwise int64 for integers and bools, and the promoted dtype
  // for other types.
  kAccumulate,
  kOption,  // the argument `dtype` if given, otherwise the promoted dtype of `inputs`
};
std::string_view promotion_name(Promotion promotion);

// Returns the dtype, sizes and strides of each result, like PyTorch's kernel of the operator.
// Returns nullopt if an argument is unknown. O(rank * operands).
using ResultRule = std::optional<std::vector<TensorShape>> (*)(const StepCall& call);

// A row of the kernel table, which describes one operator for all devices. A new operator needs a
// row, a kernel body, and a new or existing ResultRule.
struct KernelRow {
  std::string_view name;  // "aten.mm.default"
  KernelFamily family;
  std::string_view body;  // the name of the kernel body
  Promotion promotion;
  std::string_view inputs;  // schema names of the arguments whose elements the kernel reads
  // Schema names of the arguments whose values become FxCall::params. `bind` may add params.
  std::string_view params;
  BindRule bind;  // converts a call of the operator to a call of the kernel
  // The factor k in the error bound of each element: |rounding error| <= k * eps * S. eps is the
  // machine epsilon of the result's dtype, and S is the value of the formula `scale`.
  double k;
  // The factor S in the error bound k * eps * S, as a formula for an element of the first result,
  // such as "|tanh x|". Empty if the operator does not round.
  std::string_view scale;
  ResultRule rule;
  std::string_view read_in;  // files of ATen from which the semantics are taken
};

// Returns the kernel table: all rows, sorted by the operator's name. O(1).
std::span<const KernelRow> op_rows();
// Returns the operator's row in the kernel table, or nullptr if the table does not have the
// operator. O(log rows).
const KernelRow* find_op_row(std::string_view name);

}  // namespace fxopt
