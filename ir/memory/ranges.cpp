#include "ir/memory/ranges.h"

#include <algorithm>

#include "core/saturate.h"
#include "ir/analysis/sizes.h"

namespace fxopt {
namespace {

class Ranger {
 public:
  Ranger(const Graph& graph, const StorageMap& storages, const MemoryReport& memory, const MemoryOptions& options)
      : graph_(graph), module_(graph.module()), storages_(storages), memory_(memory), options_(options) {
    SymbolRanges given = options.ranges;
    for (const auto& [name, value] : options.symbols) given.try_emplace(name, ValueRange::of(value));
    ranges_ = symbol_ranges(module_, given);
    bounds_.emplace(module_.exprs, module_.strings, ranges_);
  }

  MemoryRanges run() {
    for (size_t i = 0; i < storages_.num_buffers(); ++i) measure(BufferId(i));
    list_symbols();
    for (const DevicePeak& peak : memory_.devices) {
      const bool varies = std::any_of(memory_.lifetimes.begin(), memory_.lifetimes.end(), [&](const Lifetime& life) {
        return storages_.buffer(life.buffer).device == peak.device && !sizes_[life.buffer.index()].is_one();
      });
      if (varies) result_.devices.push_back(range_of(peak.device));
    }
    return std::move(result_);
  }

 private:
  void measure(BufferId id) {
    const SizeSource source = size_source(graph_, storages_, id);
    if (source.kind == SizeKind::kLike) return sizes_.push_back(sizes_[source.like.index()]);
    sizes_.push_back(size_bounds(module_, source, *bounds_));
    for (const ExprId expr : size_expressions(module_, source)) note_symbols(expr);
  }

  // Each expression once: graphs have few of them.
  void note_symbols(ExprId expr) {
    if (is_noted_.size() <= expr.index()) is_noted_.resize(module_.exprs.size(), false);
    if (is_noted_[expr.index()]) return;
    is_noted_[expr.index()] = true;
    for (const StringId name : module_.exprs.symbols(expr)) {
      if (is_used_[name]) continue;
      is_used_[name] = true;
      used_.push_back(name);
    }
  }

  void list_symbols() {
    const SymbolValues values = symbol_values(module_, options_.symbols);
    const auto add = [&](StringId name) {
      const SymbolValues::const_iterator value = values.find(name);
      const SymbolRanges::const_iterator range = ranges_.find(name);
      result_.symbols.push_back({name, value == values.end() ? std::nullopt : std::optional<int64_t>(value->second),
                                 value != values.end() && !options_.symbols.contains(name),
                                 range == ranges_.end() ? ValueRange() : range->second});
      is_used_[name] = false;
    };
    for (const Symbol& symbol : module_.symbols) {
      if (is_used_[symbol.name]) add(symbol.name);
    }
    for (const StringId name : used_) {
      if (is_used_[name]) add(name);
    }
  }

  PeakRange range_of(StringId device) const {
    const size_t places = graph_.num_nodes();
    std::vector<WideSum> least(places + 1, 0), most(places + 1, 0);
    std::vector<int64_t> unbounded(places + 1, 0);
    for (const Lifetime& life : memory_.lifetimes) {
      if (storages_.buffer(life.buffer).device != device) continue;
      const ValueRange size = sizes_[life.buffer.index()];
      least[life.first] += size.min;
      least[life.last + 1] -= size.min;
      if (size.has_max()) {
        most[life.first] += size.max;
        most[life.last + 1] -= size.max;
      } else {
        ++unbounded[life.first];
        --unbounded[life.last + 1];
      }
    }
    WideSum min = 0, max = 0, live_least = 0, live_most = 0;
    int64_t live_unbounded = 0;
    bool is_bounded = true;
    for (size_t place = 0; place < places; ++place) {
      live_least += least[place];
      live_most += most[place];
      live_unbounded += unbounded[place];
      min = std::max(min, live_least);
      max = std::max(max, live_most);
      is_bounded = is_bounded && live_unbounded == 0;
    }
    PeakRange range{device, saturate(min), std::nullopt};
    if (is_bounded && max < ValueRange::kNoMax) range.max = saturate(max);
    return range;
  }

  const Graph& graph_;
  const Module& module_;
  const StorageMap& storages_;
  const MemoryReport& memory_;
  const MemoryOptions& options_;
  SymbolRanges ranges_;
  std::optional<ExprBounds> bounds_;
  std::vector<ValueRange> sizes_;  // by BufferId
  std::vector<bool> is_noted_;     // by ExprId
  IdMap<StringId, bool> is_used_;
  std::vector<StringId> used_;  // in the order of first use
  MemoryRanges result_;
};

}  // namespace

MemoryRanges memory_ranges(const Graph& graph, const StorageMap& storages, const MemoryReport& memory,
                           const MemoryOptions& options) {
  return Ranger(graph, storages, memory, options).run();
}

}  // namespace fxopt
