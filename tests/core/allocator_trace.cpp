#include "tests/core/allocator_trace.h"

#include <algorithm>

#include "tests/units.h"

namespace fxopt {
namespace {

class Chooser {
 public:
  explicit Chooser(std::mt19937_64& random) : random_(random) {}

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  int64_t one_of(const std::vector<int64_t>& values) {
    return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))];
  }

 private:
  std::mt19937_64& random_;
};

void choose_divisions(Chooser& choose, AllocatorConfig& config) {
  if (choose.chance(50)) {
    config.roundup_power2_divisions.fill(choose.one_of({1, 2, 4, 8, 16, 1024}));
    return;
  }
  for (int64_t& divisions : config.roundup_power2_divisions) divisions = choose.one_of({0, 1, 2, 4, 8});
}

AllocatorConfig choose_config(Chooser& choose) {
  AllocatorConfig config;
  if (choose.chance(35)) config.large_segment_bytes = choose.one_of({11, 12, 16, 32, 40}) * kMiB;
  config.max_non_split_rounding_bytes = config.large_segment_bytes;
  if (choose.chance(30)) {
    config.max_split_bytes = config.large_segment_bytes + choose.one_of({0, 1, 3, 10, 30}) * kMiB;
    config.max_non_split_rounding_bytes += choose.one_of({0, 0, 1, 20}) * kMiB;
  }
  if (choose.chance(30)) {
    config.memory_fraction = static_cast<double>(choose.one_of({25, 50, 75, 90, 99, 100})) / 100;
    if (choose.chance(70)) {
      config.garbage_collection_threshold = static_cast<double>(choose.one_of({10, 30, 50, 80, 95})) / 100;
    }
  }
  config.expandable_segments = choose.chance(40);
  if (choose.chance(30)) choose_divisions(choose, config);
  return config;
}

int64_t choose_size(Chooser& choose, const AllocatorConfig& config) {
  const int64_t near = choose.one_of({-513, -512, -511, -1, 0, 1, 511, 512, 513});
  const int64_t kind = choose.below(11);
  if (kind == 0) return 1 + choose.below(4096);
  if (kind == 1) return std::max<int64_t>(0, 512 * (1 + choose.below(8)) + near);
  if (kind == 2) return kMiB + near;
  if (kind == 3) return kMiB + choose.below(9 * kMiB);
  if (kind == 4) return 10 * kMiB + near;
  if (kind == 5) return 10 * kMiB + choose.below(50 * kMiB);
  if (kind == 6) return (1 + choose.below(40)) * kMiB;
  if (kind == 7) return config.large_segment_bytes + near - choose.one_of({0, 1, 2}) * kMiB;
  if (kind == 9) return choose.one_of({3, 5, 7}) << choose.below(24);
  if (kind == 10) return 1 + choose.below(kMiB);
  if (config.max_split_bytes == AllocatorConfig::kUnlimited) return 20 * kMiB + near;
  const int64_t around = choose.one_of({0, 0, 1, -2}) * kMiB;
  return config.max_split_bytes + near + around + (choose.chance(30) ? config.max_non_split_rounding_bytes : 0);
}

}  // namespace

TracePlan plan_trace(std::mt19937_64& random) {
  Chooser choose(random);
  TracePlan plan;
  plan.config = choose_config(choose);
  plan.device_bytes = choose.one_of({48, 100, 200, 400, 1000, 81920}) * kMiB + choose.one_of({0, 0, 12345});
  plan.streams = 1 + choose.below(3);
  plan.steps = 20 + choose.below(80);
  plan.pool_changes = choose.one_of({0, 20, 40, 150});
  const int64_t sizes = 2 + choose.below(7);
  for (int64_t i = 0; i < sizes; ++i) plan.sizes.push_back(choose_size(choose, plan.config));
  if (choose.chance(2)) plan.sizes.push_back(kMiB << 40);  // 1 EiB: larger requests are refused early
  // On each request beyond a range of an expandable segment, PyTorch leaks a range of addresses and
  // nothing else.
  const int64_t most = plan.config.expandable_segments ? plan.device_bytes / 2 : kMiB << 40;
  for (int64_t& size : plan.sizes) size = std::clamp<int64_t>(size, 1, most);
  return plan;
}

uint64_t fold_statistics(uint64_t seed, const AllocatorStatistics& statistics) {
  for_each(statistics, [&seed](const Statistic& one) {
    for (const int64_t number : {one.current, one.peak, one.allocated, one.freed}) {
      seed = hash_combine(seed, static_cast<uint64_t>(number));
    }
  });
  for (const int64_t number : {statistics.num_alloc_retries, statistics.num_ooms, statistics.num_sync_all_streams,
                               statistics.num_device_alloc, statistics.num_device_free}) {
    seed = hash_combine(seed, static_cast<uint64_t>(number));
  }
  return seed;
}

std::string first_difference(const AllocatorStatistics& ours, const AllocatorStatistics& theirs) {
  static constexpr const char* kNames[] = {"allocation",      "segment",        "active",       "inactive_split",
                                           "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
                                           "requested_bytes"};
  std::vector<Statistic> all;
  for_each(theirs, [&all](const Statistic& statistic) { all.push_back(statistic); });
  std::string text;
  size_t at = 0;
  for_each(ours, [&](const Statistic& statistic) {
    const Statistic& other = all[at];
    if (text.empty() && !(statistic == other)) {
      text = at < 27 ? std::string(kNames[at / 3]) + "[" + std::to_string(at % 3) + "]" : "oversize";
      for (const Statistic* one : {&statistic, &other}) {
        text += one == &other ? ", model" : " differs:";
        text += " current " + std::to_string(one->current) + " peak " + std::to_string(one->peak) + " allocated " +
                std::to_string(one->allocated) + " freed " + std::to_string(one->freed);
      }
    }
    ++at;
  });
  const auto compare = [&text](const char* name, int64_t one, int64_t other) {
    if (text.empty() && one != other) {
      text = std::string(name) + " differs: " + std::to_string(one) + ", model " + std::to_string(other);
    }
  };
  compare("num_alloc_retries", ours.num_alloc_retries, theirs.num_alloc_retries);
  compare("num_ooms", ours.num_ooms, theirs.num_ooms);
  compare("num_sync_all_streams", ours.num_sync_all_streams, theirs.num_sync_all_streams);
  compare("num_device_alloc", ours.num_device_alloc, theirs.num_device_alloc);
  compare("num_device_free", ours.num_device_free, theirs.num_device_free);
  return text;
}

}  // namespace fxopt
