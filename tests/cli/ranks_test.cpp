// `fxopt ranks`: its output, its exit codes, and its notes about skipped checks.

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/core/temp_folder.h"

namespace fxopt {
namespace {

// A graph with two all-reduces, in this order, on two groups of both ranks.
std::string two_calls(const std::string& rank, const std::string& first, const std::string& second) {
  std::string text =
      "fxg 0\n" + rank + "process_group {uid=\"g\", ranks=[0, 1]}\nprocess_group {uid=\"h\", ranks=[0, 1]}\n";
  text += "graph @main {kind=inference} {\n  %x: f32[4] = placeholder()\n";
  for (const std::string& group : {first, second}) {
    text += "  %" + group + ": f32[4] = _c10d_functional.all_reduce.default(%x, \"sum\", \"" + group + "\")\n";
    text += "  %w" + group + ": f32[4] = _c10d_functional.wait_tensor.default(%" + group + ")\n";
  }
  return text + "  return (%wg, %wh)\n}\n";
}

struct RankFiles {
  TempFolder folder;
  std::string zero = folder / "zero.fxg", one = folder / "one.fxg", turned = folder / "turned.fxg",
              unsaid = folder / "unsaid.fxg";
  RankFiles() {
    write_text(zero, two_calls("rank {rank=0, world_size=2}\n", "g", "h"));
    write_text(one, two_calls("rank {rank=1, world_size=2}\n", "g", "h"));
    write_text(turned, two_calls("rank {rank=1, world_size=2}\n", "h", "g"));
    write_text(unsaid, two_calls("", "g", "h"));
  }
};

TEST_CASE("cli ranks: ranks that agree") {
  const RankFiles files;
  const CliResult result = run_fxopt({"ranks", files.one, files.zero});
  CHECK(result.exit == 0);
  CHECK(result.out ==
        "2 ranks: ok, 4 calls on 2 groups\n"
        "  group  calls  ranks        ranks without a file\n"
        "  g          1      2  0, 1\n"
        "  h          1      2  0, 1\n");
  CHECK(result.err.empty());
}

TEST_CASE("cli ranks: ranks that wait for each other") {
  const RankFiles files;
  const CliResult result = run_fxopt({"ranks", files.zero, files.turned, "--json"});
  CHECK(result.exit == 6);
  const nlohmann::json json = nlohmann::json::parse(result.out);
  CHECK(json["result"]["verdict"] == "diverge");
  REQUIRE(json["result"]["conflicts"].size() == 1);
  CHECK(json["result"]["conflicts"][0]["kind"] == "circle");
  CHECK(json["errors"][0]["code"] == "FX0601");
  CHECK(json["errors"][0]["where"]["node"] == "g");
}

TEST_CASE("cli ranks: what is not looked at is said") {
  const RankFiles files;
  const CliResult alone = run_fxopt({"ranks", files.zero});
  CHECK(alone.exit == 0);
  CHECK(alone.out.starts_with("rank 0: only waits were checked, because no process group has two of the given ranks"));
  CHECK(
      alone.err.find("warning[without-file]: 1 rank of the process groups not compared, because no file is given: 1") !=
      std::string::npos);
  const CliResult unsaid = run_fxopt({"ranks", files.zero, files.unsaid});
  CHECK(unsaid.exit == 0);
  CHECK(unsaid.err.find("warning[rank-by-place]: 1 file of 2 without a recorded rank") != std::string::npos);
}

TEST_CASE("cli ranks: two files of one rank are refused") {
  const RankFiles files;
  const CliResult result = run_fxopt({"ranks", files.one, files.turned});
  CHECK(result.exit == 3);
  CHECK(result.err.find("both have rank 1") != std::string::npos);
}

}  // namespace
}  // namespace fxopt
