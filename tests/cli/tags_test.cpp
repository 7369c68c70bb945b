// `fxopt tags`, the last line of `opt`, and the tags that --strict-tags refuses.

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/core/temp_folder.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

// Two layers. Backward uses the tagged %m of each layer, but not the tagged %u.
std::string two_layers() {
  std::string text = "fxg 0\ngraph @main {\n  %x: f32[4] = placeholder()\n";
  for (const std::string layer : {"0", "1"}) {
    const std::string path = ", module_path=\"layers." + layer + ".mlp\"}\n";
    text += "  %m" + layer + ": f32[4] = aten.sin.default(%x) {phase=forward, tag=PREFER_RECOMPUTE" + path;
    text += "  %u" + layer + ": f32[4] = aten.neg.default(%m" + layer + ") {phase=forward, tag=PREFER_RECOMPUTE" + path;
  }
  return text +
         "  %b0: f32[4] = aten.cos.default(%m0) {phase=backward}\n"
         "  %b1: f32[4] = aten.mul.Tensor(%m1, %b0) {phase=backward}\n  return (%u0, %u1, %b1)\n}\n";
}

// One tag and no backward node.
constexpr const char* kForwardOnly =
    "fxg 0\ngraph @main {\n  %x: f32[4] = placeholder()\n"
    "  %m: f32[4] = aten.sin.default(%x) {tag=MUST_RECOMPUTE}\n  %s: f32[4] = aten.sin.default(%m)\n  return "
    "(%s,)\n}\n";

struct Graphs {
  TempFolder folder;
  std::string tagged = folder / "tagged.fxg", forward_only = folder / "forward.fxg", out = folder / "out.fxg";
  Graphs() {
    write_text(tagged, two_layers());
    write_text(forward_only, kForwardOnly);
  }
};

nlohmann::json tags_of(const std::string& path) { return run_fxopt({"tags", path, "--json"}).file(); }

TEST_CASE("cli tags: a tag that nobody carried out is ignored, alike layers share a row") {
  const Graphs graphs;
  const nlohmann::json file = tags_of(graphs.tagged);
  CHECK(file["counts"] == nlohmann::json::parse(R"({"ignored": 2, "moot": 2})"));
  const nlohmann::json& first = file["tags"][0];
  CHECK(first["node"] == "m0");
  CHECK(first["outcome"] == "ignored");
  CHECK(first["is_forecast"] == true);
  CHECK(first["verdict"] == "honoured");
  CHECK(first["module_path"] == "layers.0.mlp");
  const CliResult text = run_fxopt({"tags", graphs.tagged});
  CHECK(text.exit == 0);
  CHECK(contains(text.out, "layers.*.mlp"));
  CHECK_FALSE(contains(text.out, "layers.0"));
}

TEST_CASE("cli tags: what remat carried out is honoured") {
  const Graphs graphs;
  const CliResult opt = run_fxopt({"opt", graphs.tagged, "-o", graphs.out, "--passes", "remat"});
  REQUIRE(opt.exit == 0);
  CHECK(contains(opt.err, "tags: 2 honoured, 2 moot (not used in backward); details: fxopt tags " + graphs.out +
                              ", fxopt help verdicts\n"));
  const nlohmann::json file = tags_of(graphs.out);
  CHECK(file["counts"] == nlohmann::json::parse(R"({"honoured": 2, "moot": 2})"));
  for (const nlohmann::json& tag : file["tags"]) CHECK(tag["is_forecast"] == false);
}

TEST_CASE("cli tags: --strict-tags refuses what is ignored, not what is honoured") {
  const Graphs graphs;
  check_ended(run_fxopt({"tags", graphs.tagged, "--strict-tags"}), 4, "error[FX0410]");
  REQUIRE(run_fxopt({"opt", graphs.tagged, "-o", graphs.out, "--passes", "remat"}).exit == 0);
  CHECK(run_fxopt({"tags", graphs.out, "--strict-tags"}).exit == 0);
}

