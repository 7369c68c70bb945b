#include "core/scan.h"

#include <algorithm>

namespace fxopt {

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

TextPosition text_position(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return {1 + static_cast<uint64_t>(std::count(before.begin(), before.end(), '\n')), 1 + before.size() - line_begin};
}

}  // namespace fxopt
