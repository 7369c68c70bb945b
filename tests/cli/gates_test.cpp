// Limits on peaks: budgets, and growth beyond a baseline.

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

// 1 GiB of input, then `middle` elements that live beside it.
std::string step(const std::string& middle, const std::string& device = "cuda:0", const std::string& name = "mid") {
  return "graph @main {\n  %x: u8[1073741824]@" + device + " = placeholder()\n  %" + name + ": u8[" + middle + "]@" +
         device + " = aten.new_empty.default(%x, [" + middle + "]) {module_path=\"layers.0.mlp\"}\n  %y: u8[1024]@" +
         device + " = aten.new_empty.default(%" + name + ", [1024])\n  return %y\n}\n";
}

struct Steps {
  TempFolder folder;
  std::string path = folder / "step.fxg", base = folder / "base.json";

  Steps() { write(step("1000000")); }
  void write(const std::string& text) const { write_text(path, text); }
  CliResult mem(std::vector<std::string> more) const {
    more.insert(more.begin(), {"mem", path});
    return run_fxopt(more);
  }
  void bless(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--baseline", base, "--update-baseline"});
    REQUIRE(mem(more).exit == 0);
  }
};

TEST_CASE("cli mem --budget: on the peak it names, to the byte") {
  const Steps steps;
  const int64_t ideal = (int64_t{1} << 30) + 1000000 + 1024;
  const auto exit_with = [&](const std::string& limit) { return steps.mem({"--budget", limit}).exit; };
  CHECK(exit_with(std::to_string(ideal)) == 0);
  CHECK(exit_with(std::to_string(ideal - 1)) == 5);
  CHECK(exit_with("ideal=" + std::to_string(ideal - 1)) == 5);
  CHECK(exit_with("requested=" + std::to_string(ideal)) == 0);
  // 1 GiB, then 1000448 + 1024 B of a segment of 2 MiB.
  CHECK(exit_with("allocated=1074743296") == 0);
  CHECK(exit_with("allocated=1074743295") == 5);
  CHECK(exit_with("reserved=1075838976") == 0);
  CHECK(exit_with("reserved=1075838975,ideal=2GiB") == 5);
  const std::string message = steps.mem({"--budget", "reserved=1GiB"}).err;
  CHECK(contains(message, "the reserved peak of 1.00 GiB (1075838976 B) on cuda:0 is above the budget"));
}

TEST_CASE("cli mem --budget: what is refused") {
  const Steps steps;
  const auto message = [&](const std::string& limit) {
    const CliResult result = steps.mem({"--budget", limit});
    CHECK(result.exit == 2);
    return result.err;
  };
  CHECK(contains(message("resident=1GiB"), "names no peak with 'resident'"));
  CHECK(contains(message("active=1GiB,active=2GiB"), "two limits"));
  CHECK(contains(message("active=much"), "not 'much'"));
  steps.write(step("1000000", "cpu"));
  CHECK(contains(message("reserved=1GiB"), "no device of this graph has a peak 'reserved'"));
}

TEST_CASE("cli mem --budget: a device too small for the step breaks each limit of the allocator's") {
  const Steps steps;
  const CliResult result = steps.mem({"--budget", "reserved=70GiB", "--device-memory", "1GiB"});
  CHECK(result.exit == 5);
  CHECK(contains(result.err, "memory runs out on cuda:0"));
  CHECK(steps.mem({"--budget", "ideal=70GiB", "--device-memory", "1GiB"}).exit == 0);
}

TEST_CASE("cli mem --max-growth: what has grown is named, to the byte of the limit") {
  const Steps steps;
  steps.bless();
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "0%"}).exit == 0);
  steps.write(step("1000001"));
  const CliResult grown = steps.mem({"--baseline", steps.base, "--max-growth", "0%"});
  CHECK(grown.exit == 5);
  CHECK(contains(grown.err, "the ideal peak on cuda:0 went from"));
  CHECK(contains(grown.err,
                 "%mid (u8[1000001], temporary, layers.0.mlp): 976.56 KiB (1000000 B) -> 976.56 KiB "
                 "(1000001 B)"));
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "0.001%"}).exit == 0);
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "allocated=0%"}).exit == 0);  // the same block
  steps.write(step("999999"));
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "0%"}).exit == 0);
}

TEST_CASE("cli mem --max-growth: a storage under a new name is found by its place") {
  const Steps steps;
  steps.bless();
  steps.write(step("3000000", "cuda:0", "renamed"));
  const CliResult grown = steps.mem({"--baseline", steps.base, "--max-growth", "0.1%"});
  CHECK(grown.exit == 5);
  CHECK(contains(grown.err, "%renamed (u8[3000000], temporary, layers.0.mlp): 976.56 KiB (1000000 B) -> 2.86 MiB"));
  steps.write(step("1000000", "cuda:0", "renamed"));
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "0%"}).exit == 0);
}

TEST_CASE("cli mem --max-ratio: on the peaks it names") {
  const Steps steps;
  steps.bless();
  steps.write(step("500000000"));  // 1.46 times
  CHECK(steps.mem({"--baseline", steps.base, "--max-ratio", "active=1.5,reserved=1.5"}).exit == 0);
  const CliResult result = steps.mem({"--baseline", steps.base, "--max-ratio", "active=1.5,reserved=1.46"});
  CHECK(result.exit == 5);
  CHECK(contains(result.err, "the reserved peak"));
  CHECK_FALSE(contains(result.err, "the active peak"));
  CHECK(steps.mem({"--baseline", steps.base, "--max-ratio", "1.5"}).exit == 2);
}

TEST_CASE("cli mem --baseline: the same bytes each time, nothing of where it stood, and only when all went well") {
  const Steps steps;
  steps.bless();
  const std::string first = read_text(steps.base);
  steps.bless();
  CHECK(read_text(steps.base) == first);
  CHECK_FALSE(contains(first, steps.folder / ""));
  CHECK(run_fxopt({"mem", steps.path, steps.folder / "missing.fxg", "--baseline", steps.base, "--update-baseline"})
            .exit == 10);
  CHECK(read_text(steps.base) == first);
}

TEST_CASE("cli mem --baseline: what cannot be compared is refused") {
  const Steps steps;
  steps.bless();
  const auto refused = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--baseline", steps.base, "--max-growth", "1%"});
    const CliResult result = steps.mem(more);
    CHECK(result.exit == 3);
    return result.err;
  };
  CHECK(contains(refused({"--steady"}), "made with other options: steady was false and is true"));
  CHECK(contains(refused({"--alloc-conf", "expandable_segments:True"}), "alloc_conf was"));
  steps.write("graph @other {\n  %x: u8[4]@cuda:0 = placeholder()\n  return %x\n}\n");
  CHECK(contains(refused({}), "does not have this graph"));
  steps.write(step("1000000", "cuda:1"));
  CHECK(contains(refused({}), "no ideal peak for cuda:1"));
  write_text(steps.base, "{\"memory_report\": 99}");
  CHECK(contains(refused({}), "of version 99"));
  write_text(steps.base, "not JSON");
  CHECK(contains(refused({}), "the baseline is not a memory report"));
  CHECK(steps.mem({"--baseline", steps.base}).exit == 2);
  CHECK(steps.mem({"--max-growth", "1%"}).exit == 2);
  CHECK(steps.mem({"--update-baseline"}).exit == 2);
  CHECK(steps.mem({"--baseline", steps.path, "--update-baseline"}).exit == 2);  // the input
}

}  // namespace
}  // namespace fxopt
