#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/alias/effect_map.h"
#include "ir/alias/regions.h"
#include "ir/graph/graph.h"

namespace fxopt {

// A storage, as derived from the ops of this graph. A view shares the storage of its base, and
// every other result owns a new storage.
//
// This is not the storage id that the file records, because tracers record wrong ids. Two examples
// of wrong ids:
// - A wait returns the storage of its collective's result, but fake metadata give the wait a new
//   id.
// - A recomputed copy of a node creates a new storage, but its metadata have the original's id.
//
// The file's ids are used in two cases:
// - The op table does not decide whether a result shares an input's storage. Exception: for some
//   ops, such as `reshape`, the recorded sizes and strides may prove that the result is a view.
// - The tensor is an input. Only the caller knows the storages of inputs.
//
// Two inputs share a storage if and only if both have the same id in the file. This rule has two
// exceptions:
// - Each tangent has its own storage.
// - If the inputs may represent results of regions (regions.h), the same id means only that the
//   inputs may share a storage.
using BufferId = Id<struct BufferTag>;

// A tensor object of PyTorch: sizes, strides and a storage. An in-place op returns the object that
// was passed to it. Several nodes can therefore represent one object. A view is a new object on the
// same storage. A write changes a storage. `t_`, `resize_` and `set_` change the metadata of one
// object.
using ObjectId = Id<struct ObjectTag>;

enum class BufferSource : uint8_t {
  kNode,         // created by the node `producer`
  kPlaceholder,  // belongs to the caller
  kAttribute,    // a constant of the module
};

struct Buffer {
  BufferSource source = BufferSource::kNode;
  NodeId producer;    // the first node whose value has a tensor on this storage
  ValueId value;      // the tensor of `producer` on this storage
  StorageId carried;  // the file's storage id, or invalid if the file has none
  StringId device;
};

// Calls `visit` for each valid buffer.
template <class Visit>
void for_each_buffer(std::span<const BufferId> buffers, const Visit& visit) {
  for (const BufferId id : buffers) {
    if (id.is_valid()) visit(id);
  }
}

// Whether `holds` is true for at least one valid buffer of `buffers`.
template <class Holds>
bool any_buffer(std::span<const BufferId> buffers, const Holds& holds) {
  return std::ranges::any_of(buffers, [&](BufferId id) { return id.is_valid() && holds(id); });
}

// The storages that each node of one graph creates, reads and writes, and the places of these
// writes in the schedule. The map also has the places where the metadata of tensors changes in
// place.
//
// Built in one pass over the schedule, O(nodes + edges + tensors). Valid until the graph changes.
class StorageMap {
 public:
  explicit StorageMap(const Graph& graph);
  // Like the first constructor, but uses the caller's EffectMap instead of a new EffectMap.
  // Subgraphs that the caller's EffectMap has already examined are not examined a second time.
  StorageMap(const Graph& graph, EffectMap& effects);
  // Like the first constructor, but uses the caller's RegionBodies instead of a new RegionBodies.
  // Regions that the caller's RegionBodies has already examined are not examined a second time.
  StorageMap(const Graph& graph, RegionBodies& regions);

  size_t num_buffers() const { return buffers_.size(); }
  const Buffer& buffer(BufferId id) const { return buffers_[id.index()]; }

  // Returns the buffer of each tensor in the node's value, depth first. A buffer is invalid if the
  // tensor has no storage (a layout without strides).
  std::span<const BufferId> buffers(NodeId node) const { return slice(values_[node.index()]); }
  // Returns the object of each tensor in the node's value, in the order of buffers().
  std::span<const ObjectId> objects(NodeId node) const {
    return std::span(objects_).subspan(first_objects_[node.index()], values_[node.index()].count);
  }
  // Returns the buffers that the node writes or may write, according to the op table and the
  // schema. The list is sorted and has no duplicates. A call with unknown writes (see Effect) is
  // assumed to write all its inputs. An opaque op with a schema writes according to the schema's
  // annotations.
  std::span<const BufferId> writes(NodeId node) const { return slice(writes_[node.index()]); }
  // Returns the buffers of the node's input tensors at the moment when the node runs. The list is
  // sorted and has no duplicates. A view reads no data. However, the buffers of a view's inputs are
  // listed, because the view's result refers to their data. A getitem lists only the buffers of the
  // element that it takes.
  std::span<const BufferId> reads(NodeId node) const { return slice(reads_[node.index()]); }
  // True if the node's result depends on the bytes of its inputs. A view depends only on the place
  // of its input in memory.
  bool reads_data(NodeId node) const;
  // Whether `a` and `b` are the same node, or are single tensors on the same storage.
  bool share_storage(NodeId a, NodeId b) const;

