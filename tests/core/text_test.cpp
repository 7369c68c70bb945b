#include "core/text.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include "tests/catch.h"

namespace fxopt {

TEST_CASE("split_list takes the parts between commas and leaves out empty ones") {
  CHECK(split_list("").empty());
  CHECK(split_list("a") == std::vector<std::string_view>{"a"});
  CHECK(split_list(",a,,b c,") == std::vector<std::string_view>{"a", "b c"});
}

TEST_CASE("is_within goes by whole components") {
  CHECK(is_within("layers.1", "layers.1"));
  CHECK(is_within("layers.1.mlp", "layers.1"));
  CHECK(!is_within("layers.10", "layers.1"));
  CHECK(!is_within("layers", "layers.1"));
}

TEST_CASE("matches_pattern lets a star stand for anything, and nothing else") {
  CHECK(matches_pattern("layers.12.mlp", "layers.*.mlp"));
  CHECK(matches_pattern("layers.1.2.mlp", "layers.*.mlp"));
  CHECK(matches_pattern("", "*"));
  CHECK(matches_pattern("aXbXc", "a*b*c"));
  CHECK_FALSE(matches_pattern("layers.12.mlp.w1", "layers.*.mlp"));
  CHECK_FALSE(matches_pattern("layers.", "layer"));
  CHECK_FALSE(matches_pattern("a", ""));
}

TEST_CASE("join puts the separator between parts only") {
  CHECK(join({}, ", ").empty());
  CHECK(join({"a"}, ", ") == "a");
  CHECK(join({"a", "", "b"}, ", ") == "a, , b");
}

TEST_CASE("format_double is short and no integer") {
  CHECK(format_double(0.0) == "0.0");
  CHECK(format_double(-0.0) == "-0.0");
  CHECK(format_double(1.0) == "1.0");
  CHECK(format_double(0.1) == "0.1");
  CHECK(format_double(1e300) == "1e+300");
  CHECK(format_double(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(format_double(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(format_double(-std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("parse_double inverts format_double to the bit") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 20000; ++round) {
    const double value = std::bit_cast<double>(random());
    const std::string text = format_double(value);
    CAPTURE(text);
    const std::optional<double> back = parse_double(text);
    REQUIRE(back.has_value());
    const bool same =
        std::isnan(value) ? std::isnan(*back) : std::bit_cast<uint64_t>(*back) == std::bit_cast<uint64_t>(value);
    CHECK(same);
    CHECK_FALSE(parse_int64(text).has_value());
  }
}

TEST_CASE("numbers are read whole or not at all") {
  CHECK(parse_double("1") == 1.0);
  CHECK(parse_double("-2.5e3") == -2500.0);
  for (const char* text :
       {"", "-", "1x", " 1", "1 ", "+1", "1e", "1e999", "0x10", "infinity", "INF", "nan(1)", "--1"}) {
    INFO(text);
    CHECK_FALSE(parse_double(text).has_value());
  }
  CHECK(parse_int64("-9223372036854775808") == std::numeric_limits<int64_t>::min());
  CHECK(parse_int64("9223372036854775807") == std::numeric_limits<int64_t>::max());
  for (const char* text : {"", "-", "1.0", " 1", "1 ", "+1", "9223372036854775808", "-9223372036854775809", "0x1"}) {
    INFO(text);
    CHECK_FALSE(parse_int64(text).has_value());
  }
}

TEST_CASE("sizes in bytes: GiB is 2^30, GB is 10^9") {
  CHECK(parse_bytes("70GiB") == int64_t{70} << 30);
  CHECK(parse_bytes("70 GB") == int64_t{70'000'000'000});
  CHECK(parse_bytes("1.5KiB") == 1536);
  CHECK(parse_bytes("0") == 0);
  CHECK(parse_bytes("9223372036854775807B") == INT64_MAX);
  for (const char* text : {"", "GiB", "-1", "-1GiB", "1 apple", "nan", "infGiB", "9223372036854775808", "1e300GiB"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_bytes(text).has_value());
  }
  const int64_t many_tebibytes = (int64_t{1} << 40) * 4096;
  for (const int64_t bytes : {int64_t{0}, int64_t{1000}, int64_t{1024}, int64_t{25} << 20, many_tebibytes, INT64_MAX}) {
    CAPTURE(bytes);
    CHECK(parse_bytes(format_byte_size(bytes)) == bytes);
  }
  CHECK(format_byte_size(int64_t{25} << 20) == "25MiB");
  CHECK(format_byte_size(1000) == "1000B");
}

}  // namespace fxopt
