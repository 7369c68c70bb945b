#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "ir/cost/measurement.h"

namespace fxopt {

// Reads measured times (schemas/profile.proto) in binary or JSON form. `file` names the input in
// errors. O(calls log calls). Fails with kBadMeasurement in these cases:
//   - The bytes are neither binary nor JSON.
//   - The version is not the version that this build reads.
//   - No call is measured, or a node is measured twice.
//   - A number of seconds is negative or not finite.
Result<Measurement> parse_measurement(std::string_view bytes, const std::string& file);

// Prints a measurement as JSON, with one call on each line. Equal measurements give the same bytes.
// parse_measurement() reads an equal measurement back. Bytes that are not UTF-8 become replacement
// characters. If the measurement is invalid, parse_measurement() refuses the text. An example is a
// measurement with infinite seconds. O(calls).
std::string print_measurement(const Measurement& measurement);

}  // namespace fxopt
