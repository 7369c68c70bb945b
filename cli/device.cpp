#include "cli/device.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <utility>
#include <vector>

#include "cli/files.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace fxopt {
namespace {

constexpr std::string_view kFrameworkPrefix = "torch-";
const std::string kOperators = "operators";
constexpr uint64_t kMaxProfileBytes = uint64_t{1} << 20;

bool is_framework(std::string_view name) { return name.starts_with(kFrameworkPrefix); }

// "2.15" of "torch-2.15" as numbers, so that 2.9 is older than 2.15.
std::pair<int64_t, int64_t> version_of(std::string_view name) {
  const std::string_view version = name.substr(kFrameworkPrefix.size());
  const size_t point = version.find('.');
  if (point == std::string_view::npos) return {parse_int64(version).value_or(0), 0};
  return {parse_int64(version.substr(0, point)).value_or(0), parse_int64(version.substr(point + 1)).value_or(0)};
}

std::string newest_framework() {
  std::string newest;
  for (const std::string_view name : builtin_profiles()) {
    if (is_framework(name) && (newest.empty() || version_of(newest) < version_of(name))) newest = name;
  }
  return newest;
}

Error unknown_device(std::string_view name) {
  const std::vector<std::string_view> names = builtin_profiles();
  return Error{ErrorCode::kUnknownDevice,
               "there is no device profile '" + std::string(name) + "'",
               suggestion(name, names, "there are " + join(std::vector<std::string>(names.begin(), names.end()), ", ")),
               {}};
}

}  // namespace

Result<std::unique_ptr<DeviceProfile>> load_device_profile(const std::string& names) {
  std::vector<std::string> parts;
  for (const std::string_view part : split_list(names)) parts.emplace_back(part);
  const bool has_framework =
      std::any_of(parts.begin(), parts.end(), [](const std::string& part) { return is_framework(part); });
  const std::string framework = newest_framework();
  if (!parts.empty() && !has_framework && !framework.empty()) parts.insert(parts.begin(), framework);
  parts.insert(parts.begin(), kOperators);
  std::vector<ProfileText> texts;
  std::deque<std::string> files;  // texts refer to its elements
  for (const std::string& part : parts) {
    const std::optional<ProfileText> builtin = builtin_profile(part);
    if (builtin.has_value()) {
      texts.push_back(*builtin);
      continue;
    }
    if (part.find('/') == std::string::npos && part.find('.') == std::string::npos) return unknown_device(part);
    Result<std::string> text = read_file(part, kMaxProfileBytes);
    if (!text.ok()) return std::move(text).error();
    texts.push_back({part, files.emplace_back(std::move(*text))});
  }
  // What a file includes stands beside it, or is built in, as is all that a built-in one includes.
  const auto include = [&files](const std::string& from, std::string_view name) -> std::optional<ProfileText> {
    if (builtin_profile(from).has_value()) return builtin_profile(name);
    const std::filesystem::path path = std::filesystem::path(from).parent_path() / name;
    Result<std::string> text = read_file(path.string(), kMaxProfileBytes);
    if (text.ok()) return ProfileText{path.string(), files.emplace_back(std::move(*text))};
    return builtin_profile(name);
  };
  Result<std::unique_ptr<DeviceProfile>> profile = DeviceProfile::parse(texts, include);
  if (profile.ok()) (*profile)->name = join(std::vector<std::string>(parts.begin() + 1, parts.end()), "+");
  return profile;
}

}  // namespace fxopt
