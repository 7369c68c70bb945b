#include "cli/device.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <filesystem>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/files.h"
#include "cli/print/table.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "ir/cost/links.h"
#include "ir/device/call_formulas.h"
#include "ir/ops/op.h"

namespace fxopt {
namespace {

constexpr std::string_view kFrameworkPrefix = "torch-";
constexpr std::string_view kOperators = "operators";
constexpr uint64_t kMaxProfileBytes = uint64_t{1} << 20;

bool is_path(std::string_view name) { return name.find('/') != std::string_view::npos; }

// Returns the version in "torch-2.15" as two numbers, so that 2.9 is older than 2.15.
std::pair<int64_t, int64_t> version_of(std::string_view name) {
  const std::string_view version = name.substr(kFrameworkPrefix.size());
  const size_t point = version.find('.');
  if (point == std::string_view::npos) return {parse_int64(version).value_or(0), 0};
  return {parse_int64(version.substr(0, point)).value_or(0), parse_int64(version.substr(point + 1)).value_or(0)};
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string newest_framework() {
  std::string newest;
  for (const std::string_view name : builtin_profiles()) {
    if (is_framework_profile(name) && (newest.empty() || version_of(newest) < version_of(name))) newest = name;
  }
  return newest;
}

Error unknown_device(std::string_view name) {
  const std::vector<std::string_view> names = builtin_profiles();
  const std::string known = join(std::vector<std::string>(names.begin(), names.end()), ", ");
  return Error{ErrorCode::kUnknownDevice,
               "there is no built-in device profile '" + std::string(name) + "'",
               suggestion(name, names, "the built-in profiles are " + known) +
                   "; to use a profile file, write a path with a '/': ./" + std::string(name),
               {}};
}

template <class Row>
std::vector<const CallRow*> rows_of(const std::vector<Row>& rows) {
  std::vector<const CallRow*> list;
  for (const Row& row : rows) list.push_back(&row);
  return list;
}

// Checks a row of a profile. If the row names an operator of a known library, the operator must
// exist. The conditions of the row must apply to calls of the operator, or of one of its overloads.
// Operators of unknown libraries are accepted.
Status check_row(const DeviceProfile& profile, const CallRow& row) {
  std::string misfit;
  bool is_known_library = false, is_known = false;
  const std::string library = row.target.substr(0, row.target.find('.') + 1);
  for (const Op* op : builtin_ops()) {
    is_known_library = is_known_library || op->name.starts_with(library);
    if (!is_about(row, *op)) continue;
    is_known = true;
    misfit = explain_misfit(profile, row, *op);
    if (misfit.empty()) return ok_status();
  }
  if (!is_known_library) return ok_status();
  Error error{
      ErrorCode::kBadProfile, "", "`fxopt help devices` lists the names that the statements of a profile can use", {}};
  error.where.field = row.target + (row.every_overload ? ".*" : "");
  error.message = is_known ? "this statement of the profile cannot be evaluated: " + misfit
                           : "there is no operator '" + error.where.field + "'";
  return error;
}

// Checks that each formula for collectives has a value for usual sizes, on one node and on several
// nodes.
Status check_links(const DeviceProfile& profile) {
  const LinkModel model(profile);
  for (const LinkRow& row : profile.links) {
    for (const GroupShape& group : {GroupShape{8, 1, 8}, GroupShape{16, 2, 8}, GroupShape{16, 16, 1}}) {
      if (model.seconds(row.kind, group, 1 << 20).has_value()) continue;
      Error error{ErrorCode::kBadProfile,
                  "",
                  "`fxopt help devices` lists the names that the statements of a profile can use",
                  {}};
      error.where.field = std::string("collective ") + std::string(collective_kind_name(row.kind));
      error.message = "the statement has no value for 1 MiB in a group of " + std::to_string(group.ranks) +
                      " ranks on " + count_text(static_cast<size_t>(group.nodes), "node") +
                      ": its formula is negative, or it uses a name that is neither a constant nor a symbol of "
                      "collectives";
      return error;
    }
  }
  return ok_status();
}

// Returns the text of the built-in operators, then the text of each part. A part is a path, or the
// name of a built-in profile.
Result<std::vector<ProfileText>> read_texts(const std::vector<std::string>& parts, std::deque<std::string>& files) {
  const std::vector<std::string_view> names = builtin_profiles();
  std::vector<ProfileText> texts = {*builtin_profile(kOperators)};
  for (const std::string& part : parts) {
    if (is_path(part)) {
      Result<std::string> text = read_file(part, kMaxProfileBytes);
      if (!text.ok()) return std::move(text).error();
      texts.push_back({part, files.emplace_back(std::move(*text))});
    } else if (std::find(names.begin(), names.end(), part) != names.end()) {
      texts.push_back(*builtin_profile(part));
    } else {
      return unknown_device(part);
    }
  }
  return texts;
}

}  // namespace

bool is_framework_profile(std::string_view name) { return name.starts_with(kFrameworkPrefix) && !is_path(name); }

Result<std::unique_ptr<DeviceProfile>> load_device_profile(const std::string& names) {
  std::vector<std::string> parts;
  if (has_empty_part(names)) {
    return bad_value_error("'" + names + "' is not a valid value of --device: a name in the list is empty",
                           "write names with one comma between them, as in h100,torch-2.11");
  }
  for (const std::string_view part : split_list(names))
    parts.push_back(is_path(part) ? std::string(part) : lower(part));
  const bool has_framework =
      std::any_of(parts.begin(), parts.end(), [](const std::string& part) { return is_framework_profile(part); });
  const std::string framework = newest_framework();
  if (!parts.empty() && !has_framework && !framework.empty()) parts.insert(parts.begin(), framework);
  std::string device;
  for (const std::string& part : parts) {
    if (is_path(part) || is_framework_profile(part) || !builtin_profile(part).has_value()) continue;
    if (!device.empty() && part != device) {
      return usage_error("--device names two devices, '" + device + "' and '" + part + "'",
                         "give one device, then profile files and a framework version if needed, separated by commas");
    }
    device = part;
  }
  std::deque<std::string> files;  // texts refer to its elements
  Result<std::vector<ProfileText>> texts = read_texts(parts, files);
  if (!texts.ok()) return std::move(texts).error();
  // A file can include files from its own folder, or built-in profiles. A built-in profile can
  // include only built-in profiles.
  const auto include = [&files](const std::string& from, std::string_view name) -> std::optional<ProfileText> {
    if (builtin_profile(from).has_value()) return builtin_profile(name);
    const std::filesystem::path path = std::filesystem::path(from).parent_path() / name;
    Result<std::string> text = read_file(path.string(), kMaxProfileBytes);
    if (text.ok()) return ProfileText{path.string(), files.emplace_back(std::move(*text))};
    return builtin_profile(name);
  };
  Result<std::unique_ptr<DeviceProfile>> profile = DeviceProfile::parse(*texts, include);
  if (profile.ok() && !files.empty()) {  // tests check the built-in profiles
    for (const std::vector<const CallRow*>& rows : {rows_of((*profile)->hidden), rows_of((*profile)->work)}) {
      for (const CallRow* row : rows) {
        if (const Status status = check_row(**profile, *row); !status.ok()) return status.error();
      }
    }
    if (const Status status = check_links(**profile); !status.ok()) return status.error();
  }
  if (profile.ok()) (*profile)->name = join(parts, "+");
  return profile;
}

}  // namespace fxopt
