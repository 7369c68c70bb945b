#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/ops/bind.h"

namespace fxopt {

// How a kernel walks over its operands: each family is one loop, written once for all devices.
enum class KernelFamily : uint8_t {
  kPointwise,  // one element of the result from one of each operand
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
  kFirst,    // that of the first tensor
  kPromote,  // the common type of all
  kReal,     // that, and the default real type for integers and bools
  kBool,
  kAccumulate,  // int64 for integers and bools, unless `dtype` says
  kOption,      // what `dtype` says, else the promoted type of `inputs`
};
std::string_view promotion_name(Promotion promotion);

// The results that PyTorch's kernel of the operator would make: dtype, sizes and strides each. Nothing where an argument is not
// known. O(rank * operands).
using ResultRule = std::optional<std::vector<TensorShape>> (*)(const StepCall& call);

// What all devices know of one operator: a new one is a row, a rule or one that exists, and a body.
struct KernelRow {
  std::string_view name;  // "aten.mm.default"
  KernelFamily family;
  std::string_view body;  // of the kernels
  Promotion promotion;
  std::string_view inputs;  // the arguments that the kernel reads elements of, by schema name
  std::string_view params;  // the numbers that it is given, by schema name; binders add others
  BindRule bind;            // how a call of the operator becomes one of the body
  double k;  // |error| <= k * eps * S in exact mode against exact arithmetic, eps that of the result's dtype ...
  std::string_view scale;  // ... where S is this, by element of the first result; empty: no rounding
  ResultRule rule;
  std::string_view read_in;  // where its semantics were read: files of ATen
};

// All rows, by name. O(1).
std::span<const KernelRow> op_rows();
// The row of an operator; nullptr where it has none. O(log rows).
const KernelRow* find_op_row(std::string_view name);

}  // namespace fxopt
