#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/arena/arena.h"
#include "core/arena/heuristics.h"
#include "core/arena/improve.h"
#include "core/arena/problem.h"
#include "core/arena/search.h"
#include "core/check.h"
#include "core/saturate.h"

namespace fxopt {
namespace arena {
namespace {

constexpr size_t kSearchBlocks = 2000;  // for more blocks, the search's tables are too slow

// A part with its best known packing.
struct PlannedPart {
  Part part;
  Packing packing;
  std::string_view method;
  bool minimal = false;

  int64_t top() const { return part.base + packing.height; }
  void offer(Packing other, std::string_view name) {
    if (!method.empty() && other.height >= packing.height) return;
    packing = std::move(other);
    method = name;
  }
};

// Runs the heuristics until a packing meets the target or the budget ends. The first skyline and
// the first best fit run even without budget.
void plan_fast(PlannedPart& planned, int64_t target, Budget& budget) {
  const Problem& problem = planned.part.problem;
  SkylineFiller filler(problem);
  for (const OrderKind kind : kAllOrders) {
    planned.offer(filler.fill(make_order(problem, kind)), "skyline");
    if (planned.top() <= target || !budget.spend(2 * filler.steps())) break;
  }
  for (const bool backward : {false, true}) {
    if (planned.top() <= target) return;
    planned.offer(sweep_best_fit(problem, make_order(problem, OrderKind::kLoad), backward), "best fit");
    if (!budget.spend(filler.steps())) return;
  }
}

// Improves a part that is above the target. Two searches take turns, and each turn is longer than
// the turn before.
void plan_slowly(PlannedPart& planned, int64_t target, Budget& budget) {
  const Problem& problem = planned.part.problem;
  const int64_t height = target - planned.part.base;
  const bool searched = problem.blocks.size() <= kSearchBlocks;
  if (budget.left() == 0) return;
  OrderSearch orders(problem);
  HeightSearch heights(problem, height);
  for (const int64_t part : {64, 8, 1}) {
    Budget for_orders(searched ? budget.left() / (2 * part) : budget.left() / part);
    const int64_t steps = for_orders.left();
    if (orders.run(height, for_orders, planned.packing)) planned.method = "squeaky wheel";
    budget.spend(steps - for_orders.left());
    if (planned.top() <= target) return;
    if (!searched) continue;
    Budget for_heights(budget.left() / part);
    const int64_t more_steps = for_heights.left();
    const int64_t before = planned.packing.height;
    planned.minimal = heights.run(for_heights, planned.packing) && planned.top() > target;
    budget.spend(more_steps - for_heights.left());
    if (planned.packing.height < before) planned.method = "search";
    if (planned.minimal || planned.top() <= target) return;
  }
}

void plan_parts(std::vector<PlannedPart>& parts, int64_t lower_bound, Budget& budget) {
  for (PlannedPart& planned : parts) plan_fast(planned, lower_bound, budget);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const PlannedPart& a, const PlannedPart& b) { return a.top() > b.top(); });
  int64_t target = lower_bound;  // nothing needs to be lower than the tallest finished part
  for (size_t i = 0; i < parts.size() && parts[i].top() > target; ++i) {
    // Each part gets half of the remaining budget, because later parts are lower and often
    // finished.
    const int64_t share = i + 1 == parts.size() ? budget.left() : budget.left() / 2;
    Budget own(share);
    plan_slowly(parts[i], target, own);
    budget.spend(share - own.left());
    target = std::max(target, parts[i].top());
  }
}

// A problem whose blocks are the items of nonzero size.
struct Converted {
  Problem problem;
  std::vector<uint32_t> items;  // index of the item of each block
  int64_t unit = 1;             // bytes
};

std::optional<Converted> convert(std::span<const ArenaItem> items, int64_t alignment) {
  Converted converted;
  WideSum sum = 0;
  int64_t unit = 0;
  std::vector<int64_t> sizes;
  for (uint32_t i = 0; i < items.size(); ++i) {
    FXOPT_CHECK(items[i].first <= items[i].last && items[i].bytes >= 0, "an item has a negative lifetime or size");
    if (items[i].bytes == 0) continue;
    const WideSum size = (WideSum{items[i].bytes} + alignment - 1) / alignment * alignment;
    sum += size;
    if (sum > std::numeric_limits<int64_t>::max() / 2) return std::nullopt;
    sizes.push_back(static_cast<int64_t>(size));
    unit = std::gcd(unit, sizes.back());
    converted.items.push_back(i);
  }
  converted.unit = std::max(unit, int64_t{1});
  converted.problem.blocks.resize(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) converted.problem.blocks[i].size = sizes[i] / converted.unit;
  converted.problem.sections = number_sections(items, converted.items, converted.problem.blocks);
  return converted;
}

int64_t most(const std::vector<int64_t>& loads) {
  return loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end());
}

int64_t unaligned_bound(std::span<const ArenaItem> items, const Converted& converted) {
  Problem exact = converted.problem;
  for (size_t i = 0; i < converted.items.size(); ++i) exact.blocks[i].size = items[converted.items[i]].bytes;
  return most(section_loads(exact));
}

std::vector<int64_t> plan_problem(const Problem& problem, int64_t lower_bound, int64_t effort, ArenaPlan& plan) {
  std::vector<int64_t> offsets(problem.blocks.size());
  std::vector<PlannedPart> parts;
  for (Part& part : split_problem(problem, offsets)) parts.push_back({std::move(part), {}, {}, false});
  Budget budget(effort);
  plan_parts(parts, lower_bound, budget);
  for (const PlannedPart& planned : parts) {
    for (size_t i = 0; i < planned.part.members.size(); ++i) {
      offsets[planned.part.members[i]] = planned.part.base + planned.packing.offsets[i];
    }
  }
  const int64_t height = height_of(problem, offsets);
  plan.method = "stack";
  plan.optimal = height == lower_bound;
  for (const PlannedPart& planned : parts) {
    if (planned.top() < height) continue;
    plan.method = planned.method;
    plan.optimal = plan.optimal || planned.minimal;
  }
  return offsets;
}

}  // namespace
}  // namespace arena

std::optional<ArenaPlan> plan_arena(std::span<const ArenaItem> items, const ArenaOptions& options) {
  FXOPT_CHECK(options.alignment >= 1 && options.effort >= 0, "the alignment is below 1, or the effort is negative");
  const std::optional<arena::Converted> converted = arena::convert(items, options.alignment);
  if (!converted.has_value()) return std::nullopt;
  const arena::Problem& problem = converted->problem;
  const int64_t bound = arena::most(arena::section_loads(problem));
  ArenaPlan plan;
  plan.offsets.assign(items.size(), 0);
  plan.lower_bound = bound * converted->unit;
  plan.unaligned_bound = arena::unaligned_bound(items, *converted);
  const std::vector<int64_t> offsets = arena::plan_problem(problem, bound, options.effort, plan);
  for (size_t i = 0; i < offsets.size(); ++i) plan.offsets[converted->items[i]] = offsets[i] * converted->unit;
  plan.bytes = arena::height_of(problem, offsets) * converted->unit;
  return plan;
}

}  // namespace fxopt
