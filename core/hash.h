#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fxopt {

// Returns the xxHash64 of `bytes` with seed 0. The file format uses this hash, which is the same on
// every machine. O(length).
uint64_t hash_bytes(std::string_view bytes);

// A hash of 128 bits. For n different inputs, the probability of two equal hashes is n^2 / 2^129,
// which is 10^-21 for a billion inputs. For inputs that were built to collide, the probability is
// higher.
struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
};
// The hash function for hash tables. No mixing is needed, because the bits are already well
// distributed.
struct Hash128Hash {
  size_t operator()(const Hash128& hash) const { return static_cast<size_t>(hash.low); }
};

// Returns the 128-bit XXH3 of the words with seed 0. Machines of the same byte order give the same
// hash. O(words).
Hash128 hash_words(std::span<const uint64_t> words);
// Returns the 128-bit XXH3 of the bytes with seed 0.
Hash128 hash_text(std::string_view bytes);

// Mixes `value` into `seed` with the finaliser of SplitMix64. The result is the same on every
// machine.
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) {
  uint64_t z = seed + 0x9e3779b97f4a7c15ULL + value;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace fxopt
