#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fxopt {

struct Tiled {
  std::string pb;            // a complete binary file
  uint32_t layer = 0;        // the repeated layer
  uint32_t copies = 0;       // number of copies, without the original
  uint32_t layer_nodes = 0;  // placeholders, forward and backward of one layer
  uint64_t nodes = 0;
};

// Builds a graph of at least `min_nodes` nodes from a real training step (`pb`: one graph with
// forward, loss and backward). The middle layer is repeated. In forward, each copy comes
// after the previous copy. In backward, each copy comes before the previous copy. Each copy has
// its own parameters, storages, names, sequence numbers, region and gradients. The metadata is
// copied. To find the values that a layer passes to the next layer in forward and backward, the
// function compares the layer with its neighbours. The three layers must match node by node. Pytree
// specs are left out, because they would have to list the new parameters. Fails with the errors of
// the binary form, and with kUsage if the graph does not have three matching layers in a row.
Result<Tiled> tile(std::string_view pb, uint64_t min_nodes);

}  // namespace fxopt
