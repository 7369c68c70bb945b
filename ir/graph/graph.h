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
  std::optional<TagVerdict> verdict;       // whether the passes followed `Node::tag`
  std::optional<TagVerdict> mark_verdict;  // whether the passes followed the mark `ap_must_save`
  std::optional<TagSource> tag_source;     // nullopt if the graph's producer wrote the tag
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

  // Returns true if every field is absent.
  bool is_empty() const {
    return !verdict && !mark_verdict && !tag_source && origins.empty() && control.empty() && !stream && !bucket &&
           capture == Capture::kUnspecified && remarks.empty() && !input && !rng && event_record.empty() &&
           event_wait.empty() && unknown.empty();
  }
};

// One node. Passes may read all fields. Only the functions of Graph change inputs, order and names,
// because these must stay consistent with the graph's tables. Passes may write all other fields
// directly.
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
  ValueId value;         // invalid if absent
  StringId module_path;  // invalid if absent
  StringId module_path_source;
  RegionId region;
  SourceId source;
  ExtraId extra;
  uint32_t phase_markers = 0;  // bits of marker_bit()
  uint64_t uid = 0;
  int64_t seq_nr = 0;

  // Copies phase, autograd sequence number, module path, checkpoint region and source location.
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
  // Returns true if the target names an attribute that the node reads or calls.
  bool names_attribute() const { return kind == NodeKind::kGetAttr || kind == NodeKind::kCallModule; }
  // Returns true for a call of a function, a method or a module.
  bool runs() const {
    return kind != NodeKind::kPlaceholder && kind != NodeKind::kGetAttr && kind != NodeKind::kOutput;
  }
};

// An edge. The node `user` reads the node `input`. `slot` is the index of the argument in the pool.
struct Use {
  NodeId input;
  NodeId user;
  ArgIndex slot;
  UseId next;  // next use of the same input
  UseId prev;
};

// One FX graph, with its nodes in schedule order. Every input should come before its users. A file
// may violate this rule, and the verifier reports the violation. Passes never get a graph that
// violates this rule.
//
// Ids are never reused. An erased node leaves a tombstone. Inputs, order and names are edited only
// through this class, because only this class updates the use-lists.
class Graph {
 public:
  // Module::add_graph() calls this constructor and supplies the id. A graph without an id is not
  // one of the module's graphs.
  Graph(Module& module, StringId name, GraphId id = GraphId()) : name_(name), id_(id), module_(&module) {}
  Graph& operator=(const Graph&) = delete;

  // -- the graph itself
  Module& module() { return *module_; }
  const Module& module() const { return *module_; }
  StringId name() const { return name_; }
  GraphId id() const { return id_; }
  GraphKind kind = GraphKind::kUnspecified;
  std::vector<OutputSpec> outputs;  // one for each leaf of the output node's argument, or empty
  std::vector<Attribute> attributes;
  std::optional<int64_t> num_forward_outputs;
  StringId in_spec, out_spec;
  std::vector<SubclassLayout> subclasses;
  StringId owner, class_name;
  ArgRange meta;  // in pool()
  std::string unknown;

