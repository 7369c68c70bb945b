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

// Builds a graph from nodes of other graphs of its module, with everything they carry: arguments,
// values, metadata, tags, verdicts, origins, and control dependencies on nodes that come along.
// Drops a control dependency on a node that stays behind, as the graphs run one after the other.
// Takes time proportional to the copied data.
class Transplant {
 public:
  // Adds a graph to the module, last in order, named `name` if that is free. Its description (class
  // name, metadata) is that of `from`, whose nodes come first. It omits torch.fx's calling
  // convention (in_spec, out_spec, code generator).
  Transplant(Module& module, std::string_view name, GraphKind kind, const Graph& from);

  Graph& graph() { return graph_; }
  // Takes nodes from this graph from here on. Keeps the mapping of nodes from earlier source
  // graphs.
  void take_from(const Graph& from);
  // The node's counterpart in the new graph; invalid if none exists.
  NodeId mapped(NodeId node) const { return mapped_.get(node); }
  // Adds the attributes of the source graph that no node has named so far, so that none is lost.
  void take_unread_attributes();
  // Maps `node` to `as`, a node of the new graph, from here on, and likewise its recorded storages.
  void bind(NodeId node, NodeId as);

  // Moves the node. It keeps its uid, and its name if that is free. Backward nodes become forward
  // in a graph of kind forward or inference.
  NodeId move(NodeId node);
  // Adds another copy of the node, named after `base`.
  NodeId copy(NodeId node, std::string_view base);
  // Moves a get_attr, or returns an existing node that reads the same attribute.
  NodeId read_attribute(NodeId node);
  // Adds an input for the node, whose value another graph returns as output `output`.
  void receive(NodeId node, size_t output);

  // Append the next leaf of the output. return_leaf() takes a leaf of the source graph's output,
  // with its spec and its element of metadata that has one element per leaf. return_saved() takes a
  // saved value.
  size_t num_leaves() const { return from_leaves_.size(); }
  void return_leaf(size_t leaf);
  void return_saved(NodeId node);
  // Adds the output, after the last leaf: a flat list or tuple, like the outermost one of the
  // source graph. Without `keeps_specs` the leaves get no specs. References in specs to other
  // inputs and outputs (alias_of_input, `of`) then point into the new graph; those into another
  // graph are dropped.
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
  // For the current source graph, and for earlier ones:
  struct Known {
    IdMap<NodeId, NodeId> mapped;
    HashMap<StringId, StringId> paths;  // by old path: the paths of attributes in the new graph
  };
  IdMap<NodeId, NodeId> mapped_;
  HashMap<StringId, StringId> paths_;
  std::map<const Graph*, Known> known_;
  HashMap<StorageId, StorageId> storages_;  // recorded storages that change in the new graph
  struct LeafEntries {
    StringId key;
    std::vector<Arg> elements;  // in the pool of the new graph; none for leaves without an element
  };
  // A reference of a spec to another place of its graph, as it is in the new graph: see finish().
  struct InputAlias {
    NodeId input;     // the input with the spec
    NodeId other;     // invalid: not in the new graph
    NodeId original;  // a node of `from_`; invalid once `other` is known
  };
  struct OutputAlias {
    size_t leaf = 0;       // the leaf with the spec
    NodeId input;          // invalid: aliases no input
    int64_t leaf_of = -1;  // an output of `from`; negative: aliases no output
    const Graph* from = nullptr;
  };
  std::vector<Arg> from_leaves_, leaves_;
  std::vector<LeafEntries> from_entries_, entries_;
  std::vector<OutputSpec> specs_;
  HashMap<StringId, size_t> entry_places_;  // among entries_, by key
  std::vector<NodeId> from_inputs_;         // placeholders of `from_`
  std::vector<InputAlias> input_aliases_;
  std::vector<OutputAlias> output_aliases_;
  std::map<std::pair<const Graph*, int64_t>, int64_t> leaf_places_;  // leaves passed to return_leaf()
  HashMap<StringId, const Attribute*> attributes_;                   // attributes of `from_`, by path
  HashMap<StringId, size_t> placed_;                                 // attributes of the new graph, by path
  HashMap<StringId, NodeId> read_;                                   // the first node that reads each
};

// Replaces the graph `old` in origins and erased nodes by the graph that `graph_of` returns for
// their uid: the graph that now has the node. O(nodes).
void rename_in_records(Module& module, StringId old, const std::function<StringId(uint64_t)>& graph_of);

}  // namespace fxopt
