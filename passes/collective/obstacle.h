#pragma once

#include <string>

namespace fxopt {

// The reason why a pass leaves a collective unchanged.
struct Obstacle {
  std::string code;  // stable, such as "other-phase"; empty if no obstacle exists
  std::string text;
};

}  // namespace fxopt
