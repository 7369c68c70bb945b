#pragma once

#include <string_view>
#include <vector>

namespace fxopt {

// A part of a Markdown page that begins with "## HEADING".
struct PageSection {
  std::string_view heading;
  std::string_view whole;  // the section with its heading line
  std::string_view body;   // the section without its heading line and the empty lines below it
};

// Returns the sections of a page, in order. Text before the first heading belongs to no section.
// O(length).
std::vector<PageSection> page_sections(std::string_view page);

}  // namespace fxopt
