#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/alias/effect_map.h"
#include "ir/alias/regions.h"
#include "ir/graph/graph.h"

namespace fxopt {

// A storage as this graph's ops make it: views share one, everything else owns its own. Not the file's storage ids,
// which tracers get wrong (a wait does not share its collective's storage in fake metadata, copies made by recompute
// share their original's); those are used where the op table is silent, and for inputs, of which only the caller knows:
// two inputs share a storage where the file gives both one id, and nowhere else; where they stand for results of regions, they may.
using BufferId = Id<struct BufferTag>;

// A tensor as PyTorch holds it: sizes, strides, and the storage it is on. An in-place op returns the object it was
// given, so that several nodes can be one object; a view is a new object on the same storage. Writes change storages;
// `t_`, `resize_` or `set_` change the metadata of one object.
using ObjectId = Id<struct ObjectTag>;

enum class BufferSource : uint8_t {
  kNode,         // made by the node `producer`
  kPlaceholder,  // belongs to the caller
  kAttribute,    // a constant of the module
};

struct Buffer {
  BufferSource source = BufferSource::kNode;
  NodeId producer;    // the first node whose value has a tensor on it
  ValueId value;      // that tensor
  StorageId carried;  // what the file calls it; invalid when it says nothing
  StringId device;
};

// Which storages each node of one graph makes, reads and writes, when they are written, and when the metadata of
// tensors changes in place.
//
// Built in one pass over the schedule, O(nodes + edges + tensors). Valid until the graph changes.
class StorageMap {
 public:
  explicit StorageMap(const Graph& graph);
  StorageMap(const Graph& graph, EffectMap& effects);     // when the caller asks for effects too
  StorageMap(const Graph& graph, RegionBodies& regions);  // when the caller asks about regions of the module too

  size_t num_buffers() const { return buffers_.size(); }
  const Buffer& buffer(BufferId id) const { return buffers_[id.index()]; }

  // The buffer of each tensor in the node's value, depth first in order; invalid where the tensor has no storage (a
  // layout without strides).
  std::span<const BufferId> buffers(NodeId node) const { return slice(values_[node.index()]); }
  // The object of each of these tensors.
  std::span<const ObjectId> objects(NodeId node) const {
    return std::span(objects_).subspan(first_objects_[node.index()], values_[node.index()].count);
  }
  // Buffers the node writes or may write: by the op table and schema, sorted, each once. A call with unknown writes
  // (see Effect) is taken to write everything it reads; an opaque op with a schema writes what its annotations say.
  std::span<const BufferId> writes(NodeId node) const { return slice(writes_[node.index()]); }
  // Buffers that the tensors among the node's inputs are on when it runs, sorted, each once. A view reads nothing but
  // is listed all the same: its result stands for the data. Of a getitem those of the element it takes, though all are
  // there until it ran.
  std::span<const BufferId> reads(NodeId node) const { return slice(reads_[node.index()]); }
  // True when what the node computes depends on the bytes of its inputs. A view only says where they are.
  bool reads_data(NodeId node) const;

  // Objects that may be one tensor have one class: what hands its argument back when there is nothing to do may have.
  ObjectId object_class(ObjectId id) const { return object_classes_[id.index()]; }

  // Buffers that may share memory have one class: outputs of a call with unknown writes may alias any of its inputs.
  // Every question about legality is asked of classes, every question about bytes of buffers.
  BufferId alias_class(BufferId id) const { return classes_[id.index()]; }

  // True when some node in the schedule strictly after `after` and strictly before `before` writes the class of
  // `buffer`. O(log writes).
  bool written_between(BufferId buffer, NodeId after, NodeId before) const;
  // True when some node strictly after `after` writes the class of `buffer`. O(1).
  bool written_after(BufferId buffer, NodeId after) const;
  bool is_written(BufferId buffer) const { return !class_writes_[classes_[buffer.index()].index()].empty(); }

  // True when a node strictly after `node` changes the metadata of a tensor that `node` produced: from there on its
  // recorded value no longer holds. O(log changes) for each tensor.
  bool metadata_changes_after(NodeId node) const;
  // True when a node strictly between the two changes the metadata of a tensor that `reader` is given. O(inputs * log
  // changes).
  bool input_metadata_changes(NodeId reader, NodeId after, NodeId before) const;

  // True when a node strictly between the two writes bytes that `reader` computes with. What reads no data (a view) is
  // given the same memory wherever it runs. O(inputs * log writes).
  bool input_bytes_change(NodeId reader, NodeId after, NodeId before) const;

  // What metadata changes where: sorted by object class, then by place in the schedule.
  struct MetadataChange {
    ObjectId object;  // a class of objects that may be one
    uint32_t place;
    auto operator<=>(const MetadataChange&) const = default;
  };
  const std::vector<MetadataChange>& metadata_changes() const { return metadata_changes_; }

  // True when code outside the graph can see the buffer's class: a placeholder's, an attribute's.
  bool is_external(BufferId buffer) const { return class_external_[classes_[buffer.index()].index()]; }

  // True when the graph returns a tensor on the buffer's class: the caller is handed it.
  bool is_returned(BufferId buffer) const { return class_returned_[classes_[buffer.index()].index()]; }
  // True when the graph returns what is, or may be, this tensor.
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
  std::vector<ObjectId> objects_;  // of all values, one after the other
  std::vector<uint32_t> first_objects_;
  std::vector<Slice> values_, reads_, writes_;
  std::vector<BufferId> classes_;
  std::vector<std::vector<NodeId>> class_writes_;  // schedule order
  std::vector<bool> class_external_, class_returned_;
  std::vector<ObjectId> object_classes_;
  std::vector<bool> object_returned_;             // by class
  std::vector<MetadataChange> metadata_changes_;  // sorted
};

}  // namespace fxopt
