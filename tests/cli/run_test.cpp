// fxopt run: its plans, its outputs and its errors.

#include "tests/cli/run.h"

#include <map>

#include <nlohmann/json.hpp>

#include "runtime/cpu/isa.h"
#include "runtime/ops/rows.h"
#include "tests/catch.h"

namespace fxopt {
namespace {

std::string testdata(const std::string& name) { return std::string(FXOPT_SOURCE_DIR "/testdata/") + name; }

TEST_CASE("cli run --dry-run: a step whose operators all have a row") {
  const CliResult result = run_fxopt({"run", testdata("gpt2_flb_twin.pb.zst"), "--dry-run"});
  CHECK(result.exit == 0);
  CHECK(result.err.empty());
  CHECK(result.out ==
        "plan of main: 170 steps, 227 storages; nothing was run\n"
        "  kernels    31 operators in 170 calls: fxopt has kernels for 31 operators in 170 calls\n"
        "  draws      7\n"
        "  memory     cpu: arena 304.50 KiB (311808 B) for 198 storages; inputs and constants 113.88 KiB (116608 B)\n"
        "             at most 413.38 KiB (423300 B) at once, in step 87: parameter 113.62 KiB, input 256 B, "
        "gradient 16.25 KiB, saved value 247.12 KiB, temporary 36.13 KiB\n"
        "  results    198 of 198 agree with the shape rules\n");
}

TEST_CASE("cli run --dry-run: operators without a kernel are listed all at once") {
  const CliResult result = run_fxopt({"run", testdata("deepseek16b_twin.pb.zst"), "--dry-run", "--json"});
  CHECK(result.exit == 8);
  const nlohmann::json envelope = result.json();
  CHECK(envelope["errors"][0]["code"] == "FX0802");
  size_t missing = 0, calls = 0;
  std::map<std::string, std::string> remedies;
  for (const nlohmann::json& row : envelope["result"]["operators"]) {
    if (row["provider"] == "own") {
      CHECK_FALSE(row.contains("remedy"));
      continue;
    }
    remedies[row["operator"].get<std::string>()] =
        row["provider"].get<std::string>() + ", " + row["remedy"].get<std::string>();
    ++missing;
    calls += row["calls"].get<size_t>();
    CHECK_FALSE(row["first"].get<std::string>().empty());
  }
  CHECK(remedies["aten.silu.default"] == "pytorch, decompose");
  CHECK(remedies["aten._grouped_mm.default"] == "pytorch, PyTorch's kernel");
  CHECK(remedies["torchtitan.deterministic_scatter_add.default"] == "none, trace its body");
  CHECK(remedies["higher_order.flex_attention"] == "none, other attention");
  CHECK(remedies["_c10d_functional.all_to_all_single.default"] == "none, several ranks");
  CHECK(contains(envelope["errors"][0]["message"].get<std::string>(), std::to_string(missing) + " of "));
  CHECK(contains(envelope["errors"][0]["message"].get<std::string>(), "(" + std::to_string(calls) + " of "));
}

TEST_CASE("cli run: a pair in two files is one step") {
  const std::string forward = testdata("pair_forward_twin.pb.zst"), backward = testdata("pair_backward_twin.pb.zst");
  const auto steps = [](const std::vector<std::string>& files) {
    return run_fxopt({"run", "--dry-run", "--json"}, files).json()["result"]["steps"].get<int>();
  };
  CHECK(steps({forward, backward}) >= steps({forward}) + steps({backward}));
}

TEST_CASE("cli run: sizes that depend on a symbol") {
  const TempFolder folder;
  const std::string path = folder.write("a.fxg", kSymbolicGraph);
  check_ended(run_fxopt({"run", path, "--dry-run"}), 8, "error[FX0801]", "--symbol");
  const CliResult known = run_fxopt({"run", path, "--dry-run", "--symbol", "s0=1024", "--json"});
  CHECK(known.json()["result"]["devices"][0]["given_bytes"] == 4096);
}

TEST_CASE("cli run: the plan as text has what the step does") {
  const TempFolder folder;
  const std::string path = folder.write("a.fxg", kTwins);
  const CliResult result = run_fxopt({"run", path, "--print-plan"});
  CHECK(contains(result.out, "  input x = t0: f32[1024] on s0\n"));
  CHECK(contains(result.out, "  0 aten.neg.default(t0) -> t1: f32[1024] on s1, %a\n"));
  CHECK(contains(result.out, "  2 aten.add.Tensor(t1, t2) -> t3: f32[1024] on s3, frees s1 s2, %c\n"));
  CHECK(contains(result.out, "placement on a device that is not recorded: arena of 12288 B"));
}

TEST_CASE("cli run: a step of made up inputs") {
  const CliResult result =
      run_fxopt({"run", testdata("gpt2_flb_twin.pb.zst"), "--fill", "random", "--seed", "7", "--json"});
  CHECK(result.exit == 0);
  const nlohmann::json run = result.json()["result"];
  CHECK(run["outputs"].size() == 29);
  CHECK(run["made_up_inputs"] == 29);
  CHECK(run["memory"]["predicted_peak_bytes"] == 423300);
  for (const nlohmann::json& output : run["outputs"]) CHECK(output["finite"] == true);
  const double loss = run["loss"];  // about log 97 = 4.57 for a vocabulary of 97 words
  CHECK(loss > 4.2);
  CHECK(loss < 4.9);
}

TEST_CASE("cli run: the twins of GPT-2 agree with PyTorch, on every instruction set") {
  for (const std::string name : {"gpt2_flb_twin", "gpt2_joint_twin"}) {
    for (const std::string_view isa : cpu_isas()) {
      const CliResult result =
          run_fxopt({"run", testdata(name + ".pb.zst"), "--fill", "random", "--seed", "7", "--expect",
                     testdata("run/" + name + ".safetensors"), "--isa", std::string(isa)});
      CAPTURE(name, result.out, result.err);
      CHECK(result.exit == 0);
      CHECK(contains(result.out, " values within auto"));
    }
  }
}

TEST_CASE("cli run: outputs are written, expected, and found different") {
  const TempFolder folder;
  const std::string twin = testdata("gpt2_joint_twin.pb.zst"), output = folder / "out.safetensors";
  CHECK(run_fxopt({"run", twin, "--fill", "random", "--output", output}).exit == 0);
  const CliResult same =
      run_fxopt({"run", twin, "--fill", "random", "--expect", output, "--tolerance", "bitwise", "--threads", "3"});
  CHECK(same.exit == 0);
  CHECK(contains(same.out, "as expected: 30 values within bitwise"));
  const CliResult other = run_fxopt({"run", twin, "--fill", "random", "--seed", "1", "--expect", output});
  check_ended(other, 4, "error[FX0430]: 30 of 30 values differ from ");
  CHECK(contains(other.out, "suspects, the likeliest first: %"));
  // The inputs differ, not the kernels.
  CHECK(contains(other.out, "every node is close to its float64 result"));
  CHECK(contains(other.out,
                 "no value agrees: 31 inputs of --fill and random draws depend on --seed 1; was the file made with"));
  CHECK(run_fxopt({"run", twin, "--fill", "random", "--repeat", "3", "--warmup", "1"}).exit == 0);
}

constexpr std::string_view kHalves = R"(fxg 0
graph @halves {kind=forward} {
  %x: f32[4] = placeholder() {input={role=input}}
  %y: f32[4] = aten.mul.Tensor(%x, 0.5)
  return (%y,)
}
)";

TEST_CASE("cli run: masks are written, and taken in place of draws") {
  const TempFolder folder;
  const std::string twin = testdata("gpt2_flb_twin.pb.zst"), masks = folder / "masks.safetensors",
                    output = folder / "out.safetensors";
  CHECK(run_fxopt({"run", twin, "--fill", "random", "--seed", "3", "--save-draws", masks, "--output", output}).exit ==
        0);
  const CliResult taken = run_fxopt(
      {"run", twin, "--fill", "random", "--seed", "3", "--draws", masks, "--expect", output, "--tolerance", "bitwise"});
  CHECK(taken.exit == 0);
  CHECK(contains(taken.out, "  draws      7 from "));
  check_ended(run_fxopt({"run", twin, "--fill", "random", "--draws", output}), 3, "has no mask for 'native_dropout'");
}

TEST_CASE("cli run: arrays of numpy, numbers, and guards") {
  const TempFolder folder;
  const std::string path = folder / "a.fxg", array = folder / "x.npy", output = folder / "out.safetensors";
  write_text(path, R"(fxg 0
symbol {name="s0", kind=backed, min=2, max=64, hint=4}
assertion {condition=(s0 % 2 == 0), message="an even number of rows"}
graph @main {
  %x: f32[s0] = placeholder()
  %y: f32[s0] = aten.mul.Tensor(%x, 0.5)
  return (%y,)
}
)");
  const auto write_array = [&](int rows) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ",), }\n";
    std::string text = std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header;
    write_text(array, text + std::string(static_cast<size_t>(rows) * 4, '\0'));
  };
  write_array(6);
  const CliResult even = run_fxopt({"run", path, "--input", "x=" + array, "--output", output, "--json"});
  CHECK(even.exit == 0);
  CHECK(even.json()["result"]["outputs"][0]["sizes"] == nlohmann::json::array({6}));
  write_array(7);
  check_ended(run_fxopt({"run", path, "--input", "x=" + array}), 3,
              "the guard s0 % 2 == 0 does not hold for these inputs", "an even number of rows");
  write_text(array, "PK");
  CHECK(run_fxopt({"run", path, "--input", "x=" + array}).exit == 3);
  CHECK(run_fxopt({"run", path, "--input", "x=" + output + ":none"}).exit == 3);
  CHECK(run_fxopt({"run", path, "--input", "x=3"}).exit == 3);
  CHECK(run_fxopt({"run", path, "--input", "x"}).exit == 2);
  check_ended(run_fxopt({"run", path, "--input", output}), 2, "--inputs takes a whole file: --inputs " + output);
  check_ended(run_fxopt({"run", path, "--input", "x=" + output}), 2, "name one of its tensors: x=" + output + ":KEY");
}

