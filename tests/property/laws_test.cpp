// Invariants of the three forms on random modules: reading restores the written content, and
// writing is deterministic.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/parts.h"
#include "tests/property/random_module.h"

namespace fxopt {
namespace {

// FXOPT_RANDOM_GRAPHS sets the number of modules for long runs. The number of a module determines
// it.
uint64_t number_of_modules() {
  const char* text = std::getenv("FXOPT_RANDOM_GRAPHS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 10000;
}

std::string pb_of(const Module& module) {
  Result<std::string> bytes = print_pb(module);
  if (!bytes.ok()) FAIL(format_error(bytes.error()));
  return std::move(*bytes);
}

std::string through(const std::string& pb, Format format) {
  Result<std::unique_ptr<Module>> module = parse_pb(pb, "original.pb");
  if (!module.ok()) FAIL(format_error(module.error()));
  Result<std::string> printed = print_module(**module, format);
  if (!printed.ok()) FAIL(format_error(printed.error()));
  Result<std::unique_ptr<Module>> again = parse_module(*printed, format, "printed");
  if (!again.ok()) FAIL(format_error(again.error()));
  Result<std::string> twice = print_module(**again, format);
  if (!twice.ok()) FAIL(format_error(twice.error()));
  if (*twice != *printed) FAIL("printing what was read gives other text");
  return pb_of(**again);
}

void survive_every_form(uint64_t part, uint64_t parts) {
  std::array<uint64_t, kNumFeatures> seen{};
  const uint64_t first = number_of_modules() * part / parts, last = number_of_modules() * (part + 1) / parts;
  const uint64_t count = last - first;
  for (uint64_t seed = first; seed < last; ++seed) {
    INFO("seed " << seed);
    const RandomModule random = random_module(seed);
    for (size_t i = 0; i < kNumFeatures; ++i) seen[i] += random.has[i] ? 1 : 0;
    const std::string pb = pb_of(*random.module);
    if (pb != pb_of(*random.module)) FAIL("two saves differ, seed " << seed);
    for (const Format format : {Format::kPb, Format::kText, Format::kJson}) {
      if (through(pb, format) != pb) FAIL("seed " << seed << " changes through form " << static_cast<int>(format));
    }
  }
  for (size_t i = 0; i < kNumFeatures; ++i) {
    std::printf("%-16s in %5.1f %% of %llu modules\n", std::string(feature_name(static_cast<Feature>(i))).c_str(),
                100.0 * static_cast<double>(seen[i]) / static_cast<double>(count),
                static_cast<unsigned long long>(count));
    CHECK(seen[i] * 20 >= count);
  }
}

FXOPT_TEST_IN_PARTS(survive_every_form, "laws: random modules survive every form unchanged", "[property]");

}  // namespace
}  // namespace fxopt
