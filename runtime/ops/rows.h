#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/ops/bind.h"

namespace fxopt {

// The loop of a kernel over its operands. Each family is one loop, written once for all devices.
enum class KernelFamily : uint8_t {
  kPointwise,  // computes an element of the result from one element of each operand
  kCopy,       // moves or converts elements
  kFill,       // writes one number, or a sequence of numbers
  kReduction,  // reduces dimensions
  kRow,        // softmax and norms, with statistics over the last dimensions
  kLoss,
  kContraction,  // multiplies matrices
  kGather,       // reads rows by index
  kScatter,      // adds rows by index
  kRandom,
};
std::string_view family_name(KernelFamily family);

// The rule for the dtype of the first result.
enum class Promotion : uint8_t {
  kFirst,    // the dtype of the first input
  kPromote,  // the promoted dtype of all inputs
  kReal,     // the promoted dtype, or the default real dtype for integers and bools
  kBool,
  // `dtype` if given; otherwise int64 for integers and bools, and the promoted dtype for other
  // types.
  kAccumulate,
  kOption,  // `dtype` if given, and otherwise the promoted dtype of `inputs`
};
std::string_view promotion_name(Promotion promotion);

// Returns the dtype, sizes and strides of each result, like PyTorch's kernel of the operator.
// Returns nullopt if an argument is unknown. O(rank * operands).
using ResultRule = std::optional<std::vector<TensorShape>> (*)(const StepCall& call);

// The description of one operator for all devices. A new operator needs a row, a body, and a new or
// existing rule.
struct KernelRow {
  std::string_view name;  // "aten.mm.default"
  KernelFamily family;
  std::string_view body;  // the name of the kernel body
  Promotion promotion;
  std::string_view inputs;  // schema names of the arguments whose elements the kernel reads
  std::string_view params;  // schema names of numbers for the kernel; binders may add numbers
  BindRule bind;            // turns a call of the operator into a call of the body
  // In exact mode, the difference from exact arithmetic is at most k * eps * S. eps is the machine
  // epsilon of the result's dtype.
  double k;
  // The factor S in the bound that `k` describes, for each element of the first result. Empty if
  // the operator does not round.
  std::string_view scale;
  ResultRule rule;
  std::string_view read_in;  // files of ATen from which the semantics are taken
};

// Returns all rows, sorted by name. O(1).
std::span<const KernelRow> op_rows();
// Returns the row of an operator, or nullptr if the operator has no row. O(log rows).
const KernelRow* find_op_row(std::string_view name);

}  // namespace fxopt
