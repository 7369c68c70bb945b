#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace fxopt {

// Seconds of one call, as it was run: see NodeTime of schemas/profile.proto.
struct MeasuredCall {
  uint64_t uid = 0;
  std::string target;
  std::string types;
  double seconds = 0;
};

// What running graphs took, as schemas/profile.proto has it.
struct Measurement {
  std::string device;
  std::vector<std::pair<std::string, std::string>> software;  // name and version
  std::string method;
  uint32_t runs = 0;
  std::vector<std::pair<std::string, std::vector<MeasuredCall>>> graphs;  // by name
};

// Reads a measurement, binary or JSON; `file` names it in errors. Errors: kBadMeasurement: neither form, another
// version, no calls, a node measured twice, seconds that are negative or not finite. O(calls log calls).
Result<Measurement> parse_measurement(std::string_view bytes, const std::string& file);

}  // namespace fxopt
