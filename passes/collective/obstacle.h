#pragma once

#include <string>

namespace fxopt {

// Why a pass leaves a collective as it is.
struct Obstacle {
  std::string code;  // stable, as in "other-phase"; empty: no obstacle
  std::string text;
};

}  // namespace fxopt
