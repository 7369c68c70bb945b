// Invariants of the three forms on random modules: reading restores the written content, and
// writing is deterministic.

#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/count.h"
#include "tests/must.h"
#include "tests/parts.h"
#include "tests/property/random_module.h"

namespace fxopt {
namespace {

// FXOPT_RANDOM_GRAPHS sets the number of modules for long runs. The number of a module determines
// it.
uint64_t number_of_modules() { return count_given("FXOPT_RANDOM_GRAPHS", 10000); }

std::string pb_of(const Module& module) { return must(print_pb(module)); }

std::string through(const std::string& pb, Format format) {
  std::string printed = must(print_module(*must(parse_pb(pb, "original.pb")), format));
  std::unique_ptr<Module> again = must(parse_module(printed, format, "printed"));
  std::string twice = must(print_module(*again, format));
  if (twice != printed) FAIL("printing what was read gives other text");
  return pb_of(*again);
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
