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

// What the seconds of a call rest on.
enum class CostBasis : uint8_t {
  kUnknown,   // nothing tells: its seconds count 0, or what moving its bytes takes at least
  kFree,      // views, waits, scalars, assertions: no kernel runs
  kRoofline,  // the device's peak figures: a lower bound
  kLinks,     // a collective, by the profile's formula
  kScaled,    // a collective, from measured ones of other sizes
  kMeasured,
};
inline constexpr size_t kNumCostBases = 6;
using CallsByBasis = std::array<size_t, kNumCostBases>;
std::string_view cost_basis_name(CostBasis basis);  // "roofline"

// What calls compute and move, and for how long. By the roofline a kernel takes the largest of its operations over the
// device's operations per second for the dtype of its first output, the bytes of its inputs and outputs over the
// bandwidth, and the shortest a kernel takes (`device.kernel`, nanoseconds); how well it uses the device is not part of
// it. Collectives run beside kernels, so that their seconds are not to be added to those.
struct Cost {
  int64_t flops = 0;        // exact up to 2^63 - 1
  int64_t bytes = 0;        // of the tensors that kernels read and make, each as often as it is an argument
  double seconds = 0;       // of kernels
  double link_seconds = 0;  // of collectives
  size_t unknown = 0;       // kernels of which a figure of work is not known
  // Calls by what their seconds rest on.
  CallsByBasis kernels = {}, collectives = {};

  void add(const Cost& other);
  size_t num_kernels() const;  // those that are free left out
  size_t num_collectives() const;
  size_t num_kernels(CostBasis basis) const { return kernels[static_cast<size_t>(basis)]; }
  size_t num_collectives(CostBasis basis) const { return collectives[static_cast<size_t>(basis)]; }
};

// What tells costs. What is referred to must outlive its users.
struct CostSources {
  // Rows of work; flops, bandwidth and links where seconds are wanted. Null: nothing is known but what was measured.
  const DeviceProfile* profile = nullptr;
  const Measurement* measurement = nullptr;
  SymbolValues symbols;  // as given

  // Whether kernels have seconds at all.
  bool has_seconds() const { return measurement != nullptr || (profile != nullptr && profile->bandwidth.has_value()); }
};

// The costs of one graph's calls, to which it refers: what was measured, else what the profile tells. Node ids that the
// graph gets later can be asked, too.
class CostTable {
 public:
  // O(nodes) where something was measured: runs of collectives are samples for others.
  CostTable(const Graph& graph, const CostSources& sources);

  // O(arguments), and as CallFormulas::of().
  Cost of(NodeId node);
  Cost of(const std::vector<NodeId>& nodes);
  Cost all();  // of the graph

  // Of a collective that need not be in the graph, such as a bucket, for which each rank gives `bytes`; `ranks` of its
  // group. kUnknown where nothing tells. As LinkModel::seconds().
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
