#pragma once

#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash_table.h"
#include "ir/graph/arg.h"
#include "ir/graph/ids.h"
#include "ir/graph/pool.h"
#include "ir/graph/records.h"
#include "ir/graph/types.h"
#include "ir/graph/value.h"

namespace fxopt {

class Module;
struct Op;

// A dependency that carries no data.
struct ControlDep {
  NodeId node;
  ControlKind kind = ControlKind::kOrder;
  bool operator==(const ControlDep&) const = default;
};

// Fields that few nodes have.
struct NodeExtra {
  std::optional<TagVerdict> verdict;       // the tag's
  std::optional<TagVerdict> mark_verdict;  // the mark's, of a first partition (ir/step/marks.h)
  std::optional<TagSource> tag_source;     // nothing: the maker of the graph wrote the tag
  std::vector<Origin> origins;
  std::vector<ControlDep> control;
  std::optional<StringId> stream;
  std::optional<Bucket> bucket;
  Capture capture = Capture::kUnspecified;
  std::vector<Remark> remarks;
  std::optional<InputSpec> input;
  std::optional<RngUse> rng;
  std::vector<StringId> event_record;
  std::vector<StringId> event_wait;
  std::string unknown;  // unknown fields of a newer schema, serialized
};

// One node. Passes may read all of it. Graph's functions write fields with invariants (inputs,
// order, names), passes write the others.
struct Node {
  NodeKind kind = NodeKind::kUnspecified;
  Phase phase = Phase::kUnspecified;
  Tag tag = Tag::kNone;
  bool erased = false;
  bool has_seq_nr = false;
  StringId name;
  TargetId target;
  ArgRange args;         // in the graph's pool
  ArgRange kwargs;       // key (kString), value, key, value, ...
  ArgRange meta;         // key (kString), value, ...
  ValueId value;         // invalid: absent
  StringId module_path;  // invalid: absent
  StringId module_path_source;
  RegionId region;
  SourceId source;
  ExtraId extra;
  uint32_t phase_markers = 0;  // bits of marker_bit()
  uint64_t uid = 0;
  int64_t seq_nr = 0;

  // Takes over the place in the step and the origin: phase, sequence number, module path, region,
  // source.
  void take_context(const Node& other) {
    phase = other.phase;
    phase_markers = other.phase_markers;
    has_seq_nr = other.has_seq_nr;
    seq_nr = other.seq_nr;
    module_path = other.module_path;
    module_path_source = other.module_path_source;
    region = other.region;
    source = other.source;
  }

  bool is_call() const { return kind == NodeKind::kCallFunction; }
  bool has(PhaseMarker marker) const { return (phase_markers & marker_bit(marker)) != 0; }
  // True if its target names an attribute that it reads or calls.
  bool names_attribute() const { return kind == NodeKind::kGetAttr || kind == NodeKind::kCallModule; }
  // True for a call of a function, a method or a module.
  bool runs() const {
    return kind != NodeKind::kPlaceholder && kind != NodeKind::kGetAttr && kind != NodeKind::kOutput;
  }
};

// An edge: `user` reads `input` at `slot` of the pool.
struct Use {
  NodeId input;
  NodeId user;
  ArgIndex slot;
  UseId next;  // next use of the same input
  UseId prev;
};

// One FX graph: nodes in schedule order. Every input is expected before its users. A file may
// violate this, which the verifier reports; passes never get such a graph.
//
// Ids are never reused. An erased node leaves a tombstone. All edits of inputs, order and names go
// through this class, which alone keeps the use-lists.
class Graph {
 public:
  // Called by Module::add_graph(), which supplies the id. Without an id: a graph outside the
  // module's.
  Graph(Module& module, StringId name, GraphId id = GraphId()) : name_(name), id_(id), module_(&module) {}
  Graph& operator=(const Graph&) = delete;

  // -- the graph itself
  Module& module() { return *module_; }
  const Module& module() const { return *module_; }
  StringId name() const { return name_; }
  GraphId id() const { return id_; }
  GraphKind kind = GraphKind::kUnspecified;
  std::vector<OutputSpec> outputs;  // one for each leaf of the output's argument, or empty
  std::vector<Attribute> attributes;
  std::optional<int64_t> num_forward_outputs;
  StringId in_spec, out_spec;
  std::vector<SubclassLayout> subclasses;
  StringId owner, class_name;
  ArgRange meta;  // in pool()
  std::string unknown;

