#pragma once

#include <cstddef>
#include <random>
#include <string>

namespace fxopt {

using Dice = std::mt19937_64;

// Returns a number below `sides`.
inline size_t roll(Dice& dice, size_t sides) { return static_cast<size_t>(dice() % sides); }

// Returns one to four passes with random options. All values are valid. Some are the smallest or
// largest value of their type. A selection refers to names that may exist.
std::string random_pipeline(Dice& dice);

}  // namespace fxopt
