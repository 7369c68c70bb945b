#include "core/hash.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace fxopt {
namespace {

Hash128 digest(const void* bytes, size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(bytes, size);
  return {hash.high64, hash.low64};
}

}  // namespace

Hash128 hash_words(std::span<const uint64_t> words) { return digest(words.data(), words.size_bytes()); }

Hash128 hash_text(std::string_view bytes) { return digest(bytes.data(), bytes.size()); }

uint64_t hash_bytes(std::string_view bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

}  // namespace fxopt
