#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/module.h"
#include "ir/values/sym_int.h"

// The arrangement of ranks of process groups: the order of ranks' data in a gathered tensor.

namespace fxopt {

// The listed group of the uid; nullptr: not listed. O(groups).
const ProcessGroup* find_group(const Module& module, StringId uid);

// The place of the file's rank among `ranks`. Nothing if the file does not record its rank, or if
// `ranks` does not contain it. O(ranks).
std::optional<size_t> own_place(const Module& module, std::span<const int64_t> ranks);

// Whether `place` is `scale` times the place of the file's rank among `ranks`. A graph may be of
// one rank, and its place is a number, or of all ranks, and its place is a symbol of the kind rank.
//
// A symbol is taken for the rank's coordinate if three conditions hold. It ranges from 0 to one
// less than the number of `ranks`. Its hint is the place of the file's rank. No other listed group
// of as many ranks contains the file's rank, because the symbol might be its coordinate there. A
// symbol is taken for the rank itself if `ranks` are the whole world: 0, 1, 2, ...
//
// In a file with such symbols a number is not a place, because it is the same on all ranks.
// O(groups + ranks + symbols).
bool is_own_place(const Module& module, std::span<const int64_t> ranks, const SymInt& place, int64_t scale);

// Ranks in the order of their data, and the basis of that order.
struct RankOrder {
  std::vector<int64_t> ranks;
  const DeviceMesh* mesh =
      nullptr;  // nullptr: no mesh of the file gives the order, and ranks are taken to be numbered row by row
};

// The order of data in a gather over `outer` of the result of a gather over `inner`: for each j,
// the data of the `inner` group that rank `outer[j]` is in. On a mesh where each of the two spans
// whole dimensions, and different ones, coordinates determine that group. Without such a mesh it is
// taken to be `inner`, shifted by the distance from the file's rank to outer[j]. This holds on
// every mesh whose ranks are numbered along its rows.
//
//   mesh [[0, 1, 2], [3, 4, 5]], rank 0:   inner {0, 3}, outer {0, 1, 2}  =>  0 3 1 4 2 5
//                                          inner {0, 1, 2}, outer {0, 3}  =>  0 1 2 3 4 5
//
// Nothing if the file's rank is not in both, if both share another rank, if a rank is outside the
// world, or if meshes disagree. Also nothing if `inner` is ascending but a group of its kind on the
// mesh would not be: PyTorch sorts the ranks of a mesh's groups by default (new_group's
// sort_ranks), and the file does not record whether it did. O(meshes * ranks + result).
std::optional<RankOrder> ranks_of_both(const Module& module, std::span<const int64_t> inner,
                                       std::span<const int64_t> outer);

// `ranks` and its counterpart for every other rank of the mesh: the same coordinates along the
// dimensions that it spans. Empty if the mesh does not have all `ranks`, or if they do not span
// whole dimensions. O(ranks of the mesh).
std::vector<std::vector<int64_t>> alike_groups(const DeviceMesh& mesh, std::span<const int64_t> ranks);

// The names of the mesh dimensions that the ranks span, in the mesh's order.
std::vector<StringId> dims_along(const DeviceMesh& mesh, std::span<const int64_t> ranks);

}  // namespace fxopt
