#include "core/hash.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace fxopt {

uint64_t hash_bytes(std::string_view bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

}  // namespace fxopt
