#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fxopt {

struct Tiled {
  std::string pb;            // a complete binary file
  uint32_t layer = 0;        // the one that was repeated
  uint32_t copies = 0;       // of it, beyond the original
  uint32_t layer_nodes = 0;  // placeholders, forward and backward of one layer
  uint64_t nodes = 0;
};

// A graph of at least `min_nodes` nodes out of a real training step (`pb`, one graph that holds forward, loss and
// backward): its middle layer stands there again and again, forward after forward, backward before backward, each copy
// with parameters, storages, names, sequence numbers, region and gradients of its own and with all its metadata. What
// the layer hands to the next one, forward and backward, is found by comparing it with its neighbours, which must
// be alike node by node. Pytree specs are left out: they would have to list the new parameters.
// Errors: those of the binary form; kUsage when the graph has no three like layers in a row.
Result<Tiled> tile(std::string_view pb, uint64_t min_nodes);

}  // namespace fxopt
