#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "ir/cost/measurement.h"

namespace fxopt {

// Reads a measurement, binary or JSON. `file` names it in errors. Fails with kBadMeasurement if the
// bytes are neither, the version differs, no call is measured, a node is measured twice, or seconds
// are negative or not finite. O(calls log calls).
Result<Measurement> parse_measurement(std::string_view bytes, const std::string& file);

// Prints a measurement as JSON, one call a line. Equal measurements give the same bytes, and
// parse_measurement() reads an equal one back. Text that is not UTF-8 gets replacement characters.
// Content that parse_measurement() refuses, such as seconds that are not finite, is printed as text
// that it refuses. O(calls).
std::string print_measurement(const Measurement& measurement);

}  // namespace fxopt
