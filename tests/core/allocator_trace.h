#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/allocator/config.h"
#include "core/allocator/simulated_device.h"
#include "core/allocator/statistics.h"
#include "core/hash.h"
#include "tests/core/allocator_model.h"

namespace fxopt {

// The parameters of a random trace. The seed of the trace determines them.
struct TracePlan {
  AllocatorConfig config;
  int64_t device_bytes = 0;
  int64_t streams = 1;
  int64_t steps = 0;
  int64_t pool_changes = 0;    // per 1000 operations
  std::vector<int64_t> sizes;  // few sizes, so that many blocks have equal sizes
};

TracePlan plan_trace(std::mt19937_64& random);

// Returns the name of the first statistic that differs, with both values. Returns an empty text if
// all statistics are equal.
std::string first_difference(const AllocatorStatistics& ours, const AllocatorStatistics& theirs);

// Returns a hash of `seed` and all numbers of the statistics.
uint64_t fold_statistics(uint64_t seed, const AllocatorStatistics& statistics);

// Returns text in the form of the model's picture().
template <class Allocator>
std::string picture_of(const Allocator& allocator) {
  static constexpr const char* kStates[] = {" live\n", " waiting\n", " free\n"};
  std::string text;
  for (const auto& segment : allocator.snapshot()) {
    for (const auto& block : segment.blocks) {
      text += std::to_string(segment.address) + " " + std::to_string(block.address) + " " +
              std::to_string(block.bytes) + " " + std::to_string(block.requested_bytes) +
              kStates[static_cast<size_t>(block.state)];
    }
  }
  return text;
}

// Runs one random trace on an allocator and on the model, each with its own device. Compares
// addresses, every statistic and the device's free bytes after each operation, and all blocks at
// the end.
template <class Allocator, class Model = AllocatorModel>
class Duel {
 public:
  explicit Duel(uint64_t seed)
      : random_(seed),
        plan_(plan_trace(random_)),
        device_(plan_.device_bytes),
        model_device_(plan_.device_bytes),
        allocator_(device_, plan_.config),
        model_(model_device_, plan_.config) {}

  // The log of operations, followed by the first disagreement. Empty if the two allocators agree.
  std::string run() {
    try {
      for (int64_t step = 0; step < plan_.steps; ++step) {
        operate();
        std::string why = compare();
        if (!why.empty()) return log_ + why;
      }
      if (picture_of(allocator_) != model_.picture()) {
        return log_ + "blocks differ:\n" + picture_of(allocator_) + "model:\n" + model_.picture();
      }
    } catch (const std::exception& error) {
      return log_ + "threw: " + error.what();
    }
    return {};
  }

  // Statistics of the trace. Tests use them to check that the traces reach every rule.
  const AllocatorStatistics& reached() const { return model_.statistics(); }
  const AllocatorConfig& config() const { return plan_.config; }
  // A hash of all addresses that the allocator returned, and of its statistics after each
  // operation.
  uint64_t digest() const { return digest_; }

 private:
  using Id = std::pair<int64_t, int64_t>;

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }

