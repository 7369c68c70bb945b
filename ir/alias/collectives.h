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

// The pattern in which a collective moves data, inferred from the operator's name.
enum class CollectiveKind : uint8_t {
  kOther,  // point to point, fused with other work, or an unknown pattern
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kBroadcast,
};
std::string_view collective_kind_name(CollectiveKind value);
CollectiveKind find_collective_kind(std::string_view name);  // kOther for an unknown name
CollectiveKind collective_kind(const Op& op);

// The name without namespace and overload: "all_gather_into_tensor" for
// "_c10d_functional.all_gather_into_tensor.default".
std::string_view packet_of(std::string_view name);

// The group of a call: a uid, an expression if the group depends on the rank, or neither if it is
// unknown.
struct GroupKey {
  StringId uid;
  ExprId expr;
  auto operator<=>(const GroupKey&) const = default;
};

// The uid or the expression as text; empty for neither. O(length).
std::string group_text(const Module& module, const GroupKey& key);

// The group of a call: the argument that the schema names as the group; without one, an argument
// that is a group, else the last string. O(arguments).
GroupKey group_of_call(const Graph& graph, NodeId node);

// Bytes of a collective's input tensors by their sizes, without the tensors that it only writes to.
// Nothing if one is unknown. Sets `by_hint` if a symbol's value was needed. O(arguments + tensors).
std::optional<int64_t> collective_input_bytes(const Graph& graph, NodeId node, const SymbolValues& values,
                                              bool& by_hint);

// Bytes that each of `ranks` ranks sends if `input` bytes go around a ring, rounded up:
//
//   all-gather (n - 1) * input    reduce-scatter, all-to-all of equal splits (n - 1) / n * input
//   all-reduce 2 * (n - 1) / n * input    broadcast input, nothing for one rank
//
// Nothing for other kinds, without ranks, and above 2^63 - 1.
std::optional<int64_t> ring_bytes(CollectiveKind kind, int64_t input, int64_t ranks);

// The collective's waits and the getitems that lead to them, each once, in no particular order.
// O(users).
std::vector<NodeId> waits_for(const Graph& graph, NodeId collective);

// The last wait in the schedule for the collective or for one of its results; invalid if none
// exists. O(users).
NodeId last_wait(const Graph& graph, NodeId collective);

// Whether the call sends or receives, or waits for a call that does. Its peer issues the other half
// once, so such a call cannot be repeated, merged with an equal one or postponed.
// O(getitems on the way to the call).
bool is_message(const Graph& graph, NodeId node);

// Whether a collective's input is written while the collective may still read it: before the last
// wait for it or for one of its results, or anywhere after it if no wait exists.
// O(users + log writes).
bool is_raced(const Graph& graph, const StorageMap& storages, NodeId collective);

// The calls of the original graph that a collective stands for, as sorted uids: the calls that a
// pass replaced by it (members of a bucket, fused gathers) or merged with it, and itself unless a
// pass created it. O(origins log origins).
std::vector<uint64_t> replaced_calls(const Graph& graph, NodeId node);

// Calls of one collective operator on one group.
struct CollectiveRow {
  TargetId target;
  size_t calls = 0;
  size_t replaces = 0;      // counted by replaced_calls()
  int64_t input_bytes = 0;  // over calls whose input size is known
  int64_t moved_bytes = 0;  // by ring_bytes(), over calls for which it is known
  size_t unknown_input = 0;
  size_t unknown_moved = 0;
  size_t by_hint = 0;
};

struct GroupRow {
  GroupKey key;
  const ProcessGroup* group = nullptr;  // nullptr: the module does not list it
  StringId mesh;                        // the mesh that has the group as a dimension
  std::vector<StringId> mesh_dims;
  std::vector<CollectiveRow> collectives;  // most moved bytes, then most input bytes, then by name

  size_t calls() const;
  int64_t input_bytes() const;
  int64_t moved_bytes() const;
};

// The collectives of one graph by group: most moved bytes first, then most input bytes, most calls,
// first call. Looks at `nodes`, which are in schedule order.
// O(nodes + arguments + groups log groups).
std::vector<GroupRow> collectives_by_group(const Graph& graph, const std::vector<NodeId>& nodes,
                                           const SymbolValues& values);

}  // namespace fxopt
