#include "core/arena/problem.h"

#include <algorithm>
#include <utility>

namespace fxopt::arena {

int32_t number_sections(std::span<const ArenaItem> items, std::span<const uint32_t> chosen,
                        std::vector<Block>& blocks) {
  std::vector<uint32_t> starts(chosen.size());
  for (uint32_t i = 0; i < starts.size(); ++i) starts[i] = i;
  std::vector<uint32_t> ends = starts;
  const auto first = [&](uint32_t i) { return items[chosen[i]].first; };
  const auto last = [&](uint32_t i) { return items[chosen[i]].last; };
  std::sort(starts.begin(), starts.end(), [&](uint32_t a, uint32_t b) { return first(a) < first(b); });
  std::sort(ends.begin(), ends.end(), [&](uint32_t a, uint32_t b) { return last(a) < last(b); });
  int32_t section = -1;
  bool ended = true;
  size_t next_end = 0;
  for (const uint32_t start : starts) {
    for (; last(ends[next_end]) < first(start); ++next_end) {
      blocks[ends[next_end]].end = section + 1;
      ended = true;
    }
    // A new section begins only if an item ended. Otherwise this item extends the current set.
    if (ended) ++section;
    ended = false;
    blocks[start].begin = section;
  }
  for (; next_end < ends.size(); ++next_end) blocks[ends[next_end]].end = section + 1;
  return section + 1;
}

std::vector<int64_t> section_loads(const Problem& problem) {
  std::vector<int64_t> loads(static_cast<size_t>(problem.sections) + 1);
  for (const Block& block : problem.blocks) {
    loads[static_cast<size_t>(block.begin)] += block.size;
    loads[static_cast<size_t>(block.end)] -= block.size;
  }
  for (size_t i = 1; i < loads.size(); ++i) loads[i] += loads[i - 1];
  loads.pop_back();
  return loads;
}

int64_t height_of(const Problem& problem, std::span<const int64_t> offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + problem.blocks[i].size);
  return height;
}

namespace {

constexpr int64_t kLevels = 100;

// The blocks of a piece, in order of `begin`, and the height of the space below the blocks.
struct Piece {
  std::vector<uint32_t> blocks;
  int64_t base = 0;
};

// Cuts a piece into runs that have no section in common. In each run, places the blocks that are
// live throughout the run at the bottom, and removes these blocks from the run.
std::vector<Piece> cut(const Problem& problem, const Piece& piece, std::vector<int64_t>& offsets) {
  std::vector<Piece> cuts;
  for (size_t i = 0; i < piece.blocks.size();) {
    const int32_t begin = problem.blocks[piece.blocks[i]].begin;
    int32_t end = problem.blocks[piece.blocks[i]].end;
    size_t stop = i;
    while (stop < piece.blocks.size() && problem.blocks[piece.blocks[stop]].begin < end) {
      end = std::max(end, problem.blocks[piece.blocks[stop++]].end);
    }
    Piece run;
    run.base = piece.base;
    for (; i < stop; ++i) {
      const Block& block = problem.blocks[piece.blocks[i]];
      if (block.begin == begin && block.end == end) {
        offsets[piece.blocks[i]] = run.base;
        run.base += block.size;
      } else {
        run.blocks.push_back(piece.blocks[i]);
      }
    }
    if (!run.blocks.empty()) cuts.push_back(std::move(run));
  }
  return cuts;
}

// Returns the piece as a problem of its own. Renumbers the sections, because the live set of some
// sections is now contained in the live set of a neighbouring section.
Part make_part(const Problem& problem, Piece piece) {
  Part part;
  part.base = piece.base;
  part.problem.blocks.resize(piece.blocks.size());
  std::vector<ArenaItem> intervals;
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < piece.blocks.size(); ++i) {
    const Block& block = problem.blocks[piece.blocks[i]];
    intervals.push_back({block.begin, block.end - 1, 0});
    all.push_back(i);
    part.problem.blocks[i].size = block.size;
  }
  part.problem.sections = number_sections(intervals, all, part.problem.blocks);
  part.members = std::move(piece.blocks);
  return part;
}

}  // namespace

std::vector<Part> split_problem(const Problem& problem, std::vector<int64_t>& offsets) {
  Piece whole;
  whole.blocks.resize(problem.blocks.size());
  for (uint32_t i = 0; i < whole.blocks.size(); ++i) whole.blocks[i] = i;
  std::stable_sort(whole.blocks.begin(), whole.blocks.end(),
                   [&](uint32_t a, uint32_t b) { return problem.blocks[a].begin < problem.blocks[b].begin; });
  std::vector<Piece> open;
  open.push_back(std::move(whole));
  std::vector<Part> parts;
  // Each level of nested lifetimes costs one pass over its blocks, so n levels would cost n^2.
  Budget budget(kLevels * static_cast<int64_t>(problem.blocks.size()));
  while (!open.empty()) {
    const Piece piece = std::move(open.back());
    open.pop_back();
    const bool last_level = !budget.spend(static_cast<int64_t>(piece.blocks.size()));
    for (Piece& run : cut(problem, piece, offsets)) {
      if (last_level || run.blocks.size() == piece.blocks.size()) {
        parts.push_back(make_part(problem, std::move(run)));
      } else {
        open.push_back(std::move(run));
      }
    }
  }
  return parts;
}

}  // namespace fxopt::arena
