#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "ir/ops/op.h"

namespace fxopt {

std::string_view compute_class_name(ComputeClass value) {
  static constexpr std::string_view kNames[] = {
      "other",         "view",           "pointwise",     "reduction", "contraction", "attention", "convolution",
      "normalization", "gather-scatter", "data-movement", "factory",   "random",      "scalar",    "sort",
      "collective",    "wait",           "higher-order",  "assertion", "optimizer"};
  const size_t place = static_cast<size_t>(value);
  FXOPT_CHECK(place < std::size(kNames), "no such compute class");
  return kNames[place];
}

std::vector<std::string_view> effect_names(Effect set) {
  constexpr std::pair<Effect, std::string_view> kNames[] = {
      {Effect::kRandom, "random"},
      {Effect::kMutates, "mutates"},
      {Effect::kCollective, "collective"},
      {Effect::kWaits, "waits"},
      {Effect::kHostSync, "host-sync"},
      {Effect::kBarrier, "barrier"},
      {Effect::kAsserts, "asserts"},
      {Effect::kOpaque, "opaque"},
      {Effect::kNondeterministic, "nondeterministic"},
      {Effect::kUnknownWrites, "unknown-writes"},
      {Effect::kChangesMode, "changes-mode"},
  };
  std::vector<std::string_view> names;
  for (const auto& [effect, name] : kNames) {
    if (has_effect(set, effect)) names.push_back(name);
  }
  return names;
}

}  // namespace fxopt