  // -- reading
  const Node& operator[](NodeId id) const { return nodes_[id.index()]; }
  Node& operator[](NodeId id) { return nodes_[id.index()]; }
  size_t num_ids() const { return nodes_.size(); }  // ids are below this; the size for an IdMap
  size_t num_nodes() const { return live_; }
  size_t num_edges() const { return live_uses_; }
  const Pool& pool() const { return pool_; }
  Pool& pool() { return pool_; }
  std::string_view name_of(NodeId id) const;
  const Op& op(NodeId id) const;            // the target's description; opaque if no call
  const Value& value(NodeId id) const;      // the absent value if none is recorded
  const NodeExtra* extra(NodeId id) const;  // nullptr if the node has none
  NodeExtra& mutable_extra(NodeId id);      // made on demand
  NodeId find(StringId name) const;         // invalid if no live node has that name
  NodeId output() const;                    // the last output node; invalid if none exists

  // Schedule order.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = NodeId;
    using difference_type = std::ptrdiff_t;
    using pointer = const NodeId*;
    using reference = NodeId;
    Iterator() = default;
    Iterator(const Graph* graph, NodeId at) : graph_(graph), at_(at) {}
    NodeId operator*() const { return at_; }
    Iterator& operator++() {
      at_ = graph_->next(at_);
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const Graph* graph_ = nullptr;
    NodeId at_;
  };
  struct Range {
    Iterator first, last;
    Iterator begin() const { return first; }
    Iterator end() const { return last; }
  };
  Range nodes() const { return {Iterator(this, first_), Iterator(this, NodeId())}; }
  NodeId first() const { return first_; }
  NodeId last() const { return last_; }
  NodeId next(NodeId id) const { return links_[id.index()].next; }
  NodeId prev(NodeId id) const { return links_[id.index()].prev; }
  // Place in the schedule, from 0 without gaps. O(1); the first call after a change of order costs
  // O(nodes) and fills a cache. So position() and users() of one const graph are safe from several
  // threads only after one call of position() since the last change.
  uint32_t position(NodeId id) const;

  // Inputs: each distinct node among args and kwargs, in order of first appearance. O(arguments).
  std::vector<NodeId> inputs(NodeId id) const;
  // Calls visit(NodeId input) for every edge, in argument order, with repeats. O(arguments),
  // allocates nothing.
  template <class Visit>
  void for_each_input(NodeId id, Visit&& visit) const {
    visit_edges(nodes_[id.index()].args, visit);
    visit_edges(nodes_[id.index()].kwargs, visit);
  }
  // The edges of a node in argument order, with repeats. O(arguments).
  std::vector<UseId> edges(NodeId id) const;
  // Users: each distinct node that reads `id`, in schedule order. O(k log k) for k uses. Calls
  // position().
  std::vector<NodeId> users(NodeId id) const;
  bool has_users(NodeId id) const { return use_heads_[id.index()].first.is_valid(); }
  uint32_t num_uses(NodeId id) const { return use_heads_[id.index()].count; }
  // Uses in order of their creation, which is arbitrary: only for results that do not depend on it.
  UseId first_use(NodeId id) const { return use_heads_[id.index()].first; }
  const Use& use(UseId id) const { return uses_[id.index()]; }

  // Call arguments by position or keyword; nullptr beyond the end, or if the keyword is missing.
  const Arg* arg(NodeId id, size_t positional) const;
  const Arg* kwarg(NodeId id, std::string_view name) const;
  // A metadata entry of a node.
  const Arg* meta_entry(NodeId id, std::string_view key) const;

