// The profiles built into the program.
#include <algorithm>
#include <span>

#include "core/embedded_text.h"
#include "ir/device/profile.h"

namespace fxopt {

std::span<const EmbeddedText> embedded_profiles();  // written by the build

namespace {

// Files that are not profiles. Profiles include these files, or are read together with them.
constexpr std::string_view kParts[] = {"torch-common", "operators", "nccl"};

// Returns the file's name without its extension, such as "h100" or "torch-2.15".
std::string_view profile_name(const EmbeddedText& file) { return file.name.substr(0, file.name.rfind('.')); }

}  // namespace

std::vector<std::string_view> builtin_profiles() {
  std::vector<std::string_view> names;
  for (const EmbeddedText& file : embedded_profiles()) {
    if (std::find(std::begin(kParts), std::end(kParts), profile_name(file)) == std::end(kParts)) {
      names.push_back(profile_name(file));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<ProfileText> builtin_profile(std::string_view name) {
  for (const EmbeddedText& file : embedded_profiles()) {
    if (profile_name(file) == name || file.name == name) return ProfileText{std::string(file.name), file.text};
  }
  return std::nullopt;
}

}  // namespace fxopt
