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

// The pattern in which a collective moves data, told from the operator's name.
enum class CollectiveKind : uint8_t {
  kOther,  // point to point, fused with other work, or of no pattern known here
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kBroadcast,
};
std::string_view collective_kind_name(CollectiveKind value);
CollectiveKind find_collective_kind(std::string_view name);  // kOther for what names none
CollectiveKind collective_kind(const Op& op);

// "all_gather_into_tensor" of "_c10d_functional.all_gather_into_tensor.default".
std::string_view packet_of(std::string_view name);

// The group a call runs on: by uid, by an expression where it depends on the rank, or neither where it cannot be told.
struct GroupKey {
  StringId uid;
  ExprId expr;
  auto operator<=>(const GroupKey&) const = default;
};

// The uid or the expression; empty for neither. O(length).
std::string group_text(const Module& module, const GroupKey& key);

// The argument that the schema calls a group; where there is none, an argument that is a group, else the last string.
// O(arguments).
GroupKey group_of_call(const Graph& graph, NodeId node);

// Bytes of the tensors a collective is given (not of those it is given to write to), as their sizes say; nothing when
// one of them is unknown. `by_hint` is set when a symbol's value was needed. O(arguments + tensors).
std::optional<int64_t> collective_input_bytes(const Graph& graph, NodeId node, const SymbolValues& values,
                                              bool& by_hint);

// Bytes one of `ranks` ranks sends when `input` bytes go around a ring, rounded up:
//
//   all-gather (n - 1) * input    reduce-scatter, all-to-all of equal parts (n - 1) / n * input
//   all-reduce 2 * (n - 1) / n * input    broadcast input, nothing for one rank
//
// Nothing for other kinds, without ranks, and above 2^63 - 1.
std::optional<int64_t> ring_bytes(CollectiveKind kind, int64_t input, int64_t ranks);

// The waits for the collective, and the getitems that lead to them. Each once, in no particular order. O(users).
std::vector<NodeId> waits_for(const Graph& graph, NodeId collective);

// The last in the schedule that waits for the collective, or for a part of what it gives; invalid: nobody does. O(users).
NodeId last_wait(const Graph& graph, NodeId collective);

// Whether the call sends or receives, or waits for a call that does. The other end does its part once: such a call cannot be repeated,
// merged with an equal one or put off. O(getitems on the way to the call).
bool is_message(const Graph& graph, NodeId node);

// Whether what a collective reads is written to while it may read it: before the last wait for it, or for a part of it; where
// nobody waits, by anybody after it. O(users + log writes).
bool is_raced(const Graph& graph, const StorageMap& storages, NodeId collective);

// Which of the calls that the file began with a collective stands for, by uid, sorted: those that a pass put it in place of
// (members of a bucket, gathers that became one) or merged with it; else itself. O(origins log origins).
std::vector<uint64_t> calls_stood_for(const Graph& graph, NodeId node);

// Calls of one collective operator on one group.
struct CollectiveRow {
  TargetId target;
  size_t calls = 0;
  size_t stands_for = 0;    // by calls_stood_for()
  int64_t input_bytes = 0;  // of calls where they are known
  int64_t moved_bytes = 0;  // by ring_bytes(), of calls where they are known
  size_t unknown_input = 0;
  size_t unknown_moved = 0;
  size_t by_hint = 0;
};

struct GroupRow {
  GroupKey key;
  const ProcessGroup* group = nullptr;  // nullptr: the module does not list it
  StringId mesh;                        // that the group is a dimension of
  std::vector<StringId> mesh_dims;
  std::vector<CollectiveRow> collectives;  // most moved bytes first, then most input bytes, then by name

  size_t calls() const;
  int64_t input_bytes() const;
  int64_t moved_bytes() const;
};

// The collectives of one graph by group, most moved bytes first, then most input bytes, most calls, then by first call.
// `nodes`: those to look at, in schedule order. O(nodes + arguments + groups log groups).
std::vector<GroupRow> collectives_by_group(const Graph& graph, const std::vector<NodeId>& nodes,
                                           const SymbolValues& values);

}  // namespace fxopt