  // -- building and editing
  // Appends a node without arguments. The name must be free (check with find()). The uid is taken
  // as given, and the module's counter moves beyond it.
  NodeId add_node(NodeKind kind, StringId name, TargetId target, uint64_t uid);
  // A new node before `before` (invalid: at the end): fresh uid, name from `base` by fresh_name().
  NodeId insert_node(NodeId before, NodeKind kind, std::string_view base, TargetId target);
  // A copy of `original` before `before`: same target, arguments (edges go through `mapped` if it
  // has the node), keyword arguments, own metadata, phase, module path, source, region, and value
  // with the same storages. New uid, name from `base`. Does not copy tag, verdict, origins and
  // remarks. O(size of the node).
  NodeId clone_node(NodeId original, NodeId before, std::string_view base, const IdMap<NodeId, NodeId>& mapped);
  // Copies everything that clone_node() copies besides the arguments, from a node of a graph of the
  // same module. `edit` is called with the tensors of a value from another graph.
  void copy_fields(
      const Graph& from, NodeId original, NodeId to, const Pool::TensorEdit& edit = [](Tensor&) {});
  // Copies arguments of a graph of the same module into pool(). Edges go through `mapped`, which
  // must have every input if `from` is another graph.
  ArgRange copy_args(const Graph& from, ArgRange range, const IdMap<NodeId, NodeId>& mapped);
  // Sets a node's arguments to ranges already in pool(), whose kNode arguments become edges.
  // Removes the old edges.
  void set_args(NodeId id, ArgRange args, ArgRange kwargs);
  // Makes one edge read another node.
  void set_use(UseId use, NodeId input);
  // Makes every edge to `from` read `to` instead.
  void replace_all_uses(NodeId from, NodeId to);
  void move_before(NodeId id, NodeId before);
  // Puts the nodes in this order, which names each once and has every input before its users. Other
  // constraints are checked by DependenceMap::violation(). O(nodes + edges).
  void set_schedule(std::span<const NodeId> order);
  // Removes a node that has no users. Control dependencies on it stay recorded; prune_control()
  // rewires them.
  void erase(NodeId id);
  void rename(NodeId id, StringId name);
  // Replaces control dependencies on erased nodes by dependencies on the nodes that those waited
  // for. Called by the pass manager after each pass. O(control dependencies).
  void prune_control();
  // A name that no node of this graph has: `base` itself if free, else base_1, base_2, ... by the
  // module's counters.
  StringId fresh_name(std::string_view base);
  // Replaces the metadata of a node; the range is in pool().
  void set_meta(NodeId id, ArgRange entries) { nodes_[id.index()].meta = entries; }

 private:
  friend class Module;
  Graph(const Graph&) = default;
  // Used by Module::clone(): `module` is the copy of the original's.
  Graph(const Graph& original, Module& module) : Graph(original) { module_ = &module; }

  struct Links {
    NodeId prev, next;
  };
  struct UseHead {
    UseId first, last;
    uint32_t count = 0;
  };

  template <class Visit>
  void visit_edges(ArgRange range, Visit& visit) const {
    for (const Arg& arg : pool_.args(range)) {
      if (arg.is(ArgKind::kNode)) {
        visit(arg.as_node());
      } else if (arg.has_children()) {
        visit_edges(arg.range(), visit);  // depth is bounded by every reader
      }
    }
  }
  void collect_edges(ArgRange range, std::vector<UseId>& out) const;
  NodeId new_node(NodeKind kind, StringId name, TargetId target, uint64_t uid);
  void link_before(NodeId id, NodeId before);
  void unlink(NodeId id);
  void add_uses(NodeId user, ArgRange range);
  void drop_uses(ArgRange range);
  void attach(UseId use, NodeId input);
  void detach(UseId use);
  Arg copy_arg(const Graph& from, ArgIndex index, const IdMap<NodeId, NodeId>& mapped);

  StringId name_;
  GraphId id_;
  Module* module_;
  Pool pool_;
  std::vector<Node> nodes_;
  std::vector<Links> links_;
  std::vector<UseHead> use_heads_;
  std::vector<Use> uses_;
  std::deque<NodeExtra> extras_;
  HashMap<StringId, NodeId> by_name_;  // looked up, never iterated
  NodeId first_, last_;
  size_t live_ = 0;
  size_t live_uses_ = 0;
  mutable std::vector<uint32_t> positions_;
  mutable bool positions_valid_ = false;
};

}  // namespace fxopt
