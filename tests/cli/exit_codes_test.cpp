// Exit codes are a contract: one test for each code that a command can return, and the code for
// several inputs.

#include "cli/files.h"
#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

struct ExitFiles {
  TempFolder folder;
  std::string twins = folder / "twins.fxg";
  std::string broken = folder / "broken.fxg";
  std::string no_syntax = folder / "no_syntax.fxg";
  std::string symbolic = folder / "symbolic.fxg";
  std::string out = folder / "out.fxg";

  ExitFiles() {
    write_text(twins, kTwins);
    write_text(broken, kOutOfOrder);
    write_text(no_syntax, kNoSyntax);
    write_text(symbolic, kSymbolicGraph);
  }
};

TEST_CASE("cli exit code 0: done") {
  const ExitFiles files;
  CHECK(run_fxopt({"opt", files.twins, "-o", files.out}).exit == 0);
  CHECK(run_fxopt({"mem", files.twins, "--budget", "16384B"}).exit == 0);  // exactly the peak
  CHECK(run_fxopt({"verify", files.twins}).exit == 0);
  CHECK(run_fxopt({"show", files.broken}).exit == 0);  // shown so that the fault can be found
  CHECK(run_fxopt({"convert", files.broken, "-o", files.out}).exit == 0);
  CHECK(run_fxopt({"--version"}).out == "fxopt 0.1.0\n");
}

TEST_CASE("cli exit code 2: usage") {
  const ExitFiles files;
  const std::vector<std::vector<std::string>> lines = {
      {},
      {"optimize", files.twins},
      {"opt"},
      {"opt", files.twins, "--pases", "cse"},
      {"opt", files.twins, "--passes", "ces"},
      {"opt", files.twins, "--passes", "cse,,dce"},
      {"opt", files.twins, "--format", "onnx"},
      {"opt", files.twins, "--passes", "cse", "--print-after", "dce"},
      {"opt", files.twins, files.broken, "-o", files.out},
      {"opt", "-", "-", "-o", files.folder / "many/"},
      {"opt", files.twins, "-o", files.folder / "out.txt"},
      {"mem", files.twins, "--top", "many"},
      {"mem", files.twins, "--budget", "70 apples"},
      {"mem", files.twins, "--symbol", "s0"},
      {"mem", files.twins, "--symbol", "s0=4"},
      {"mem", files.twins, "--graph", "twin"},
      {"show", files.twins, "--node", "z"},
      {"show", files.twins, "--phase", "sideways"},
      {"show", files.twins, "--summary", "--dot"},
      {"show", files.twins, "--depth", "1"},
      {"show", files.twins, "--top", "1"},
      {"passes", "ces"},
      {"help", "tgas"},
      {"completion", "tcsh"},
  };
  for (const std::vector<std::string>& line : lines) {
    const CliResult result = run_fxopt(line);
    check_ended(result, 2, "error[FX02");
    CHECK(result.out.empty());
  }
}

TEST_CASE("cli arguments named like a command are arguments") {
  CHECK(run_fxopt({"verify", "opt"}).exit == 10);  // no such file
  CHECK(run_fxopt({"help", "opt"}).exit == 0);
}

TEST_CASE("cli exit code 3: input rejected") {
  const ExitFiles files;
  for (const char* command : {"opt", "mem", "verify", "show", "convert"}) {
    check_ended(run_fxopt({command, files.no_syntax}), 3, "no_syntax.fxg:3:");
  }
  // A command that computes with a graph takes one that breaks an invariant as bad input, whatever
  // the family of the error code.
  for (const char* command : {"opt", "mem"}) {
    check_ended(run_fxopt({command, files.broken}), 3, "error[FX0402]");
  }
}

