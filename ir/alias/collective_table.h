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

// The purpose of a collective. fxopt infers the purpose from the producers of the collective's data
// and from the consumers of the collective's result. The names of nodes and parameters are not
// used.
enum class CollectiveClass : uint8_t {
  kOther,     // activations, tokens, statistics
  kUnshard,   // an all-gather of one parameter's shard or, in backward, of one saved value
  kGradient,  // a reduction whose result the graph returns
  // A send, a receive, or a collective that moves data in an unknown pattern. Passes keep the order
  // of these calls within their group.
  kPointToPoint,
};

struct Collective {
  NodeId start;
  // The nodes that wait for the collective or for its results, in schedule order.
  std::vector<NodeId> waits;
  CollectiveKind kind = CollectiveKind::kOther;
  CollectiveClass of = CollectiveClass::kOther;
  GroupKey group;
  const ProcessGroup* listed = nullptr;  // nullptr if the module does not list the group
  // The number of ranks. If the call and the listed group give different numbers, the call's
  // argument is used. 0 means that the number is unknown.
  int64_t ranks = 0;
  StringId reduce_op;  // invalid if the collective is not a reduction
  // The input and the output. Each is set only if it is a single tensor.
  std::optional<Tensor> input, output;
  std::optional<int64_t> input_bytes, output_bytes;  // bytes of `input` and of `output`

  // The place of the parameter to which the collective belongs. Absent if the place is unknown.
  // - For kUnshard: the schedule position of the input that holds the gathered parameter or saved
  //   value.
  // - For kGradient: the schedule position of the parameter that the file records for the returned
  //   gradient. If the file records no parameter, the index of the gradient among the graph's
  //   outputs is used instead.
  // - For other classes: absent.
  // If all inputs come first, the schedule position is the index among the graph's inputs.
  std::optional<uint32_t> parameter;

  // Whether the recorded sizes fit the collective. False if a size is unknown.
  // - The result of an all-gather has `ranks` times the bytes of the input.
  // - The input of a reduce-scatter has `ranks` times the bytes of the result.
  // - For any other kind, the input and the result have the same bytes.
  bool sizes_fit() const;

  // Returns the larger of `input_bytes` and `output_bytes`, to compare it with a size limit.
  // Returns nothing if either is unknown.
  std::optional<int64_t> bytes() const {
    if (!input_bytes.has_value() || !output_bytes.has_value()) return std::nullopt;
    return *input_bytes > *output_bytes ? *input_bytes : *output_bytes;
  }
};

// Returns every collective of the graph in schedule order. `values` are the values of the symbols
// in tensor sizes. O(nodes + edges + groups).
std::vector<Collective> find_collectives(const Graph& graph, const SymbolValues& values);

// A collective that moves several tensors. It has one of two forms:
// - The collective takes a list of tensors.
// - The input is a buffer in which the tensors are packed side by side. The result is split into
//   tensors again.
struct CollectiveBucket {
  NodeId start;
  size_t tensors = 0;
  NodeId last_wait;  // invalid if no node waits for the collective
  // The nodes that create the storages of the packed input buffers, of the collective's results and
  // of copies of these results. The nodes are sorted by place in the schedule.
  std::vector<NodeId> makes;
};

// Returns the buckets in schedule order. The buckets are found by data flow. A bucket may come from
// the `bucket` pass, from the model, or from PyTorch's bucketing in the modes default, coalesced
// and custom_ops. O(nodes + edges).
std::vector<CollectiveBucket> find_buckets(const Graph& graph);

// The results, for every node, of two functions of PyTorch 2.15 that recognise FSDP collectives.
// Each member has the name of its function in torch/_inductor/fx_passes (bucketing.py and fsdp.py).
// O(nodes + edges).
struct FsdpRecognisers {
  // True for an all-gather whose data come from exactly one placeholder. The data may also come
  // from get_attrs and from calls without inputs. These sources are not counted.
  IdMap<NodeId, bool> is_fsdp_all_gather;
  // True for the wait of a reduce-scatter if the wait has a user, and if each direct or indirect
  // user reads only one node. The graph's output node is an exception: it may read several nodes.
  IdMap<NodeId, bool> is_fsdp_reduce_scatter;
};
FsdpRecognisers fsdp_recognisers(const Graph& graph);

}  // namespace fxopt
