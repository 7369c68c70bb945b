#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fxopt {

// Settings for device memory in PYTORCH_ALLOC_CONF. The defaults are those of PyTorch 2.15
// (c10/core/AllocatorConfig.h).
struct AllocatorConfig {
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  static constexpr size_t kNumDivisions = 16;

  int64_t large_segment_bytes = int64_t{20} << 20;
  int64_t max_split_bytes = kUnlimited;  // blocks of this size and above are never split
  int64_t max_non_split_rounding_bytes = int64_t{20} << 20;
  // Share of the allowed memory above which garbage is collected, in (0, 1). 0 turns collection
  // off.
  double garbage_collection_threshold = 0;
  // Share of the device's memory that the allocator may use, in [0, 1]. With 1, only the device
  // sets the limit.
  double memory_fraction = 1;
  bool expandable_segments = false;
  // Number of equal steps into which the interval between two powers of two is divided. The first
  // entry is for sizes below 2 MiB, the second for [2, 4) MiB, and the last for 32 GiB and above. 0
  // and 1 turn this rounding off.
  std::array<int64_t, kNumDivisions> roundup_power2_divisions{};

  // release_lock_on_malloc and the two settings of pinned host memory do not affect device memory.
  // They are stored because memory snapshots contain them.
  bool release_lock_on_malloc = false;
  bool pinned_use_host_register = false;
  int64_t pinned_num_register_threads = 1;

  // Settings that change the placement of memory in PyTorch, but that CachingAllocator ignores.
  // Each setting is stored as "key:value", in the given order.
  std::vector<std::string> not_modelled;
};

// Parses the text of PYTORCH_ALLOC_CONF, for example
// "max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True".
// PYTORCH_CUDA_ALLOC_CONF has the same form. White space is ignored. If a key is repeated, its last
// value is used. Missing keys keep their defaults. PyTorch accepts text after a number, as in
// "20x", but this parser does not. O(length). An error gives the column of the fault in `text`, and
// has one of these codes:
//   - kAllocatorKey if PyTorch does not have the key
//   - kAllocatorValue if PyTorch does not accept the value
//   - kAllocatorSyntax if the text is not a list of keys and values
Result<AllocatorConfig> parse_allocator_config(std::string_view text);

}  // namespace fxopt
