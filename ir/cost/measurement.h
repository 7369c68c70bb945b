#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fxopt {

// The measured seconds of one call. See NodeTime in schemas/profile.proto.
struct MeasuredCall {
  uint64_t uid = 0;
  std::string target;
  std::string types;
  double seconds = 0;
  bool operator==(const MeasuredCall&) const = default;
};

// The measured times of graphs, as in schemas/profile.proto.
struct Measurement {
  std::string device;
  std::vector<std::pair<std::string, std::string>> software;  // names and versions
  std::string method;
  uint32_t runs = 0;
  std::vector<std::pair<std::string, std::vector<MeasuredCall>>> graphs;  // by name of the graph
  bool operator==(const Measurement&) const = default;
};

}  // namespace fxopt
