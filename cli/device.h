#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"
#include "ir/device/profile.h"

namespace fxopt {

// The profile that --device names, with what is known of operators on any device (their work) in front; that alone when
// `names` is empty. It takes built-in names and paths (words with a '/') with commas between them, of which a later one
// replaces what it says anew. Where no framework's profile is among them, the newest built-in one
// comes first. Errors: kUnknownDevice, kBadProfile, and those of read_file().
Result<std::unique_ptr<DeviceProfile>> load_device_profile(const std::string& names);

// True for the name of what is known of a framework, "torch-2.15", not of a device.
bool is_framework_profile(std::string_view name);

}  // namespace fxopt
