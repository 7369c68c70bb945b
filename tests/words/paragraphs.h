#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// A run of words for people in a source file or a page: the comment lines, the string literals or the
// lines of Markdown that belong together.
struct Paragraph {
  bool is_string = false;
  std::string text;           // lines joined by one space, literals by nothing
  std::vector<size_t> lines;  // the line of each byte of `text`, from 1
};

// The paragraphs of C++ (also of .proto and .cu): comments and string literals.
std::vector<Paragraph> cpp_paragraphs(std::string_view text);
// The paragraphs of Python and shell: comments and strings.
std::vector<Paragraph> script_paragraphs(std::string_view text);
// The paragraphs of Markdown, without code blocks.
std::vector<Paragraph> markdown_paragraphs(std::string_view text);

}  // namespace fxopt
