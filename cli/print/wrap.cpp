#include "cli/print/wrap.h"

#include <algorithm>

namespace fxopt {
namespace {

constexpr size_t kWidth = 100;

}  // namespace

std::string wrap(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  size_t begin = 0;
  while (begin < text.size()) {
    if (text[begin] == '\n') {
      out.append("\n").append(indent, ' ');
      column = indent;
      ++begin;
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const size_t length = end - begin;
    if (column > indent && column + 1 + length > kWidth) {
      out.append("\n").append(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(begin, length);
    column += length;
    begin = end < text.size() && text[end] == ' ' ? end + 1 : end;
  }
  return out;
}

}  // namespace fxopt
