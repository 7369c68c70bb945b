// Memory reports as an HTML page.
#include "cli/report/memory/html.h"

#include <charconv>
#include <span>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/embedded_text.h"

namespace fxopt {

std::span<const EmbeddedText> embedded_page();  // written by the build

namespace {

using Json = nlohmann::ordered_json;

std::string base36(uint64_t number) {
  char digits[16];
  return {digits, std::to_chars(digits, digits + sizeof digits, number, 36).ptr};
}

std::string_view file_text(std::string_view name) {
  for (const EmbeddedText& file : embedded_page()) {
    if (file.name == name) return file.text;
  }
  FXOPT_CHECK(false, "the page lacks a file");
  return {};
}

// Removes the comment that names a source map. A browser's developer tools would request this file.
std::string without_source_map(std::string_view text) {
  const size_t at = text.rfind("# sourceMappingURL=");
  if (at == std::string_view::npos) return std::string(text);
  // The comment starts two characters earlier.
  return std::string(text.substr(0, at - 2)) + "\n";
}

// Returns JSON for a script element. '<' could end the element, so it is escaped. It occurs only
// inside JSON strings.
std::string embedded_json(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

Json timeline_json(const DeviceMemory& device) {
  Json classes = Json::object(), allocated = Json::object(), reserved = Json::object();
  for (size_t kind = 0; kind < kNumMemoryClasses; ++kind) {
    if (device.class_at[kind].empty()) continue;
    classes[std::string(memory_class_name(static_cast<MemoryClass>(kind)))] = encode_differences(device.class_at[kind]);
  }
  for (const AllocatorRow& row : device.allocator) {
    allocated[row.segments] = encode_differences(row.allocated_at);
    reserved[row.segments] = encode_differences(row.reserved_at);
  }
  return {{"step", device.drawn_step},
          {"ideal", encode_differences(device.ideal_at)},
          {"requested", encode_differences(device.requested_at)},
          {"classes", std::move(classes)},
          {"allocated", std::move(allocated)},
          {"reserved", std::move(reserved)}};
}

}  // namespace

template <class Integer>
std::string encode_differences(const std::vector<Integer>& values) {
  std::string text;
  uint64_t zeros = 0;
  const auto add = [&text](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  const auto flush = [&] {
    if (zeros > 1) add("~" + base36(zeros));
    if (zeros == 1) add("0");
    zeros = 0;
  };
  int64_t last = 0;
  for (const Integer value : values) {
    const int64_t difference = static_cast<int64_t>(value) - last;
    last = static_cast<int64_t>(value);
    if (difference == 0) {
      ++zeros;
      continue;
    }
    flush();
    const uint64_t size = static_cast<uint64_t>(difference < 0 ? -difference : difference);
    add((difference < 0 ? "-" : "") + base36(size));
  }
  flush();
  return text;
}

template std::string encode_differences(const std::vector<int64_t>& values);
template std::string encode_differences(const std::vector<uint32_t>& values);

HtmlReport::HtmlReport(Json head) : data_(std::make_unique<Json>(std::move(head))) {
  (*data_)["reports"] = Json::array();
  (*data_)["failures"] = Json::array();
}

HtmlReport::~HtmlReport() = default;

void HtmlReport::add(const std::string& file, const GraphMemory& memory, size_t top) {
  const ScheduleTable& schedule = memory.schedule;
  Json timelines = Json::array(), report = memory_json(memory);
  for (Json& device : report["devices"]) {
    Json::array_t& rows = device["top"].get_ref<Json::array_t&>();
    if (rows.size() > top) rows.resize(top);
  }
  for (const DeviceMemory& device : memory.devices) timelines.push_back(timeline_json(device));
  (*data_)["reports"].push_back({{"file", file},
                                 {"memory", std::move(report)},
                                 {"nodes", schedule.nodes},
                                 {"texts", schedule.texts},
                                 {"module_path", encode_differences(schedule.module_path)},
                                 {"phase", encode_differences(schedule.phase)},
                                 {"target", encode_differences(schedule.target)},
                                 {"timelines", std::move(timelines)}});
}

void HtmlReport::add_failure(const std::string& file, const std::vector<std::string>& reasons) {
  (*data_)["failures"].push_back({{"file", file}, {"reasons", reasons}});
}

std::string HtmlReport::text() const {
  const std::pair<std::string_view, std::string> parts[] = {
      {"/*library style*/", without_source_map(file_text("dygraph.min.css"))},
      {"/*style*/", std::string(file_text("report.css"))},
      {"{{licence}}", std::string(file_text("copyright"))},
      {"{{data}}", embedded_json(*data_)},
      {"/*library*/", without_source_map(file_text("dygraph.min.js"))},
      {"/*timeline*/", std::string(file_text("timeline.js"))},
      {"/*script*/", std::string(file_text("report.js"))},
  };
  std::string_view rest = file_text("report.html");
  std::string page;
  for (const auto& [mark, text] : parts) {
    const size_t at = rest.find(mark);
    FXOPT_CHECK(at != std::string_view::npos, "the page lacks a mark");
    page += rest.substr(0, at);
    page += text;
    rest.remove_prefix(at + mark.size());
  }
  page += rest;
  return page;
}

}  // namespace fxopt
