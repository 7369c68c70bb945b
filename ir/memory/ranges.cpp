#include "ir/memory/ranges.h"

#include <algorithm>
#include <utility>

#include "core/saturate.h"
#include "ir/alias/sizes.h"

namespace fxopt {
namespace {

class Ranger {
 public:
  Ranger(const Graph& graph, const StorageMap& storages, const MemoryOptions& options)
      : graph_(graph),
        module_(graph.module()),
        storages_(storages),
        options_(options),
        values_(symbol_values(module_, options.symbols)) {
    SymbolRanges given = options.ranges;
    for (const auto& [name, value] : options.symbols) given.try_emplace(name, ValueRange::of(value));
    ranges_ = symbol_ranges(module_, given);
    for (auto& [name, range] : ranges_) {
      const SymbolValues::const_iterator value = values_.find(name);
      if (value == values_.end()) continue;
      range = {std::min(range.min, value->second), std::max(range.max, value->second)};
    }
    bounds_.emplace(module_.exprs, module_.strings, ranges_);
  }

  SizeRanges run() {
    for (size_t i = 0; i < storages_.num_buffers(); ++i) measure(BufferId(i));
    for (const Symbol& symbol : module_.symbols) add_symbol(symbol.name);
    for (const StringId name : used_) add_symbol(name);
    return std::move(result_);
  }

 private:
  void measure(BufferId id) {
    const SizeSource source = counted_size(graph_, storages_, id);
    if (source.kind == SizeKind::kLike) {
      result_.sizes.push_back(ValueRange(result_.sizes[source.like.index()]));
      return;
    }
    result_.sizes.push_back(size_bounds(module_, source, *bounds_));
    for (const ExprId expr : size_expressions(module_, source)) note_symbols(expr);
  }

  // Visits each subexpression once, even if it is shared.
  void note_symbols(ExprId whole) {
    std::vector<ExprId> pending = {whole};
    while (!pending.empty()) {
      const ExprId id = pending.back();
      pending.pop_back();
      if (is_noted_[id]) continue;
      is_noted_[id] = true;
      const Expr& expr = module_.exprs[id];
      if (expr.kind == ExprKind::kSymbol) {
        used_.push_back(expr.name);
        is_used_[expr.name] = true;
      }
      pending.insert(pending.end(), expr.inputs.rbegin(), expr.inputs.rend());
    }
  }

  void add_symbol(StringId name) {
    if (!is_used_.get(name)) return;
    is_used_[name] = false;  // now listed
    const SymbolValues::const_iterator value = values_.find(name);
    const SymbolRanges::const_iterator range = ranges_.find(name);
    result_.symbols.push_back({name, value == values_.end() ? std::nullopt : std::optional<int64_t>(value->second),
                               value != values_.end() && !options_.symbols.contains(name),
                               range == ranges_.end() ? ValueRange() : range->second});
  }

  const Graph& graph_;
  const Module& module_;
  const StorageMap& storages_;
  const MemoryOptions& options_;
  SymbolValues values_;
  SymbolRanges ranges_;
  std::optional<ExprBounds> bounds_;
  IdMap<ExprId, bool> is_noted_;
  IdMap<StringId, bool> is_used_;
  std::vector<StringId> used_;  // in order of first use
  SizeRanges result_;
};

// Sums of live sizes at both ends, and the number of sizes without an upper bound.
struct Sums {
  WideSum min = 0, max = 0;
  int64_t unbounded = 0;

  void add(const Sums& other) {
    min += other.min;
    max += other.max;
    unbounded += other.unbounded;
  }
};

// Collects changes of the live sums by place, then finds the largest sums.
class RangeSweep {
 public:
  explicit RangeSweep(size_t places) : change_(places + 1) {}

  void add(ValueRange size, uint32_t first, uint32_t last) {
    varies_ = varies_ || !size.is_one();
    const Sums taken = {size.min, size.has_max() ? size.max : 0, size.has_max() ? 0 : 1};
    change_[first].add(taken);
    change_[last + 1].add({-taken.min, -taken.max, -taken.unbounded});
  }

  std::optional<PeakRange> peak() const {
    if (!varies_) return std::nullopt;
    Sums live;
    WideSum min = 0, max = 0;
    bool is_bounded = true;
    for (const Sums& change : change_) {
      live.add(change);
      min = std::max(min, live.min);
      max = std::max(max, live.max);
      is_bounded = is_bounded && live.unbounded == 0;
    }
    PeakRange range{saturate(min), std::nullopt};
    if (is_bounded && max < ValueRange::kNoMax) range.max = saturate(max);
    return range;
  }

 private:
  std::vector<Sums> change_;
  bool varies_ = false;
};

}  // namespace

SizeRanges size_ranges(const Graph& graph, const StorageMap& storages, const MemoryOptions& options) {
  return Ranger(graph, storages, options).run();
}

std::optional<PeakRange> ideal_peak_range(const SizeRanges& ranges, const StorageMap& storages,
                                          const MemoryReport& memory, const MemoryTrace& trace) {
  if (!memory.resized.empty()) return std::nullopt;  // the ranges hold only for the traced sizes
  RangeSweep sweep(trace.schedule.size());
  for (const Lifetime& life : memory.lifetimes) {
    if (storages.buffer(life.buffer).device != trace.device) continue;
    sweep.add(ranges.sizes[life.buffer.index()], life.first, life.last);
  }
  // A storage of unknown size has no block in the trace. Memory that is kept between steps and has
  // that size is missing as well. The peak then has no upper bound.
  bool is_whole = true;
  for (const TraceBlock& block : trace.blocks) {
    if (block.source != BlockSource::kKept) continue;
    const BufferId like = trace.blocks[block.like].buffer;
    sweep.add(ranges.sizes[like.index()], block.first, block.last);
  }
  const auto lacks_block = [&](BufferId id) {
    return memory.lifetimes[id.index()].bytes == 0 && ranges.sizes[id.index()].max > 0 &&
           storages.buffer(id).device == trace.device;
  };
  if (trace.is_steady) {
    is_whole =
        std::ranges::none_of(memory.trained, lacks_block) &&
        std::ranges::none_of(memory.gradients, [&](const auto& gradient) { return lacks_block(gradient.first); });
  }
  std::optional<PeakRange> range = sweep.peak();
  if (range.has_value() && !is_whole) range->max = std::nullopt;
  return range;
}

}  // namespace fxopt
