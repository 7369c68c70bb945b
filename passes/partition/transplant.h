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

// Builds a graph from nodes of others of its module, with all that they have: arguments, values, metadata, tags, verdicts,
// origins, control dependencies on nodes that come along. One on what stays behind goes: the graphs run one after the
// other. In time of what is copied.
class Transplant {
 public:
  // A new graph of the module, last in order; `name`, where it is free. What describes the graph (class name, metadata) is
  // that of `from`, whose nodes come first, but how torch.fx calls it (in_spec, out_spec, code generator).
  Transplant(Module& module, std::string_view name, GraphKind kind, const Graph& from);

  Graph& graph() { return graph_; }
  // Nodes are of this graph from here on. One that nodes were taken from before is known as it was.
  void take_from(const Graph& from);
  // What stands for the node in the new graph; invalid: nothing does.
  NodeId mapped(NodeId node) const { return mapped_.get(node); }
  // Attributes of the graph that nodes are taken from which no node has named so far: they come along, nothing is lost.
  void take_unread_attributes();
  // From here on `node` is what stands there for `as`, which is of the new graph, also what is recorded of its memory.
  void bind(NodeId node, NodeId as);

  // The node, under its uid and, where that is free, its name. In a graph of forward or of inference it is of forward.
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
  // The output, after the last leaf: a flat list or tuple as the outermost of the graph that nodes are taken from. Without
  // `keeps_specs` nothing says what its leaves are. What specs say of other inputs and outputs (alias_of_input, `of`) is of
  // the new graph then, or gone where those are in another one.
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
  // Of the graph at hand, and of those before:
  struct Known {
    IdMap<NodeId, NodeId> mapped;
    HashMap<StringId, StringId> paths;  // of its attributes: those they have in the new graph
  };
  IdMap<NodeId, NodeId> mapped_;
  HashMap<StringId, StringId> paths_;
  std::map<const Graph*, Known> known_;
  HashMap<StorageId, StorageId> storages_;  // recorded ones that are others in the new graph
  struct LeafEntries {
    StringId key;
    std::vector<Arg> elements;  // in the pool of the new graph, none for leaves that have nothing
  };
  // What a spec says of another place of its graph, as that is in the new graph: see finish().
  struct InputAlias {
    NodeId input;     // whose spec it is
    NodeId other;     // invalid: not here
    NodeId original;  // of `from_`; invalid once `other` is known
  };
  struct OutputAlias {
    size_t leaf = 0;       // whose spec it is
    NodeId input;          // invalid: of none
    int64_t leaf_of = -1;  // of `from`; negative: of none
    const Graph* from = nullptr;
  };
  std::vector<Arg> from_leaves_, leaves_;
  std::vector<LeafEntries> from_entries_, entries_;
  std::vector<OutputSpec> specs_;
  HashMap<StringId, size_t> entry_places_;  // among entries_, by key
  std::vector<NodeId> from_inputs_;         // placeholders of `from_`
  std::vector<InputAlias> input_aliases_;
  std::vector<OutputAlias> output_aliases_;
  std::map<std::pair<const Graph*, int64_t>, int64_t> leaf_places_;  // leaves that were given back
  HashMap<StringId, const Attribute*> attributes_;                   // of `from_`, by path
  HashMap<StringId, size_t> placed_;                                 // attributes of the new graph, by path
  HashMap<StringId, NodeId> read_;                                   // the first node that reads each
};

// Origins and erased nodes of the graph `old` become those of the graph that `graph_of` gives for their uids: where its nodes
// went. O(nodes).
void rename_in_records(Module& module, StringId old, const std::function<StringId(uint64_t)>& graph_of);

}  // namespace fxopt
