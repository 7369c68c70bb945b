#include "core/delta_debug.h"

#include <algorithm>

namespace fxopt {
namespace {

// Tries to remove each run of `size` items once, from the last run to the first. Returns true if a
// run was removed.
bool remove_runs(std::vector<size_t>& left, size_t size, const std::function<bool(const std::vector<size_t>&)>& remove,
                 const std::function<bool(size_t)>& is_there) {
  bool has_removed = false;
  for (size_t end = left.size(); end > 0;) {
    const size_t begin = end - std::min(end, size);
    const std::vector<size_t> run(left.begin() + static_cast<std::ptrdiff_t>(begin),
                                  left.begin() + static_cast<std::ptrdiff_t>(end));
    end = begin;
    if (!remove(run)) continue;
    has_removed = true;
    const size_t next = begin > 0 ? left[begin - 1] : 0;
    const auto is_gone = [&](size_t item) {
      return std::binary_search(run.begin(), run.end(), item) || !is_there(item);
    };
    left.erase(std::remove_if(left.begin(), left.end(), is_gone), left.end());
    if (begin == 0) break;
    end = static_cast<size_t>(std::upper_bound(left.begin(), left.end(), next) - left.begin());
  }
  return has_removed;
}

}  // namespace

std::vector<size_t> delta_debug(size_t count, const std::function<bool(const std::vector<size_t>&)>& remove,
                                const std::function<bool(size_t)>& is_there) {
  std::vector<size_t> left;
  for (size_t item = 0; item < count; ++item) left.push_back(item);
  for (size_t size = count; size > 1; size = (size + 1) / 2) {
    remove_runs(left, size, remove, is_there);
    if (left.empty()) return left;
    size = std::min(size, left.size());
  }
  while (remove_runs(left, 1, remove, is_there)) {
  }
  return left;
}

}  // namespace fxopt
