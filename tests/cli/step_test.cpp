// --step: several graphs, in one file or in several, form one step.
#include <filesystem>

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

const std::string kForwardFile = std::string(FXOPT_SOURCE_DIR "/testdata/pair_forward_twin.pb.zst");
const std::string kBackwardFile = std::string(FXOPT_SOURCE_DIR "/testdata/pair_backward_twin.pb.zst");

int64_t peak_of(const nlohmann::json& graph) { return graph["devices"][0]["ideal"]["peak_bytes"]; }

TEST_CASE("cli step: mem measures two files as one step") {
  const CliResult result = run_fxopt({"mem", "--step", kForwardFile, kBackwardFile, "--json"});
  REQUIRE(result.exit == 0);
  const nlohmann::json files = result.json()["result"]["files"];
  REQUIRE(files.size() == 1);
  CHECK(files[0]["files"].size() == 2);
  REQUIRE(files[0]["graphs"].size() == 1);
  const nlohmann::json step = files[0]["graphs"][0];
  CHECK(peak_of(step) == 92592);  // as scripts/peers/step_memory.py measures in PyTorch
  REQUIRE(step["step"].size() == 2);
  CHECK(step["step"][1]["label"] == "backward");
  CHECK(step["step"][1]["from_outputs"] == 26);
  CHECK(step["step"][1]["by_name"] == 0);
  CHECK(step["step"][1]["arriving"] == 1);
  CHECK(contains(run_fxopt({"mem", "--step", kForwardFile, kBackwardFile}).out,
                 "a step of 2 runs (forward, backward): 26 inputs from outputs of earlier runs, 0 shared with earlier "
                 "runs, 1 arriving when their run begins"));
}

TEST_CASE("cli step: limits are of the step") {
  CHECK(run_fxopt({"mem", "--step", kForwardFile, kBackwardFile, "--budget", "92592B"}).exit == 0);
  CHECK(run_fxopt({"mem", "--step", kForwardFile, kBackwardFile, "--budget", "92591B"}).exit == 5);
}

TEST_CASE("cli step: one file with both graphs is the same step") {
  const TempFolder folder;
  const std::string whole = folder / "pair.pb";
  const CliResult written =
      run_fxopt({"opt", "--step", kForwardFile, kBackwardFile, "-o", whole, "--stop-after", "0", "--report"});
  REQUIRE(written.exit == 0);
  CHECK(contains(written.err, "ideal peak, cpu, @step"));
  CHECK(contains(run_fxopt({"convert", whole, "-o", "-"}).out,
                 "invocation {graph=\"backward\", bindings=[{invocation=0, output="));
  CHECK(peak_of(run_fxopt({"mem", "--step", whole, "--json"}).graph()) == 92592);
  const CliResult apart = run_fxopt({"mem", whole, "--json=" + (folder / "apart.json")});
  CHECK(contains(apart.out, "@backward, cpu"));
  CHECK(contains(apart.err, "2 runs of the graphs form one training step; add --step to measure the whole step"));
  const CliResult verified = run_fxopt({"verify", "--step", kForwardFile, kBackwardFile});
  CHECK(verified.exit == 0);
  CHECK(contains(verified.out, "step: ok, a step of 2 runs"));
  const CliResult diff =
      run_fxopt({"diff", "--step", kForwardFile, kBackwardFile, kForwardFile, kBackwardFile, "--json"});
  REQUIRE(diff.exit == 0);
  CHECK(diff.json()["result"]["graphs"].size() == 1);
}

// Backward takes %b by name, but cse merges it into %a.
TEST_CASE("cli step: what passes merge is still what backward takes") {
  const TempFolder folder;
  const std::string path = folder / "pair.fxg", out = folder / "out.fxg";
  write_text(path, R"(fxg 0
graph @f {kind=forward} {
  %x: f32[4]@cpu = placeholder()
  %a: f32[4]@cpu = aten.exp.default(%x)
  %b: f32[4]@cpu = aten.exp.default(%x)
  return (%a, %b)
}
graph @b {kind=backward} {
  %b: f32[4]@cpu = placeholder()
  %g: f32[4]@cpu = aten.neg.default(%b)
  return (%g,)
}
)");
  CHECK(contains(run_fxopt({"mem", "--step", path}).out,
                 "1 input from outputs of earlier runs (1 matched only by name)"));
  REQUIRE(run_fxopt({"opt", "--step", path, "-o", out, "--passes", "cse"}).exit == 0);
  CHECK(contains(run_fxopt({"mem", "--step", out}).out, "1 input from outputs of earlier runs, 0 shared"));
}

TEST_CASE("cli step: a joint graph is cut into two files, which are the step that the joint graph is") {
  const TempFolder folder;
  const std::string joint = std::string(FXOPT_SOURCE_DIR "/testdata/gpt2_joint_twin.pb.zst");
  const std::string forward = folder / "step.forward.pb", backward = folder / "step.backward.pb";
  REQUIRE(run_fxopt({"opt", joint, "-o", folder / "step.pb", "--passes", "partition", "--split"}).exit == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "step.pb"));
  const CliResult verified = run_fxopt({"verify", "--step", forward, backward, "--against", joint});
  CHECK(verified.exit == 0);
  CHECK(contains(verified.out, "proved, computes the same as"));
  CHECK(contains(verified.out, "74 inputs from outputs of earlier runs, 0 shared with earlier runs, 1 arriving"));
  CHECK(run_fxopt({"verify", forward, backward}).exit == 0);

  // Refused: an output would overwrite the input, or no -o names the two files.
  check_ended(run_fxopt({"opt", forward, "-o", folder / "step.pb", "--passes", "cse", "--split"}), 2,
              "would overwrite the input");
  CHECK(run_fxopt({"opt", joint, "--passes", "partition", "--split"}).exit == 2);
}

