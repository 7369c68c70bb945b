#pragma once

#include <string_view>
#include <vector>

namespace fxopt {

// A part of a Markdown page that begins with "## HEADING".
struct PageSection {
  std::string_view heading;
  std::string_view whole;  // with the heading's line
  std::string_view body;   // after the heading's line and the empty lines that follow
};

// The sections of a page, in order; text before the first one belongs to none. O(length).
std::vector<PageSection> page_sections(std::string_view page);

}  // namespace fxopt
