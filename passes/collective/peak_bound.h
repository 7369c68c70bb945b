#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/memory/memory.h"
#include "ir/step/facts.h"

namespace fxopt {

// Limits how far the ideal peak of a graph may grow. The limit applies to each device separately.
class PeakBound {
 public:
  // `graph` is the graph before the pass changes it. `max_growth` is a fraction of the peak. A
  // negative value means no limit. Keeps a reference to `memory`.
  PeakBound(const Graph& graph, Facts& facts, const MemoryOptions& memory, double max_growth);

  // The growth of the peak in a changed graph: the places above the limit, and the device whose
  // peak grows most.
  class Growth {
   public:
    bool is_within() const { return num_over_.empty() || num_over_.back() == 0; }
    bool grows() const { return after_ > before_; }
    // Whether a place from `first` to `last` is above the limit. O(1).
    bool is_over(uint32_t first, uint32_t last) const;
    // Whether some buffer of the node's value is live at a place above the limit. Counts only
    // buffers that the graph allocates. O(buffers).
    bool is_live(const StorageMap& storages, NodeId node) const;
    // The stretches of the schedule above the limit, each as its first and last place.
    std::vector<std::pair<uint32_t, uint32_t>> stretches() const;
    std::string percent() const;  // "6.57 %"
    std::string text() const;     // "the ideal peak grows from 100 B to 107 B, by 7.0 %"

   private:
    friend class PeakBound;
    std::vector<Lifetime> lifetimes_;
    // By place: the number of places above the limit, up to this place.
    std::vector<uint32_t> num_over_;
    int64_t before_ = 0, after_ = 0;
    std::string device_;  // empty if the graph uses only one device
  };
  // O(nodes + edges + buffers log buffers).
  Growth measure(const Graph& graph, Facts& facts) const;

 private:
  const MemoryOptions& memory_;
  double max_growth_;
  std::map<std::string, int64_t> before_;  // by device
};

}  // namespace fxopt
