#pragma once

#include <memory>

#include "ir/graph/module.h"

namespace fxopt {

// A module of two graphs that uses every field and every alternative of the schema, none of it meaningful together.
std::unique_ptr<Module> make_sample_module();

// A module of one graph with `num_nodes` nodes, each reading the one before it.
std::unique_ptr<Module> make_chain_module(size_t num_nodes);

}  // namespace fxopt
