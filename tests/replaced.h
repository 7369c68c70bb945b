#pragma once

#include <string>
#include <string_view>

#include "tests/catch.h"

namespace fxopt {

// Returns the text with the first occurrence of `part` replaced. The test fails if there is none.
inline std::string replaced(std::string_view text, std::string_view part, std::string_view by) {
  const size_t at = text.find(part);
  REQUIRE(at != std::string_view::npos);
  return std::string(text).replace(at, part.size(), by);
}

}  // namespace fxopt
