#pragma once

#include <optional>

#include "ir/graph/graph.h"

namespace fxopt::schema {
class Node;
}  // namespace fxopt::schema

namespace fxopt {

class PbDecoder;
class PbEncoder;

// Arguments of a decoded node. They become edges once all nodes are read.
struct PbNodeArgs {
  ArgRange args;
  ArgRange kwargs;
};

// Appends the node in `message` to the graph, without its edges. If this fails, returns nullopt,
// and the decoder's error has the reason. Errors: kDuplicateName and those of the decoder.
std::optional<PbNodeArgs> decode_node(PbDecoder& decoder, Graph& graph, const schema::Node& message);

// Writes the node into `message`, which must be empty.
void encode_node(PbEncoder& encoder, const Graph& graph, NodeId id, schema::Node& message);

}  // namespace fxopt
