// Marks (ap_must_save) as users meet them: `fxopt tags` and --strict-tags.

#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/core/temp_folder.h"

namespace fxopt {
namespace {

// %m is marked, %r is tagged for recomputation, and backward uses both.
constexpr const char* kJoint = R"(fxg 0
graph @main {kind=joint, num_forward_outputs=1} {
  %x: f32[4] = placeholder()
  %t: f32[4] = placeholder() {input={role=tangent}}
  %m: f32[4] = aten.sin.default(%x) {phase=forward, meta={"custom": {"ap_must_save": True}}}
  %r: f32[4] = aten.tanh.default(%m) {phase=forward, tag=MUST_RECOMPUTE}
  %u: f32[4] = aten.cos.default(%r) {phase=forward}
  %b: f32[4] = aten.mul.Tensor(%m, %t) {phase=backward}
  %c: f32[4] = aten.mul.Tensor(%b, %r) {phase=backward}
  return (%u, %c)
}
)";

// Another program erased %m and recorded that its mark is gone.
constexpr const char* kLostMark = R"(fxg 0
graph @main {
  %x: f32[4] = placeholder()
  %n: f32[4] = aten.neg.default(%x)
  return (%n,)
}
erased {graph="main", uid=9, name="m", target="aten.sin.default", verdict={verdict=dropped, pass="mine"}, pass="mine", is_mark=true}
)";

nlohmann::json tags_of(const std::vector<std::string>& files) { return run_fxopt({"tags"}, files, {"--json"}).file(); }

// The trace copied the mark of the call to the getitem, and only the getitem has it.
constexpr const char* kOwnIndex = R"(fxg 0
graph @main {kind=joint, num_forward_outputs=1} {
  %x: f32[8, 8] = placeholder() {input={role=input}}
  %d: f32[8, 8] = placeholder() {input={role=tangent}}
  %s: (f32[8, 8], i64[8, 8]) = aten.sort.default(%x) {phase=forward}
  %a: f32[8, 8] = operator.getitem(%s, 0) {phase=forward, meta={"custom": {"ap_must_save": True, "ap_must_save_getitem_indices": [0]}}}
  %y: f32[8, 8] = aten.mul.Tensor(%a, %a) {phase=forward}
  %g: f32[8, 8] = aten.mul.Tensor(%d, %a) {phase=backward}
  return (%y, %g)
})";

TEST_CASE("cli tags: a mark is listed, and counted apart from tags", "[cli]") {
  const TempFolder folder;
  write_text(folder / "joint.fxg", kJoint);
  const nlohmann::json file = tags_of({folder / "joint.fxg"});
  CHECK(file["marks"] == nlohmann::json::parse(R"({"honoured": 1})"));
  CHECK(file["counts"] == nlohmann::json::parse(R"({"ignored": 1})"));
  CHECK(file["tags"][0]["kind"] == "mark");
  CHECK(file["tags"][0]["value"] == "m");
  CHECK(file["tags"][0]["is_forecast"] == true);
}

TEST_CASE("cli tags: a partitioned step has its joint graph's verdicts, in one file or in two", "[cli]") {
  const TempFolder folder;
  write_text(folder / "joint.fxg", kJoint);
  const std::string joint = folder / "joint.fxg", remat = folder / "remat.fxg", pair = folder / "pair.fxg";
  REQUIRE(run_fxopt({"opt", joint, "-o", remat, "--passes", "remat,dce", "--strict-tags"}).exit == 0);
  REQUIRE(run_fxopt({"opt", joint, "-o", pair, "--passes", "partition{mode=save-all}", "--strict-tags"}).exit == 0);
  REQUIRE(run_fxopt({"opt", joint, "-o", pair, "--split", "--passes", "partition{mode=save-all}"}).exit == 0);
  const nlohmann::json expected = tags_of({remat});
  const nlohmann::json one = tags_of({pair});
  const nlohmann::json two = tags_of({folder / "pair.forward.fxg", folder / "pair.backward.fxg", "--step"});
  CHECK(expected["counts"] == nlohmann::json::parse(R"({"honoured": 1})"));
  for (const nlohmann::json& file : {one, two}) {
    CHECK(file["counts"] == expected["counts"]);
    CHECK(file["marks"] == expected["marks"]);
  }
}

TEST_CASE("cli tags: of two files each has the ledger of its own graph", "[cli]") {
  const TempFolder folder;
  write_text(folder / "joint.fxg",
             "fxg 0\ngraph @main {kind=joint, num_forward_outputs=1} {\n  %x: f32[8] = placeholder()\n"
             "  %a: f32[8] = aten.mul.Tensor(%x, %x)\n  %b: f32[8] = aten.mul.Tensor(%x, %x) {tag=PREFER_SAVE}\n"
             "  %c: f32[8] = aten.mul.Tensor(%a, %b)\n  return (%c,)\n}\n");
  const std::string joint = folder / "joint.fxg", pair = folder / "pair.fxg";
  REQUIRE(run_fxopt({"opt", joint, "-o", pair, "--split", "--passes", "partition{mode=min-cut}"}).exit == 0);
  CHECK(contains(read_text(folder / "pair.forward.fxg"), "erased {"));
  CHECK_FALSE(contains(read_text(folder / "pair.backward.fxg"), "erased {"));
  const nlohmann::json file = tags_of({folder / "pair.forward.fxg", folder / "pair.backward.fxg", "--step"});
  CHECK(file["counts"] == nlohmann::json::parse(R"({"moot": 1})"));
}

TEST_CASE("cli tags: --strict-tags leaves a policy's tags out, also behind bucket", "[cli]") {
  const TempFolder folder;
  const std::string llama = std::string(FXOPT_SOURCE_DIR "/testdata/llama8b_joint.pb.zst");
  for (const char* passes :
       {"fsdp-gathers,partition,bucket", "sac{policy=full}", "sac{policy=full},partition,bucket"}) {
    INFO(passes);
    const CliResult result = run_fxopt({"opt", llama, "-o", folder / "out.pb", "--strict-tags", "--passes", passes});
    CHECK(result.exit == 0);
    CHECK(run_fxopt({"tags", folder / "out.pb", "--strict-tags"}).exit == 0);
  }
}

TEST_CASE("cli tags: a getitem that lists its own index loses no mark", "[cli]") {
  const TempFolder folder;
  write_text(folder / "own.fxg", kOwnIndex);
  const CliResult strict = run_fxopt({"tags", folder / "own.fxg", "--strict-tags"});
  CHECK(strict.exit == 0);
  CHECK(contains(strict.out, "1 mark: 1 honoured"));
}

TEST_CASE("cli tags: a lost mark is a row, and an error when strict", "[cli]") {
  const TempFolder folder;
  write_text(folder / "lost.fxg", kLostMark);
  const CliResult loose = run_fxopt({"tags", folder / "lost.fxg"});
  CHECK(loose.exit == 0);
  CHECK(contains(loose.out, "1 mark: 1 dropped"));
  CHECK(run_fxopt({"tags", folder / "lost.fxg", "--strict-tags"}).exit == 4);
}

}  // namespace
}  // namespace fxopt
