// The table behind `fxopt help CODE`: the sections of core/errors.md, which the build embeds.
#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "core/check.h"
#include "core/embedded_text.h"
#include "core/error.h"
#include "core/text.h"

namespace fxopt {

std::span<const EmbeddedText> embedded_errors();

namespace {

constexpr std::string_view kSection = "\n## FX";
constexpr size_t kDigits = 4;

ExitCode exit_of_family(int64_t code) {
  const int64_t family = code / 100;
  FXOPT_CHECK(family >= 1 && family <= 10, "error code outside of the families");
  return static_cast<ExitCode>(family);
}

// `section`: "0306 TITLE", an empty line, and the explanation in lines.
ErrorInfo read_section(std::string_view section) {
  const std::optional<int64_t> code = parse_int64(section.substr(0, kDigits));
  const size_t line = section.find('\n');
  FXOPT_CHECK(code.has_value() && line != std::string_view::npos,
              "a section of core/errors.md begins with '## FX0306 TITLE'");
  std::string explanation(section.substr(section.find_first_not_of('\n', line)));
  while (explanation.ends_with('\n')) explanation.pop_back();
  std::replace(explanation.begin(), explanation.end(), '\n', ' ');
  return {static_cast<ErrorCode>(*code), exit_of_family(*code), section.substr(kDigits + 1, line - kDigits - 1),
          std::move(explanation)};
}

}  // namespace

const std::vector<ErrorInfo>& error_table() {
  static const std::vector<ErrorInfo> table = [] {
    std::vector<ErrorInfo> rows;
    const std::string_view page = embedded_errors().front().text;
    for (size_t at = page.find(kSection); at != std::string_view::npos;) {
      const size_t next = page.find(kSection, at + 1), begin = at + kSection.size();
      rows.push_back(read_section(page.substr(begin, next - begin)));
      at = next;
    }
    return rows;
  }();
  return table;
}

}  // namespace fxopt
