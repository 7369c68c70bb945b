#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// The pattern in which a collective moves data. It is inferred from the operator's name.
enum class CollectiveKind : uint8_t {
  kOther,  // a point-to-point call, a call fused with other work, or an unknown pattern
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kBroadcast,
};
std::string_view collective_kind_name(CollectiveKind value);
CollectiveKind find_collective_kind(std::string_view name);  // kOther for an unknown name
CollectiveKind collective_kind(const Op& op);

// Returns an operator's name without the namespace and the overload. For example,
// "_c10d_functional.all_gather_into_tensor.default" becomes "all_gather_into_tensor".
std::string_view packet_of(std::string_view name);

// The group of a call: a uid, or an expression if the group depends on the rank. Both members are
// invalid if the group is unknown.
struct GroupKey {
  StringId uid;
  ExprId expr;
  auto operator<=>(const GroupKey&) const = default;
};

// Returns the uid or the expression as text, or an empty text if both are invalid. O(length).
std::string group_text(const Module& module, const GroupKey& key);

// Returns the group of a call. The group is the first of these arguments that exists:
// - the argument that the schema names as the group;
// - an argument that is a process group;
// - the last string argument.
// O(arguments).
GroupKey group_of_call(const Graph& graph, NodeId node);

// Returns the bytes of a collective's input tensors, computed from their sizes. Tensors that the
// collective only writes to are left out. Returns nothing if any size is unknown. Sets `by_hint` to
// true if a size depends on a symbol, and to false otherwise. O(arguments + tensors).
std::optional<int64_t> collective_input_bytes(const Graph& graph, NodeId node, const SymbolValues& values,
                                              bool& by_hint);

// Returns the bytes that each rank sends if `ranks` ranks exchange data around a ring. Each rank
// has `input` bytes of input. The result is rounded up. For n ranks, the result is:
//
//   all-gather:                    (n - 1) * input
//   reduce-scatter:                (n - 1) / n * input
//   all-to-all of equal splits:    (n - 1) / n * input
//   all-reduce:                    2 * (n - 1) / n * input
//   broadcast:                     1 * input if n > 1, otherwise 0
//
// Returns nothing for other kinds, if `ranks` is below 1, or if the result is above 2^63 - 1.
std::optional<int64_t> ring_bytes(CollectiveKind kind, int64_t input, int64_t ranks);

// Returns the nodes that wait for the collective, and the getitems between the collective and these
// nodes. Each node is listed once. The order is unspecified. O(users).
std::vector<NodeId> waits_for(const Graph& graph, NodeId collective);

// Returns the last node in the schedule that waits for the collective or for one of its results.
// Returns an invalid id if no node waits. O(users).
NodeId last_wait(const Graph& graph, NodeId collective);

// Whether the call sends or receives a message, or waits for a call that sends or receives a
// message. The peer issues the other half of the exchange exactly once. Therefore, a pass must not
// repeat the call, postpone the call, or merge the call with an equal call. O(getitems between the
// wait and the call).
bool is_message(const Graph& graph, NodeId node);

// Whether a node writes an input of the collective while the collective may still read this input.
// The collective may read its inputs until the last wait for the collective or for one of its
// results. Without a wait, the collective may read its inputs until the end of the graph. O(users +
// log writes).
bool is_raced(const Graph& graph, const StorageMap& storages, NodeId collective);

// Returns the uids of the calls of the original graph that a collective represents, each uid once:
// - calls that a pass replaced by this collective, such as the members of a bucket or fused
//   gathers;
// - calls that a pass merged with this collective;
// - the collective itself, unless a pass created it. A collective that a pass created has an origin
//   of kind kReplaced, and no earlier origin of kind kMerged.
// The uid of the collective itself comes first. The other uids keep the order of the node's
// recorded origins. The pass `bucket` records the members in the order of their data in the bucket.
// O(origins).
std::vector<uint64_t> replaced_calls(const Graph& graph, NodeId node);

// Calls of one collective operator on one group.
struct CollectiveRow {
  TargetId target;
  size_t calls = 0;
  size_t replaces = 0;      // number of calls in the original graph: sum of replaced_calls().size()
  int64_t input_bytes = 0;  // sum over the calls whose input size is known
  int64_t moved_bytes = 0;  // sum over the calls whose ring_bytes() is known
  size_t unknown_input = 0;
  size_t unknown_moved = 0;
  size_t by_hint = 0;
};

struct GroupRow {
  GroupKey key;
  const ProcessGroup* group = nullptr;  // nullptr if the module does not list the group
  StringId mesh;                        // name of the group's device mesh; invalid if not recorded
  std::vector<StringId> mesh_dims;      // names of the mesh dimensions that the group spans
  // Sorted by moved bytes, then by input bytes, with the largest first. Entries with equal bytes
  // are sorted by operator name.
  std::vector<CollectiveRow> collectives;

  size_t calls() const;
  int64_t input_bytes() const;
  int64_t moved_bytes() const;
};

// Returns the collectives among `nodes`, sorted into groups. `nodes` are nodes of one graph in
// schedule order. Groups are sorted by moved bytes, then by input bytes, then by calls, with the
// largest first. Equal groups are in the order of their first calls. O(nodes + arguments + groups
// log groups).
std::vector<GroupRow> collectives_by_group(const Graph& graph, const std::vector<NodeId>& nodes,
                                           const SymbolValues& values);

}  // namespace fxopt
