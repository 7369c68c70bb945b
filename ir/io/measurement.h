#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "ir/cost/measurement.h"

namespace fxopt {

// Reads a measurement in binary or JSON form. `file` names the measurement in errors.
// O(calls log calls). Fails with kBadMeasurement in these cases:
//   - The bytes are neither binary nor JSON.
//   - The version differs.
//   - No call is measured, or a node is measured twice.
//   - A number of seconds is negative or not finite.
Result<Measurement> parse_measurement(std::string_view bytes, const std::string& file);

// Prints a measurement as JSON, with one call on each line. Equal measurements give the same bytes.
// parse_measurement() reads an equal measurement back. Bytes that are not UTF-8 become replacement
// characters. Some content is invalid for parse_measurement(), such as seconds that are not finite.
// The text for such content is invalid as well. O(calls).
std::string print_measurement(const Measurement& measurement);

}  // namespace fxopt
