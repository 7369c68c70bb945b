#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fxopt {

// Wraps `text` into lines of at most 100 columns, and indents every line but the first by `indent`.
// Line feeds in `text` are kept. O(length).
std::string wrap(std::string_view text, size_t indent);

}  // namespace fxopt
