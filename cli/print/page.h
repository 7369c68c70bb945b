#pragma once

#include <string>
#include <string_view>

namespace fxopt {

// A page in Markdown as text for a terminal. Paragraphs and list items are wrapped at 100 columns,
// code blocks indented by two, table columns aligned; link targets and comments are removed. It
// knows the Markdown of cli/topics: headings, paragraphs, lists of one level, fenced blocks, tables
// and comments on lines of their own. O(length).
std::string page_text(std::string_view markdown);

}  // namespace fxopt
