#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/hash.h"
#include "ir/check/equivalence/keys.h"
#include "ir/graph/graph.h"
#include "ir/values/sym_int.h"

namespace fxopt {

// A part of a node's value: a tensor, a plain value, or a container (tuple, list, dict) of cells.
struct Cell {
  enum class Kind : uint8_t { kTensor, kPlain, kContainer };
  Kind kind = Kind::kPlain;
  bool is_dict = false;
  // Only for kTensor. True if the prover does not know whether the value is a tensor or a
  // container. This cell then represents the whole value: a tensor, or a container with unknown
  // elements.
  bool is_whole = false;
  // kTensor: the number of the tensor object. kPlain: the index of the stored integer, see
  // integer_in(). kContainer: the number of the container's first cell.
  uint32_t first = 0;
  uint32_t count = 0;  // kContainer: number of cells
  uint32_t names = 0;  // for a dict (`is_dict`): index in NamedValues::names_ of the first key's hash
};

// The values of a graph's nodes under symbolic execution. Several nodes may share a cell. Cells
// have dense numbers. A reference to a cell is valid until the next cell is added.
class NamedValues {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  explicit NamedValues(const Graph& graph) : graph_(graph), by_node_(graph.num_ids(), kNone) {
    cells_.reserve(graph.num_nodes());
  }

  // -- cells
  uint32_t add(const Cell& cell) {
    cells_.push_back(cell);
    return static_cast<uint32_t>(cells_.size() - 1);
  }
  const Cell& operator[](uint32_t cell) const { return cells_[cell]; }
  static Cell tensor(uint32_t object) { return {Cell::Kind::kTensor, false, false, object, 0, 0}; }
  static Cell whole(uint32_t object) { return {Cell::Kind::kTensor, false, true, object, 0, 0}; }
  Cell integer(const SymInt& integer);
  // list() and dict() copy the parts. `names` are the hashes of the dict's keys.
  Cell list(std::span<const Cell> parts);
  Cell dict(std::span<const Cell> parts, std::span<const Hash128> names);

  const SymInt& integer_in(const Cell& cell) const { return integers_[cell.first]; }
  std::span<const Cell> parts(const Cell& container) const {
    return std::span(cells_).subspan(container.first, container.count);
  }
  const Hash128& name(const Cell& dict, size_t part) const { return names_[dict.names + part]; }

  // -- nodes
  uint32_t place(NodeId node) const { return by_node_[node.index()]; }
  // Returns null if the node has no value yet.
  const Cell* find(NodeId node) const { return place(node) == kNone ? nullptr : &cells_[place(node)]; }
  const Cell* find_tensor(NodeId node) const {
    const Cell* cell = find(node);
    return cell != nullptr && cell->kind == Cell::Kind::kTensor ? cell : nullptr;
  }
  void give(NodeId node, const Cell& cell) { by_node_[node.index()] = add(cell); }
  void set_cell(NodeId node, uint32_t cell) { by_node_[node.index()] = cell; }

  // -- queries

  // Appends the number of the tensor object of each tensor in a value, in order. The first function
  // takes the cell of the value. The second function takes an argument of a call, and collects the
  // tensors of all nodes in this argument. O(cells).
  void collect_objects(const Cell& cell, std::vector<uint32_t>& out) const;
  void collect_objects(const Arg& arg, std::vector<uint32_t>& out) const;
  // Returns the integer value. Returns nothing if the value is not an integer.
  std::optional<SymInt> integer_of(NodeId node) const;
  std::optional<SymInt> integer_of(const Arg& arg, ModuleKeys& keys) const;
  // These functions evaluate `container[key]` as Python does. element() returns the index of an
  // element in `container`. slice() returns the cells of a slice. Both return nothing if `key` does
  // not determine the result. O(names) for a dict, O(parts) for a slice.
  std::optional<uint32_t> element(const Cell& container, const Arg& key, ModuleKeys& keys) const;
  std::optional<std::vector<Cell>> slice(const Cell& container, const Arg& key) const;

 private:
  const Graph& graph_;
  std::vector<Cell> cells_;
  std::vector<SymInt> integers_;
  std::vector<Hash128> names_;     // hashes of the keys of dicts
  std::vector<uint32_t> by_node_;  // cell of each node
};

}  // namespace fxopt
