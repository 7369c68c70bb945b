#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"
#include "ir/device/profile.h"

namespace fxopt {

// Loads the profile named by --device. It starts with the known work of operators on any device,
// and is only that if `names` is empty. `names` holds built-in names and paths (words with a '/'),
// separated by commas. A later one replaces the rows that it redefines. If no framework's profile
// is named, the newest built-in one comes first. Errors: kUnknownDevice, kBadProfile, and those of
// read_file().
Result<std::unique_ptr<DeviceProfile>> load_device_profile(const std::string& names);

// True for the name of a framework's profile, "torch-2.15", as opposed to a device.
bool is_framework_profile(std::string_view name);

}  // namespace fxopt
