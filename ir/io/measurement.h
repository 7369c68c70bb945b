#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "ir/cost/measurement.h"

namespace fxopt {

// Reads a measurement, binary or JSON; `file` names it in errors. Errors: kBadMeasurement: neither form, another
// version, no calls, a node measured twice, seconds that are negative or not finite. O(calls log calls).
Result<Measurement> parse_measurement(std::string_view bytes, const std::string& file);

// The measurement as JSON, one call a line: equal measurements give the same bytes, and parse_measurement() reads an equal
// one back. Text that is not UTF-8 gets replacement characters. What parse_measurement() would refuse, such as seconds
// that are not finite, is printed as text that it refuses. O(calls).
std::string print_measurement(const Measurement& measurement);

}  // namespace fxopt
