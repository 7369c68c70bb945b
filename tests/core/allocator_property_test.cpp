// Runs the allocator on random traces and compares it with a model of its rules and with PyTorch's
// own.

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "core/allocator/caching_allocator.h"
#include "tests/catch.h"
#include "tests/core/allocator_case.h"
#include "tests/core/allocator_trace.h"
#include "tests/count.h"

namespace fxopt {
namespace {

// FXOPT_RANDOM_TRACES sets the number of traces for long runs. The number of a trace determines it.
uint64_t number_of_traces(uint64_t otherwise) { return count_given("FXOPT_RANDOM_TRACES", otherwise); }

TEST_CASE("allocator: agrees with a second model on random traces", "[property]") {
  struct Feature {
    const char* name;
    uint64_t traces;
  };
  std::array<Feature, 7> seen{{{"expandable segments", 0},
                               {"a request failed", 0},
                               {"a request was tried again", 0},
                               {"memory was given back", 0},
                               {"blocks waited for streams", 0},
                               {"oversize blocks", 0},
                               {"garbage is collected", 0}}};
  const uint64_t count = number_of_traces(10000);
  for (uint64_t seed = 0; seed < count; ++seed) {
    Duel<CachingAllocator> duel(seed);
    const std::string why = duel.run();
    if (!why.empty()) FAIL("seed " << seed << ":\n" << why);
    const AllocatorStatistics& reached = duel.reached();
    const std::array<bool, 7> has{duel.config().expandable_segments,
                                  reached.num_ooms > 0,
                                  reached.num_alloc_retries > 0,
                                  reached.num_device_free > 0,
                                  reached.active[0].peak > reached.allocation[0].peak,
                                  reached.oversize_segments.peak > 0,
                                  duel.config().garbage_collection_threshold > 0};
    for (size_t i = 0; i < has.size(); ++i) seen[i].traces += has[i] ? 1 : 0;
  }
  for (const Feature& feature : seen) {
    std::printf("%-26s in %5.1f %% of %llu traces\n", feature.name,
                100.0 * static_cast<double>(feature.traces) / static_cast<double>(count),
                static_cast<unsigned long long>(count));
    CHECK(feature.traces * 50 >= count);
  }
}

TEST_CASE("allocator: does what PyTorch's own did on recorded traces", "[property]") {
  const std::vector<std::optional<uint64_t>> recorded = recorded_digests();
  REQUIRE(recorded.size() == 2000);
  REQUIRE(std::count(recorded.begin(), recorded.end(), std::nullopt) <= 4);
  for (uint64_t seed = 0; seed < recorded.size(); ++seed) {
    if (!recorded[seed].has_value()) continue;
    Duel<CachingAllocator> duel(seed);
    INFO("seed " << seed << ":\n" << duel.run());
    REQUIRE(duel.digest() == *recorded[seed]);
  }
}

}  // namespace
}  // namespace fxopt
