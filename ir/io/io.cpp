#include "ir/io/io.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/check.h"
#include "core/file.h"

namespace fxopt {

std::optional<Format> format_of_path(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, Format>, 3> kExtensions = {
      {{".pb", Format::kPb}, {".fxg", Format::kText}, {".json", Format::kJson}}};
  if (path.ends_with(".zst")) path.remove_suffix(4);
  for (const auto& [extension, format] : kExtensions) {
    if (path.ends_with(extension)) return format;
  }
  return std::nullopt;
}

Format format_of_bytes(std::string_view bytes) {
  constexpr std::string_view kSpace = " \t\r\n";
  constexpr std::string_view kPbStart = "\rFXG1";  // schemas/fxgraph.proto, field `magic`
  constexpr size_t kLooked = 512;
  if (bytes.starts_with(kPbStart) || kPbStart.starts_with(bytes)) return Format::kPb;
  const size_t start = bytes.find_first_not_of(kSpace);
  if (start == std::string_view::npos) return Format::kPb;
  if (bytes[start] == '{' || bytes[start] == '[') return Format::kJson;
  const std::string_view head = bytes.substr(0, kLooked);
  const bool is_text = std::none_of(head.begin(), head.end(), [kSpace](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && kSpace.find(c) == std::string_view::npos) || c == 0x7f;
  });
  return is_text ? Format::kText : Format::kPb;
}

Result<std::unique_ptr<Module>> parse_module(std::string_view bytes, Format format, const std::string& file,
                                             const ReadLimits& limits) {
  switch (format) {
    case Format::kPb:
      return parse_pb(bytes, file, limits);
    case Format::kText:
      return parse_text(bytes, file, limits);
    case Format::kJson:
      return parse_json(bytes, file, limits);
  }
  FXOPT_CHECK(false, "no reader exists for this format");
}

Result<std::string> print_module(const Module& module, Format format) {
  switch (format) {
    case Format::kPb:
      return print_pb(module);
    case Format::kText:
      return print_text(module);
    case Format::kJson:
      return print_json(module);
  }
  FXOPT_CHECK(false, "no writer exists for this format");
}

Result<std::unique_ptr<Module>> load_module(const std::string& path, const ReadLimits& limits) {
  Result<std::string> bytes = read_file(path);
  if (!bytes.ok()) return std::move(bytes.error());
  const std::string name = path == "-" ? "standard input" : path;
  return parse_module(*bytes, format_of_bytes(*bytes), name, limits);
}

Status save_module(const Module& module, const std::string& path, std::optional<Format> format) {
  if (!format.has_value()) format = path == "-" ? Format::kText : format_of_path(path);
  if (!format.has_value()) {
    return Error{ErrorCode::kUnknownFormat, "the format of " + path + " cannot be derived from its name",
                 "end the name in .pb, .fxg or .json, or give --format", Where()};
  }
  Result<std::string> bytes = print_module(module, *format);
  if (!bytes.ok()) {
    bytes.error().where.file = path;
    return std::move(bytes.error());
  }
  return write_file(path, *bytes);
}

}  // namespace fxopt
