#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "ir/ops/op.h"

namespace fxopt {

std::string_view compute_class_name(ComputeClass value) {
  switch (value) {
    case ComputeClass::kOther:
      return "other";
    case ComputeClass::kView:
      return "view";
    case ComputeClass::kPointwise:
      return "pointwise";
    case ComputeClass::kReduction:
      return "reduction";
    case ComputeClass::kContraction:
      return "contraction";
    case ComputeClass::kAttention:
      return "attention";
    case ComputeClass::kConvolution:
      return "convolution";
    case ComputeClass::kNormalization:
      return "normalization";
    case ComputeClass::kGatherScatter:
      return "gather-scatter";
    case ComputeClass::kDataMovement:
      return "data-movement";
    case ComputeClass::kFactory:
      return "factory";
    case ComputeClass::kRandom:
      return "random";
    case ComputeClass::kScalar:
      return "scalar";
    case ComputeClass::kSort:
      return "sort";
    case ComputeClass::kCollective:
      return "collective";
    case ComputeClass::kWait:
      return "wait";
    case ComputeClass::kHigherOrder:
      return "higher-order";
    case ComputeClass::kAssertion:
      return "assertion";
    case ComputeClass::kOptimizer:
      return "optimizer";
  }
  FXOPT_CHECK(false, "no such compute class");
  return {};
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
