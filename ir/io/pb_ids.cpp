#include "ir/io/pb_ids.h"

#include "fxgraph.pb.h"

namespace fxopt {

void spell_ids(schema::Module& module) {
  CountedIds storages;
  for (schema::Storage& storage : *module.mutable_storages()) {
    storage.set_id(storages.read(storage.has_id(), storage.id()));
  }
  CountedIds nodes;
  for (schema::Graph& graph : *module.mutable_graphs()) {
    for (schema::Node& node : *graph.mutable_nodes()) node.set_uid(nodes.read(node.has_uid(), node.uid()));
  }
}

}  // namespace fxopt
