#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "ir/graph/module.h"

namespace fxopt {

// Unusual features of graphs. Each feature occurs in a random module with its own probability.
enum class Feature : uint8_t {
  kView,
  kMultiOutput,
  kInPlace,
  kOutVariant,
  kCollective,
  kRandomness,
  kRegion,
  kSymbol,
  kSubgraph,
  kSeveralGraphs,
};
constexpr size_t kNumFeatures = 10;
std::string_view feature_name(Feature feature);

struct RandomModule {
  std::unique_ptr<Module> module;
  std::array<bool, kNumFeatures> has{};  // the features that the module has
};

struct RandomModuleOptions {
  uint32_t max_nodes = 40;   // per graph
  bool fill_records = true;  // fill all records of the schema at random, including optional records
};

// Returns a well-formed module: inputs precede their users, names are unique, values fit their ops.
// `seed` determines the whole module.
RandomModule random_module(uint64_t seed, const RandomModuleOptions& options = {});

}  // namespace fxopt