TEST_CASE("cli exit code 4: the verifier's answer, a tag not carried out") {
  const ExitFiles files;
  CHECK(run_fxopt({"verify", files.broken}).exit == 4);
  const std::string tagged = files.folder / "tagged.fxg";
  write_text(
      tagged,
      "fxg 0\ngraph @g {\n  %x: f32[4] = placeholder()\n"
      "  %dead: f32[4] = aten.neg.default(%x) {tag=MUST_SAVE, verdict={verdict=conflicting, rule=must_recompute}}\n"
      "  return (%x,)\n}\n");
  CHECK(run_fxopt({"opt", tagged, "-o", files.out, "--passes", "canonicalize"}).exit == 0);
  std::filesystem::remove(files.out);
  check_ended(run_fxopt({"opt", tagged, "-o", files.out, "--passes", "canonicalize", "--strict-tags"}), 4,
              "error[FX0410]");
  CHECK_FALSE(std::filesystem::exists(files.out));
}

TEST_CASE("cli exit code 5: a peak one byte above the budget") {
  const ExitFiles files;
  const CliResult result = run_fxopt({"mem", files.twins, "--budget", "16383B"});
  check_ended(result, 5, "error[FX0501]");
  CHECK(contains(result.out, "ideal peak"));  // the report is still printed
}

TEST_CASE("cli exit code 8: a budget needs sizes that are unknown") {
  const ExitFiles files;
  CHECK(run_fxopt({"mem", files.symbolic, "--budget", "1GiB"}).exit == 8);
  CHECK(run_fxopt({"mem", files.symbolic, "--budget", "1GiB", "--symbol", "s0=1024"}).exit == 0);
  CHECK(run_fxopt({"mem", files.symbolic, "--budget", "1KiB", "--symbol", "s0=1024"}).exit == 5);
  check_ended(run_fxopt({"mem", files.symbolic}), 0, "warning[unknown-sizes]");
}

TEST_CASE("cli mem --symbol: a size within the range the file was traced for") {
  const ExitFiles files;
  const std::string ranged = files.folder.write("ranged.fxg", replaced(kSymbolicGraph, "min=2", "min=2, max=64"));
  for (const char* value : {"s0=2", "s0=64"}) CHECK(run_fxopt({"mem", ranged, "--symbol", value}).exit == 0);
  for (const char* value : {"s0=1", "s0=65"}) {
    check_ended(run_fxopt({"mem", ranged, "--symbol", value}), 2, "from 2 up to 64");
  }
  check_ended(run_fxopt({"mem", files.folder / "missing", "--symbol", "s0=-4"}), 2, "is negative");
  CHECK(run_fxopt({"mem", ranged, "--symbol", "s0=4", "--symbol", "s0=8"}).exit == 2);
}

TEST_CASE("cli opt: a name in an option that the graph does not have is warned of") {
  const ExitFiles files;
  const auto err = [&](const std::string& passes) {
    std::filesystem::remove(files.out);
    const CliResult result = run_fxopt({"opt", files.twins, "-o", files.out, "--passes", passes});
    CHECK(result.exit == 0);
    return result.err;
  };
  CHECK(contains(err("sac{exclude=\"head\"}"), "warning[no-match]"));
  CHECK(contains(err("sac{exclude=\"head\"}"), "no node of this graph matches 'head' of option exclude"));
  CHECK_FALSE(contains(err("sac{exclude=\"layers.0\"}"), "warning"));
  CHECK_FALSE(contains(err("sac"), "warning"));  // a default may match nothing
}

TEST_CASE("cli opt --strict-tags: what no pass judges and what an option does not find is an error") {
  const ExitFiles files;
  const std::string tagged = files.folder / "tagged.fxg", out = files.folder / "out.fxg";
  write_text(tagged,
             "graph @g {\n  %x: f32[4] = placeholder()\n  %a: f32[4] = aten.sin.default(%x) {tag=PREFER_RECOMPUTE}\n"
             "  %b: f32[4] = aten.mul.Tensor(%a, %x) {phase=backward}\n  return %b\n}\n");
  const auto exit = [&](const char* passes) {
    return run_fxopt({"opt", tagged, "-o", out, "--passes", passes, "--strict-tags"}).exit;
  };
  CHECK(exit("cse,dce") == 4);
  CHECK(exit("cse,remat,dce") == 0);
  CHECK(exit("sac{policy=none,recompute=aten.nothing.default},remat") == 4);
  CHECK(exit("sac{policy=none,recompute=aten.sin.default},remat") == 0);
}

