#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"
#include "ir/device/profile.h"

namespace fxopt {

// Loads the profile that --device names. Every profile starts with the built-in FLOP counts of
// operators, which are the same on any device. If `names` is empty, the profile contains only these
// counts.
//
// `names` is a list of built-in names and paths, separated by commas. A word with a '/' is a path.
// If several profiles define the same figure, the figure of the last profile is used. If the list
// has no framework profile, such as "torch-2.15", the newest built-in one is loaded before the
// list. Errors:
// - kUnknownDevice and kBadProfile
// - kBadOptionValue for an empty name
// - kUsage for two different devices
// - the errors of read_file()
Result<std::unique_ptr<DeviceProfile>> load_device_profile(const std::string& names);

// True for the name of a framework profile, such as "torch-2.15". False for the name of a device,
// and for a path.
bool is_framework_profile(std::string_view name);

}  // namespace fxopt
