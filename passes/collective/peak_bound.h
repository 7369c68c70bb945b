#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/memory/memory.h"
#include "ir/step/facts.h"

namespace fxopt {

// Limits the growth of a graph's ideal peak: the largest sum of live bytes, without rounding and
// without an allocator. The limit applies to each device separately.
class PeakBound {
 public:
  // `graph` is the graph before the pass changes it. `max_growth` is a fraction of the peak. A
  // negative value means no limit. Keeps a reference to `memory`.
  PeakBound(const Graph& graph, Facts& facts, const MemoryOptions& memory, double max_growth);

  // The growth of the peak in a changed graph: the places in the schedule where live bytes exceed
  // the limit, and the device whose peak grows most.
  class Growth {
   public:
    bool is_within() const { return num_over_.empty() || num_over_.back() == 0; }
    bool grows() const { return after_ > before_; }
    // Whether live bytes exceed the limit at a place from `first` to `last`. O(1).
    bool is_over(uint32_t first, uint32_t last) const;
    // Whether some buffer of the node's value is live at a place where live bytes exceed the limit.
    // Buffers that the graph does not allocate are ignored. O(buffers).
    bool is_live(const StorageMap& storages, NodeId node) const;
    // The parts of the schedule above the limit, each as a pair of its first and its last place.
    std::vector<std::pair<uint32_t, uint32_t>> stretches() const;
    std::string percent() const;  // "6.57 %"
    // "the ideal peak (live bytes without allocator overhead) grows from 100 B to 107 B, by 7.0 %"
    std::string text() const;

   private:
    friend class PeakBound;
    std::vector<Lifetime> lifetimes_;
    // By place: the number of places above the limit, up to and including this place.
    std::vector<uint32_t> num_over_;
    int64_t before_ = 0, after_ = 0;
    std::string device_;  // empty if the graph uses only one device
  };
  // O(nodes + edges + buffers log buffers).
  Growth measure(const Graph& graph, Facts& facts) const;

 private:
  const MemoryOptions& memory_;
  double max_growth_;
  std::map<std::string, int64_t> before_;  // by device: the peak of the unchanged graph, in bytes
};

}  // namespace fxopt
