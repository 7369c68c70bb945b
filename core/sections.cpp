#include "core/sections.h"

#include <algorithm>

namespace fxopt {

std::vector<PageSection> page_sections(std::string_view page) {
  constexpr std::string_view kMark = "\n## ";
  std::vector<PageSection> sections;
  for (size_t at = page.find(kMark); at != std::string_view::npos;) {
    const size_t next = page.find(kMark, at + 1);
    const std::string_view whole = page.substr(at + 1, next - at - 1);
    const size_t line = std::min(whole.find('\n'), whole.size());
    const size_t body = std::min(whole.find_first_not_of('\n', line), whole.size());
    sections.push_back({whole.substr(kMark.size() - 1, line - kMark.size() + 1), whole, whole.substr(body)});
    at = next;
  }
  return sections;
}

}  // namespace fxopt
