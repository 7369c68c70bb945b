// fxopt verify --against, for graphs that differ by a rewrite rule.

#include <filesystem>
#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/core/temp_folder.h"

namespace fxopt {
namespace {

const char* const kBefore =
    "fxg 0\nprocess_group {uid=\"g\", ranks=[0, 1]}\n"
    "graph @main {kind=inference} {\n"
    "  %p: f32[4] = placeholder() {input={role=parameter}}\n"
    "  %q: f32[6] = placeholder() {input={role=parameter}}\n"
    "  %a: f32[8] = _c10d_functional.all_gather_into_tensor.default(%p, 2, \"g\")\n"
    "  %w: f32[8] = _c10d_functional.wait_tensor.default(%a)\n"
    "  %b: f32[12] = _c10d_functional.all_gather_into_tensor.default(%q, 2, \"g\")\n"
    "  %v: f32[12] = _c10d_functional.wait_tensor.default(%b)\n"
    "  %c: f32[2] = _c10d_functional.reduce_scatter_tensor.default(%p, \"sum\", 2, \"g\")\n"
    "  %x: f32[2] = _c10d_functional.wait_tensor.default(%c)\n"
    "  %d: f32[3] = _c10d_functional.reduce_scatter_tensor.default(%q, \"sum\", 2, \"g\")\n"
    "  %y: f32[3] = _c10d_functional.wait_tensor.default(%d)\n"
    "  %k: f32[2] = aten.neg.default(%x)\n"
    "  %l: f32[3] = aten.neg.default(%y)\n"
    "  return (%w, %v, %k, %l)\n"
    "}\n";

TEST_CASE("cli verify --against: what differs by a law is proved where the law is allowed") {
  const TempFolder folder;
  const std::string before = folder / "before.fxg", after = folder / "after.fxg", wrong = folder / "wrong.fxg";
  write_text(before, kBefore);
  const CliResult made =
      run_fxopt({"opt", before, "-o", after, "--passes", "bucket{reduce-scatter=1MiB,groups=all,max-growth=-1}",
                 "--numerics", "reorders-reductions"});
  REQUIRE(made.exit == 0);
  CHECK(run_fxopt({"verify", after, "--against", before}).exit == 4);
  CHECK(run_fxopt({"verify", after, "--against", before, "--allow", "bucket"}).exit == 4);
  CHECK(run_fxopt({"verify", after, "--against", before, "--allow", "bucket,bucketed-reduction"}).exit == 0);
  const CliResult unknown = run_fxopt({"verify", after, "--against", before, "--allow", "bukcet"});
  CHECK(unknown.exit == 2);
  CHECK(unknown.err.find("did you mean 'bucket'?") != std::string::npos);
  // The bucket is split elsewhere.
  std::string text = read_text(after);
  const size_t split = text.find("[2, 3])");
  REQUIRE(split != std::string::npos);
  text.replace(split, 7, "[3, 2])");
  write_text(wrong, text);
  CHECK(run_fxopt({"verify", wrong, "--against", before, "--allow", "bucket,bucketed-reduction"}).exit != 0);
}

// A case of tests/cases/laws has two graphs, the rewrite rules that are allowed, and whether the
// second graph is then proved equal to the first.
TEST_CASE("cli verify --against: cases of laws") {
  const TempFolder folder;
  const std::string before = folder / "before.fxg", after = folder / "after.fxg";
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(FXOPT_SOURCE_DIR "/tests/cases/laws")) {
    files.insert(entry.path());
  }
  REQUIRE(files.size() > 5);
  for (const std::filesystem::path& file : files) {
    const std::string text = read_text(file.string());
    const size_t middle = text.find("=====\n"), allow = text.find("# allow: "), expect = text.find("  expect: ");
    REQUIRE((middle != std::string::npos && allow < expect && expect < middle));
    const std::string laws = text.substr(allow + 9, expect - allow - 9);
    const std::string wanted = text.substr(expect + 10, text.find('\n', expect) - expect - 10);
    write_text(before, text.substr(0, middle));
    write_text(after, text.substr(middle + 6));
    const CliResult result = run_fxopt({"verify", after, "--against", before, "--allow", laws});
    INFO(file.filename().string() << "\n" << result.out << result.err);
    CHECK((wanted == "proved" || wanted == "differs"));
    CHECK(result.exit == (wanted == "proved" ? 0 : 4));
  }
}

}  // namespace
}  // namespace fxopt
