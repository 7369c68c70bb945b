#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/report/memory/report.h"
#include "ir/cost/costs.h"
#include "ir/graph/graph.h"
#include "ir/memory/footprint.h"

namespace fxopt {

// One storage of a node's value.
struct StorageFacts {
  std::string producer;  // the node that produces it, or the input
  int64_t bytes = 0;
  bool known = true;  // false if the size is unknown
  std::string kind;   // memory class
  std::string device;
  std::string first, last;           // nodes between which it is live
  std::vector<std::string> readers;  // in schedule order
  size_t readers_behind_peak = 0;
  std::string kept_by;  // the reason why its lifetime ends at `last`
  bool at_peak = false;
};

// Memory that stays allocated between steps: optimizer state, or an accumulated gradient.
struct KeptFacts {
  std::string label;  // "exp_avg", "gradient"
  std::string node;   // the parameter that owns the state, or the producer of the gradient
  std::string kind;   // memory class
  std::string device;
  int64_t bytes = 0;
};

// The peaks of one device, by MemoryMetric.
struct DevicePeaks {
  std::string device;
  std::array<std::optional<PeakRow>, kNumMemoryMetrics> peaks;
};
// Returns the peaks of each device. Allocator peaks use the kind of segments that `expandable`
// selects.
std::vector<DevicePeaks> peaks_of(const Footprint& footprint, bool expandable);

// The effect of the opposite decision about a value: to recompute a saved value, or to save a
// recomputed value.
struct WhatIf {
  Tag tag = Tag::kNone;  // the tag that is tried on the producers of the storages
  // The reason why the change is impossible. Most other fields are then empty.
  std::string refusal;
  // The nodes that the change recomputes. If the change saves the value, these are the nodes that
  // are no longer recomputed.
  std::vector<std::string> copies;
  Cost work;  // work of recomputing the nodes in `copies`
  // Peaks without and with the change. In both cases, `remat` has also carried out the other tags
  // of the graph.
  std::vector<DevicePeaks> before, after;
  // True if the graph has tags. In this case, `remat` carries out these tags before fxopt measures
  // the peaks in `before`. If false, the peaks in `before` are the peaks of the unchanged graph.
  bool has_carried_out = false;
  bool expandable = false;  // true if the allocator uses expandable segments
};

struct Explanation {
  std::string node, type, target, module_path, source, phase;
  std::string tag;  // the node's own tag; empty if it has none
  // Whether a pass followed the tag, and the reason. Empty if the node has no tag.
  std::string verdict;
  // True if no pass has judged the tag. `verdict` and `decision` then predict the decision that the
  // pass `remat` would make.
  bool is_forecast = false;
  // Whether the value is saved or recomputed for backward, and the reason. Empty for inputs, and
  // for values that backward does not need.
  std::string decision;
  bool is_recomputed = false;  // true if `decision` says "recomputed", false if it says "saved" or is empty
  std::string peak_device, peak_node;
  int64_t peak_bytes = 0;
  std::vector<StorageFacts> storages;
  bool is_steady = false;  // the step is not the first one
  std::vector<KeptFacts> kept;
  std::optional<WhatIf> what_if;
};

// Explains why the value of `node` is live. If the step is not the first training step, also lists
// memory that stays allocated between steps:
// - For a parameter, this is the accumulated gradient and the optimizer state of the parameter.
// - For a gradient, this is the memory that is listed for the gradient's parameter. If the
//   parameter is unknown, this is only the accumulated gradient.
// - For a value that shares memory with a parameter or a gradient, the list is the same as for this
//   parameter or gradient.
// - For any other value, nothing is listed.
//
// Leaves what_if empty. O(nodes + edges).
Explanation explain_node(const Footprint& footprint, NodeId node);

void print_explanation(std::ostream& out, const Explanation& explanation, bool has_seconds);
nlohmann::ordered_json explanation_json(const Explanation& explanation, bool has_seconds);

}  // namespace fxopt
