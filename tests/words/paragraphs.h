#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// A paragraph that people read in a source file or a page. It consists of comment lines, string
// literals or lines of Markdown that belong together.
struct Paragraph {
  bool is_string = false;
  std::string text;           // lines are joined by a space, and literals without a space
  std::vector<size_t> lines;  // the line number of each byte of `text`, counted from 1
};

// Returns the paragraphs of C++, .proto and .cu files: comments and string literals.
std::vector<Paragraph> cpp_paragraphs(std::string_view text);
// Returns the paragraphs of Python and shell files: comments and strings.
std::vector<Paragraph> script_paragraphs(std::string_view text);
// Returns the paragraphs of Markdown pages, without code blocks.
std::vector<Paragraph> markdown_paragraphs(std::string_view text);

}  // namespace fxopt
