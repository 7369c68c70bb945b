#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/hash_table.h"
#include "ir/graph/module.h"

namespace fxopt {

// Builds a graph from nodes of other graphs of its module. A node is copied with all its data:
// arguments, value, metadata, tag, verdict and origins. A control dependency is copied if its
// target is in the new graph. Other control dependencies are dropped, as the graphs run one after
// the other. Takes time proportional to the copied data.
class Transplant {
 public:
  // Adds a graph to the module, as its last graph. The graph is named `name`. If that name is in
  // use, a number is appended. The description of the graph (class name, metadata) is copied from
  // `from`, which is also the first source graph. torch.fx's calling convention (in_spec, out_spec,
  // code generator) is left out.
  Transplant(Module& module, std::string_view name, GraphKind kind, const Graph& from);

  Graph& graph() { return graph_; }
  // Makes `from` the current source graph. Keeps the mapping of nodes from earlier source graphs.
  void take_from(const Graph& from);
  // Returns the node's counterpart in the new graph. Invalid if there is none.
  NodeId mapped(NodeId node) const { return mapped_.get(node); }
  // Adds the attributes of the source graph that the new graph does not have yet, so that no
  // attribute is lost.
  void take_unread_attributes();
  // Nodes that are added later use `as`, a node of the new graph, in place of `node`. Maps the
  // recorded storages of `node` to the storages of `as` in the same way.
  void bind(NodeId node, NodeId as);

  // Moves the node. The node keeps its uid. It also keeps its name if that name is free in the new
  // graph. In a graph of kind forward or inference, a backward node becomes a forward node.
  NodeId move(NodeId node);
  // Adds another copy of the node, named after `base`.
  NodeId copy(NodeId node, std::string_view base);
  // Moves a get_attr. If a node of the new graph already reads the same attribute, returns that
  // node instead.
  NodeId read_attribute(NodeId node);
  // Adds an input to the new graph. The input receives the value of `node`, which another graph
  // returns as output number `output`.
  void receive(NodeId node, size_t output);

  // Returns the number of leaves of the source graph's output.
  size_t num_leaves() const { return from_leaves_.size(); }
  // Appends a leaf of the source graph's output to the new output, with the spec of the leaf.
  // OutputSpec::of is the name of a placeholder. If the new graph has this placeholder, the new
  // spec contains the new name of the placeholder.
  //
  // If a metadata entry of the source graph's output node is a list with one element for each leaf,
  // also copies the element of this leaf.
  void return_leaf(size_t leaf);
  // Appends a saved value to the new output.
  void return_saved(NodeId node);
  // Adds the output. Call finish() after the last leaf. The output is a flat list if the outermost
  // container of the source graph's output is a list. Otherwise the output is a flat tuple. If
  // `keeps_specs` is false, the leaves get no specs.
  //
  // The spec of an input or output may contain the index of an aliased input or output
  // (`alias_of_input`, `alias_of_output`). finish() replaces each of these indices by the index in
  // the new graph. If the new graph does not have the aliased input or output, finish() removes the
  // index.
  void finish(bool keeps_specs);

 private:
  void copy_meta(const Graph& from);
  void fill(NodeId node, NodeId id);
  StringId placed_path(TargetId target);
  void read_output();
  void write_entries(NodeId output);
  void find_aliases();
  void write_aliases();
  NodeId from_input(int64_t place) const;

  Graph& graph_;
  const Graph* from_ = nullptr;
  // Two tables lead from a source graph to the new graph: the copied nodes, and the paths of
  // attributes. `mapped_` and `paths_` are the tables of the current source graph. `known_` has the
  // tables of earlier source graphs.
  struct Known {
    IdMap<NodeId, NodeId> mapped;
    HashMap<StringId, StringId> paths;  // path of an attribute in the source graph -> in the new graph
  };
  IdMap<NodeId, NodeId> mapped_;
  HashMap<StringId, StringId> paths_;
  std::map<const Graph*, Known> known_;
  HashMap<StorageId, StorageId> storages_;  // from bind(): recorded storage -> storage in the new graph
  // An entry in the metadata of an output node. The entry is a list with one element for each leaf.
  struct LeafEntries {
    StringId key;
    // The elements of the list, in the pool of the new graph. The element of a leaf is `none` if
    // the leaf is a saved value, or if the output of its source graph does not have this entry.
    std::vector<Arg> elements;
  };
  // The spec of an input or output may state an alias: the input or output shares memory with
  // another input or output. finish() writes the aliases of the new graph.
  struct InputAlias {
    NodeId input;  // the input with the spec, in the new graph
    // The aliased input, as a node of the new graph. find_aliases() sets `other`. Invalid before
    // that call, and if the new graph does not have the aliased input.
    NodeId other;
    // The aliased input, as a node of the source graph. find_aliases() uses this id once to set
    // `other`, and then sets `original` to an invalid id.
    NodeId original;
  };
  struct OutputAlias {
    size_t leaf = 0;  // index of a leaf in the new output. The spec of this leaf states the alias
    NodeId input;     // the aliased input in the new graph; invalid if there is none
    // Index of the other leaf, if `leaf` aliases another leaf of the source graph's output.
    // Negative if `leaf` aliases no other leaf. The index counts the leaves in the output of
    // `from`.
    int64_t leaf_of = -1;
    const Graph* from = nullptr;  // the source graph of `leaf`
  };
  std::vector<Arg> from_leaves_, leaves_;
  std::vector<LeafEntries> from_entries_, entries_;
  std::vector<OutputSpec> specs_;
  HashMap<StringId, size_t> entry_places_;  // by key: the index in `entries_`
  std::vector<NodeId> from_inputs_;         // placeholders of `from_`
  std::vector<InputAlias> input_aliases_;
  std::vector<OutputAlias> output_aliases_;
  std::map<std::pair<const Graph*, int64_t>, int64_t> leaf_places_;  // the leaves passed to return_leaf(), with their
                                                                     // places in the new output
  HashMap<StringId, const Attribute*> attributes_;                   // attributes of `from_`, by path
  HashMap<StringId, size_t> placed_;                                 // attributes of the new graph, by path
  HashMap<StringId, NodeId> read_;                                   // by path: the first node that reads the attribute
};

// Origins of nodes and the ledger of erased nodes refer to a node by graph name and uid. Replaces
// the graph name `old` in these references by `graph_of(uid)`, the name of the graph that now has
// the node. O(nodes).
void rename_in_records(Module& module, StringId old, const std::function<StringId(uint64_t)>& graph_of);

}  // namespace fxopt
