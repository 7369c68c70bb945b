#pragma once

#include <cstddef>
#include <random>
#include <string>

namespace fxopt {

using Dice = std::mt19937_64;

// A number below `sides`.
inline size_t roll(Dice& dice, size_t sides) { return static_cast<size_t>(dice() % sides); }

// One to four passes, each option of each given now and then: a value that it may have, at the ends of its type too; a selection
// names what may be there.
std::string random_pipeline(Dice& dice);

}  // namespace fxopt
