#pragma once

#include <cstddef>
#include <random>
#include <string>

namespace fxopt {

using Dice = std::mt19937_64;

// A number below `sides`.
inline size_t roll(Dice& dice, size_t sides) { return static_cast<size_t>(dice() % sides); }

// One to four passes with random options. Each value is valid, including the ends of its type; a
// selection names things that may exist.
std::string random_pipeline(Dice& dice);

}  // namespace fxopt
