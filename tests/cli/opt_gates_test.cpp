// Limits on the result of opt: the same as those of mem on the written file.

#include <filesystem>

#include "cli/print/table.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

const std::string kData = FXOPT_SOURCE_DIR "/testdata/";

CliResult opt(const std::string& in, const std::string& out, const std::string& passes,
              const std::vector<std::string>& more) {
  return run_fxopt({"opt", in, "-o", out, "--passes", passes}, more);
}

// The ideal peak of `fxopt mem`.
int64_t peak_of(const std::vector<std::string>& args) {
  return run_fxopt({"mem", "--json"}, args).graph()["peak_bytes"];
}

TEST_CASE("opt: a budget is on the result, and a broken one leaves no file", "[cli]") {
  const TempFolder folder;
  const std::string in = kData + "gpt2_flb_twin.pb.zst", out = folder / "out.pb", passes = "sac{policy=full},remat,dce";
  REQUIRE(opt(in, out, passes, {}).exit == 0);
  const int64_t peak = peak_of({out});
  CHECK(peak < peak_of({in}));
  CHECK(std::filesystem::remove(out));
  const CliResult within = opt(in, out, passes, {"--budget", std::to_string(peak) + "B"});
  CHECK(within.exit == 0);
  CHECK(contains(within.err, ": ideal peak " + bytes_text(peak) + ", within the budget of " + bytes_text(peak) + "\n"));
  CHECK(std::filesystem::remove(out));
  const CliResult over = opt(in, out, passes, {"--budget", std::to_string(peak - 1) + "B", "--report"});
  check_ended(over, 5, "error[FX0501]");
  CHECK(contains(over.err, "ideal peak"));  // the report is printed all the same
  CHECK(contains(over.err, "policies are not tried here"));
  CHECK(contains(run_fxopt({"mem", in, "--budget", "1B"}).err, "sac{policy="));
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("opt: the limit of a partitioned graph is on its step", "[cli]") {
  const TempFolder folder;
  const std::string in = kData + "gpt2_joint_twin.pb.zst", out = folder / "out.pb";
  REQUIRE(opt(in, out, "partition", {}).exit == 0);
  const int64_t peak = peak_of({"--step", out});
  CHECK(opt(in, out, "partition", {"--budget", std::to_string(peak) + "B"}).exit == 0);
  CHECK(opt(in, out, "partition", {"--budget", std::to_string(peak - 1) + "B"}).exit == 5);
  check_ended(run_fxopt({"verify", out, "--against", in}), 4,
              "graphs are matched by name; with --step, all graphs of a file are compared as one step");
  CHECK(run_fxopt({"verify", out, "--against", in, "--step"}).exit == 0);
  const CliResult step = run_fxopt({"mem", "--step", out, "--budget", "1B"});
  CHECK(contains(step.err, "policies are not tried on a step; try the passes"));
}

TEST_CASE("opt: a baseline is written, compared with, and never written over", "[cli]") {
  const TempFolder folder;
  const std::string in = kData + "gpt2_flb_twin.pb.zst", out = folder / "out.pb", base = folder / "base.json";
  check_ended(opt(in, out, "dce", {"--baseline", base, "--max-growth", "0%"}), 10,
              "write the baseline first, with --update-baseline in place of --max-growth and --max-ratio");
  CHECK(opt(in, out, "sac{policy=full},remat,dce", {"--baseline", base, "--update-baseline"}).exit == 0);
  CHECK(run_fxopt({"mem", out, "--baseline", base, "--max-growth", "0%"}).exit == 0);
  CHECK(opt(in, out, "sac{policy=full},remat,dce", {"--baseline", base, "--max-growth", "0%"}).exit == 0);
  check_ended(opt(in, out, "dce", {"--baseline", base, "--max-growth", "1%"}), 5, "since the baseline, on ");
  CHECK(opt(in, base, "dce", {"--baseline", base, "--max-growth", "1%"}).exit == 2);
  CHECK(opt(in, out, "dce", {"--baseline", out, "--update-baseline"}).exit == 2);
}

TEST_CASE("sizes need a unit, shares may be per cent, and devices may be in capitals", "[cli]") {
  const TempFolder folder;
  const std::string in = kData + "gpt2_flb_twin.pb.zst", out = folder / "out.pb", base = folder / "base.json";
  check_ended(run_fxopt({"mem", in, "--budget", "10", "GiB"}), 2,
              "add a unit, and quote a size that has a space: '10 GiB' or 10B");
  CHECK(run_fxopt({"mem", in, "--budget", "10 GiB"}).exit == 0);
  CHECK(opt(in, out, "bucket{all-gather=200}", {}).exit == 2);
  CHECK(opt(in, out, "bucket{max-growth=5%}", {}).exit == 0);
  CHECK(opt(in, out, "bucket{max-growth=0.05}", {}).exit == 0);
  CHECK(run_fxopt({"mem", in, "--baseline", base, "--update-baseline"}).exit == 0);
  for (const char* share : {"1%", "0.01", "0"}) {
    CHECK(run_fxopt({"mem", in, "--baseline", base, "--max-growth", share}).exit == 0);
  }
  CHECK(run_fxopt({"mem", in, "--baseline", base, "--max-growth", "1"}).exit == 2);
  CHECK(run_fxopt({"mem", in, "--device", "H100"}).out == run_fxopt({"mem", in, "--device", "h100"}).out);
}

}  // namespace
}  // namespace fxopt
