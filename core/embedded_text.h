#pragma once

#include <string_view>

namespace fxopt {

// A file that the build embedded in the program. See fxopt_embed() in CMakeLists.txt.
struct EmbeddedText {
  std::string_view name;  // the file's name without its folder
  std::string_view text;
};

}  // namespace fxopt
