#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fxopt {

// Returns xxHash64 with seed 0 of `bytes`: the hash of the file format, the same on every machine.
// O(length).
uint64_t hash_bytes(std::string_view bytes);

// A hash of 128 bits. Among a billion different inputs, two are equal with a probability of 10^-21
// (n^2 / 2^129), unless they were built to collide.
struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
};
// For hash tables: the bits are already well distributed.
struct Hash128Hash {
  size_t operator()(const Hash128& hash) const { return static_cast<size_t>(hash.low); }
};

// Returns XXH3 with 128 bits and seed 0 of the words, the same on every machine of this byte order.
// O(words).
Hash128 hash_words(std::span<const uint64_t> words);
// The same for bytes.
Hash128 hash_text(std::string_view bytes);

// Folds `value` into `seed`: a fixed mixing function (the finaliser of SplitMix64), the same on
// every machine.
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) {
  uint64_t z = seed + 0x9e3779b97f4a7c15ULL + value;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace fxopt
