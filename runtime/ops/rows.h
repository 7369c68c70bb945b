#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/ops/bind.h"

namespace fxopt {

// How a kernel loops over its operands: each family is one loop, written once for all devices.
enum class KernelFamily : uint8_t {
  kPointwise,  // one element of the result from one element of each operand
  kCopy,       // elements moved, or converted
  kFill,       // a number, or a run of numbers
  kReduction,  // over dimensions
  kRow,        // softmax and norms: over the last dimensions, with statistics
  kLoss,
  kContraction,  // products of matrices
  kGather,       // by index
  kScatter,      // added by index
  kRandom,
};
std::string_view family_name(KernelFamily family);

// The dtype of the first result.
enum class Promotion : uint8_t {
  kFirst,    // the common type of all inputs
  kPromote,  // the common type of all
  kReal,     // the common type, or the default real type for integers and bools
  kBool,
  kAccumulate,  // int64 for integers and bools, unless `dtype` is given
  kOption,      // `dtype` if given, else the promoted type of `inputs`
};
std::string_view promotion_name(Promotion promotion);

// Returns dtype, sizes and strides of each result of PyTorch's kernel of the operator. Returns
// nullopt if an argument is unknown. O(rank * operands).
using ResultRule = std::optional<std::vector<TensorShape>> (*)(const StepCall& call);

// One operator's description for all devices. A new operator needs a row, a rule (new or existing),
// and a body.
struct KernelRow {
  std::string_view name;  // "aten.mm.default"
  KernelFamily family;
  std::string_view body;  // the kernels' body
  Promotion promotion;
  std::string_view inputs;  // the arguments whose elements the kernel reads, by schema name
  std::string_view params;  // the numbers passed to the kernel, by schema name; binders add others
  BindRule bind;            // turns a call of the operator into a call of the body
  // |error| <= k * eps * S in exact mode against exact arithmetic, with the eps of the result's
  // dtype
  double k;
  // S of the bound above, by element of the first result; empty: no rounding
  std::string_view scale;
  ResultRule rule;
  std::string_view read_in;  // source of its semantics: files of ATen
};

// All rows, by name. O(1).
std::span<const KernelRow> op_rows();
// Returns the row of an operator, or nullptr if it has none. O(log rows).
const KernelRow* find_op_row(std::string_view name);

}  // namespace fxopt
