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

// The source of a call's seconds.
enum class CostBasis : uint8_t {
  kUnknown,   // no source: seconds are 0, or the least time to move the known bytes
  kFree,      // views, waits, scalars, assertions: no kernel runs
  kRoofline,  // the device's peak figures: a lower bound
  kLinks,     // a collective, by the profile's formula
  kScaled,    // a collective, from measured ones of other sizes
  kMeasured,
};
inline constexpr size_t kNumCostBases = 6;
using CallsByBasis = std::array<size_t, kNumCostBases>;
std::string_view cost_basis_name(CostBasis basis);  // "roofline"

// Operations, bytes and seconds of calls. By the roofline a kernel takes the longest of three
// times: its operations over the device's operations per second for the dtype of its first output,
// the bytes of its inputs and outputs over the bandwidth, and the shortest time of a kernel
// (`device.kernel`, nanoseconds). The roofline ignores how well the kernel uses the device.
// Collectives run beside kernels, so their seconds must not be added to those of kernels.
struct Cost {
  int64_t flops = 0;        // exact up to 2^63 - 1
  int64_t bytes = 0;        // operands and outputs of kernels, each as often as it is an argument
  double seconds = 0;       // kernels' seconds
  double link_seconds = 0;  // collectives' seconds
  size_t unknown = 0;       // kernels without a known figure of work
  // Calls by the source of their seconds.
  CallsByBasis kernels = {}, collectives = {};

  void add(const Cost& other);
  size_t num_kernels() const;  // without free calls
  size_t num_collectives() const;
  size_t num_kernels(CostBasis basis) const { return kernels[static_cast<size_t>(basis)]; }
  size_t num_collectives(CostBasis basis) const { return collectives[static_cast<size_t>(basis)]; }
};

// The sources of costs. Everything referred to must outlive its users.
struct CostSources {
  // Rows of work; flops, bandwidth and links for seconds. Null: only measurements are known.
  const DeviceProfile* profile = nullptr;
  const Measurement* measurement = nullptr;
  SymbolValues symbols;  // as given

  // Whether any source gives seconds of kernels.
  bool has_seconds() const { return measurement != nullptr || (profile != nullptr && profile->bandwidth.has_value()); }
};

// The costs of one graph's calls: as measured, else by the profile. Refers to the graph. Node ids
// that the graph gets later are valid as well.
class CostTable {
 public:
  // O(nodes) with a measurement: its collectives become samples for those of other sizes.
  CostTable(const Graph& graph, const CostSources& sources);

  // O(arguments), and as CallFormulas::of().
  Cost of(NodeId node);
  Cost of(const std::vector<NodeId>& nodes);
  Cost all();  // the whole graph

  // The cost of a collective that need not be in the graph, such as a bucket: each rank gives
  // `bytes`, and `ranks` are its group's. kUnknown without a source. Complexity as
  // LinkModel::seconds().
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
