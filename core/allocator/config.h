#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fxopt {

// Device memory settings of PYTORCH_ALLOC_CONF. The defaults are PyTorch's (2.15,
// c10/core/AllocatorConfig.h).
struct AllocatorConfig {
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  static constexpr size_t kNumDivisions = 16;

  int64_t large_segment_bytes = int64_t{20} << 20;
  int64_t max_split_bytes = kUnlimited;  // blocks of this size and above are never split
  int64_t max_non_split_rounding_bytes = int64_t{20} << 20;
  // share of the allowed memory, in (0, 1); 0: no collection
  double garbage_collection_threshold = 0;
  // allowed share of the device's memory, in [0, 1]; 1: the device itself decides
  double memory_fraction = 1;
  bool expandable_segments = false;
  // Steps between two powers of two, for sizes of [1, 2) MiB and below, [2, 4) MiB, ... 32 GiB and
  // above. 0 and 1: off.
  std::array<int64_t, kNumDivisions> roundup_power2_divisions{};

  // No effect on the device's memory; kept for callers that print the settings.
  bool release_lock_on_malloc = false;
  bool pinned_use_host_register = false;
  int64_t pinned_num_register_threads = 1;

  // Settings that change memory placement but are not modelled, as "key:value" in the order given.
  std::vector<std::string> not_modelled;
};

// Parses the text of PYTORCH_ALLOC_CONF (or of PYTORCH_CUDA_ALLOC_CONF, which has the same form):
// "max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True".
// White space is ignored. The last value of a repeated key counts, and missing keys keep their
// defaults. PyTorch accepts trailing text after a number ("20x"); this parser does not. Errors,
// with the column in `text`: kAllocatorKey for a key PyTorch does not have, kAllocatorValue for a
// value it refuses, kAllocatorSyntax for text that is not a list of keys and values. O(length).
Result<AllocatorConfig> parse_allocator_config(std::string_view text);

}  // namespace fxopt
