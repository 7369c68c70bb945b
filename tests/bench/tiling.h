#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fxopt {

struct Tiled {
  std::string pb;            // a complete binary file
  uint32_t layer = 0;        // the repeated layer
  uint32_t copies = 0;       // beyond the original
  uint32_t layer_nodes = 0;  // placeholders, forward and backward of one layer
  uint64_t nodes = 0;
};

// Builds a graph of at least `min_nodes` nodes from a real training step (`pb`: one graph with
// forward, loss and backward). Its middle layer is repeated: forward after forward, backward before
// backward. Each copy has its own parameters, storages, names, sequence numbers, region and
// gradients, and all the metadata. The values a layer hands to the next one, forward and backward,
// are found by comparing it with its neighbours, which must match node by node. Pytree specs are
// left out, since they would have to list the new parameters.
// Errors: those of the binary form; kUsage if the graph has no three matching layers in a row.
Result<Tiled> tile(std::string_view pb, uint64_t min_nodes);

}  // namespace fxopt