// The sizes of the backward graph's inputs contain a symbol that was an input of the joint graph.
TEST_CASE("cli step: the report of a cut joint graph compares it with the step") {
  const TempFolder folder;
  const std::string in = FXOPT_SOURCE_DIR "/testdata/gpt2_joint_twin.pb.zst", out = folder / "pair.pb";
  const std::vector<std::string> opt = {"opt", in, "-o", out, "--passes", "sac{policy=full},partition"};
  std::vector<std::string> report = opt, json = opt;
  report.emplace_back("--report");
  json.emplace_back("--json");
  CHECK(contains(run_fxopt(report).err, "ideal peak, cpu, @step"));
  const nlohmann::json file = run_fxopt(json).file();
  const auto peak_of_step = [&file](const char* side) {
    for (const nlohmann::json& peak : file[side]["peaks"]) {
      if (peak["graph"] == "step") return peak["bytes"].get<int64_t>();
    }
    return int64_t{-1};
  };
  const auto measured = [](const std::vector<std::string>& line) {
    return run_fxopt(line).graph()["peak_bytes"].get<int64_t>();
  };
  CHECK(peak_of_step("before") == measured({"mem", in, "--json"}));
  CHECK(peak_of_step("after") == measured({"mem", "--step", out, "--json"}));
  CHECK(peak_of_step("after") < peak_of_step("before"));
}

TEST_CASE("verify --against: the only graphs of two files are compared under any names") {
  const TempFolder folder;
  const auto write = [&folder](const std::string& name, const std::string& op) {
    const std::string path = folder / (name + ".fxg");
    write_text(path, "fxg 0\ngraph @" + name + " {\n  %x: f32[4] = placeholder()\n  %a: f32[4] = aten." + op +
                         ".default(%x)\n  return (%a,)\n}\n");
    return path;
  };
  const std::string main = write("main", "neg"), joint = write("joint", "neg"), other = write("other", "abs");
  CHECK(contains(run_fxopt({"verify", joint, "--against", main}).out, "proved, computes the same"));
  CHECK(run_fxopt({"verify", other, "--against", main}).exit == 4);
  const std::string swapped = folder / "swapped.fxg", two = folder / "two.fxg";
  write_text(two,
             "fxg 0\ngraph @g {\n  %x: f32[4] = placeholder()\n  %y: f32[4] = placeholder()\n"
             "  %a: f32[4] = aten.sub.Tensor(%x, %y)\n  return (%a,)\n}\n");
  write_text(swapped,
             "fxg 0\ngraph @h {\n  %y: f32[4] = placeholder()\n  %x: f32[4] = placeholder()\n"
             "  %a: f32[4] = aten.sub.Tensor(%x, %y)\n  return (%a,)\n}\n");
  check_ended(run_fxopt({"verify", swapped, "--against", two}), 4, "graph: @h");
}

TEST_CASE("cli step: a graph in a file of its own defines its symbols") {
  const TempFolder folder;
  const std::string path = folder.write("joint.fxg", R"(fxg 0
symbol {name="s0", kind=backed, min=2, hint=4, graph="main", node="n"}
graph @main {kind=joint, num_forward_outputs=1} {
  %n: sym_int(s0) = placeholder() {input={role=symbol}}
  %x: f32[s0]@cpu = placeholder()
  %d: f32[s0]@cpu = placeholder() {input={role=tangent}}
  %y: f32[s0]@cpu = aten.exp.default(%x)
  %g: f32[s0]@cpu = aten.mul.Tensor(%d, %y)
  return (%y, None, %g)
}
)");
  REQUIRE(run_fxopt({"opt", path, "-o", folder / "out.fxg", "--passes", "partition", "--split"}).exit == 0);
  CHECK(contains(read_text(folder / "out.forward.fxg"),
                 R"(symbol {name="s0", kind=backed, min=2, hint=4, graph="forward", node="n"})"));
  CHECK(contains(read_text(folder / "out.backward.fxg"),
                 R"(symbol {name="s0", kind=backed, min=2, hint=4, graph="backward", node="n"})"));
}

TEST_CASE("cli step: what makes no step, and what is no step to compare") {
  check_ended(run_fxopt({"mem", "--step", kBackwardFile, kBackwardFile}), 3, "FX0316", "no forward graph runs earlier");
  const TempFolder folder;
  const std::string other = folder.write("other.fxg", kTwins);
  check_ended(run_fxopt({"mem", "--step", other, kBackwardFile}), 3, "FX0316");
  CHECK(run_fxopt({"verify", "--step", other, kBackwardFile}).exit == 3);
  CHECK(run_fxopt({"diff", "--step", other, other, other}).exit == 2);
  CHECK(run_fxopt({"diff", other, other, other, other}).exit == 2);
  CHECK(run_fxopt({"opt", "--step", kForwardFile, kBackwardFile, "-o", kBackwardFile}).exit == 2);
  CHECK(run_fxopt({"mem", "--step", "--graph", "main", kForwardFile}).exit == 2);
}

}  // namespace
}  // namespace fxopt
