#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/memory/memory.h"
#include "ir/step/facts.h"

namespace fxopt {

// Limits how far the ideal peak of a graph may grow, on each device by itself.
class PeakBound {
 public:
  // `graph`: before it changes. `max_growth`: a fraction of the peak; negative: no limit. Keeps a
  // reference to `memory`.
  PeakBound(const Graph& graph, Facts& facts, const MemoryOptions& memory, double max_growth);

  // The peak of a changed graph: the places above the limit, and the device that grows most.
  class Growth {
   public:
    bool is_within() const { return num_over_.empty() || num_over_.back() == 0; }
    bool grows() const { return after_ > before_; }
    // Whether a place from `first` to `last` is above the limit. O(1).
    bool is_over(uint32_t first, uint32_t last) const;
    // Whether a buffer of the node's value, allocated by the graph, is live at such a place.
    // O(buffers).
    bool is_live(const StorageMap& storages, NodeId node) const;
    // The first and last place of each stretch above the limit.
    std::vector<std::pair<uint32_t, uint32_t>> stretches() const;
    std::string percent() const;  // "6.57 %"
    std::string text() const;     // "the ideal peak grows from 100 B to 107 B, by 7.0 %"

   private:
    friend class PeakBound;
    std::vector<Lifetime> lifetimes_;
    std::vector<uint32_t> num_over_;  // by place: places above the limit up to and including it
    int64_t before_ = 0, after_ = 0;
    std::string device_;  // empty if there is only one
  };
  // O(nodes + edges + buffers log buffers).
  Growth measure(const Graph& graph, Facts& facts) const;

 private:
  const MemoryOptions& memory_;
  double max_growth_;
  std::map<std::string, int64_t> before_;  // by device
};

}  // namespace fxopt
