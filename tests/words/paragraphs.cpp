#include "tests/words/paragraphs.h"

#include <algorithm>
#include <cctype>

#include "core/scan.h"

namespace fxopt {
namespace {

// Reads a file from left to right, and collects its paragraphs.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Paragraph> cpp() {
    while (at_ < text_.size()) {
      if (starts("//")) {
        comment(2);
      } else if (starts("R\"") && (at_ == 0 || std::isalnum(static_cast<unsigned char>(text_[at_ - 1])) == 0)) {
        raw_string();
      } else if (text_[at_] == '"') {
        literal('"');
      } else if (text_[at_] == '\'' && (at_ == 0 || std::isalnum(static_cast<unsigned char>(text_[at_ - 1])) == 0)) {
        skip_literal('\'');
      } else {
        code();
      }
    }
    return std::move(found_);
  }

  std::vector<Paragraph> script() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#' && (at_ == 0 || std::isspace(static_cast<unsigned char>(text_[at_ - 1])) != 0)) {
        comment(1);
      } else if (starts("\"\"\"") || starts("'''")) {
        block(at_ + 3, text_.substr(at_, 3));
      } else if (c == '"' || c == '\'') {
        literal(c);
      } else {
        code();
      }
    }
    return std::move(found_);
  }

 private:
  bool starts(std::string_view word) const { return text_.substr(at_, word.size()) == word; }

  void code() {
    const char c = text_[at_++];
    if (c == '\n') {
      ++line_;
      is_line_blank_ = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      is_line_blank_ = false;
      open_ = false;
    }
  }

  Paragraph& paragraph(bool is_string) {
    if (!open_ || found_.back().is_string != is_string) found_.emplace_back().is_string = is_string;
    open_ = true;
    return found_.back();
  }

  void append(Paragraph& to, std::string_view text) const {
    to.text += text;
    to.lines.resize(to.text.size(), line_);
  }

  void comment(size_t mark) {
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view text = trim(text_.substr(at_ + mark, end - at_ - mark));
    if (!is_line_blank_ || last_comment_ + 1 != line_ || text.empty()) open_ = false;
    if (!text.empty()) {
      Paragraph& to = paragraph(false);
      if (!to.text.empty()) append(to, " ");
      append(to, text);
      last_comment_ = line_;
    }
    at_ = end;
  }

  size_t end_of_literal(char quote) const {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    return std::min(end, text_.size());
  }

  void skip_literal(char quote) {
    at_ = end_of_literal(quote) + 1;
    is_line_blank_ = open_ = false;
  }

  void literal(char quote) {
    const size_t end = end_of_literal(quote);
    append(paragraph(true), text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    is_line_blank_ = false;
  }

  void raw_string() {
    const size_t open = text_.find('(', at_);
    block(open + 1, ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"");
  }

  // Lines up to `close`; an empty one ends a paragraph.
  void block(size_t begin, std::string_view close) {
    const std::string end_mark(close);
    const size_t end = std::min(text_.find(end_mark, begin), text_.size());
    open_ = false;
    for (at_ = begin; at_ < end;) {
      const size_t line_end = std::min(text_.find('\n', at_), end);
      const std::string_view text = trim(text_.substr(at_, line_end - at_));
      if (text.empty()) {
        open_ = false;
      } else {
        Paragraph& to = paragraph(true);
        if (!to.text.empty()) append(to, " ");
        append(to, text);
      }
      if (line_end < end) ++line_;
      at_ = line_end + 1;
    }
    at_ = std::min(end + end_mark.size(), text_.size());
    open_ = is_line_blank_ = false;
  }

  std::string_view text_;
  size_t at_ = 0, line_ = 1, last_comment_ = 0;
  bool is_line_blank_ = true;  // so far
  bool open_ = false;          // the last paragraph may go on
  std::vector<Paragraph> found_;
};

}  // namespace

std::vector<Paragraph> cpp_paragraphs(std::string_view text) { return Reader(text).cpp(); }
std::vector<Paragraph> script_paragraphs(std::string_view text) { return Reader(text).script(); }

std::vector<Paragraph> markdown_paragraphs(std::string_view text) {
  std::vector<Paragraph> found;
  bool is_code = false, open = false;
  size_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view words = trim(text.substr(begin, end - begin));
    begin = end + 1;
    ++line;
    const bool is_fence = words.starts_with("```");
    if (is_fence) is_code = !is_code;
    const bool is_own =
        words.starts_with("|") || words.starts_with("- ") || words.starts_with("* ") || words.starts_with("#");
    if (is_fence || words.empty() || is_own) open = false;
    if (is_fence || is_code || words.empty()) continue;
    if (!open) found.emplace_back();
    open = true;
    Paragraph& to = found.back();
    to.text += (to.text.empty() ? "" : " ") + std::string(words);
    to.lines.resize(to.text.size(), line);
  }
  return found;
}

}  // namespace fxopt
