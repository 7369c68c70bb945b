// Reads the table for `fxopt help CODE` from core/errors.md, which the build embeds.
#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "core/check.h"
#include "core/embedded_text.h"
#include "core/error.h"
#include "core/scan.h"
#include "core/sections.h"
#include "core/text.h"

namespace fxopt {

std::span<const EmbeddedText> embedded_errors();

namespace {

constexpr std::string_view kPrefix = "FX";
constexpr size_t kDigits = 4;

ExitCode exit_of_family(int64_t code) {
  const int64_t family = code / 100;
  FXOPT_CHECK(family >= 1 && family <= 10, "the error code belongs to no family");
  return static_cast<ExitCode>(family);
}

// The heading is "FX0306 TITLE".
ErrorInfo read_section(const PageSection& section) {
  const bool has_code = section.heading.starts_with(kPrefix);
  const std::string_view rest = section.heading.substr(has_code ? kPrefix.size() : 0);
  const std::optional<int64_t> code = parse_int64(rest.substr(0, kDigits));
  FXOPT_CHECK(has_code && code.has_value(), "a section of core/errors.md begins with '## FX0306 TITLE'");
  std::string explanation(trim(section.body));
  std::replace(explanation.begin(), explanation.end(), '\n', ' ');
  return {static_cast<ErrorCode>(*code), exit_of_family(*code), rest.substr(kDigits + 1), std::move(explanation)};
}

}  // namespace

const std::vector<ErrorInfo>& error_table() {
  static const std::vector<ErrorInfo> table = [] {
    std::vector<ErrorInfo> rows;
    for (const PageSection& section : page_sections(embedded_errors().front().text))
      rows.push_back(read_section(section));
    return rows;
  }();
  return table;
}

}  // namespace fxopt
