// Random numbers by counter, and dropout.

#include "runtime/ops/kernels/random.h"

#include <array>
#include <cmath>
#include <vector>

#include "tests/catch.h"

namespace fxopt {
namespace {

using Words = std::array<uint32_t, 4>;

Words words_of(uint64_t seed, uint64_t high, uint64_t low) {
  Words words;
  kernels::philox(seed, high, low, words.data());
  return words;
}

// Random123's known answers for philox4x32-10.
TEST_CASE("philox gives the published words") {
  CHECK(words_of(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(words_of(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(words_of(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

struct Dropped {
  std::vector<float> values;
  std::vector<uint8_t> mask;
};

Dropped drop(int64_t n, double p, bool trains, uint64_t slot) {
  std::vector<float> x(static_cast<size_t>(n), 3.0f);
  Dropped result{std::vector<float>(x.size()), std::vector<uint8_t>(x.size())};
  const auto view = [&](void* data, uint8_t type) {
    FxView row{};
    row.data = data;
    row.dtype = type;
    row.rank = 1;
    row.size[0] = n;
    row.stride[0] = 1;
    return row;
  };
  const FxView views[] = {view(result.values.data(), kernels::kF32), view(result.mask.data(), kernels::kBool),
                          view(x.data(), kernels::kF32)};
  FxNumber params[2] = {};
  params[0].real = p;
  params[0].kind = FX_NUMBER_REAL;
  params[1].integer = trains ? 1 : 0;
  FxCall call{};
  call.views = views;
  call.num_results = 2;
  call.num_operands = 1;
  call.params = params;
  call.draw = {7, slot};
  for (int64_t unit = 0; unit < kernels::num_tiles(n); ++unit)
    kernels::dropout_unit<float>(kernels::OneLane{}, call, unit);
  return result;
}

TEST_CASE("dropout keeps a share 1 - p, scaled, and draws by element alone") {
  const Dropped many = drop(100000, 0.1, true, 5);
  size_t kept = 0;
  for (size_t i = 0; i < many.mask.size(); ++i) {
    kept += many.mask[i];
    CHECK(many.values[i] == (many.mask[i] != 0 ? 3.0f * static_cast<float>(1 / 0.9) : 0.0f));
  }
  CHECK(std::fabs(static_cast<double>(kept) / 100000 - 0.9) < 0.005);  // 5 standard deviations
  const Dropped few = drop(1003, 0.1, true, 5), other = drop(1003, 0.1, true, 6);
  CHECK(std::equal(few.mask.begin(), few.mask.end(), many.mask.begin()));
  CHECK(few.mask != other.mask);
  const Dropped idle = drop(10, 0.9, false, 5);
  CHECK(idle.values == std::vector<float>(10, 3.0f));
  CHECK(idle.mask == std::vector<uint8_t>(10, 1));
  CHECK(drop(10, 1, true, 5).values == std::vector<float>(10, 0.0f));
  CHECK(drop(10, 0, true, 5).mask == std::vector<uint8_t>(10, 1));
}

}  // namespace
}  // namespace fxopt