  // Calls field(name, member) for the fields that are neither nodes nor records, see records.h. The
  // readers and writers of the text form (.fxg) use this list.
  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("kind", self.kind);
    field("num_forward_outputs", self.num_forward_outputs);
    field("in_spec", self.in_spec);
    field("out_spec", self.out_spec);
    field("owner", self.owner);
    field("class_name", self.class_name);
    field("meta", self.meta);
  }

  // -- reading
  const Node& operator[](NodeId id) const { return nodes_[id.index()]; }
  Node& operator[](NodeId id) { return nodes_[id.index()]; }
  // All node ids of the graph are below num_ids(), including the ids of erased nodes. Use num_ids()
  // as the size of an IdMap. num_nodes() does not count erased nodes.
  size_t num_ids() const { return nodes_.size(); }
  size_t num_nodes() const { return live_; }
  size_t num_edges() const { return live_uses_; }
  const Pool& pool() const { return pool_; }
  Pool& pool() { return pool_; }
  std::string_view name_of(NodeId id) const;
  const Op& op(NodeId id) const;            // opaque_op() if the node is not a call
  const Value& value(NodeId id) const;      // has the kind kAbsent if no value is recorded
  const NodeExtra* extra(NodeId id) const;  // nullptr if the node has no NodeExtra
  NodeExtra& mutable_extra(NodeId id);      // created on first use
  NodeId find(StringId name) const;         // invalid if no live node has that name
  NodeId output() const;                    // the last output node; invalid if none exists

  // Iterates over the nodes in schedule order.
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
  // Returns the node's position in the schedule. Positions are numbered from 0 without gaps. The
  // first call after a change of order costs O(nodes) and fills a cache. Every other call is O(1).
  // Several threads may call position() and users() of one const graph only if the cache is filled.
  // To fill the cache, call position() once after the last change.
  uint32_t position(NodeId id) const;

  // Returns the distinct nodes in args and kwargs, in order of first appearance. O(arguments).
  std::vector<NodeId> inputs(NodeId id) const;
  // Calls visit(NodeId input) for every input edge of node `id`, in argument order. An input with
  // several edges is visited several times. O(arguments). Allocates no memory.
  template <class Visit>
  void for_each_input(NodeId id, Visit&& visit) const {
    visit_edges(nodes_[id.index()].args, visit);
    visit_edges(nodes_[id.index()].kwargs, visit);
  }
  // Returns the edges from a node to its inputs, in argument order. Several edges may have the same
  // input. O(arguments).
  std::vector<UseId> edges(NodeId id) const;
  // Returns the distinct nodes that read `id`, in schedule order. Calls position(). O(k log k) for
  // k uses.
  std::vector<NodeId> users(NodeId id) const;
  bool has_users(NodeId id) const { return use_heads_[id.index()].first.is_valid(); }
  uint32_t num_uses(NodeId id) const { return use_heads_[id.index()].count; }
  // Returns the first of the node's uses. Uses are linked in the order in which they were attached
  // to the node; this order has no meaning. No result may depend on this order.
  UseId first_use(NodeId id) const { return use_heads_[id.index()].first; }
  const Use& use(UseId id) const { return uses_[id.index()]; }

  // Returns a call's argument by position or by keyword. Returns nullptr if the call has no such
  // argument.
  const Arg* arg(NodeId id, size_t positional) const;
  const Arg* kwarg(NodeId id, std::string_view name) const;
  // Returns a metadata entry of a node, or nullptr if the node does not have the key.
  const Arg* meta_entry(NodeId id, std::string_view key) const;

  // -- building and editing

  // Appends a node without arguments. The name must be free. To check the name, call find(). The
  // node gets the given uid. If necessary, the module's uid counter is raised above that uid.
  NodeId add_node(NodeKind kind, StringId name, TargetId target, uint64_t uid);
  // Inserts a new node before `before`, or at the end if `before` is invalid. The node gets a new
  // uid, and fresh_name() makes its name from `base`.
  NodeId insert_node(NodeId before, NodeKind kind, std::string_view base, TargetId target);
  // Inserts a copy of `original` before `before`. The copy has the same kind, target, arguments,
  // keyword arguments, phase, module path, source and region. It also has the same stream, bucket,
  // capture rule, random draws and value. The metadata is copied. If `mapped` has an entry for an
  // input, the copy reads that entry instead of the input. The copy gets a new uid, and
  // fresh_name() makes its name from `base`. Tag, verdict, origins and remarks are not copied.
  // O(size of the node).
  NodeId clone_node(NodeId original, NodeId before, std::string_view base, const IdMap<NodeId, NodeId>& mapped);
  // Copies all fields that clone_node() copies, except kind, target and arguments. `from` is a
  // graph of the same module. If `from` is not this graph, calls `edit` with each tensor of the
  // copied value.
  void copy_fields(
      const Graph& from, NodeId original, NodeId to, const Pool::TensorEdit& edit = [](Tensor&) {});
  // Copies arguments of a graph of the same module into pool(). If `mapped` has an entry for an
  // input, the copy reads that entry instead of the input. If `from` is another graph, `mapped`
  // must have an entry for every input.
  ArgRange copy_args(const Graph& from, ArgRange range, const IdMap<NodeId, NodeId>& mapped);
  // Sets a node's arguments to ranges that are already in pool(). Removes the old edges. Every
  // kNode argument in the ranges becomes an edge.
  void set_args(NodeId id, ArgRange args, ArgRange kwargs);
  // Changes one edge: the edge's argument then refers to `input`.
  void set_use(UseId use, NodeId input);
  // Changes all users of the node `from`: they then read the node `to`. The two nodes must differ.
  void replace_all_uses(NodeId from, NodeId to);
  void move_before(NodeId id, NodeId before);
  // Puts the nodes in the given order. The order must name each node once and must have every input
  // before its users. DependenceMap::violation() checks other constraints. O(nodes + edges).
  void set_schedule(std::span<const NodeId> order);
  // Removes a node that has no users. Control dependencies on the node stay recorded until
  // prune_control() replaces them.
  void erase(NodeId id);
  void rename(NodeId id, StringId name);
  // Replaces control dependencies on an erased node by dependencies on the nodes that the erased
  // node waited for. The pass manager calls this after each pass. O(control dependencies).
  void prune_control();
  // Returns a name that no node of this graph has. If `base` is free, returns `base`. Otherwise
  // returns `base` with a number, such as "mm_1" for "mm". Numbers count up from 1, separately for
  // each pair of graph and base (Module::name_counters). Skips numbers whose name is taken.
  StringId fresh_name(std::string_view base);
  // Replaces the metadata of a node by a range of pool().
  void set_meta(NodeId id, ArgRange entries) { nodes_[id.index()].meta = entries; }

 private:
  friend class Module;
  Graph(const Graph&) = default;
  // Module::clone() uses this constructor. `module` is the copy of the original's module.
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
        visit_edges(arg.range(), visit);  // not too deep: every reader limits the depth
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
