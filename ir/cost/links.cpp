#include "ir/cost/links.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace fxopt {
namespace {

constexpr double kNanosecond = 1e-9;

int64_t log2_up(int64_t value) {
  int64_t log = 0;
  while (log < 62 && (int64_t{1} << log) < value) ++log;
  return log;
}

}  // namespace

GroupShape group_shape(const std::vector<int64_t>& ranks, int64_t gpus_per_node) {
  std::map<int64_t, int64_t> of_node;
  GroupShape shape{static_cast<int64_t>(ranks.size()), 0, 0};
  for (const int64_t rank : ranks)
    shape.ranks_per_node = std::max(shape.ranks_per_node, ++of_node[rank / gpus_per_node]);
  shape.nodes = static_cast<int64_t>(of_node.size());
  return shape;
}

LinkModel::LinkModel(const DeviceProfile& profile) : profile_(profile) {
  gpus_per_node_ = std::max<int64_t>(1, profile.constant("node.gpus").value_or(gpus_per_node_));
}

void LinkModel::add_sample(CollectiveKind kind, const GroupShape& group, int64_t bytes, double seconds) {
  Samples& samples = samples_[{kind, group}];
  samples.runs.emplace_back(bytes, seconds);
  samples.is_sorted = false;
}

void LinkModel::sort(Samples& samples) {
  if (samples.is_sorted) return;
  samples.is_sorted = true;
  std::ranges::sort(samples.runs);
  std::vector<std::pair<int64_t, double>> one;  // one run for each size
  for (size_t begin = 0, end = 0; begin < samples.runs.size(); begin = end) {
    while (end < samples.runs.size() && samples.runs[end].first == samples.runs[begin].first) ++end;
    const double least = one.empty() ? 0 : one.back().second;
    one.emplace_back(samples.runs[begin].first, std::max(least, samples.runs[begin + (end - begin) / 2].second));
  }
  samples.runs = std::move(one);
}

std::optional<double> LinkModel::formula(CollectiveKind kind, const GroupShape& group, int64_t bytes) const {
  const auto row = std::ranges::find_if(profile_.links, [kind](const LinkRow& each) { return each.kind == kind; });
  const std::optional<int64_t> moved = ring_bytes(kind, bytes, group.ranks);
  if (row == profile_.links.end() || !moved.has_value()) return std::nullopt;
  if (group.ranks == 1) return 0;
  SymbolValues values = profile_.constants;
  const auto set = [&](std::string_view name, int64_t value) {
    if (const StringId id = profile_.strings.find(name); id.is_valid()) values[id] = value;
  };
  set("bytes", bytes);
  set("moved", *moved);
  set("group.ranks", group.ranks);
  set("group.nodes", group.nodes);
  set("group.ranks_per_node", group.ranks_per_node);
  set("group.log2_nodes", log2_up(group.nodes));
  const std::optional<int64_t> value = profile_.exprs.evaluate(row->nanoseconds, values);
  if (value.value_or(-1) < 0) return std::nullopt;
  return static_cast<double>(*value) * kNanosecond;
}

std::optional<LinkModel::Time> LinkModel::seconds(CollectiveKind kind, const GroupShape& group, int64_t bytes) const {
  const std::optional<double> estimate = formula(kind, group, bytes);
  const auto found = samples_.find({kind, group});
  if (found == samples_.end()) return estimate.has_value() ? std::optional(Time{*estimate, false}) : std::nullopt;
  sort(found->second);
  const std::vector<std::pair<int64_t, double>>& runs = found->second.runs;
  const auto above = std::lower_bound(runs.begin(), runs.end(), std::pair(bytes, 0.0),
                                      [](const auto& a, const auto& b) { return a.first < b.first; });
  if (above != runs.end() && above->first == bytes) return Time{above->second, true};
  if (above != runs.begin() && above != runs.end()) {
    const auto& [low, low_seconds] = *(above - 1);
    const double part = std::log2(static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(low, 1))) /
                        std::log2(static_cast<double>(above->first) / static_cast<double>(std::max<int64_t>(low, 1)));
    const bool has_log = low_seconds > 0;
    return Time{has_log ? low_seconds * std::pow(above->second / low_seconds, part)
                        : low_seconds + part * (above->second - low_seconds),
                true};
  }
  const auto& [nearest, took] = above == runs.end() ? runs.back() : runs.front();
  const std::optional<double> nearest_estimate = formula(kind, group, nearest);
  if (estimate.has_value() && nearest_estimate.value_or(0) > 0)
    return Time{*estimate * (took / *nearest_estimate), true};
  const double more =
      above == runs.end() && nearest > 0 ? static_cast<double>(bytes) / static_cast<double>(nearest) : 1;
  return Time{took * more, true};
}

}  // namespace fxopt
