#pragma once

#include <string>
#include <string_view>

namespace fxopt {

// `text` as one word of bash, zsh or fish: between single quotes. O(length).
std::string shell_quoted(std::string_view text);

}  // namespace fxopt