TEST_CASE("cli mem --must-fit: a graph that no CUDA device runs is no step that fits") {
  const ExitFiles files;
  check_ended(run_fxopt({"mem", files.twins, "--must-fit", "--device-memory", "1GiB"}), 8, "FX0801");
  check_ended(run_fxopt({"mem", files.twins, "--device-memory", "1GiB"}), 0, "warning[no-gpu-tensors]");
  const std::string device = files.folder / "device.fxg";
  std::string text(kTwins);
  for (size_t at = 0; (at = text.find("f32[1024]", at)) != std::string::npos; at += 9) text.insert(at + 9, "@cuda:0");
  write_text(device, text);
  CHECK(run_fxopt({"mem", device, "--must-fit", "--device-memory", "1GiB"}).exit == 0);
}

TEST_CASE("cli mem: devices beyond those that are measured are counted in a warning") {
  const ExitFiles files;
  const std::string many = files.folder / "many.fxg";
  for (const bool is_one_more : {false, true}) {
    const int devices = 256 + (is_one_more ? 1 : 0);
    std::string text = "graph @main {\n";
    for (int i = 0; i < devices; ++i) {
      text += "  %n" + std::to_string(i) + ": f32[4]@cuda:" + std::to_string(i) + " = aten.zeros.default([4])\n";
    }
    write_text(many, text + "  return (%n0,)\n}\n");
    const CliResult told = run_fxopt({"mem", many, "--json"});
    CHECK(told.exit == 0);
    CHECK(contains(told.err, "warning[unmeasured-devices]: only the 256 devices") == is_one_more);
  }
}

TEST_CASE("cli mem: one device in a call, and a step's state only for a later one") {
  const ExitFiles files;
  check_ended(run_fxopt({"mem", files.twins, "--device", "h100,a100"}), 2, "two devices, 'h100' and 'a100'");
  CHECK(run_fxopt({"mem", files.twins, "--device", "h100,torch-2.11,h100"}).exit == 0);
  for (const char* option : {"--optimizer=adam", "--gradients=kept", "--optimizer=none"}) {
    CHECK(run_fxopt({"mem", files.twins, option}).exit == 2);
    CHECK(run_fxopt({"mem", files.twins, "--steady", option}).exit == 0);
  }
}

TEST_CASE("cli mem --symbol: limits within a range are checked for one value, and said to be") {
  const ExitFiles files;
  const std::string ranged =
      files.folder.write("ranged.fxg", replaced(kSymbolicGraph, "min=2", "min=2, max=64, hint=8"));
  const auto warns = [&](const std::vector<std::string>& more) {
    return contains(run_fxopt({"mem", ranged}, more).err, "warning[limits-within-range]");
  };
  CHECK(warns({"--symbol", "s0=2..64", "--budget", "1KiB"}));
  CHECK_FALSE(warns({"--symbol", "s0=2..64"}));
  CHECK_FALSE(warns({"--symbol", "s0=64", "--budget", "1KiB"}));
  CHECK_FALSE(warns({"--budget", "1KiB"}));
}

