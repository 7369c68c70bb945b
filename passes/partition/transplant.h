#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/hash_table.h"
#include "ir/graph/module.h"

namespace fxopt {

// Builds a graph from nodes of others of its module, with all that they have: arguments, values, metadata, tags, verdicts,
// origins, control dependencies on nodes that come along. One on what stays behind goes: the graphs run one after the
// other. In time of what is copied.
class Transplant {
 public:
  // A new graph of the module, last in order; `name`, where it is free. What describes the graph (class name, metadata) is
  // that of `from`, whose nodes come first, but how torch.fx calls it (in_spec, out_spec, code generator).
  Transplant(Module& module, std::string_view name, GraphKind kind, const Graph& from);

  Graph& graph() { return graph_; }
  // Nodes are of this graph from here on.
  void take_from(const Graph& from);
  // What stands for the node in the new graph; invalid: nothing does.
  NodeId mapped(NodeId node) const { return mapped_.get(node); }
  // From here on `node` is what stands there for `as`, which is of the new graph, also what is recorded of its memory.
  void bind(NodeId node, NodeId as);

  // The node, under its uid and, where that is free, its name.
  NodeId move(NodeId node);
  // A second one of it, called by `base`.
  NodeId copy(NodeId node, std::string_view base);
  // The same of a get_attr, but the one that is there where one reads the same attribute.
  NodeId read_attribute(NodeId node);
  // An input that stands for the node of another graph, whose output it is at that place.
  void receive(NodeId node, size_t output);

  // The next leaf of the output: that leaf of the graph that nodes are taken from, with its spec and, of metadata that has
  // one element for each leaf, its element. Or a value that is saved.
  size_t num_leaves() const { return from_leaves_.size(); }
  void give_back(size_t leaf);
  void give_saved(NodeId node);
  // The output, after the last leaf: a list or a tuple as that of the graph that nodes are taken from. Without
  // `keeps_specs` nothing says what its leaves are.
  void finish(bool keeps_specs);

 private:
  void copy_meta(const Graph& from);
  void fill(NodeId node, NodeId id);
  StringId placed_path(TargetId target);
  void read_output();
  void write_entries(NodeId output);

  Graph& graph_;
  const Graph* from_;
  IdMap<NodeId, NodeId> mapped_;
  HashMap<StorageId, StorageId> storages_;  // recorded ones that are others in the new graph
  struct LeafEntries {
    StringId key;
    std::vector<Arg> elements;  // in the pool of the new graph, none for leaves that have nothing
  };
  std::vector<Arg> from_leaves_, leaves_;
  std::vector<LeafEntries> from_entries_, entries_;
  std::vector<OutputSpec> specs_;
  HashMap<StringId, const Attribute*> attributes_;  // of `from_`, by path
  HashMap<StringId, size_t> placed_;                // attributes of the new graph, by path
  HashMap<StringId, NodeId> read_;                  // the first node that reads each
};

}  // namespace fxopt