TEST_CASE("cli run: what nodes took, in columns of one unit, as many lines as are wanted") {
  const TempFolder folder;
  const std::string path = folder / "a.fxg", output = folder / "out.safetensors", times = folder / "times.json";
  write_text(path, R"(fxg 0
graph @halves {kind=forward} {
  %x: f32[4] = placeholder() {input={role=input}}
  %a: f32[4] = aten.mul.Tensor(%x, 0.5)
  %b: f32[4] = aten.mul.Tensor(%a, 0.5)
  %c: f32[4] = aten.mul.Tensor(%b, 0.5)
  return (%c,)
}
)");
  const CliResult result = run_fxopt({"run", path, "--fill", "ones", "--per-node", "--top", "1", "--repeat", "3",
                                      "--output", output, "--save", "%a", "--write-measurement", times});
  CAPTURE(result.out, result.err);
  CHECK(result.exit == 0);
  CHECK(contains(result.out, "one node at a time, 3 runs, steady clock: "));
  CHECK(contains(result.out, "\n\n  node      steps"));
  CHECK(contains(result.out, "  (2 more)      2 "));
  CHECK(contains(result.out, "  the sum is "));
  CHECK(run_fxopt({"mem", path, "--measurement", times}).exit == 0);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--top", "1"}).exit == 2);
}

