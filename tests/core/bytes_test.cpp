#include "core/bytes.h"

#include <random>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace fxopt {

TEST_CASE("base64 agrees with the vectors of RFC 4648") {
  const std::vector<std::pair<std::string, std::string>> vectors = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xfb\xff\xfe", "+//+"},
  };
  for (const auto& [bytes, text] : vectors) {
    CHECK(to_base64(bytes) == text);
    CHECK(from_base64(text) == bytes);
  }
}

TEST_CASE("base64 reads only what it writes") {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zg==Zg==", "Zm9v\n", "Zm 9", "Zm9_", "=Zg=", "Zg=v"}) {
    INFO(text);
    CHECK_FALSE(from_base64(text).has_value());
  }
  CHECK(from_base64("Zh==") == std::nullopt);  // the last digit has bits that no byte takes
  CHECK(from_base64("Zm9=") == std::nullopt);
}

TEST_CASE("quote escapes what a line or a terminal cannot show") {
  CHECK(quote("") == "\"\"");
  CHECK(quote("a\"b\\c") == R"("a\"b\\c")");
  CHECK(quote("\n\t\r") == R"("\n\t\r")");
  CHECK(quote(std::string("\0\x1b\x7f", 3)) == R"("\x00\x1b\x7f")");
  CHECK(quote("caf\xc3\xa9") == "\"caf\xc3\xa9\"");
  CHECK(quote("\xc3(") == R"("\xc3(")");
}

TEST_CASE("unquote inverts quote for any bytes") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (uint64_t i = random() % 12; i > 0; --i) bytes += static_cast<char>(random());
    const std::string literal = quote(bytes);
    CAPTURE(literal);
    CHECK(is_utf8(literal));
    CHECK(unquote(literal) == bytes);
    CHECK(from_base64(to_base64(bytes)) == bytes);
  }
  CHECK(unquote(R"("\x4A\x4a")") == "JJ");
  CHECK(unquote("\"a\tb\"") == "a\tb");
}

TEST_CASE("unquote rejects what is no literal") {
  for (const char* literal :
       {"", "\"", "a", "\"a", "a\"", "\"a\"b\"", R"("\")", R"("\q")", R"("\x")", R"("\x4")", R"("\x4g")", "\"a\nb\""}) {
    INFO(literal);
    CHECK_FALSE(unquote(literal).has_value());
  }
}

TEST_CASE("is_utf8 accepts the shortest forms only") {
  for (const char* text : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    INFO(quote(text));
    CHECK(is_utf8(text));
  }
  for (const char* text : {"\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82", "\xf0\x8f\xbf\xbf",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    INFO(quote(text));
    CHECK_FALSE(is_utf8(text));
  }
}

TEST_CASE("human_bytes rounds to the unit it prints") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1023.6) == "1.00 KiB");
  CHECK(human_bytes(1024) == "1.00 KiB");
  CHECK(human_bytes(1536) == "1.50 KiB");
  CHECK(human_bytes(1048575) == "1.00 MiB");
  CHECK(human_bytes(1610612736) == "1.50 GiB");
  CHECK(human_bytes(-1610612736) == "-1.50 GiB");
  CHECK(human_bytes(1152921504606846976.0 * 4096) == "4096.00 EiB");
}

}  // namespace fxopt
