#include "runtime/run/compare.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "ir/values/values.h"
#include "runtime/ops/kernels/dtype.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/walk.h"

namespace fxopt {
namespace {

// Bits of the mantissa, including the leading one, and the exponent of the smallest normal number.
struct Precision {
  int digits, min_exponent;
};
Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return {24, -126};
    case DType::kFloat16:
      return {11, -14};
    case DType::kBfloat16:
      return {8, -126};
    default:
      return {53, -1022};
  }
}

// Returns the distance between neighbouring numbers at x.
double unit_at(DType dtype, double x) {
  const Precision precision = precision_of(dtype);
  const int exponent =
      x == 0 || !std::isfinite(x) ? precision.min_exponent : std::max(std::ilogb(x), precision.min_exponent);
  return std::ldexp(1.0, exponent - precision.digits + 1);
}

std::optional<double> real_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

bool both_nan(double a, double b) { return std::isnan(a) && std::isnan(b); }

}  // namespace

Result<Tolerance> parse_tolerance(std::string_view text) {
  Tolerance tolerance;
  if (text == "auto") return tolerance;
  tolerance.kind = Tolerance::Kind::kBitwise;
  if (text == "bitwise") return tolerance;
  const Error error{ErrorCode::kBadOptionValue,
                    "'" + std::string(text) + "' is not a tolerance",
                    "give bitwise, auto, RTOL,ATOL (for example 1e-5,1e-8) or ulp:N",
                    {}};
  if (text.starts_with("ulp:")) {
    tolerance.kind = Tolerance::Kind::kUlp;
    const std::optional<double> ulps = real_of(text.substr(4));
    if (!ulps.has_value() || *ulps < 0 || *ulps > 1e15 || *ulps != std::floor(*ulps)) return error;
    tolerance.ulps = static_cast<int64_t>(*ulps);
    return tolerance;
  }
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) return error;
  const std::optional<double> relative = real_of(text.substr(0, comma)), absolute = real_of(text.substr(comma + 1));
  if (!relative.has_value() || !absolute.has_value() || !(*relative >= 0) || !(*absolute >= 0)) return error;
  tolerance.kind = Tolerance::Kind::kClose;
  tolerance.relative = *relative;
  tolerance.absolute = *absolute;
  return tolerance;
}

std::vector<double> as_doubles(DType dtype, std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / static_cast<size_t>(element_size(dtype)));
  // Bytes from a file may be unaligned.
  std::vector<uint64_t> aligned((bytes.size() + 7) / 8);
  if (!bytes.empty()) std::memcpy(aligned.data(), bytes.data(), bytes.size());
  kernels::load_run(static_cast<uint8_t>(dtype), aligned.data(), 0, 1, static_cast<int64_t>(values.size()),
                    values.data());
  return values;
}

