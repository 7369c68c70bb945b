#include "runtime/ops/promote.h"

#include <algorithm>

#include "ir/values/values.h"

namespace fxopt {
namespace {

enum class Category { kBool, kInteger, kReal, kComplex };

bool is_complex(DType dtype) {
  return dtype == DType::kComplex32 || dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

// DType lists uint8, int8, int16, int32 and int64 in this order.
bool is_integer(DType dtype) { return dtype >= DType::kUint8 && dtype <= DType::kInt64; }

std::optional<Category> category_of(DType dtype) {
  if (dtype == DType::kBool) return Category::kBool;
  if (is_integer(dtype)) return Category::kInteger;
  if (is_floating(dtype)) return Category::kReal;
  return is_complex(dtype) ? std::optional(Category::kComplex) : std::nullopt;
}

DType real_part(DType dtype) {
  if (dtype == DType::kComplex32) return DType::kFloat16;
  if (dtype == DType::kComplex64) return DType::kFloat32;
  return dtype == DType::kComplex128 ? DType::kFloat64 : dtype;
}

DType complex_of(DType real) {
  if (real == DType::kFloat64) return DType::kComplex128;
  return real == DType::kFloat16 ? DType::kComplex32 : DType::kComplex64;
}

DType promote_reals(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::kFloat64 || b == DType::kFloat64) return DType::kFloat64;
  return DType::kFloat32;  // also for float16 with bfloat16
}

DType promote_integers(DType a, DType b) {
  const DType wider = std::max(a, b);
  return a != b && wider == DType::kInt8 ? DType::kInt16 : wider;
}

// A complex type keeps its precision with an integer, and takes the wider precision with a real.
DType promote_complex(DType a, DType b) {
  const bool has_two_reals = category_of(a) >= Category::kReal && category_of(b) >= Category::kReal;
  if (has_two_reals) return complex_of(promote_reals(real_part(a), real_part(b)));
  return is_complex(a) ? a : b;
}

void merge(std::optional<DType>& into, DType dtype, bool& is_known) {
  if (!into.has_value()) {
    into = dtype;
    return;
  }
  const std::optional<DType> both = promote_types(*into, dtype);
  is_known = is_known && both.has_value();
  if (both.has_value()) into = both;
}

}  // namespace

std::optional<DType> promote_types(DType a, DType b) {
  if (a == b) return a;
  const std::optional<Category> first = category_of(a), second = category_of(b);
  if (!first.has_value() || !second.has_value()) return std::nullopt;
  const Category higher = std::max(*first, *second);
  if (higher == Category::kComplex) return promote_complex(a, b);
  if (*first != *second) return *first == higher ? a : b;
  return higher == Category::kReal ? promote_reals(a, b) : promote_integers(a, b);
}

void ResultType::add_tensor(DType dtype, bool has_dims) { merge(has_dims ? dims : zero_dims, dtype, is_known); }

void ResultType::add_number(DType dtype) { merge(numbers, dtype, is_known); }

std::optional<DType> ResultType::get(DType default_real) const {
  std::optional<DType> number = numbers;
  if (number == DType::kFloat64) number = default_real;
  if (number == DType::kComplex128) number = complex_of(default_real);
  std::optional<DType> result = dims;
  for (const std::optional<DType>& next : {zero_dims, number}) {
    if (!next.has_value()) continue;
    if (!result.has_value()) {
      result = next;
      continue;
    }
    const std::optional<Category> own = category_of(*result), other = category_of(*next);
    if (own.has_value() && other.has_value() && *other > *own) result = promote_types(*result, *next);
  }
  return is_known ? result : std::nullopt;
}

}  // namespace fxopt
