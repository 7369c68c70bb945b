#pragma once

#include <optional>

#include "ir/graph/graph.h"

namespace fxopt::schema {
class Node;
}  // namespace fxopt::schema

namespace fxopt {

class PbDecoder;
class PbEncoder;

// Arguments of a node that is read: they become edges when all nodes are there.
struct PbNodeArgs {
  ArgRange args;
  ArgRange kwargs;
};

// Appends the node of a message to the graph, but for its edges. On failure nothing, the reason in the decoder's error.
// Errors: kDuplicateName and those of the decoder.
std::optional<PbNodeArgs> decode_node(PbDecoder& decoder, Graph& graph, const schema::Node& message);

// Fills `message`, which must be empty.
void encode_node(PbEncoder& encoder, const Graph& graph, NodeId id, schema::Node& message);

}  // namespace fxopt