TEST_CASE("cli tags: --strict-tags permits outputs of checkpoint regions, which PyTorch saves") {
  const TempFolder folder;
  const auto exit_of = [&](const std::string& body) {
    write_text(folder / "in.fxg", "graph @main {\n  %x: f32[4] = placeholder()\n" + body + "}\n");
    return run_fxopt({"opt", folder / "in.fxg", "-o", folder / "out.fxg", "--passes", "remat", "--strict-tags"}).exit;
  };
  CHECK(exit_of("  %a: f32[4] = aten.exp.default(%x) {tag=MUST_RECOMPUTE, region={id=1}}\n"
                "  %b: f32[4] = aten.exp.default(%a) {tag=MUST_RECOMPUTE, region={id=2}}\n"
                "  %loss: f32[] = aten.sum.default(%b)\n"
                "  %g: f32[4] = aten.mul.Tensor(%b, %x) {phase=backward}\n  return (%loss, %g)\n") == 0);
  // Without recorded regions, PyTorch would recompute %a.
  CHECK(exit_of("  %a: f32[4] = aten.exp.default(%x) {tag=MUST_RECOMPUTE, module_path=\"layers.0\"}\n"
                "  %b: f32[4] = aten.exp.default(%a) {tag=MUST_RECOMPUTE, module_path=\"layers.1\"}\n"
                "  %loss: f32[] = aten.sum.default(%b)\n"
                "  %g: f32[4] = aten.mul.Tensor(%b, %x) {phase=backward}\n  return (%loss, %g)\n") == 4);
  CHECK(exit_of("  %a: f32[4] = aten.exp.default(%x) {tag=MUST_RECOMPUTE, region={id=1}}\n"
                "  %b: f32[4] = aten.exp_.default(%a)\n"
                "  %loss: f32[] = aten.sum.default(%a)\n"
                "  %g: f32[4] = aten.mul.Tensor(%a, %x) {phase=backward}\n  return (%loss, %g)\n") == 4);
}

TEST_CASE("cli tags: mark-saved keeps the outcome of a tag that cse merged before") {
  const TempFolder folder;
  write_text(folder / "in.fxg",
             "graph @main {kind=joint, num_forward_outputs=1} {\n  %x: f32[4] = placeholder() {input={role=input}}\n"
             "  %d: f32[4] = placeholder() {input={role=tangent}}\n  %a: f32[4] = aten.exp.default(%x)\n"
             "  %b: f32[4] = aten.exp.default(%x) {tag=MUST_RECOMPUTE}\n"
             "  %v: f32[4] = aten.view.default(%b, [4]) {tag=MUST_SAVE}\n  %y: f32[4] = aten.mul.Tensor(%a, %v)\n"
             "  %g: f32[4] = aten.mul.Tensor(%d, %v)\n  %h: f32[4] = aten.mul.Tensor(%g, %b)\n  return (%y, %h)\n}\n");
  for (const std::string passes : {"cse,partition", "cse,partition{mark-saved=true}"}) {
    const CliResult result =
        run_fxopt({"opt", folder / "in.fxg", "-o", folder / "out.fxg", "--passes", passes, "--strict-tags"});
    CHECK(result.exit == 4);  // %b is overridden
  }
}

std::string reason_of(const std::string& path, const std::string& node, std::string& outcome) {
  const nlohmann::json file = tags_of(path);
  for (const nlohmann::json& tag : file["tags"]) {
    if (tag["node"] != node) continue;
    outcome = tag["outcome"];
    return tag["reason"];
  }
  return "";
}

TEST_CASE("cli tags: what only copies would read is told from what nothing would") {
  const Graphs graphs;
  write_text(graphs.tagged,
             "fxg 0\ngraph @main {\n  %x: f32[4] = placeholder()\n"
             "  %a: f32[4] = aten.exp.default(%x) {tag=MUST_RECOMPUTE}\n"
             "  %b: f32[4] = aten.sin.default(%a) {tag=MUST_RECOMPUTE}\n"
             "  %c: f32[4] = aten.cos.default(%b) {tag=MUST_RECOMPUTE}\n"
             "  %g: f32[4] = aten.mul.Tensor(%x, %b) {phase=backward}\n  return (%c, %g)\n}\n");
  std::string outcome;
  CHECK(reason_of(graphs.tagged, "a", outcome) ==
        "backward does not read the value, but remat would recompute values that read it");
  CHECK(outcome == "moot");
  CHECK(contains(reason_of(graphs.tagged, "b", outcome), "remat would recompute it"));
  CHECK(outcome == "ignored");
  CHECK(reason_of(graphs.tagged, "c", outcome) == "backward does not read the value");
  CHECK(outcome == "moot");
}

