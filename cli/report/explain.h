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
  std::string producer;  // the producer, or the input
  int64_t bytes = 0;
  bool known = true;  // false: size unknown
  std::string kind;   // memory class
  std::string device;
  std::string first, last;           // nodes between which it is live
  std::vector<std::string> readers;  // in schedule order
  size_t readers_behind_peak = 0;
  std::string kept_by;  // the reason for the end of its lifetime
  bool at_peak = false;
};

// Memory that lives between steps because of a parameter or a gradient.
struct KeptFacts {
  std::string label;  // "exp_avg", "gradient"
  std::string node;   // the parameter that owns the state, or the producer of the gradient
  std::string kind;   // memory class
  std::string device;
  int64_t bytes = 0;
};

// The peaks of one device by MemoryMetric.
struct DevicePeaks {
  std::string device;
  std::array<std::optional<PeakRow>, kNumMemoryMetrics> peaks;
};
// For each device. Allocator peaks use the segments that `expandable` selects.
std::vector<DevicePeaks> peaks_of(const Footprint& footprint, bool expandable);

// The step if a value were recomputed, or saved although its tag says otherwise.
struct WhatIf {
  Tag tag = Tag::kNone;  // tried on the producers of the storages
  // the reason why it is impossible; the rest is then empty
  std::string refusal;
  // nodes recomputed because of it, or no longer recomputed if it is saved
  std::vector<std::string> copies;
  Cost work;                               // work of the copies
  std::vector<DevicePeaks> before, after;  // both after remat, which carries out the existing tags
  // the graph has tags, so `before` may differ from the current step
  bool has_carried_out = false;
  bool expandable = false;  // kind of segments of the allocator's peaks
};

struct Explanation {
  std::string node, type, target, module_path, source, phase;
  std::string tag;           // its own; empty without one
  std::string verdict;       // the outcome of the tag, and the reason; empty without a tag
  bool is_forecast = false;  // no pass has judged it: verdict and decision are forecasts of remat
  // the outcome of the value for backward, and the reason; empty if backward does not read it
  std::string decision;
  bool is_recomputed = false;  // the decision
  std::string peak_device, peak_node;
  int64_t peak_bytes = 0;
  std::vector<StorageFacts> storages;
  bool is_steady = false;  // a step that is not the first
  std::vector<KeptFacts> kept;
  std::optional<WhatIf> what_if;
};

// Explains why the value of `node` is live, and which memory a step that is not the first has
// because of it: optimizer state of a parameter or of a gradient's parameter, and accumulated
// gradients. O(nodes + edges). Leaves what_if empty.
Explanation explain_node(const Footprint& footprint, NodeId node);

void print_explanation(std::ostream& out, const Explanation& explanation, bool has_seconds);
nlohmann::ordered_json explanation_json(const Explanation& explanation, bool has_seconds);

}  // namespace fxopt
