#pragma once

#include <string>
#include <string_view>

namespace fxopt {

// Returns `text` in single quotes, as one word of bash, zsh or fish. O(length).
std::string shell_quoted(std::string_view text);

}  // namespace fxopt
