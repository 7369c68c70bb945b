#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/alias/collectives.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

// The collectives of a graph, each with its waits, and what it is there for.

namespace fxopt {

// What a collective is there for, told from where its data come from and where they go, never from names.
enum class CollectiveClass : uint8_t {
  kOther,         // activations, tokens, statistics
  kUnshard,       // an all-gather of what one parameter's shard holds; in backward also of one value that forward saves
  kGradient,      // a reduction whose result the graph returns
  kPointToPoint,  // send and receive, or of no pattern known here: keeps its place among the others of its group
};

struct Collective {
  NodeId start;
  std::vector<NodeId> waits;  // for it, or for a part of it, in schedule order
  CollectiveKind kind = CollectiveKind::kOther;
  CollectiveClass of = CollectiveClass::kOther;
  GroupKey group;
  const ProcessGroup* listed = nullptr;              // nullptr: the module does not list the group
  int64_t ranks = 0;                                 // by the call's own argument, else as listed; 0: neither tells
  StringId reduce_op;                                // invalid: it reduces nothing
  std::optional<Tensor> input, output;               // of those that take one tensor and make another
  std::optional<int64_t> input_bytes, output_bytes;  // of these two

  // Of kUnshard and kGradient: the place of the parameter among the graph's inputs, as far as it is told: by what is gathered;
  // by the input that the gradient is recorded to be of, else by its place among the outputs.
  std::optional<uint32_t> parameter;

  // Whether the recorded sizes are what ranks make of each other's: a gather gives `ranks` times what it is given, a
  // reduce-scatter the same part of it, any other as much. False where they are not known.
  bool sizes_fit() const;

  // What a cap counts: the larger one.
  std::optional<int64_t> bytes() const {
    if (!input_bytes.has_value() || !output_bytes.has_value()) return std::nullopt;
    return *input_bytes > *output_bytes ? *input_bytes : *output_bytes;
  }
};

// Every collective of the graph in schedule order. `values`: of symbols, for bytes. O(nodes + edges + groups).
std::vector<Collective> find_collectives(const Graph& graph, const SymbolValues& values);

// A collective of several tensors: of a list of them, or of a buffer in which they were put side by side and whose result is cut
// apart again.
struct CollectiveBucket {
  NodeId start;
  size_t tensors = 0;
  NodeId last_wait;           // invalid: nothing waits for it
  std::vector<NodeId> makes;  // that make its storages: buffers, results and copies of them; sorted by place
};

// Told from where data come from and where they go, so whoever made them: `bucket`, PyTorch's formers by their modes default,
// coalesced and custom_ops, or a model. In schedule order. O(nodes + edges).
std::vector<CollectiveBucket> find_buckets(const Graph& graph);

// The two recognisers of PyTorch 2.15 (torch/_inductor/fx_passes/bucketing.py and fsdp.py), by the names they have there,
// for every node. O(nodes + edges).
struct FsdpRecognisers {
  // Of an all-gather: its data come from exactly one placeholder, and whatever takes no input.
  IdMap<NodeId, bool> is_fsdp_all_gather;
  // Of the wait of a reduce-scatter: it has a reader, and every node reached from it reads one node alone, the output aside.
  IdMap<NodeId, bool> is_fsdp_reduce_scatter;
};
FsdpRecognisers fsdp_recognisers(const Graph& graph);

}  // namespace fxopt
