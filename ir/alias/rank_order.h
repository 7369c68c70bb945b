#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/module.h"
#include "ir/values/sym_int.h"

// How the ranks of process groups lie to each other: whose data lie where in what was gathered.

namespace fxopt {

const ProcessGroup* find_group(const Module& module, StringId uid);  // nullptr: not listed. O(groups)

// Where the file's rank stands among `ranks`; nothing where the file does not say which rank it is of, or it is not among
// them. O(ranks).
std::optional<size_t> own_place(const Module& module, std::span<const int64_t> ranks);

// The same as an integer of graphs, which may be of one rank or of all: then it is a symbol of the kind rank. It is taken for
// the rank's coordinate where it counts from 0 to one less than there are ranks here, the file's rank has its own place, and no
// other listed group of as many ranks has the file's rank, of which it might be the coordinate; for the rank itself where
// `ranks` are all of the world, 0, 1, 2, ... A number is not a place in a file with such symbols, as it is the same on all ranks.
// O(groups + ranks + symbols).
bool is_own_place(const Module& module, std::span<const int64_t> ranks, const SymInt& place, int64_t scale);

// Ranks in the order in which their data lie, and what that rests on.
struct RankOrder {
  std::vector<int64_t> ranks;
  const DeviceMesh* mesh =
      nullptr;  // nullptr: on no mesh of the file, but on ranks being numbered along one, row by row
};

// Whose data a gather over `outer` lays side by side, of what a gather over `inner` gave: that of rank `outer[j]`'s own `inner`
// group, for each j. On a mesh of which each spans whole dimensions, others than the other, such a group is told by its
// coordinates. Without one it is taken to be `inner`, moved by as much as outer[j] is from the file's rank: so it is on
// every mesh whose ranks are numbered along its rows.
//
//   mesh [[0, 1, 2], [3, 4, 5]], rank 0:   inner {0, 3}, outer {0, 1, 2}  =>  0 3 1 4 2 5
//                                          inner {0, 1, 2}, outer {0, 3}  =>  0 1 2 3 4 5
//
// Nothing where the file's rank is not in both, where both share another rank, where a rank is not of the world, and where
// meshes disagree. Nor where `inner` goes up and a group of its kind would not on the mesh: PyTorch sorts the ranks of a mesh's
// groups unless it is told not to (new_group's sort_ranks), and the file does not say. O(meshes * ranks + result).
std::optional<RankOrder> ranks_of_both(const Module& module, std::span<const int64_t> inner,
                                       std::span<const int64_t> outer);

// `ranks`, and what it is for every other rank of the mesh: the same coordinates along the dimensions that it spans. Empty where
// the mesh does not have all of them. O(ranks of the mesh).
std::vector<std::vector<int64_t>> alike_groups(const DeviceMesh& mesh, std::span<const int64_t> ranks);

// The names of the dimensions of the mesh along which the ranks lie, in the mesh's order.
std::vector<StringId> dims_along(const DeviceMesh& mesh, std::span<const int64_t> ranks);

}  // namespace fxopt
