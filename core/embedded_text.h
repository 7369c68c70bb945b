#pragma once

#include <string_view>

namespace fxopt {

// A file that the build put into the program, see fxopt_embed() in CMakeLists.txt.
struct EmbeddedText {
  std::string_view name;  // of the file, without its folder
  std::string_view text;
};

}  // namespace fxopt
