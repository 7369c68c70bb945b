// Changes planted in the allocator's rules: the cases or the random traces must notice each one.
// The tested allocator is a copy that contains all changes; plant.cpp generates it when the tests
// are built.

#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/core/allocator_case.h"
#include "tests/core/allocator_trace.h"
#include "tests/planted/caching_allocator.h"
#include "tests/planted/rule_names.h"

namespace fxopt {
namespace {

constexpr uint64_t kMaxTraces = 20000;

bool cases_notice(const std::vector<std::pair<std::string, std::string>>& cases) {
  for (const auto& [name, text] : cases) {
    try {
      if (!CaseRunner<planted::CachingAllocator>().run(text).empty()) return true;
    } catch (const std::exception&) {  // from a check: some changes end that way
      return true;
    }
  }
  return false;
}

// The number of the first trace on which the model notices the change; kMaxTraces if none does.
uint64_t first_trace_that_notices(uint64_t count) {
  for (uint64_t seed = 0; seed < count; ++seed) {
    if (!Duel<planted::CachingAllocator>(seed).run().empty()) return seed;
  }
  return kMaxTraces;
}

bool recorded_traces_notice(const std::vector<std::optional<uint64_t>>& recorded) {
  for (uint64_t seed = 0; seed < recorded.size(); ++seed) {
    Duel<planted::CachingAllocator> duel(seed);
    duel.run();
    if (recorded[seed].has_value() && duel.digest() != *recorded[seed]) return true;
  }
  return false;
}

TEST_CASE("allocator: changes planted in its rules are noticed", "[property]") {
  const auto cases = allocator_cases();
  planted::planted_rule = 0;
  REQUIRE_FALSE(cases_notice(cases));
  REQUIRE(first_trace_that_notices(500) == kMaxTraces);
  const std::vector<std::optional<uint64_t>> recorded = recorded_digests();

  const size_t count = std::size(kPlantedRules) - 1;
  REQUIRE(count >= 50);
  size_t by_cases = 0;
  size_t by_traces = 0, by_recorded = 0;
  uint64_t latest = 0;
  std::string unnoticed;
  for (size_t rule = 1; rule <= count; ++rule) {
    planted::planted_rule = rule;
    const bool cases_do = cases_notice(cases);
    const uint64_t trace = first_trace_that_notices(kMaxTraces);
    by_recorded += trace < recorded.size() && recorded_traces_notice(recorded) ? 1 : 0;
    by_cases += cases_do ? 1 : 0;
    by_traces += trace < kMaxTraces ? 1 : 0;
    if (trace < kMaxTraces) latest = std::max(latest, trace);
    if (!cases_do) std::printf("no case notices: %s\n", kPlantedRules[rule]);
    if (trace == kMaxTraces) std::printf("no trace notices: %s\n", kPlantedRules[rule]);
    if (!cases_do && trace == kMaxTraces) unnoticed += std::string(kPlantedRules[rule]) + "\n";
  }
  planted::planted_rule = 0;
  std::printf(
      "%zu planted changes: %zu noticed by cases, %zu by traces, the last by trace %llu; %zu by "
      "recorded traces\n",
      count, by_cases, by_traces, static_cast<unsigned long long>(latest), by_recorded);
  CHECK(by_recorded >= 50);
  CHECK(unnoticed == std::string());
}

}  // namespace
}  // namespace fxopt
