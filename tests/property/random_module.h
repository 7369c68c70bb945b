#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "ir/graph/module.h"

namespace fxopt {

// The hard features of graphs; a random module has each with a probability of its own.
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
  std::array<bool, kNumFeatures> has{};  // what the module really holds
};

struct RandomModuleOptions {
  uint32_t max_nodes = 40;   // of one graph
  bool fill_records = true;  // every record of the schema with random content, not only what the graph needs
};

// A well-formed module: every input stands before its user, names are unique, values fit their ops. Everything in it
// follows from `seed`.
RandomModule random_module(uint64_t seed, const RandomModuleOptions& options = {});

}  // namespace fxopt
