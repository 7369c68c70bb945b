#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fxopt {

// What PYTORCH_ALLOC_CONF says about device memory. The defaults are PyTorch's (2.15, c10/core/AllocatorConfig.h).
struct AllocatorConfig {
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  static constexpr size_t kNumDivisions = 16;

  int64_t large_segment_bytes = int64_t{20} << 20;
  int64_t max_split_bytes = kUnlimited;  // blocks of this size and above are never split
  int64_t max_non_split_rounding_bytes = int64_t{20} << 20;
  double garbage_collection_threshold = 0;  // share of what is allowed, in (0, 1); 0: no collection
  double memory_fraction = 1;               // of the device that is allowed, in [0, 1]; 1: the device itself decides
  bool expandable_segments = false;
  // Steps between two powers of two, for sizes of [1, 2) MiB and below, [2, 4) MiB, ... 32 GiB and above. 0 and 1: off.
  std::array<int64_t, kNumDivisions> roundup_power2_divisions{};

  // No effect on the device's memory; kept for those who write the settings down.
  bool release_lock_on_malloc = false;
  bool pinned_use_host_register = false;
  int64_t pinned_num_register_threads = 1;

  // Settings that do change where memory goes and are not modelled, as "key:value" in the order given.
  std::vector<std::string> not_modelled;
};

// Reads the text of PYTORCH_ALLOC_CONF (or of PYTORCH_CUDA_ALLOC_CONF, which has the same form):
// "max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True". White space is ignored,
// a key given twice counts the last time, what is not named keeps its default; the empty text gives all defaults. Where
// PyTorch accepts numbers with anything behind them ("20x"), this does not. Errors, with the column in `text`:
// kAllocatorKey for a key PyTorch does not have, kAllocatorValue for a value it refuses, kAllocatorSyntax for text that
// is no list of keys and values. O(length).
Result<AllocatorConfig> parse_allocator_config(std::string_view text);

}  // namespace fxopt
