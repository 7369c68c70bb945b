#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/device/call_formulas.h"
#include "ir/device/profile.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// What calls compute and move, and for how long by a roofline: as long as the larger of operations over the device's
// operations per second for the dtype of the first output, and bytes of inputs and outputs over its bandwidth.
// Launches, caches and how well a kernel uses the device are not part of it: a lower bound. Views, waits and
// collectives take no time, these because they overlap.
struct Work {
  int64_t flops = 0;       // exact up to 2^63 - 1
  int64_t bytes = 0;       // of the tensors read and made, each as often as it is an argument
  double seconds = 0;      // 0 without a device
  size_t unknown = 0;      // calls of which a figure is not known
  size_t collectives = 0;  // calls whose time is not counted

  void add(const Work& other);
};

// Of the calls of one graph. Refers to it and to the profile.
class WorkModel {
 public:
  // `profile` with rows of work; flops and bandwidth where seconds are wanted.
  WorkModel(const Graph& graph, const DeviceProfile& profile, const SymbolValues& given);

  // O(arguments), and as CallFormulas::of().
  Work of(NodeId node);
  Work of(const std::vector<NodeId>& nodes);

 private:
  std::optional<int64_t> bytes_of(NodeId node) const;

  const Graph& graph_;
  const DeviceProfile& profile_;
  SymbolValues values_;
  CallFormulas formulas_;
};

}  // namespace fxopt