TEST_CASE("cli run: what is not compared, not used or not added is told") {
  const TempFolder folder;
  const std::string twin = testdata("gpt2_flb_twin.pb.zst"), path = folder / "a.fxg";
  const std::string halves = folder / "halves.safetensors", other = folder / "other.safetensors";
  write_text(path, kHalves);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--output", halves, "--save", "%y"}).exit == 0);
  check_ended(run_fxopt({"run", twin, "--fill", "random", "--state", halves}), 3,
              "no tensor of " + halves + " has the name of an input, such as '");
  const CliResult part = run_fxopt({"run", path, "--fill", "ones", "--expect", halves});
  CHECK(part.exit == 0);
  write_text(folder / "b.fxg", R"(fxg 0
graph @halves {kind=forward} {
  %x: f32[2] = placeholder() {input={role=input}}
  %y: f32[2] = aten.mul.Tensor(%x, 0.5)
  %z: f32[2] = aten.mul.Tensor(%y, 0.5)
  return (%y, %z)
}
)");
  CHECK(run_fxopt({"run", folder / "b.fxg", "--fill", "ones", "--output", other}).exit == 0);
  const CliResult sizes = run_fxopt({"run", path, "--fill", "ones", "--expect", other});
  CHECK(sizes.exit == 4);
  CHECK(contains(sizes.out, ": f32[4], expected f32[2]\n"));
  CHECK(
      contains(sizes.out, "  not compared: 0 outputs missing in the file, 1 tensor of the file missing in the step\n"));
  CHECK_FALSE(contains(sizes.out, "suspects"));
  CHECK(contains(sizes.err, "1 of 1 value differs from "));
  // Both runs return a gradient of one parameter.
  check_ended(run_fxopt({"run", twin, twin, "--fill", "random"}), 8,
              "is added to the gradient of an earlier run of the graph, which `fxopt run` does not support");
  CHECK(run_fxopt({"run", twin, twin, "--dry-run"}).exit == 0);
}

