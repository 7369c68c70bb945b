#pragma once

#include <memory>

#include "ir/graph/module.h"

namespace fxopt {

// Returns a module of two graphs that uses every field and every alternative of the schema. The
// combination has no meaning.
std::unique_ptr<Module> make_sample_module();

// A module of one graph with `num_nodes` nodes. Each node reads the previous node.
std::unique_ptr<Module> make_chain_module(size_t num_nodes);

}  // namespace fxopt
