#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "ir/graph/module.h"

namespace fxopt {

// Unusual features of graphs; each occurs in a random module with its own probability.
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
  std::array<bool, kNumFeatures> has{};  // features actually present
};

struct RandomModuleOptions {
  uint32_t max_nodes = 40;   // per graph
  bool fill_records = true;  // fill every record of the schema at random, not only required ones
};

// Returns a well-formed module: inputs precede their users, names are unique, values fit their ops.
// `seed` determines all of it.
RandomModule random_module(uint64_t seed, const RandomModuleOptions& options = {});

}  // namespace fxopt
