#include "core/hash.h"

#include <string>

#include "tests/catch.h"

namespace fxopt {

// Files store this hash, so it must be the published function, not merely a stable one.
TEST_CASE("hash_bytes is xxHash64 with seed 0") {
  CHECK(hash_bytes("") == 0xef46db3751d8e999ULL);
  CHECK(hash_bytes("a") == 0xd24ec4f1a98c6e5bULL);
  CHECK(hash_bytes("abc") == 0x44bc2cf5ad770999ULL);
  CHECK(hash_bytes("Nobody inspects the spammish repetition") == 0xfbcea83c8a378bf1ULL);
}

TEST_CASE("hash_combine is the published finaliser and depends on the order") {
  // The first outputs of SplitMix64 from state 0.
  CHECK(hash_combine(0, 0) == 0xe220a8397b1dcdafULL);
  CHECK(hash_combine(0x9e3779b97f4a7c15ULL, 0) == 0x6e789e6aa1b965f4ULL);
  CHECK(hash_combine(hash_combine(0, 1), 2) != hash_combine(hash_combine(0, 2), 1));
}

}  // namespace fxopt
