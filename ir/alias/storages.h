#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/alias/effect_map.h"
#include "ir/alias/regions.h"
#include "ir/graph/graph.h"

namespace fxopt {

// A storage as this graph's ops make it: views share one, everything else owns its own. It is not
// the file's storage id, because tracers get these wrong: in fake metadata a wait does not share
// its collective's storage, and copies made by recompute share their original's. The file's ids are
// used only if the op table is silent, and for inputs, about which only the caller knows. Two
// inputs share a storage if and only if the file gives both one id. If they stand for results of
// regions, such inputs merely may share it.
using BufferId = Id<struct BufferTag>;

// A tensor as PyTorch holds it: sizes, strides and the storage it is on. An in-place op returns the
// object it was given, so several nodes can be one object. A view is a new object on the same
// storage. Writes change storages; `t_`, `resize_` or `set_` change the metadata of one object.
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
  StorageId carried;  // the file's id; invalid if it records none
  StringId device;
};

// The storages that each node of one graph makes, reads and writes, when they are written, and when
// the metadata of tensors changes in place.
//
// Built in one pass over the schedule, O(nodes + edges + tensors). Valid until the graph changes.
class StorageMap {
 public:
  explicit StorageMap(const Graph& graph);
  StorageMap(const Graph& graph, EffectMap& effects);     // if the caller needs effects as well
  StorageMap(const Graph& graph, RegionBodies& regions);  // if the caller needs regions as well

  size_t num_buffers() const { return buffers_.size(); }
  const Buffer& buffer(BufferId id) const { return buffers_[id.index()]; }

  // The buffer of each tensor in the node's value, depth first in order; invalid if the tensor has
  // no storage (a layout without strides).
  std::span<const BufferId> buffers(NodeId node) const { return slice(values_[node.index()]); }
  // The objects of the same tensors.
  std::span<const ObjectId> objects(NodeId node) const {
    return std::span(objects_).subspan(first_objects_[node.index()], values_[node.index()].count);
  }
  // The buffers that the node writes or may write, by the op table and the schema, sorted, each
  // once. A call with unknown writes (see Effect) is taken to write all its inputs. An opaque op
  // with a schema writes as its annotations say.
  std::span<const BufferId> writes(NodeId node) const { return slice(writes_[node.index()]); }
  // The buffers of the tensors among the node's inputs at the time it runs, sorted, each once. A
  // view reads no data but is listed, because its result stands for the data. A getitem lists those
  // of the element it takes, although all elements exist until it has run.
  std::span<const BufferId> reads(NodeId node) const { return slice(reads_[node.index()]); }
  // True if the node's result depends on the bytes of its inputs. A view depends only on where they
  // are.
  bool reads_data(NodeId node) const;

  // Objects that may be one tensor have one class. An op that returns its argument if there is
  // nothing to do may return the same object.
  ObjectId object_class(ObjectId id) const { return object_classes_[id.index()]; }

  // Buffers that may share memory have one class: outputs of a call with unknown writes may alias
  // any of its inputs. Questions about legality use classes, questions about bytes use buffers.
  BufferId alias_class(BufferId id) const { return classes_[id.index()]; }

  // True if a node in the schedule strictly after `after` and strictly before `before` writes the
  // class of `buffer`. O(log writes).
  bool written_between(BufferId buffer, NodeId after, NodeId before) const;
  // True if a node strictly after `after` writes the class of `buffer`. O(1).
  bool written_after(BufferId buffer, NodeId after) const;
  bool is_written(BufferId buffer) const { return !class_writes_[classes_[buffer.index()].index()].empty(); }

  // True if a node strictly after `node` changes the metadata of a tensor that `node` produced: its
  // recorded value does not hold from there on. O(log changes) for each tensor.
  bool metadata_changes_after(NodeId node) const;
  // True if a node strictly between the two changes the metadata of a tensor that `reader` is
  // given. O(inputs * log changes).
  bool input_metadata_changes(NodeId reader, NodeId after, NodeId before) const;

  // True if a node strictly between the two writes bytes that `reader` computes with. False if
  // `reader` reads no data (a view): it is given the same memory at any place.
  // O(inputs * log writes).
  bool input_bytes_change(NodeId reader, NodeId after, NodeId before) const;

  // The metadata changes, sorted by object class, then by place in the schedule.
  struct MetadataChange {
    ObjectId object;  // the class of objects that may all be the same tensor
    uint32_t place;
    auto operator<=>(const MetadataChange&) const = default;
  };
  const std::vector<MetadataChange>& metadata_changes() const { return metadata_changes_; }

  // True if code outside the graph can see the buffer's class: it has a placeholder's or an
  // attribute's buffer.
  bool is_external(BufferId buffer) const { return class_external_[classes_[buffer.index()].index()]; }

  // True if the graph returns a tensor on the buffer's class to the caller.
  bool is_returned(BufferId buffer) const { return class_returned_[classes_[buffer.index()].index()]; }
  // True if the graph returns this tensor, or one that may be the same.
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
  std::vector<std::vector<NodeId>> class_writes_;  // schedule order
  std::vector<bool> class_external_, class_returned_;
  std::vector<ObjectId> object_classes_;
  std::vector<bool> object_returned_;             // by class
  std::vector<MetadataChange> metadata_changes_;  // sorted
};

}  // namespace fxopt
