#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/module.h"
#include "ir/values/sym_int.h"

// The order of ranks in process groups. An all-gather over a group concatenates the data of the
// group's ranks in this order.

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
// - The symbol ranges from 0 to one less than the number of `ranks`.
// - The symbol's hint is the index of the file's rank.
// - No other listed group of the same size contains the file's rank. If such a group existed, the
//   symbol might be the index in that group.
// If `ranks` are the whole world (0, 1, 2, ...), the index equals the rank, and the third condition
// does not apply.
//
// If the file has symbols of the kind rank, a plain number is never accepted, because a number is
// the same on all ranks. O(groups + ranks + symbols).
bool is_own_place(const Module& module, std::span<const int64_t> ranks, const SymInt& place, int64_t scale);

// The order in which a gathered tensor contains the data of the ranks. For example, if `ranks` is
// {0, 2, 1}, the data of rank 0 come first, then the data of rank 2, then the data of rank 1.
struct RankOrder {
  std::vector<int64_t> ranks;
  // The first mesh of the file that determines the order. nullptr if the file has no such mesh. In
  // the case of nullptr, the order is right if the job numbers its ranks row by row.
  const DeviceMesh* mesh = nullptr;
};

// Returns the order of the ranks' data after two gathers. The first gather is over `inner`, and the
// second gather is over `outer`. For each rank `outer[j]`, the order lists the ranks of one group.
// This group contains `outer[j]` and spans the same mesh dimensions as `inner`.
//
// A group spans a dimension of a mesh if the group contains all ranks along this dimension. A mesh
// of the file is used if `inner` and `outer` each span whole dimensions, and share no dimension.
// On this mesh, the group of `outer[j]` has all ranks that differ from `outer[j]` only in the
// dimensions of `inner`.
//
// If no mesh can be used, a formula computes the ranks in the group of `outer[j]`. The rank at
// index i of this group is:
//
//   inner[i] + outer[j] - own     (`own` is the file's rank)
//
// The formula is right on every mesh whose ranks are numbered row by row.
//
// Two examples for the mesh [[0, 1, 2], [3, 4, 5]] and the file's rank 0:
// - If `inner` is {0, 3} and `outer` is {0, 1, 2}, the result is 0 3 1 4 2 5.
// - If `inner` is {0, 1, 2} and `outer` is {0, 3}, the result is 0 1 2 3 4 5.
//
// Returns nothing if one of these conditions holds:
// - The file's rank is missing in `inner` or in `outer`.
// - `inner` and `outer` share a rank other than the file's rank.
// - The formula is used, and yields a rank outside the world or the same rank twice.
// - Two meshes that can be used yield different orders.
// - The ranks of `inner` are ascending, but the ranks of a parallel group are not. A parallel group
//   spans the same dimensions as `inner` on a mesh that can be used: see alike_groups(). For
//   example, `inner` is the row {0, 1} of the mesh [[0, 1], [3, 2]]. The parallel group is then the
//   row {3, 2}. The order of the data in the parallel group is unknown. By default, PyTorch sorts
//   the ranks of each group (new_group's sort_ranks). The file does not record whether PyTorch
//   sorted the ranks.
//
// O(meshes * ranks + result).
std::optional<RankOrder> ranks_of_both(const Module& module, std::span<const int64_t> inner,
                                       std::span<const int64_t> outer);

// Returns all groups of the mesh that span the same dimensions as the group `ranks`. The returned
// list also contains the group `ranks`. Example for the mesh [[0, 1, 2], [3, 4, 5]]:
//
//   alike_groups(mesh, {0, 3})  ==  {{0, 3}, {1, 4}, {2, 5}}
//
// Returns an empty list in these cases:
// - The mesh does not have all `ranks`.
// - `ranks` contain only a part of the ranks along a dimension.
// O(ranks of the mesh).
std::vector<std::vector<int64_t>> alike_groups(const DeviceMesh& mesh, std::span<const int64_t> ranks);

// Returns the names of the mesh dimensions that the ranks span, in the mesh's order.
std::vector<StringId> dims_along(const DeviceMesh& mesh, std::span<const int64_t> ranks);

}  // namespace fxopt
