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

// One storage that a node's value stands on.
struct StorageFacts {
  std::string producer;  // the node that makes it, or the input
  int64_t bytes = 0;
  bool known = true;  // false: of unknown size
  std::string kind;   // memory class
  std::string device;
  std::string first, last;           // nodes between which it is live
  std::vector<std::string> readers;  // in schedule order
  size_t readers_behind_peak = 0;
  std::string kept_by;  // why it ends where it does
  bool at_peak = false;
};

// What lives between steps because of a parameter or a gradient.
struct KeptFacts {
  std::string label;  // "exp_avg", "gradient"
  std::string node;   // the parameter whose state it is, or the node that makes the gradient
  std::string kind;   // memory class
  std::string device;
  int64_t bytes = 0;
};

// The peaks of one device by MemoryMetric.
struct DevicePeaks {
  std::string device;
  std::array<std::optional<PeakRow>, kNumMemoryMetrics> peaks;
};
// Of each device; those of the allocator with the segments `expandable` says.
std::vector<DevicePeaks> peaks_of(const Footprint& footprint, bool expandable);

// What the step would be if a value were recomputed, or saved where its tag lets it go.
struct WhatIf {
  Tag tag = Tag::kNone;                    // that was tried on the nodes that make the storages
  std::string refusal;                     // why it cannot be; the rest is then empty
  std::vector<std::string> copies;         // nodes computed again because of it, or no longer where it were saved
  Cost work;                               // of these
  std::vector<DevicePeaks> before, after;  // both after remat, which carries out the tags that are there
  bool has_carried_out = false;            // the graph has tags, so that `before` need not be the step as it is
  bool expandable = false;                 // whose segments the allocator's peaks are of
};

struct Explanation {
  std::string node, type, target, module_path, source, phase;
  std::string tag;             // its own; empty without one
  std::string verdict;         // what became of the tag, and why; empty without a tag
  bool is_forecast = false;    // no pass has judged it: verdict and decision are what they would be after remat
  std::string decision;        // what becomes of the value for backward, and why; empty for what backward does not read
  bool is_recomputed = false;  // the decision
  std::string peak_device, peak_node;
  int64_t peak_bytes = 0;
  std::vector<StorageFacts> storages;
  bool is_steady = false;  // a step that is not the first
  std::vector<KeptFacts> kept;
  std::optional<WhatIf> what_if;
};

// Why the value of `node` is live where it is, and what a step that is not the first has because of it: optimizer state
// of a parameter, or of the one whose gradient it is, and the gradients that are added to. O(nodes + edges); what_if is
// left empty.
Explanation explain_node(const Footprint& footprint, NodeId node);

void print_explanation(std::ostream& out, const Explanation& explanation, bool has_seconds);
nlohmann::ordered_json explanation_json(const Explanation& explanation, bool has_seconds);

}  // namespace fxopt
