#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fxopt {

// A graph of any size in which one feature grows. It exposes algorithms that visit all of something
// for each of something.
struct Shape {
  const char* name;
  std::string (*text)(size_t size);      // in the text form
  size_t size;                           // commands take milliseconds
  std::vector<std::string> passes = {};  // passes that `opt` also runs
};

const std::vector<Shape>& shapes();

// Layers of 36 nodes: a weight gathered over two dimensions of a mesh, and a product that is
// gathered, sliced to the rank's shard and reduced again. The weight is gathered once more later.
std::string layers_with_collectives(size_t layers);

// `depth` nested graphs, each of which runs the next.
std::string nested_graphs(size_t depth);

}  // namespace fxopt
