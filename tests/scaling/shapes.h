#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fxopt {

// A kind of graph of any size, one feature of which grows with it: where an algorithm looks at all of something for each
// of something, this shows it.
struct Shape {
  const char* name;
  std::string (*text)(size_t size);      // in the text form
  size_t size;                           // at which a command takes some milliseconds
  std::vector<std::string> passes = {};  // that `opt` is asked for besides
};

const std::vector<Shape>& shapes();

// Layers of 36 nodes: a weight gathered over two dimensions of a mesh, what was made of it gathered and reduced again, and the
// rank's own part cut out; the weight is gathered once more later.
std::string layers_with_collectives(size_t layers);

// Graphs that each run the next one, as many as `depth` below each other.
std::string nested_graphs(size_t depth);

}  // namespace fxopt
