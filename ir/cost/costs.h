#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/cost/links.h"
#include "ir/cost/measured.h"
#include "ir/device/call_formulas.h"
#include "ir/device/profile.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// The source of the time of a call.
enum class CostBasis : uint8_t {
  // The time is unknown. In place of the time, Cost contains a lower bound of the time:
  // - For a kernel, the bound is the time by the roofline (see Cost), with unknown bytes and
  //   operations counted as 0. If the memory bandwidth is unknown, the bound is 0.
  // - For a collective, the bound is 0.
  kUnknown,
  kFree,      // no kernel runs: views, waits, scalars, assertions
  kRoofline,  // a lower bound from the device's peak rates
  kLinks,     // a collective's time by the formula in the device profile
  kScaled,    // a collective's time, scaled from measured runs of other sizes
  kMeasured,
};
inline constexpr size_t kNumCostBases = 6;
using CallsByBasis = std::array<size_t, kNumCostBases>;
std::string_view cost_basis_name(CostBasis basis);  // "roofline"

// Arithmetic operations, bytes and seconds of calls. By the roofline, a kernel takes the longest of
// three times:
// - its operations divided by the device's operations per second for the dtype of its first output;
// - the bytes of its inputs and outputs divided by the bandwidth;
// - the shortest time of a kernel (the profile's constant `device.kernel`, in nanoseconds).
// The roofline ignores how well the kernel uses the device. Collectives run at the same time as
// kernels, so do not add the seconds of collectives to the seconds of kernels.
struct Cost {
  int64_t flops = 0;        // exact up to 2^63 - 1
  int64_t bytes = 0;        // bytes of kernels' outputs and operands; each use of an operand counts
  double seconds = 0;       // seconds of kernels
  double link_seconds = 0;  // seconds of collectives
  size_t unknown = 0;       // number of kernels whose operations or bytes are unknown
  // Numbers of calls, indexed by CostBasis. For example, the entry for kMeasured is the number of
  // calls whose time was measured. `kernels` counts all calls that are not collectives.
  CallsByBasis kernels = {}, collectives = {};

  void add(const Cost& other);
  size_t num_kernels() const;  // number of calls that run a kernel; calls of basis kFree run none
  size_t num_collectives() const;
  size_t num_kernels(CostBasis basis) const { return kernels[static_cast<size_t>(basis)]; }
  size_t num_collectives(CostBasis basis) const { return collectives[static_cast<size_t>(basis)]; }
};

// The sources of costs. The profile and the measurement must outlive the users of this struct.
struct CostSources {
  // Gives the operations of calls, and the rates and formulas from which their seconds are
  // computed. If null, only the measurement is used.
  const DeviceProfile* profile = nullptr;
  const Measurement* measurement = nullptr;
  SymbolValues symbols;  // symbols that are missing here have their hints as values

  // True if the measurement or the profile can give the seconds of kernels.
  bool has_seconds() const { return measurement != nullptr || (profile != nullptr && profile->bandwidth.has_value()); }
};

// The costs of one graph's calls. The seconds of a call come from the measurement if the
// measurement contains the call, and otherwise from the profile. The graph must outlive the table.
// Nodes that are added to the graph later may be queried as well.
class CostTable {
 public:
  // Takes O(nodes) if `sources` has a measurement. The measured collectives become samples for
  // collectives of other sizes.
  CostTable(const Graph& graph, const CostSources& sources);

  // Returns the cost of one node. O(arguments), plus the time of CallFormulas::of().
  Cost of(NodeId node);
  // Returns the sum of the costs of `nodes`.
  Cost of(const std::vector<NodeId>& nodes);
  Cost all();  // the cost of the whole graph

  // Returns the cost of a collective that need not be in the graph, such as a planned bucket. Each
  // rank contributes `bytes`, and `ranks` are the ranks of the group. If no source gives a time for
  // the collective, the basis is kUnknown. Complexity: as LinkModel::seconds().
  Cost collective(CollectiveKind kind, const std::vector<int64_t>& ranks, int64_t bytes) const;

 private:
  std::optional<int64_t> bytes_of(NodeId node) const;
  const ProcessGroup* group_of(NodeId node) const;
  void add_samples();
  Cost cost_of_collective(NodeId node, std::optional<double> measured) const;
  Cost cost_of_kernel(NodeId node, std::optional<double> measured);
  double roofline(NodeId node, const Cost& cost) const;

  const Graph& graph_;
  const DeviceProfile& profile_;
  SymbolValues values_;
  CallFormulas formulas_;
  LinkModel links_;
  std::optional<MeasuredCalls> measured_;
  HashMap<StringId, const ProcessGroup*> groups_;
};

}  // namespace fxopt
