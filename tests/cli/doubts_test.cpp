// One-line notes about a graph that commands print without being asked.

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/core/temp_folder.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

// Autograd inside forward marked %j as backward, although the loss depends on it.
constexpr const char* kMarkedInForward = R"(fxg 0
graph @main {kind=forward_loss_backward} {
  %x: f32[64] = placeholder() {input={role=input}}
  %j: f32[64] = aten.cos.default(%x) {phase=backward, phase_markers=[autograd_backward]}
  %a: f32[64] = aten.exp.default(%j)
  %loss: f32[] = aten.sum.default(%a)
  %o: f32[] = aten.ones_like.default(%loss) {phase=backward, phase_markers=[autograd_backward]}
  %g: f32[64] = aten.mul.Tensor(%o, %a) {phase=backward, phase_markers=[autograd_backward]}
  return (%loss, %g)
}
)";

constexpr const char* kDrawnTwice = R"(fxg 0
graph @main {kind=forward_loss_backward} {
  %x: f32[64] = placeholder() {input={role=input}}
  %d: (f32[64], b8[64]) = aten.native_dropout.default(%x, 0.1, True)
  %y: f32[64] = operator.getitem(%d, 0)
  %loss: f32[] = aten.sum.default(%y)
  %o: f32[] = aten.ones_like.default(%loss) {phase=backward, phase_markers=[autograd_backward]}
  %e: (f32[64], b8[64]) = aten.native_dropout.default(%x, 0.1, True) {phase=backward, phase_markers=[autograd_backward]}
  %m: b8[64] = operator.getitem(%e, 1) {phase=backward, phase_markers=[autograd_backward]}
  %g: f32[64] = aten.mul.Tensor(%o, %m) {phase=backward, phase_markers=[autograd_backward]}
  return (%loss, %g)
}
)";

std::string said(const std::string& command, const std::string& text) {
  const TempFolder folder;
  const std::string file = folder.write("graph.fxg", text);
  std::vector<std::string> words = {command, file};
  if (command == "opt") words.insert(words.end(), {"-o", folder / "out.fxg", "--passes", "dce"});
  const CliResult result = run_fxopt(words);
  CHECK(result.exit == 0);
  return result.err;
}

TEST_CASE("cli doubts: opt, mem and tags say what a graph shows", "[cli][doubts]") {
  for (const char* command : {"opt", "mem", "tags"}) {
    INFO(command);
    CHECK(contains(said(command, kMarkedInForward),
                   "warning[phase-overruled]: 1 node has the phase mark `backward`, but forward outputs depend on it. "
                   "fxopt treats it as forward. The first is %j"));
    CHECK(contains(said(command, kDrawnTwice), "warning[drawn-twice]: %e in backward repeats the random draw of %d"));
  }
}

TEST_CASE("cli doubts: neither where draws differ, have a slot or stand in forward", "[cli][doubts]") {
  CHECK(!contains(said("mem", replaced(kDrawnTwice, "%e: (f32[64], b8[64]) = aten.native_dropout.default(%x, 0.1",
                                       "%e: (f32[64], b8[64]) = aten.native_dropout.default(%x, 0.2")),
                  "drawn-twice"));
  CHECK(!contains(
      said("mem", replaced(kDrawnTwice, "aten.native_dropout.default(%x, 0.1, True)\n  %y",
                           "aten.native_dropout.default(%x, 0.1, True) {rng={slot=\"cuda:0\", offset=0}}\n  %y")),
      "drawn-twice"));
}

TEST_CASE("cli opt: recompute that lowers no peak is told last", "[cli][doubts]") {
  const TempFolder folder;
  const std::string file = folder / "graph.fxg", out = folder / "out.fxg";
  write_text(file, replaced(kMarkedInForward, "aten.exp.default(%j)", "aten.exp.default(%j) {tag=MUST_RECOMPUTE}"));
  const CliResult result = run_fxopt({"opt", file, "-o", out, "--passes", "remat,dce"});
  CHECK(result.exit == 0);
  const size_t last = result.err.rfind("warning[");
  CHECK(
      contains(result.err.substr(last), "warning[recomputed-for-nothing]: 1 node recomputed, but no ideal peak fell"));
}

TEST_CASE("cli opt: a policy that finds no layers says so", "[cli][doubts]") {
  const TempFolder folder;
  const std::string file = folder / "graph.fxg", out = folder / "out.fxg";
  for (const bool has_layer : {false, true}) {
    write_text(file, has_layer ? replaced(kMarkedInForward, "aten.exp.default(%j)",
                                          "aten.exp.default(%j) {module_path=\"layers.0\"}")
                               : std::string(kMarkedInForward));
    const CliResult result = run_fxopt({"opt", file, "-o", out, "--passes", "sac{policy=full}"});
    CHECK(contains(result.err, "no-layers") == !has_layer);
  }
}

TEST_CASE("cli verify: a forward mark on what depends on a gradient is refused", "[cli][doubts]") {
  const TempFolder folder;
  const std::string file = folder / "graph.fxg";
  write_text(file, replaced(kMarkedInForward, "return (%loss, %g)",
                            "%n: f32[64] = aten.neg.default(%g) {phase=forward}\n  return (%loss, %n)"));
  check_ended(run_fxopt({"verify", file}), 4,
              "error[FX0406]: the node is marked forward, but it depends on a gradient");
  write_text(file, kMarkedInForward);
  CHECK(run_fxopt({"verify", file}).exit == 0);
}

}  // namespace
}  // namespace fxopt
