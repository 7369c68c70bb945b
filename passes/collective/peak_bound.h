#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/memory/memory.h"
#include "ir/step/facts.h"

namespace fxopt {

// How far the ideal peak of a graph may grow, on each device by itself.
class PeakBound {
 public:
  // By at most that part of it; below 0: by any. Refers to `memory`.
  PeakBound(const Graph& graph, Facts& facts, const MemoryOptions& memory, double max_growth);

  // What became of the graph: where it takes more than it may, and how the device with most to say of it stands.
  class Growth {
   public:
    bool is_within() const { return num_over_.empty() || num_over_.back() == 0; }
    bool grows() const { return after_ > before_; }
    // Whether one of these places takes more than it may. O(1).
    bool is_over(uint32_t first, uint32_t last) const;
    // Whether something that the node's value lies on, and the graph made, is there at such a place. O(buffers).
    bool is_live(const StorageMap& storages, NodeId node) const;
    // The first and last place of each stretch that is over.
    std::vector<std::pair<uint32_t, uint32_t>> stretches() const;
    std::string percent() const;  // "6.57 %"
    std::string text() const;     // "the ideal peak grows from 100 B to 107 B, by 7.0 %"

   private:
    friend class PeakBound;
    std::vector<Lifetime> lifetimes_;
    std::vector<uint32_t> num_over_;  // by place: how many up to it, it included
    int64_t before_ = 0, after_ = 0;
    std::string device_;  // where there are several
  };
  // O(nodes + edges + buffers log buffers).
  Growth measure(const Graph& graph, Facts& facts) const;

 private:
  const MemoryOptions& memory_;
  double max_growth_;
  std::map<std::string, int64_t> before_;  // by device
};

}  // namespace fxopt
