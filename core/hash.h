#pragma once

#include <cstdint>
#include <string_view>

namespace fxopt {

// xxHash64 with seed 0 of `bytes`: the hash the file format names, the same on every machine. O(length).
uint64_t hash_bytes(std::string_view bytes);

// Folds `value` into `seed`: a fixed mixing function (the finaliser of SplitMix64), the same on every machine.
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) {
  uint64_t z = seed + 0x9e3779b97f4a7c15ULL + value;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace fxopt
