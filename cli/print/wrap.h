#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fxopt {

// `text` in lines of at most 100 columns, all but the first indented by `indent`. Line feeds in `text` are kept. O(length).
std::string wrap(std::string_view text, size_t indent);

}  // namespace fxopt
