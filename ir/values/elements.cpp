#include "ir/values/elements.h"

#include <algorithm>
#include <optional>
#include <span>

namespace fxopt {

bool has_elements(const Value& value) {
  return value.kind == ValueKind::kTuple || value.kind == ValueKind::kList || value.kind == ValueKind::kDict;
}

bool ElementFinder::find(NodeId parent, const Arg& key, std::vector<size_t>& out) {
  const int64_t count = graph_.value(parent).count;
  if (graph_.value(parent).kind == ValueKind::kDict) {
    const std::optional<uint32_t> found =
        key.is(ArgKind::kString) ? dict_keys_.find(graph_, parent, key.as_string()) : std::nullopt;
    if (found.has_value()) out.push_back(*found);
    return found.has_value();
  }
  if (key.is(ArgKind::kSlice)) return find_slice(count, graph_.pool().children(key), out);
  if (!key.is(ArgKind::kInt)) return false;
  const int64_t index = key.as_int() < 0 ? key.as_int() + count : key.as_int();
  if (index < 0 || index >= count) return false;
  out.push_back(static_cast<size_t>(index));
  return true;
}

// Appends the elements of a slice, as Python does for a list of `count` elements. Bounds beyond an
// end are clamped to this end. Negative bounds count from the end of the list.
bool ElementFinder::find_slice(int64_t count, std::span<const Arg> bounds, std::vector<size_t>& out) const {
  const auto is_plain = [](const Arg& bound) { return bound.is(ArgKind::kInt) || bound.is(ArgKind::kNone); };
  if (bounds.size() != 3 || !std::all_of(bounds.begin(), bounds.end(), is_plain)) return false;
  const int64_t step = bounds[2].is(ArgKind::kInt) ? bounds[2].as_int() : 1;
  if (step == 0) return false;
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? count : count - 1;
  const auto end = [&](const Arg& bound, int64_t otherwise) {
    if (!bound.is(ArgKind::kInt)) return otherwise;
    return std::clamp(bound.as_int() < 0 ? std::max(bound.as_int(), -count - 1) + count : bound.as_int(), lowest,
                      highest);
  };
  const int64_t first = end(bounds[0], step > 0 ? lowest : highest), last = end(bounds[1], step > 0 ? highest : lowest);
  const int64_t stride = std::clamp(step, -count - 1, count + 1);
  for (int64_t i = first; step > 0 ? i < last : i > last; i += stride) out.push_back(static_cast<size_t>(i));
  return true;
}

std::pair<size_t, size_t> ElementFinder::tensors(NodeId node, size_t i) {
  uint32_t& start = ends_of_[node];
  if (start == 0) {
    start = static_cast<uint32_t>(ends_.size());
    uint32_t end = 0;
    const Value& value = graph_.value(node);
    for (uint32_t child = 0; child < value.count; ++child) {
      for_each_tensor(graph_, ValueId(value.first + child), [&end](ValueId, const Tensor&) { ++end; });
      ends_.push_back(end);
    }
  }
  const uint32_t first = i == 0 ? 0 : ends_[start + i - 1];
  return {first, ends_[start + i] - first};
}

}  // namespace fxopt
