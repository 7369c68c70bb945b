#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fxopt {

// A graph of any size in which one feature grows. The graph exposes algorithms that take more
// than linear time.
struct Shape {
  const char* name;
  std::string (*text)(size_t size);      // returns the graph in the text form
  size_t size;                           // chosen so that commands take milliseconds at this size
  std::vector<std::string> passes = {};  // passes that `opt` also runs
};

const std::vector<Shape>& shapes();

// A graph of layers with 36 nodes each. A layer gathers a weight over two dimensions of a mesh. It
// also gathers a product, slices the result to the rank's shard, and reduces the slice. Later, the
// layer gathers the weight a second time.
std::string layers_with_collectives(size_t layers);

// A chain of `depth` nested graphs. Each graph runs the next graph.
std::string nested_graphs(size_t depth);

}  // namespace fxopt
