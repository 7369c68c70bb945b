#pragma once

#include <string>
#include <string_view>

namespace fxopt {

// Converts a page in Markdown into text for a terminal. Wraps paragraphs and list items at 100
// columns, indents code blocks by two columns, and aligns table columns. Removes link targets and
// comments. Supports the Markdown of cli/topics: headings, paragraphs, lists of one level, fenced
// blocks, tables, and comments on lines of their own. O(length).
std::string page_text(std::string_view markdown);

}  // namespace fxopt
