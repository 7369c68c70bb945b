#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/module.h"
#include "ir/values/sym_int.h"

// The arrangement of ranks in process groups. The arrangement decides the order of the ranks' data
// in a gathered tensor.

namespace fxopt {

// Returns the group with this uid, or nullptr if the module does not list the group. O(groups).
const ProcessGroup* find_group(const Module& module, StringId uid);

// Returns the index of the file's rank in `ranks`. The file's rank is the rank that the file
// records. Returns nothing if the file does not record a rank, or if `ranks` does not contain this
// rank. O(ranks).
std::optional<size_t> own_place(const Module& module, std::span<const int64_t> ranks);

// Whether `place` equals `scale` times the index of the file's rank in `ranks`. In a graph of one
// rank, `place` is a number. In a graph of all ranks, `place` is a symbol of the kind rank.
//
// A symbol is accepted as this index if three conditions hold:
// - It ranges from 0 to one less than the number of `ranks`.
// - Its hint is the index of the file's rank.
// - No other listed group of the same size contains the file's rank. If such a group existed, the
//   symbol might be the index in that group.
// If `ranks` are the whole world (0, 1, 2, ...), the index equals the rank, and the third condition
// does not apply.
//
// If the file has symbols of the kind rank, a plain number is never accepted, because a number is
// the same on all ranks. O(groups + ranks + symbols).
bool is_own_place(const Module& module, std::span<const int64_t> ranks, const SymInt& place, int64_t scale);

// Ranks in the order of their data, and the mesh that determines this order.
struct RankOrder {
  std::vector<int64_t> ranks;
  // The mesh that determines the order. nullptr if no mesh of the file determines the order. The
  // ranks of the mesh are then assumed to be numbered row by row.
  const DeviceMesh* mesh = nullptr;
};

// Returns the order of the ranks' data after two gathers. The first gather is over `inner`, and the
// second gather is over `outer`. For each rank `outer[j]`, the order lists the ranks of one group.
// This group contains `outer[j]` and spans the same mesh dimensions as `inner`.
//
// A group spans a dimension of a mesh if it contains all ranks along this dimension. If both groups
// span dimensions of one mesh, and no dimension is spanned by both, then the coordinates in this
// mesh determine the group. Without such a mesh, each rank of `inner` is shifted by the distance
// from the file's rank to `outer[j]`. This shift is right on every mesh whose ranks are numbered
// along its rows.
//
//   mesh [[0, 1, 2], [3, 4, 5]], rank 0:   inner {0, 3}, outer {0, 1, 2}  =>  0 3 1 4 2 5
//                                          inner {0, 1, 2}, outer {0, 3}  =>  0 1 2 3 4 5
//
// Returns nothing if one of these conditions holds:
// - The file's rank is missing in `inner` or in `outer`.
// - `inner` and `outer` share a rank other than the file's rank.
// - A rank is outside the world.
// - Two meshes yield different orders.
// - `inner` is ascending, but a group of the same mesh dimensions would not be ascending. PyTorch
//   sorts the ranks of a mesh's groups by default (new_group's sort_ranks). The file does not
//   record whether PyTorch sorted them.
// O(meshes * ranks + result).
std::optional<RankOrder> ranks_of_both(const Module& module, std::span<const int64_t> inner,
                                       std::span<const int64_t> outer);

// Returns all groups of the mesh that span the same dimensions as `ranks`, including `ranks`.
// Returns an empty list if the mesh does not have all `ranks`, or if `ranks` contain only a part of
// the ranks along a dimension. O(ranks of the mesh).
std::vector<std::vector<int64_t>> alike_groups(const DeviceMesh& mesh, std::span<const int64_t> ranks);

// Returns the names of the mesh dimensions that the ranks span, in the mesh's order.
std::vector<StringId> dims_along(const DeviceMesh& mesh, std::span<const int64_t> ranks);

}  // namespace fxopt