  void operate() {
    if (below(1000) < plan_.pool_changes) return change_pools();
    const int64_t dice = below(1000);
    if (dice < 500 || live_.empty()) {
      allocate();
    } else if (dice < 840) {
      const size_t at = static_cast<size_t>(below(static_cast<int64_t>(live_.size())));
      both("free " + std::to_string(live_[at]), [&](auto& a) { a.free(live_[at]); });
      live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (dice < 910) {
      const uint64_t address = live_[static_cast<size_t>(below(static_cast<int64_t>(live_.size())))];
      const int64_t stream = below(plan_.streams + 1);
      both("use " + std::to_string(address) + " on " + std::to_string(stream),
           [&](auto& a) { a.record_stream(address, stream); });
    } else if (dice < 970) {
      const int64_t stream = below(plan_.streams + 1);
      log("finish " + std::to_string(stream));
      device_.finish(stream);
      model_device_.finish(stream);
    } else if (dice < 990) {
      both("empty cache", [](auto& a) { a.empty_cache(); });
    } else if (dice < 995) {
      both("reset peaks", [](auto& a) { a.reset_peaks(); });
    } else {
      both("reset accumulated", [](auto& a) { a.reset_accumulated(); });
    }
  }

  void allocate() {
    const int64_t stream = below(plan_.streams);
    int64_t bytes = plan_.sizes[static_cast<size_t>(below(static_cast<int64_t>(plan_.sizes.size())))];
    if (below(8) == 0) bytes += below(3) - 1;
    std::optional<uint64_t> ours;
    std::optional<uint64_t> theirs;
    log("allocate " + std::to_string(bytes) + " on " + std::to_string(stream));
    ours = allocator_.allocate(bytes, stream);
    if (ours.has_value()) log("  at " + std::to_string(*ours));
    digest_ = hash_combine(digest_, ours.value_or(1));  // 1 stands for no address, because no block is at address 1
    theirs = model_.allocate(bytes, stream);
    if (ours != theirs) {
      mismatch_ = "address " + (ours ? std::to_string(*ours) : "none") + ", model " +
                  (theirs ? std::to_string(*theirs) : "none");
    } else if (ours.has_value() && *ours != 0) {
      live_.push_back(*ours);
    }
  }

  // Begins, ends and releases private pools. After its last release, a pool is never started again.
  void change_pools() {
    if (!begun_.empty() && below(2) == 0) {
      const auto [id, captures] = begun_.back();
      begun_.pop_back();
      if (captures) both("end capture", [](auto& a) { a.end_capture(); });
      both("end pool " + std::to_string(id.first), [&, pool = id](auto& a) { a.end_pool(pool); });
      return;
    }
    if (!users_.empty() && below(3) == 0) {
      const auto found = std::next(users_.begin(), below(static_cast<int64_t>(users_.size())));
      const Id id = found->first;
      if (is_begun(id)) return;
      both("release pool " + std::to_string(id.first), [&](auto& a) { a.release_pool(id); });
      if (--found->second == 0) users_.erase(found);
      return;
    }
    if (begun_.size() >= 2) return;
    Id id{next_pool_, 0};
    if (!users_.empty() && below(2) == 0) id = users_.begin()->first;
    if (is_begun(id)) return;
    if (id.first == next_pool_) ++next_pool_;
    ++users_[id];
    begun_.emplace_back(id, below(3) > 0);
    const int64_t mask = below(8);
    both("begin pool " + std::to_string(id.first) + " for streams " + std::to_string(mask),
         [&](auto& a) { a.begin_pool(id, [mask](int64_t stream) { return (mask >> stream & 1) != 0; }); });
    if (begun_.back().second) both("begin capture", [](auto& a) { a.begin_capture(); });
  }

  bool is_begun(Id id) const {
    return std::any_of(begun_.begin(), begun_.end(), [&id](const auto& one) { return one.first == id; });
  }

  template <class Call>
  void both(const std::string& what, Call call) {
    log(what);
    call(allocator_);
    call(model_);
  }

  std::string compare() {
    digest_ = fold_statistics(digest_, allocator_.statistics());
    if (!mismatch_.empty()) return mismatch_;
    if (!(allocator_.statistics() == model_.statistics())) {
      return first_difference(allocator_.statistics(), model_.statistics());
    }
    if (device_.free_bytes() != model_device_.free_bytes()) return "the device's free bytes differ";
    return {};
  }

  void log(const std::string& line) { log_ += line + "\n"; }

  std::mt19937_64 random_;
  TracePlan plan_;
  SimulatedDevice device_;
  SimulatedDevice model_device_;
  Allocator allocator_;
  Model model_;
  std::vector<uint64_t> live_;
  std::vector<std::pair<Id, bool>> begun_;  // pools, and whether a capture runs in them
  std::map<Id, int64_t> users_;
  int64_t next_pool_ = 1;
  std::string log_;
  std::string mismatch_;
  uint64_t digest_ = 0;
};

}  // namespace fxopt
