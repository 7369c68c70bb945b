#include "core/error.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/file.h"
#include "tests/catch.h"

namespace fxopt {
namespace {

// The enumerators of ErrorCode, read from the header, because C++20 cannot list them.
std::set<uint32_t> enumerators() {
  const std::string header = read_file(FXOPT_SOURCE_DIR "/core/error.h").value();
  const size_t begin = header.find("enum class ErrorCode");
  const std::string body = header.substr(begin, header.find("};", begin) - begin);
  std::set<uint32_t> numbers;
  for (size_t at = body.find(" = "); at != std::string::npos; at = body.find(" = ", at + 1)) {
    numbers.insert(static_cast<uint32_t>(std::stoul(body.substr(at + 3))));
  }
  return numbers;
}

size_t count_sentences(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '.' && (i + 1 == text.size() || text[i + 1] == ' ')) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("every error code has one row, in order, with the exit code of its family") {
  std::set<uint32_t> numbers;
  uint32_t last = 0;
  for (const ErrorInfo& row : error_table()) {
    const uint32_t number = static_cast<uint32_t>(row.code);
    CAPTURE(number);
    CHECK(number > last);
    CHECK(static_cast<uint32_t>(row.exit) == number / 100);
    CHECK(&error_info(row.code) == &row);
    CHECK(find_error_info(code_name(row.code)) == &row);
    last = number;
    numbers.insert(number);
  }
  const std::set<uint32_t> wanted = enumerators();
  CHECK(wanted.size() > 40);
  CHECK(numbers == wanted);
}

TEST_CASE("every error code is explained") {
  std::set<std::string_view> titles;
  for (const ErrorInfo& row : error_table()) {
    CAPTURE(code_name(row.code));
    CHECK(titles.insert(row.title).second);
    CHECK(row.title.size() <= 72);
    CHECK_FALSE(row.title.ends_with('.'));
    CHECK(row.explanation.ends_with('.'));
    const size_t sentences = count_sentences(row.explanation);
    CHECK(sentences >= 2);
    CHECK(sentences <= 4);
  }
}

TEST_CASE("codes are found in the ways people write them") {
  const ErrorInfo& row = error_info(ErrorCode::kSyntax);
  CHECK(code_name(ErrorCode::kSyntax) == "FX0306");
  CHECK(code_name(ErrorCode::kFileOpen) == "FX1001");
  for (const char* name : {"FX0306", "fx306", "306", "0306", "Fx0306"}) CHECK(find_error_info(name) == &row);
  for (const char* name : {"", "FX", "FX0399", "00306", "30x", "-306", " 306", "4294967602"}) {
    CHECK(find_error_info(name) == nullptr);
  }
}

TEST_CASE("an error shows every place it knows") {
  Error error{ErrorCode::kSyntax, "expected ','", "add a comma", {}};
  CHECK(format_error(error) == "error[FX0306]: expected ','\n  hint: add a comma");
  error.where.file = "step.fxg";
  error.where.line = 12;
  error.where.column = 9;
  error.where.graph = "main";
  error.where.node = "mm_3";
  error.where.field = "args[1]";
  error.where.module_path = "layers.0.mlp";
  error.where.source = "model.py:7";
  error.where.excerpt = "%a = f(%b %c)\n          ^\n";
  CHECK(format_error(error) ==
        "step.fxg:12:9: error[FX0306]: expected ','\n"
        "  graph: @main\n"
        "  node: %mm_3, args[1]\n"
        "  module: layers.0.mlp\n"
        "  source: model.py:7\n"
        "  %a = f(%b %c)\n"
        "            ^\n"
        "  hint: add a comma");
}

TEST_CASE("an error shows partial places") {
  Error error{ErrorCode::kTruncated, "ends early", "", {}};
  error.where.file = "a.pb";
  CHECK(format_error(error) == "a.pb: error[FX0305]: ends early");
  error.where.has_byte = true;
  CHECK(format_error(error) == "a.pb: byte 0: error[FX0305]: ends early");
  error.where = Where();
  error.where.column = 4;
  CHECK(format_error(error) == "column 4: error[FX0305]: ends early");
  error.where.file = "a.fxg";
  error.where.line = 3;
  error.where.column = 0;
  error.where.field = "dims";
  CHECK(format_error(error) == "a.fxg:3: error[FX0305]: ends early\n  field: dims");
}

TEST_CASE("an error cannot steer a terminal or fake a line") {
  Error error{ErrorCode::kBadValue, "bad name", "", {}};
  error.where.node = "a\x1b[2J\nb\xff";
  CHECK(format_error(error) == "error[FX0311]: bad name\n  node: %a\\x1b[2J\\nb\\xff");
}

TEST_CASE("closest_name finds slips and nothing else") {
  const std::vector<std::string_view> names = {"canonicalize", "cse", "dce", "remat", "sac"};
  CHECK(closest_name("canonicalise", names) == "canonicalize");
  CHECK(closest_name("remta", names) == "remat");  // swapped neighbours count as one typo
  CHECK(closest_name("remat", names) == "remat");
  CHECK(closest_name("bucket", names).empty());
  CHECK(closest_name("", names).empty());
  CHECK(closest_name(std::string(100000, 'x'), names).empty());
}

TEST_CASE("closest_name allows a quarter of the longer length, rounded up") {
  CHECK(closest_name("abcd", {"xbcd"}) == "xbcd");
  CHECK(closest_name("abcd", {"xycd"}).empty());
  CHECK(closest_name("fase", {"phase"}) == "phase");
  CHECK(closest_name("abcdefgh", {"xycdefgh"}) == "xycdefgh");
  CHECK(closest_name("abcdefgh", {"xyzdefgh"}).empty());
  CHECK(closest_name("abcdefghi", {"xyzdefghi"}) == "xyzdefghi");
  CHECK(closest_name("a", {"a", "b"}).empty());  // every letter is one typo away from every other
}

TEST_CASE("closest_name takes upper and lower case for the same") {
  CHECK(closest_name("CSE", {"dce", "cse"}) == "cse");
  CHECK(closest_name("--REPORT", {"--report"}) == "--report");
}

TEST_CASE("closest_name finds a name by its beginning where no slip explains it") {
  CHECK(closest_name("canon", {"cse", "canonicalize"}) == "canonicalize");
  CHECK(closest_name("ca", {"canonicalize"}).empty());
  CHECK(closest_name("optimize", {"mem", "opt"}) == "opt");  // or by the name that it begins with
  CHECK(closest_name("optimize", {"op"}).empty());
  CHECK(closest_name("--out", {"--report", "--output", "--output-more"}) == "--output");
  CHECK(closest_name("--oyt", {"--output", "--out"}) == "--out");
}

TEST_CASE("closest_name prefers the nearer candidate, then the earlier") {
  CHECK(closest_name("ace", {"dce", "ade", "ace2"}) == "dce");
  CHECK(closest_name("abcd", {"axyd", "abcx"}) == "abcx");
}

}  // namespace fxopt