TEST_CASE("cli mem --symbol: ends, ranges and patterns") {
  const ExitFiles files;
  const std::string ranged = files.folder.write("ranged.fxg", replaced(kSymbolicGraph, "min=2", "min=2, max=64"));
  const auto peak = [](const std::string& file, const std::string& symbol) {
    const CliResult result = run_fxopt({"mem", file, "--json", "--symbol", symbol});
    INFO(symbol);
    INFO(result.out);
    REQUIRE(result.exit == 0);
    return result.graph();
  };
  const nlohmann::json at_max = peak(ranged, "s0=max");
  CHECK(at_max["peak_bytes"] == peak(ranged, "s0=64")["peak_bytes"]);
  CHECK(at_max["devices"][0]["ideal_range"].is_null());
  CHECK(peak(ranged, "s*=min")["peak_bytes"] == peak(ranged, "s0=2")["peak_bytes"]);
  const nlohmann::json range = peak(ranged, "s0=4..16");
  CHECK(range["devices"][0]["ideal_range"]["min_bytes"] == peak(ranged, "s0=4")["peak_bytes"]);
  CHECK(range["devices"][0]["ideal_range"]["max_bytes"] == peak(ranged, "s0=16")["peak_bytes"]);
  CHECK(peak(ranged, "s0=..16")["symbols"][0]["min"] == 2);
  CHECK(peak(ranged, "s0=4..")["symbols"][0]["max"] == 64);
  // A name takes precedence over a pattern, in any order.
  CHECK(run_fxopt({"mem", ranged, "--symbol", "s0=4", "--symbol", "*=8", "--budget",
                   std::to_string(peak(ranged, "s0=4")["peak_bytes"].get<int64_t>()) + "B"})
            .exit == 0);
  // The file gives no largest value of s0.
  check_ended(run_fxopt({"mem", files.symbolic, "--symbol", "s0=max"}), 2, "no largest value");
  for (const char* wrong : {"s0=", "s0=..", "s0=a..4", "s0=8..4", "s0=1..4", "s0=4..65", "s0=1.."}) {
    INFO(wrong);
    CHECK(run_fxopt({"mem", ranged, "--symbol", wrong}).exit == 2);
  }
  CHECK(run_fxopt({"mem", ranged, "--symbol", "t*=4"}).exit == 2);
}

TEST_CASE("cli verify --max-errors: the verdict does not depend on it, and a cut list says so") {
  const ExitFiles files;
  const std::string broken = files.folder / "two.fxg";
  write_text(broken,
             "fxg 0\ngraph @g {\n  %x: f32[4] = placeholder()\n  %b: f32[4] = aten.neg.default(%a)\n"
             "  %a: f32[4] = aten.neg.default(%d)\n  %d: f32[4] = aten.neg.default(%x)\n  return (%b,)\n}\n");
  for (const char* limit : {"0", "1"}) {
    const CliResult cut = run_fxopt({"verify", broken, "--max-errors", limit});
    CAPTURE(limit, cut.err);
    CHECK(cut.exit == 4);
    CHECK(contains(cut.out, "broken"));
    CHECK(contains(cut.err, "%b, args[0]"));
    CHECK(contains(cut.err, "warning[errors-cut]"));
  }
  const CliResult whole = run_fxopt({"verify", broken, "--max-errors", "2"});
  check_ended(whole, 4, "%a, args[0]");
  CHECK_FALSE(contains(whole.err, "warning[errors-cut]"));
}

TEST_CASE("cli exit code 10: files that cannot be read or written") {
  const ExitFiles files;
  for (const char* command : {"opt", "mem", "verify", "show", "convert"}) {
    CHECK(run_fxopt({command, files.folder / "missing.pb"}).exit == 10);
  }
  check_ended(run_fxopt({"opt", files.twins, "-o", files.twins + "/out.fxg"}), 10, "error[FX1003]");
  CHECK(run_fxopt({"convert", files.twins, "-o", files.folder / "no/such/folder.fxg"}).exit == 10);
  CHECK(run_fxopt({"mem", files.twins, "--json=" + (files.folder / "no/such.json")}).exit == 10);
  CHECK(run_fxopt({"opt", files.twins, "-o", files.out, "--report=" + (files.folder / "no/report.txt")}).exit == 10);
}

TEST_CASE("cli with several inputs: each is worked on, the first error decides") {
  const ExitFiles files;
  const std::string good = files.folder / "good.fxg";
  write_text(good, kTwins);
  const std::string to = files.folder / "out/";
  check_ended(run_fxopt({"opt", files.broken, files.twins, files.folder / "missing.fxg", good, "-o", to}), 3,
              "missing.fxg");
  CHECK(std::filesystem::exists(to + "twins.fxg"));
  CHECK(std::filesystem::exists(to + "good.fxg"));
  CHECK_FALSE(std::filesystem::exists(to + "broken.fxg"));
  CHECK(run_fxopt({"verify", files.twins, files.folder / "missing.fxg", files.broken}).exit == 10);
  CHECK(run_fxopt({"verify", files.twins, files.broken, files.folder / "missing.fxg"}).exit == 4);
}

}  // namespace
}  // namespace fxopt
