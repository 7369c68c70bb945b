#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/alias/collectives.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

// The collectives of a graph, each with its waits and its purpose.

namespace fxopt {

// The purpose of a collective, inferred from the producers of its data and the consumers of its
// result, never from names.
enum class CollectiveClass : uint8_t {
  kOther,         // activations, tokens, statistics
  kUnshard,       // an all-gather of one parameter's shard; in backward also of one saved value
  kGradient,      // a reduction whose result the graph returns
  kPointToPoint,  // send, receive or an unknown pattern: keeps its place in the order of its group
};

struct Collective {
  NodeId start;
  std::vector<NodeId> waits;  // for it or for one of its results, in schedule order
  CollectiveKind kind = CollectiveKind::kOther;
  CollectiveClass of = CollectiveClass::kOther;
  GroupKey group;
  const ProcessGroup* listed = nullptr;  // nullptr: the module does not list the group
  // The number of ranks, by the call's argument, else as listed; 0: unknown.
  int64_t ranks = 0;
  StringId reduce_op;                                // invalid: not a reduction
  std::optional<Tensor> input, output;               // each is set if it is one tensor
  std::optional<int64_t> input_bytes, output_bytes;  // the sizes of these two

  // kUnshard, kGradient: the parameter's place among the graph's inputs, if it is known. An unshard
  // gathers that parameter. A gradient has the input that the file records for it, else the
  // gradient's own place among the outputs.
  std::optional<uint32_t> parameter;

  // Whether the recorded sizes fit the collective: a gather's result is `ranks` times its input, a
  // reduce-scatter's input is `ranks` times its result, and all others keep the size. False if they
  // are unknown.
  bool sizes_fit() const;

  // The bytes that a cap counts: the larger of the two.
  std::optional<int64_t> bytes() const {
    if (!input_bytes.has_value() || !output_bytes.has_value()) return std::nullopt;
    return *input_bytes > *output_bytes ? *input_bytes : *output_bytes;
  }
};

// Returns every collective of the graph in schedule order. `values` of symbols are for bytes.
// O(nodes + edges + groups).
std::vector<Collective> find_collectives(const Graph& graph, const SymbolValues& values);

// A collective of several tensors: it takes a list, or a buffer that packs them side by side and
// whose result is split again.
struct CollectiveBucket {
  NodeId start;
  size_t tensors = 0;
  NodeId last_wait;  // invalid: nothing waits for it
  // The nodes that make its storages: buffers, results and their copies. Sorted by place.
  std::vector<NodeId> makes;
};

// Finds buckets by data flow, whoever made them: `bucket`, PyTorch's bucketing in its modes
// default, coalesced and custom_ops, or a model. In schedule order. O(nodes + edges).
std::vector<CollectiveBucket> find_buckets(const Graph& graph);

// The two FSDP recognisers of PyTorch 2.15 (torch/_inductor/fx_passes/bucketing.py and fsdp.py)
// under their names there, for every node. O(nodes + edges).
struct FsdpRecognisers {
  // An all-gather whose data come from exactly one placeholder. Nodes without inputs do not count.
  IdMap<NodeId, bool> is_fsdp_all_gather;
  // The wait of a reduce-scatter that has a user, and whose direct and indirect users, except the
  // output, each read a single node.
  IdMap<NodeId, bool> is_fsdp_reduce_scatter;
};
FsdpRecognisers fsdp_recognisers(const Graph& graph);

}  // namespace fxopt