  // Returns the object class of an object. Objects that may be the same tensor have the same object
  // class. For example, `contiguous` returns its argument if the argument is already contiguous.
  // The result of `contiguous` and its argument may therefore be the same object.
  ObjectId object_class(ObjectId id) const { return object_classes_[id.index()]; }

  // Returns the alias class of a buffer. Buffers that may share memory have the same alias class.
  // For example, outputs of a call with unknown writes may alias any input of the call. Use alias
  // classes to decide whether a rewrite is legal, and buffers to count bytes.
  BufferId alias_class(BufferId id) const { return classes_[id.index()]; }

  // True if a node strictly after `after` and strictly before `before` writes `buffer` or a buffer
  // that may share memory with `buffer`. O(log writes).
  bool written_between(BufferId buffer, NodeId after, NodeId before) const;
  // True if a node strictly after `after` writes `buffer` or a buffer that may share memory with
  // `buffer`. O(1).
  bool written_after(BufferId buffer, NodeId after) const;
  bool is_written(BufferId buffer) const { return !class_writes_[classes_[buffer.index()].index()].empty(); }

  // True if a node strictly after `node` changes the metadata of a tensor that `node` produced.
  // After that change, the recorded value of `node` is no longer correct. O(log changes) for each
  // tensor.
  bool metadata_changes_after(NodeId node) const;
  // True if a node strictly between `after` and `before` changes the metadata of an input of
  // `reader`. O(inputs * log changes).
  bool input_metadata_changes(NodeId reader, NodeId after, NodeId before) const;

  // True if a node strictly between `after` and `before` writes bytes that `reader` computes with.
  // False if `reader` is a view, because a view reads no data and refers to the same memory at any
  // place of the schedule. O(inputs * log writes).
  bool input_bytes_change(NodeId reader, NodeId after, NodeId before) const;

  // A change of a tensor's metadata in place.
  struct MetadataChange {
    ObjectId object;  // object_class() of the changed tensor
    uint32_t place;   // place of the changing node in the schedule
    auto operator<=>(const MetadataChange&) const = default;
  };
  // Returns the changes, sorted by object class, then by place.
  const std::vector<MetadataChange>& metadata_changes() const { return metadata_changes_; }

  // True if code outside the graph may access the buffer's memory. This is the case if the buffer
  // is, or may share memory with, the buffer of a placeholder or of an attribute.
  bool is_external(BufferId buffer) const { return class_external_[classes_[buffer.index()].index()]; }

  // True if the graph returns a tensor that shares or may share memory with the buffer.
  bool is_returned(BufferId buffer) const { return class_returned_[classes_[buffer.index()].index()]; }
  // True if the graph returns this tensor object, or a tensor that may be the same object.
  bool is_returned(ObjectId id) const { return object_returned_[object_classes_[id.index()].index()]; }

 private:
  struct Slice {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  class Builder;

  std::span<const BufferId> slice(Slice s) const { return std::span(pool_).subspan(s.first, s.count); }
  bool changes_between(ObjectId object, uint32_t after, uint32_t before) const;

  const Graph* graph_;
  std::vector<Buffer> buffers_;
  std::vector<BufferId> pool_;
  std::vector<ObjectId> objects_;  // objects of all values, concatenated
  std::vector<uint32_t> first_objects_;
  std::vector<Slice> values_, reads_, writes_;
  std::vector<BufferId> classes_;
  // For each alias class: the nodes that write the class, in schedule order.
  std::vector<std::vector<NodeId>> class_writes_;
  std::vector<bool> class_external_, class_returned_;
  std::vector<ObjectId> object_classes_;
  // For each object class: true if the graph returns an object of the class.
  std::vector<bool> object_returned_;
  std::vector<MetadataChange> metadata_changes_;  // sorted
};

}  // namespace fxopt
