#include "passes/collective/peak_bound.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"

namespace fxopt {
namespace {

std::string device_name(const Module& module, StringId device) {
  return device.is_valid() ? std::string(module.text(device)) : std::string();
}

double growth(int64_t before, int64_t after) {
  return static_cast<double>(after - before) / static_cast<double>(std::max<int64_t>(before, 1));
}

}  // namespace

PeakBound::PeakBound(const Graph& graph, Facts& facts, const MemoryOptions& memory, double max_growth)
    : memory_(memory), max_growth_(max_growth) {
  for (const DevicePeak& device : analyze_memory(graph, facts.storages(), memory, &facts.phases()).devices) {
    before_[device_name(graph.module(), device.device)] = device.bytes;
  }
}

PeakBound::Growth PeakBound::measure(const Graph& graph, Facts& facts) const {
  const StorageMap& storages = facts.storages();
  MemoryReport report = analyze_memory(graph, storages, memory_, &facts.phases());
  Growth result;
  const size_t count = graph.num_nodes();
  std::vector<bool> is_over(count, false);
  bool is_first = true;
  for (const DevicePeak& device : report.devices) {
    const std::string name = device_name(graph.module(), device.device);
    const auto known = before_.find(name);
    const int64_t before = known == before_.end() ? 0 : known->second;
    if (is_first || growth(before, device.bytes) > growth(result.before_, result.after_)) {
      result.before_ = before;
      result.after_ = device.bytes;
      result.device_ = report.devices.size() > 1 ? name : std::string();
    }
    is_first = false;
    const double most = static_cast<double>(before) * (1 + max_growth_);
    if (max_growth_ < 0 || most >= 9e18) continue;
    const int64_t limit = std::max(before, static_cast<int64_t>(most));
    if (device.bytes <= limit) continue;
    std::vector<int64_t> change(count + 1, 0);
    report.for_each_stay([&](const Lifetime& lifetime) {
      if (storages.buffer(lifetime.buffer).device != device.device || lifetime.first >= count) return;
      change[lifetime.first] += lifetime.bytes;
      change[std::min<size_t>(lifetime.last, count - 1) + 1] -= lifetime.bytes;
    });
    int64_t live = 0;
    for (size_t place = 0; place < count; ++place) {
      live += change[place];
      is_over[place] = is_over[place] || live > limit;
    }
    is_over[graph.position(device.node)] = true;
  }
  uint32_t over = 0;
  for (size_t place = 0; place < count; ++place) result.num_over_.push_back(over += is_over[place] ? 1 : 0);
  result.lifetimes_ = std::move(report.lifetimes);
  return result;
}

bool PeakBound::Growth::is_over(uint32_t first, uint32_t last) const {
  if (num_over_.empty() || first > last) return false;
  const uint32_t end = num_over_[std::min<size_t>(last, num_over_.size() - 1)];
  return end > (first == 0 ? 0 : num_over_[first - 1]);
}

bool PeakBound::Growth::is_live(const StorageMap& storages, NodeId node) const {
  for (const BufferId id : storages.buffers(node)) {
    if (!id.is_valid() || storages.buffer(id).source != BufferSource::kNode) continue;
    const Lifetime& lifetime = lifetimes_[id.index()];
    if (lifetime.bytes > 0 && is_over(lifetime.first, lifetime.last)) return true;
  }
  return false;
}

std::vector<std::pair<uint32_t, uint32_t>> PeakBound::Growth::stretches() const {
  std::vector<std::pair<uint32_t, uint32_t>> found;
  for (uint32_t place = 0; place < num_over_.size(); ++place) {
    if (!is_over(place, place)) continue;
    if (found.empty() || found.back().second + 1 != place) found.emplace_back(place, place);
    found.back().second = place;
  }
  return found;
}

std::string PeakBound::Growth::percent() const {
  return format_double(std::round(growth(before_, after_) * 10000) / 100) + " %";
}

std::string PeakBound::Growth::text() const {
  return "the ideal peak" + (device_.empty() ? "" : " of " + device_) +
         " (live bytes without allocator overhead) grows from " + std::to_string(before_) + " B to " +
         std::to_string(after_) + " B, by " + percent();
}

}  // namespace fxopt