TEST_CASE("cli run: what cannot be read or written is told before anything runs") {
  const TempFolder folder;
  const std::string path = folder.write("a.fxg", kHalves);
  const CliResult written = run_fxopt({"run", path, "--fill", "ones", "--output", folder / "none/out.safetensors"});
  check_ended(written, 10, "there is no folder");
  CHECK(written.out.empty());
  const CliResult profile = run_fxopt({"run", path, "--fill", "ones", "--per-node", "--profile", "h999"});
  CHECK(profile.exit == 2);
  CHECK(profile.out.empty());
  const CliResult expected = run_fxopt({"run", path, "--fill", "ones", "--expect", folder / "none"});
  CHECK(expected.exit == 10);
  CHECK(expected.out.empty());
}

TEST_CASE("cli run: inputs that are not given, not known, or not as the step takes them") {
  const TempFolder folder;
  const std::string path = folder.write("a.fxg", kHalves);
  check_ended(run_fxopt({"run", path}), 3, "error[FX0318]: no value is given for the input", "--fill random");
  check_ended(run_fxopt({"run", path, "--fill", "ones", "--input", "y=3"}), 3, "the step has no input 'y'");
  CHECK(run_fxopt({"run", path, "--fill", "some"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--tolerance", "small"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--memory", "heap"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--save", "y"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--profile", "h100"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--plugin", "x.so"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--repeat", "0"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--threads", "100000"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--dry-run", "--device", "cuda"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--dry-run", "--per-node"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--dry-run", "--tolerance", "auto"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--print-plan", "--threads", "1"}).exit == 2);
  // No output overwrites an input or another output.
  const std::string graph = read_text(path);
  for (const char* flag : {"--output", "--save-draws", "--write-measurement"}) {
    check_ended(run_fxopt({"run", path, "--fill", "ones", flag, path}), 2, " would overwrite the input '");
    const std::string both = folder / "both";
    CHECK(run_fxopt({"run", path, "--fill", "ones", "--expect", both, flag, both}).exit == 2);
    if (std::string(flag) != "--output")
      CHECK(run_fxopt({"run", path, "--fill", "ones", "--output", both, flag, both}).exit == 2);
  }
  CHECK(read_text(path) == graph);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--streams", "2"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--alloc-conf", "expandable_segments:True"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--memory", "allocator", "--alloc-conf", "large"}).exit == 2);
  CHECK(run_fxopt({"run", path, "--fill", "ones", "--isa", "sse"}).exit == 2);
  CHECK(run_fxopt({"run", "x", "--dry-run", "--streams", "3"}).exit == 2);
}

}  // namespace
}  // namespace fxopt