Comparison compare(DType dtype, std::span<const std::byte> ours, std::span<const std::byte> expected,
                   std::span<const double> reference, const Tolerance& tolerance) {
  const std::vector<double> a = as_doubles(dtype, ours), b = as_doubles(dtype, expected);
  const size_t size = static_cast<size_t>(element_size(dtype));
  Comparison result;
  result.elements = a.size();
  double largest = 0, distance = 0;
  const bool is_auto = tolerance.kind == Tolerance::Kind::kAuto && is_floating(dtype) && reference.size() == a.size();
  for (size_t i = 0; i < a.size() && is_auto; ++i) {
    if (!std::isfinite(reference[i])) continue;
    largest = std::max(largest, std::fabs(reference[i]));
    if (std::isfinite(a[i])) distance = std::max(distance, std::fabs(a[i] - reference[i]));
  }
  const double allowed = 4 * distance + unit_at(dtype, largest);
  const auto is_close = [&](size_t i, bool same_bits) {
    if (same_bits) return true;
    if (tolerance.kind == Tolerance::Kind::kBitwise) return false;
    if (both_nan(a[i], b[i]) || a[i] == b[i]) return true;
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return false;
    if (tolerance.kind == Tolerance::Kind::kClose)
      return std::fabs(a[i] - b[i]) <= tolerance.absolute + tolerance.relative * std::fabs(b[i]);
    if (!is_floating(dtype))
      return tolerance.kind == Tolerance::Kind::kUlp && std::fabs(a[i] - b[i]) <= static_cast<double>(tolerance.ulps);
    if (tolerance.kind == Tolerance::Kind::kUlp)
      return std::fabs(a[i] - b[i]) <=
             static_cast<double>(tolerance.ulps) * std::min(unit_at(dtype, a[i]), unit_at(dtype, b[i]));
    return is_auto && std::fabs(b[i] - reference[i]) <= allowed;
  };
  double worst = -1;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same_bits = std::memcmp(ours.data() + i * size, expected.data() + i * size, size) == 0;
    if (!same_bits) ++result.differing;
    if (!std::isfinite(a[i]) && std::isfinite(b[i])) ++result.not_finite;
    if (is_close(i, same_bits)) continue;
    ++result.over;
    const double error =
        std::isfinite(a[i]) && std::isfinite(b[i]) ? std::fabs(a[i] - b[i]) : std::numeric_limits<double>::infinity();
    if (error <= worst) continue;
    worst = error;
    result.worst = i;
    result.ours = a[i];
    result.expected = b[i];
    if (i < reference.size()) result.reference = reference[i];
  }
  result.passes = result.over == 0;
  return result;
}

namespace {

// Sets of compared values, as bits.
using Set = std::vector<uint64_t>;

void join(Set& into, const Set& other) {
  for (size_t i = 0; i < other.size(); ++i) into[i] |= other[i];
}

}  // namespace

std::vector<uint32_t> suspects(const FxPlan& plan, const std::vector<Compared>& compared) {
  const size_t words = compared.size() / 64 + 1;
  // by storage: the compared values that depend on the storage's current contents
  std::vector<Set> read_by(plan.num_storages, Set(words, 0));
  std::vector<std::vector<size_t>> at_step(plan.num_steps);
  Set wrong(words, 0);
  for (size_t i = 0; i < compared.size(); ++i) {
    const uint64_t bit = uint64_t{1} << (i % 64);
    if (compared[i].differs) wrong[i / 64] |= bit;
    if (compared[i].step != FX_NONE) at_step[compared[i].step].push_back(i);
    if (compared[i].output == FX_NONE) continue;
    if_storage(plan, plan.outputs[compared[i].output].value,
               [&](uint32_t storage) { read_by[storage][i / 64] |= bit; });
  }
  std::vector<std::pair<size_t, uint32_t>> found;  // number of agreeing values, and the step
  for (uint32_t s = static_cast<uint32_t>(plan.num_steps); s-- > 0;) {
    const FxStep& step = plan.steps[s];
    Set reached(words, 0);
    const auto look = [&](uint32_t storage) { join(reached, read_by[storage]); };
    for (uint32_t i = 0; i < step.num_results; ++i) if_storage(plan, plan.words[step.results + i], look);
    for (uint32_t i = 0; i < step.num_writes; ++i) look(plan.indices[step.writes + i]);
    for (const size_t i : at_step[s]) reached[i / 64] |= uint64_t{1} << (i % 64);
    size_t agreeing = 0;
    bool explains = true;
    for (size_t i = 0; i < words; ++i) {
      explains = explains && (reached[i] & wrong[i]) == wrong[i];
      agreeing += static_cast<size_t>(std::popcount(reached[i] & ~wrong[i]));
    }
    if (explains) found.emplace_back(agreeing, s);
    for_each_argument(plan, step, [&](FxWord word) {
      if_storage(plan, word, [&](uint32_t storage) { join(read_by[storage], reached); });
    });
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<uint32_t> steps;
  for (const auto& [agreeing, step] : found) steps.push_back(step);
  return steps;
}

}  // namespace fxopt