TEST_CASE("cli tags: what remat would refuse conflicts, as remat says") {
  const Graphs graphs;
  write_text(graphs.tagged,
             "fxg 0\ngraph @main {\n  %x: f32[4] = placeholder()\n"
             "  %a: f32[4] = aten.bernoulli.p(%x, 0.5) {tag=MUST_RECOMPUTE}\n"
             "  %g: f32[4] = aten.mul.Tensor(%x, %a) {phase=backward}\n  return (%g,)\n}\n");
  std::string outcome;
  reason_of(graphs.tagged, "a", outcome);
  CHECK(outcome == "conflicting");
  CHECK(run_fxopt({"opt", graphs.tagged, "-o", graphs.out, "--passes", "remat"}).exit == 4);
}

TEST_CASE("cli tags: tags for recompute in a graph without backward are a warning, and an error when strict") {
  const Graphs graphs;
  const CliResult loose = run_fxopt({"tags", graphs.forward_only});
  check_ended(loose, 0, "warning[no-backward]");
  CHECK(contains(loose.out, "no node of this step is backward"));
  CHECK(run_fxopt({"tags", graphs.forward_only, "--strict-tags"}).exit == 4);
  CHECK_FALSE(contains(run_fxopt({"tags", graphs.tagged}).err, "no-backward"));
}

TEST_CASE("cli opt: tags that no pass of the pipeline carries out are said so") {
  const Graphs graphs;
  const std::string words = "(no pass of the pipeline carries out recompute tags)";
  CHECK(contains(run_fxopt({"opt", graphs.tagged, "-o", graphs.out, "--passes", "cse"}).err, words));
  CHECK_FALSE(contains(run_fxopt({"opt", graphs.tagged, "-o", graphs.out, "--passes", "cse,remat"}).err, words));
}

TEST_CASE("cli tags: a copy under PyTorch's name counts as carried out") {
  const Graphs graphs;
  std::string text = replaced(two_layers(), "aten.cos.default(%m0)", "aten.cos.default(%m0_recomputed)");
  text.insert(text.find("  %b0"), "  %m0_recomputed: f32[4] = aten.sin.default(%x) {phase=backward}\n");
  write_text(graphs.tagged, text);
  const nlohmann::json file = tags_of(graphs.tagged);
  CHECK(file["tags"][0]["outcome"] == "honoured");
  CHECK(file["tags"][2]["outcome"] == "ignored");
}

TEST_CASE("cli tags: more rows than --top are counted") {
  const Graphs graphs;
  const CliResult cut = run_fxopt({"tags", graphs.tagged, "--top", "1"});
  CHECK(contains(cut.out, "and 2 more tags"));
  CHECK_FALSE(contains(cut.out, "moot  "));
}

TEST_CASE("cli opt: tags in a graph without backward are a warning, and an error when strict") {
  const Graphs graphs;
  check_ended(run_fxopt({"opt", graphs.forward_only, "-o", graphs.out, "--passes", "remat"}), 0,
              "warning[no-backward]");
  const CliResult strict =
      run_fxopt({"opt", graphs.forward_only, "-o", graphs.out, "--passes", "remat", "--strict-tags"});
  CHECK(strict.exit == 4);
}

TEST_CASE("cli opt: no tags, no line about tags") {
  const Graphs graphs;
  write_text(graphs.tagged, "fxg 0\ngraph @main {\n  %x: f32[4] = placeholder()\n  return (%x,)\n}\n");
  CHECK_FALSE(contains(run_fxopt({"opt", graphs.tagged, "-o", graphs.out}).err, "tags:"));
}

}  // namespace
}  // namespace fxopt
