#pragma once

#include <cstdint>
#include <cstdlib>

namespace fxopt {

// Returns the count in the environment variable `name`, which asks for a longer or a shorter run,
// or `usual` if the variable is not set.
inline uint64_t count_given(const char* name, uint64_t usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

}  // namespace fxopt
