// Limits on peaks: budgets, and growth beyond a baseline.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

// 1 GiB of input, and `middle` elements of one byte that are live beside it.
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
  CliResult mem(const std::vector<std::string>& more, const std::vector<std::string>& rest = {}) const {
    return run_fxopt({"mem", path}, more, rest);
  }
  void bless(const std::vector<std::string>& more = {}) const {
    REQUIRE(mem(more, {"--baseline", base, "--update-baseline"}).exit == 0);
  }
};

TEST_CASE("cli mem --budget: on the peak it names, to the byte") {
  const Steps steps;
  const int64_t ideal = (int64_t{1} << 30) + 1000000 + 1024;
  const auto exit_with = [&](const std::string& limit) { return steps.mem({"--budget", limit}).exit; };
  CHECK(exit_with(std::to_string(ideal) + "B") == 0);
  CHECK(exit_with(std::to_string(ideal - 1) + "B") == 5);
  CHECK(exit_with("ideal=" + std::to_string(ideal - 1) + "B") == 5);
  CHECK(exit_with("requested=" + std::to_string(ideal) + "B") == 0);
  // 1 GiB, and 1000448 + 1024 B in a segment of 2 MiB.
  CHECK(exit_with("allocated=1074743296B") == 0);
  CHECK(exit_with("allocated=1074743295B") == 5);
  CHECK(exit_with("reserved=1075838976B") == 0);
  CHECK(exit_with("reserved=1075838975B,ideal=2GiB") == 5);
  const std::string message = steps.mem({"--budget", "reserved=1GiB"}).err;
  CHECK(contains(message, "the reserved peak of 1.00 GiB (1075838976 B) on cuda:0 is above the budget"));
}

TEST_CASE("cli mem: a list of limits or devices with nothing in it limits nothing, and is refused") {
  const Steps steps;
  steps.bless();
  const auto check = [&](const std::string& option, const std::string& one, const std::string& other) {
    for (const std::string& list : {std::string(","), "," + one, one + ",", one + ",," + other, one + ", ," + other}) {
      CAPTURE(option, list);
      check_ended(steps.mem({"--baseline", steps.base, option, list}), 2, "a limit in the list is empty");
    }
    CHECK(steps.mem({"--baseline", steps.base, "--markdown", steps.folder / "m.md", option, one + "," + other}).exit ==
          0);
  };
  check("--max-growth", "ideal=1%", "reserved=1%");
  check("--max-ratio", "ideal=1.1", "reserved=1.1");
  check("--budget", "ideal=2GiB", "reserved=2GiB");
  CHECK(steps.mem({"--device", ","}).exit == 2);
  CHECK(steps.mem({"--device", "h100,"}).exit == 2);
}

TEST_CASE("cli mem --update-baseline: a limit on growth beside it would be ignored, and is refused") {
  const Steps steps;
  CHECK(steps.mem({"--baseline", steps.base, "--update-baseline", "--max-growth", "1%"}).exit == 2);
  CHECK(steps.mem({"--baseline", steps.base, "--update-baseline", "--budget", "2GiB"}).exit == 0);
}

TEST_CASE("cli mem --baseline: the only file is compared under another name, and the user is told") {
  const Steps steps;
  steps.bless();
  const auto gate = [&](const std::string& path) {
    return run_fxopt({"mem", path, "--baseline", steps.base, "--max-growth", "0%"}).err;
  };
  CHECK_FALSE(contains(gate(steps.path), "baseline-other-name"));
  const std::string other = steps.folder / "other.fxg";
  write_text(other, step("1000000"));
  CHECK(contains(gate(other),
                 "warning[baseline-other-name]: the baseline has no file of this name; the comparison uses the "
                 "baseline's only file, 'step.fxg'"));
  const std::string page = steps.folder / "page.md";
  CHECK(contains(run_fxopt({"mem", other, "--baseline", steps.base, "--markdown", page}).err, "baseline-other-name"));
}

TEST_CASE("cli mem --markdown: a limit that could not be checked is not called broken") {
  const Steps steps;
  const std::string page = steps.folder / "page.md";
  steps.write(std::string(kSymbolicGraph));
  CHECK(steps.mem({"--markdown", page, "--budget", "1GiB"}).exit == 8);
  CHECK(contains(read_text(page), "**Limits not checked**"));
  steps.write(step("1000000"));
  CHECK(steps.mem({"--markdown", page, "--budget", "1KiB"}).exit == 5);
  CHECK(contains(read_text(page), "**Limits broken**"));
}

TEST_CASE("cli mem --max-growth: the text says what became of the peaks that are limited, also where all is well") {
  const Steps steps;
  steps.bless();
  steps.write(step("990000"));
  const std::string text =
      steps.mem({"--baseline", steps.base, "--max-growth", "1%", "--max-ratio", "requested=1.1"}).out;
  // From 1 GiB + 1000000 + 1024 B to 10000 B less.
  CHECK(contains(text,
                 "since the baseline, on cuda:0, ideal peak: 1.00 GiB (1074742848 B) to 1.00 GiB (1074732848 B), "
                 "-0.001 %"));
  CHECK(contains(text, "since the baseline, on cuda:0, requested peak: "));
  CHECK_FALSE(contains(text, "reserved peak: "));
  CHECK_FALSE(contains(steps.mem({}).out, "since the baseline"));
}

TEST_CASE("cli mem: where memory runs out the figures before it say so") {
  const Steps steps;
  CHECK(contains(steps.mem({"--device-memory", "1GiB"}).out, "classic segments, until memory ran out"));
  CHECK_FALSE(contains(steps.mem({"--device-memory", "2GiB"}).out, "until memory ran out"));
}

TEST_CASE("cli mem: a parameter has its name, and belongs to the module that it is of") {
  const Steps steps;
  steps.write(
      "graph @main {\n  %p: f32[8] = placeholder() {input={role=parameter, fqn=\"layers.0.wq.weight\"}}\n"
      "  %a: f32[8] = aten.neg.default(%p)\n  return %a\n}\n");
  const nlohmann::json device = steps.mem({"--json"}).graph()["devices"][0];
  CHECK(device["top"][0]["fqn"] == "layers.0.wq.weight");
  CHECK(device["top"][0]["module_path"] == "layers.0.wq");
  CHECK(device["top"][1]["fqn"] == "");
  CHECK(device["by_module"][0]["name"] == "layers.*.wq");
}

TEST_CASE("cli mem --budget: what is refused") {
  const Steps steps;
  const auto message = [&](const std::string& limit) {
    const CliResult result = steps.mem({"--budget", limit});
    CHECK(result.exit == 2);
    return result.err;
  };
  CHECK(contains(message("resident=1GiB"), "limits 'resident', which is not the name of a peak"));
  CHECK(contains(message("active=1GiB,active=2GiB"), "limits the same peak twice"));
  CHECK(contains(message("active=much"), "not 'much'"));
  steps.write(step("1000000", "cpu"));
  CHECK(contains(message("reserved=1GiB"), "no device of this graph has a peak 'reserved'"));
}

TEST_CASE("cli mem --budget: a device too small for the step breaks each limit of the allocator's") {
  const Steps steps;
  check_ended(steps.mem({"--budget", "reserved=70GiB", "--device-memory", "1GiB"}), 5,
              "cuda:0 does not fit in 1.00 GiB: %mid requests ");
  CHECK(steps.mem({"--budget", "ideal=70GiB", "--device-memory", "1GiB"}).exit == 0);
}

TEST_CASE("cli mem --max-growth: what has grown is named, to the byte of the limit") {
  const Steps steps;
  steps.bless();
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "0%"}).exit == 0);
  steps.write(step("1000001"));
  check_ended(steps.mem({"--baseline", steps.base, "--max-growth", "0%"}), 5, "the ideal peak on cuda:0 went from",
              "%mid (u8[1000001], temporary, layers.0.mlp): 976.56 KiB (1000000 B) -> 976.56 KiB "
              "(1000001 B)");
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "0.001%"}).exit == 0);
  // Both sizes are rounded to one block size.
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "allocated=0%"}).exit == 0);
  steps.write(step("999999"));
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "0%"}).exit == 0);
}

TEST_CASE("cli mem --max-growth: a storage under a new name is found by its place") {
  const Steps steps;
  steps.bless();
  steps.write(step("3000000", "cuda:0", "renamed"));
  check_ended(steps.mem({"--baseline", steps.base, "--max-growth", "0.1%"}), 5,
              "%renamed (u8[3000000], temporary, layers.0.mlp): 976.56 KiB (1000000 B) -> 2.86 MiB");
  steps.write(step("1000000", "cuda:0", "renamed"));
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "0%"}).exit == 0);
}

TEST_CASE("cli mem --max-ratio: on the peaks it names") {
  const Steps steps;
  steps.bless();
  steps.write(step("500000000"));  // 1.46 times
  CHECK(steps.mem({"--baseline", steps.base, "--max-ratio", "active=1.5,reserved=1.5"}).exit == 0);
  const CliResult result = steps.mem({"--baseline", steps.base, "--max-ratio", "active=1.5,reserved=1.46"});
  check_ended(result, 5, "the reserved peak");
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
  const auto refused = [&](const std::vector<std::string>& more) {
    const CliResult result = steps.mem(more, {"--baseline", steps.base, "--max-growth", "1%"});
    CHECK(result.exit == 3);
    return result.err;
  };
  CHECK(contains(refused({"--steady"}), "made with other options: steady was false and is now true"));
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

// A report from before --comm-lifetime existed counts as made with --comm-lifetime wait.
TEST_CASE("cli mem --baseline: a report that does not say how collectives hold") {
  const Steps steps;
  steps.bless();
  nlohmann::ordered_json base = nlohmann::ordered_json::parse(read_text(steps.base));
  base["options"].erase("comm_lifetime");
  write_text(steps.base, base.dump());
  const std::vector<std::string> gate = {"--baseline", steps.base, "--max-growth", "1%"};
  CHECK(steps.mem(gate).exit == 0);
  check_ended(steps.mem(gate, {"--comm-lifetime", "record_stream"}), 3,
              R"(comm_lifetime was "wait" and is now "record_stream")");
  base["options"].erase("steady");
  write_text(steps.base, base.dump());
  CHECK(contains(steps.mem(gate).err, "steady was null and is now false"));
}

// Live ranges: %x (1 MiB) throughout, %a (4 KiB) from 1 to 2, %b (1 KiB) from 2 to 3, %c (2 KiB)
// from 3 to 4, and %d.
constexpr std::string_view kChain =
    R"(graph @main {
  %x: u8[1048576]@cuda:0 = placeholder()
  %a: u8[4096]@cuda:0 = aten.new_empty.default(%x, [4096]) {module_path="layers.0"}
  %b: u8[1024]@cuda:0 = aten.new_empty.default(%a, [1024]) {module_path="layers.1"}
  %c: u8[2048]@cuda:0 = aten.new_empty.default(%b, [2048]) {module_path="layers.2"}
  %d: u8[8]@cuda:0 = aten.new_empty.default(%c, [8]) {module_path="layers.3"}
  return %d
}
)";

TEST_CASE("cli mem --max-growth: where the peak moves, what grew there is named and both places are") {
  const Steps steps;
  steps.write(std::string(kChain));
  steps.bless();  // 1 MiB + 5120 B at %b
  const auto grown = [&](std::string_view from, std::string_view to, int expected) {
    steps.write(replaced(kChain, from, to));
    const CliResult result = steps.mem({"--baseline", steps.base, "--max-growth", "0%"});
    CHECK(result.exit == expected);
    return result.err;
  };
  CHECK(grown("[2048]) {", "[4096]) {", 0).empty());  // the argument alone allocates nothing
  CHECK(grown("%c: u8[2048]", "%c: u8[4096]", 0).empty());
  const std::string moved = grown("%c: u8[2048]", "%c: u8[4097]", 5);
  CHECK(contains(moved,
                 "grew at the peak: %c (u8[4097], temporary, layers.2): 2.00 KiB (2048 B) -> 4.00 KiB (4097 B); the "
                 "peak moved from %b to %c"));
  const std::string added = grown("  %d:", "  %e: u8[8192]@cuda:0 = aten.new_empty.default(%c, [8192])\n  %d:", 5);
  CHECK(contains(added, "grew at the peak: %e (u8[8192], temporary): new, 8.00 KiB (8192 B); the peak moved from %b"));
}

TEST_CASE("cli mem --max-growth: storages beyond the fifth are counted") {
  const Steps steps;
  steps.write(std::string(kChain));
  steps.bless();
  std::string more, names = "%d";
  for (const char letter : std::string_view("efghijk")) {
    more.append("  %").append(1, letter).append(": u8[8192]@cuda:0 = aten.new_empty.default(%c, [8192])\n");
    names.append(", %").append(1, letter);
  }
  const std::string text = replaced(kChain, "  return %d", more + "  return (" + names + ")");
  steps.write(text);
  const CliResult result = steps.mem({"--baseline", steps.base, "--max-growth", "0%"});
  CHECK(result.exit == 5);
  CHECK(contains(result.err, "; and 2 more; the peak moved"));
}

TEST_CASE("cli mem: --steady says that nothing is added for a graph without gradients") {
  const Steps steps;
  CHECK(contains(steps.mem({"--steady"}).out, "steady with no gradients and no optimizer state added: "));
}

TEST_CASE("cli mem --max-growth: a storage that is read later is named with both its ends") {
  const Steps steps;
  steps.write(std::string(kChain));
  steps.bless();
  steps.write(replaced(kChain, "aten.new_empty.default(%c, [8])", "aten.add.Tensor(%c, %a)"));
  const CliResult result = steps.mem({"--baseline", steps.base, "--max-growth", "0%"});
  CHECK(result.exit == 5);  // %a, %b and %c are live together
  CHECK(contains(result.err,
                 "grew at the peak: %a (u8[4096], temporary, layers.0): 4.00 KiB (4096 B), live from %a to %d, before "
                 "from %a to %b; the peak moved from %b to %c"));
}

TEST_CASE("cli mem --max-growth: nodes numbered anew are found by what they are") {
  const Steps steps;
  steps.write(std::string(kChain));
  steps.bless();
  std::string shifted = replaced(kChain, "%a: u8[4096]", "%a: u8[4104]");
  for (const auto& [from, to] : {std::pair("%c", "%d9"), {"%b", "%c"}, {"%a", "%b"}}) {
    for (size_t at = shifted.find(from); at != std::string::npos; at = shifted.find(from)) shifted.replace(at, 2, to);
  }
  steps.write(shifted);
  const CliResult result = steps.mem({"--baseline", steps.base, "--max-growth", "0%"});
  check_ended(result, 5, "grew at the peak: %b (u8[4104], temporary, layers.0): 4.00 KiB (4096 B) -> 4.01 KiB ");
  CHECK(contains(result.err, "(4104 B)\n"));  // names no other storage and no other place
}

TEST_CASE("cli mem --baseline: several files, several graphs, two devices, each against its own") {
  const TempFolder folder;
  const std::string one = folder / "one.fxg", two = folder / "two.fxg", base = folder / "base.json";
  const auto pair_of = [](const std::string& cuda, const std::string& cpu) {
    return "graph @main {\n  %x: u8[64]@cuda:0 = placeholder()\n  %a: u8[" + cuda +
           "]@cuda:0 = aten.new_empty.default(%x, [8])\n  %b: u8[" + cpu +
           "]@cpu = aten.new_empty.default(%x, [8])\n  return (%a, %b)\n}\n" + "graph @other {\n  %x: u8[" + cpu +
           "]@cpu = placeholder()\n  return %x\n}\n";
  };
  write_text(one, pair_of("100", "200"));
  write_text(two, pair_of("300", "400"));
  REQUIRE(run_fxopt({"mem", one, two, "--baseline", base, "--update-baseline"}).exit == 0);
  const auto check = [&] { return run_fxopt({"mem", one, two, "--baseline", base, "--max-growth", "0%"}); };
  CHECK(check().exit == 0);
  write_text(two, pair_of("301", "400"));
  const CliResult cuda = check();
  check_ended(cuda, 5, "two.fxg: error[FX", "on cuda:0 went from 364 B to 365 B");
  CHECK_FALSE(contains(cuda.err, "on cpu went"));
  CHECK_FALSE(contains(cuda.err, "one.fxg"));
  write_text(two, pair_of("300", "401"));
  const CliResult cpu = check();
  CHECK(cpu.exit == 5);
  CHECK_FALSE(contains(cpu.err, "on cuda:0 went"));
  CHECK(contains(cpu.err, "graph: @main"));
  CHECK(contains(cpu.err, "graph: @other"));
  std::filesystem::rename(one, folder / "three.fxg");
  check_ended(run_fxopt({"mem", folder / "three.fxg", "--baseline", base, "--max-growth", "0%"}), 3,
              "does not have this graph");
}

TEST_CASE("cli mem: a limit on sizes that are not known is no answer, unless it is broken all the same") {
  const Steps steps;
  steps.write(std::string(kSymbolicGraph));
  CHECK(steps.mem({"--budget", "1GiB"}).exit == 8);
  CHECK(steps.mem({"--budget", "1GiB", "--symbol", "s0=16"}).exit == 0);
  CHECK(steps.mem({"--budget", "127B", "--symbol", "s0=16"}).exit == 5);
  CHECK(steps.mem({"--budget", "128B", "--symbol", "s0=16"}).exit == 0);
  CHECK(steps.mem({"--baseline", steps.base, "--update-baseline"}).exit == 0);
  check_ended(steps.mem({"--baseline", steps.base, "--max-growth", "1%"}), 8,
              "the limit cannot be checked, because the size of 2 storages is unknown");
}

TEST_CASE("cli mem --json: the envelope of a broken limit holds the error beside the report") {
  const Steps steps;
  steps.bless();
  steps.write(step("2000000"));
  const CliResult result = steps.mem({"--baseline", steps.base, "--max-growth", "0%", "--budget", "1GiB", "--json"});
  CHECK(result.exit == 5);
  const nlohmann::json envelope = result.json();
  CHECK(envelope["exit"] == 5);
  REQUIRE(envelope["errors"].size() == 2);
  CHECK(contains(envelope["errors"][0]["message"].get<std::string>(), "is above the budget of 1.00 GiB"));
  CHECK(contains(envelope["errors"][1]["message"].get<std::string>(), "grew at the peak: %mid ("));
  CHECK(envelope["result"]["files"][0]["graphs"][0]["devices"][0]["node"] == "y");
  CHECK_FALSE(contains(result.out, "\"others\""));  // only baselines have it
}

TEST_CASE("cli mem --json: the same bytes 20 times, with every option") {
  const TempFolder folder;
  const std::string path = std::string(FXOPT_SOURCE_DIR "/testdata/llama1b.pb"), base = folder / "base.json";
  const std::vector<std::string> options = {
      path,         "--device", "h100",   "--steady",         "--alloc-conf", "max_split_size_mb:128", "--top", "40",
      "--baseline", base,       "--json", "--input-lifetime", "boxed"};
  const auto mem = [&](const std::vector<std::string>& more) { return run_fxopt({"mem"}, more, options); };
  const CliResult blessed = mem({"--update-baseline"});
  INFO(blessed.err);
  REQUIRE(blessed.exit == 0);
  const std::string written = read_text(base);
  const std::string first = mem({"--max-growth", "0%", "--budget", "reserved=1GiB"}).out;
  CHECK(contains(first, "is above the budget"));
  for (int i = 1; i < 20; ++i) CHECK((mem({"--max-growth", "0%", "--budget", "reserved=1GiB"}).out == first));
  CHECK(mem({"--update-baseline"}).exit == 0);
  CHECK((read_text(base) == written));
}

TEST_CASE("cli mem --max-growth: a run that newly runs out of memory breaks each limit on the allocator's peaks") {
  const Steps steps;
  const std::vector<std::string> small = {"--device-memory", "1100MiB"};
  steps.bless(small);
  steps.write(step("500000000"));
  const auto with = [&](const std::string& limit) {
    return steps.mem({"--device-memory", "1100MiB", "--baseline", steps.base, "--max-growth", limit});
  };
  check_ended(with("reserved=100%"), 5, "cuda:0 does not fit in 1.07 GiB: %mid requests ");
  CHECK(with("ideal=100%").exit == 0);
  // Now memory runs out for the baseline.
  steps.bless(small);
  steps.write(step("1000000"));
  CHECK(contains(with("reserved=100%").err, "memory ran out when the baseline was made"));
}

TEST_CASE("cli mem --max-growth: compared exactly") {
  const Steps steps;
  steps.write(step("1000000"));
  steps.bless();
  const auto grown = [&](int64_t percent, int64_t more) {
    const int64_t ideal = (int64_t{1} << 30) + 1000000 + 1024;
    const int64_t most = ideal * percent / 100;  // the limit, rounded down to a whole byte
    steps.write(step(std::to_string(1000000 + most + more)));
    return steps.mem({"--baseline", steps.base, "--max-growth", std::to_string(percent) + "%"}).exit;
  };
  for (const int64_t percent : {13, 16, 57, 82}) {
    CHECK(grown(percent, 0) == 0);
    CHECK(grown(percent, 1) == 5);
  }
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "1e1%"}).exit == 2);
  CHECK(steps.mem({"--baseline", steps.base, "--max-growth", "-1%"}).exit == 2);
}

TEST_CASE("cli mem --must-fit: what the device has, to the last segment") {
  const Steps steps;
  const auto exit_with = [&](const std::string& bytes) {
    return steps.mem({"--must-fit", "--device-memory", bytes}).exit;
  };
  CHECK(exit_with("1075838976B") == 0);  // the reserved peak
  CHECK(exit_with("1075838975B") == 5);
  CHECK(steps.mem({"--must-fit"}).exit == 2);
  CHECK(steps.mem({"--must-fit", "--device", "h100"}).exit == 0);
}

TEST_CASE("cli mem --device-memory: sizes that no device has are refused") {
  const Steps steps;
  const auto exit_with = [&](const std::string& bytes) { return steps.mem({"--device-memory", bytes}).exit; };
  CHECK(exit_with("1024TiB") == 0);
  CHECK(exit_with("1125899906842625B") == 2);  // one byte more
  CHECK(exit_with("80808080GiB") == 2);
  CHECK(exit_with("1048576B") == 0);
  CHECK(exit_with("1048575") == 2);
  CHECK(exit_with("1048575B") == 0);
  CHECK(exit_with("80 B") == 0);
  check_ended(steps.mem({"--device-memory", "80"}), 2, "FX0204", "80 GiB");
}

TEST_CASE("cli mem --device: a profile whose device has more memory than there are addresses sets no limit") {
  const Steps steps;
  const std::string profile = steps.folder / "huge.device";
  for (const char* bytes : {"1125899906842624", "1125899906842625", "9223372036854775807"}) {
    CAPTURE(bytes);
    write_text(profile, "device huge\ninclude h100\nconstant device.memory = " + std::string(bytes) + " [source]\n");
    CHECK(steps.mem({"--device", profile, "--must-fit"}).exit == 0);
  }
}

TEST_CASE("cli mem --baseline: files of one name are told by their folders, as far as it takes") {
  const Steps steps;
  std::vector<std::string> paths;
  for (const char* folder : {"A", "B"}) {
    std::filesystem::create_directory(steps.folder / folder);
    paths.push_back(steps.folder / (std::string(folder) + "/step.fxg"));
    write_text(paths.back(), step(folder[0] == 'A' ? "1000000" : "2000000"));
  }
  const auto mem = [&](std::vector<std::string> inputs, const std::vector<std::string>& more) {
    inputs.insert(inputs.end(), {"--baseline", steps.base});
    return run_fxopt({"mem"}, inputs, more);
  };
  const auto names = [&] {
    std::vector<std::string> list;
    const nlohmann::json base = nlohmann::json::parse(read_text(steps.base));
    for (const nlohmann::json& file : base["files"]) list.push_back(file["file"]);
    return list;
  };
  const std::vector<std::string> gate = {"--max-growth", "0%"};
  REQUIRE(mem({paths[0], paths[1], steps.path}, {"--update-baseline"}).exit == 0);
  CHECK(names().size() == 3);
  CHECK(names()[0] == "A/step.fxg");
  CHECK(names()[1] == "B/step.fxg");
  CHECK(mem({paths[1], paths[0], steps.path}, gate).exit == 0);
  CHECK(mem({paths[1]}, gate).exit == 0);
  write_text(paths[1], step("2000001"));
  CHECK(mem({paths[0], paths[1]}, gate).exit == 5);
  // Updating one file leaves the others unchanged.
  const nlohmann::json before = nlohmann::json::parse(read_text(steps.base));
  REQUIRE(mem({paths[1]}, {"--update-baseline"}).exit == 0);
  const nlohmann::json after = nlohmann::json::parse(read_text(steps.base));
  CHECK(names().size() == 3);
  CHECK(after["files"][0] == before["files"][0]);
  CHECK(after["files"][1]["graphs"] != before["files"][1]["graphs"]);
  CHECK(mem({paths[0], paths[1], steps.path}, gate).exit == 0);
  CHECK(mem({paths[0], paths[0]}, gate).exit == 2);
}

TEST_CASE("cli mem --baseline: a baseline that knows files by their names alone still holds") {
  const Steps steps;
  std::filesystem::create_directory(steps.folder / "A");
  std::filesystem::create_directory(steps.folder / "B");
  const std::string one = steps.folder / "A/one.fxg", two = steps.folder / "B/two.fxg",
                    twin = steps.folder / "B/one.fxg";
  for (const std::string& path : {one, two, twin}) write_text(path, step("1000000"));
  REQUIRE(run_fxopt({"mem", one, two, "--baseline", steps.base, "--update-baseline"}).exit == 0);
  CHECK(contains(read_text(steps.base), "\"file\": \"one.fxg\""));
  CHECK(run_fxopt({"mem", one, two, "--baseline", steps.base, "--max-growth", "0%"}).exit == 0);
  CHECK(run_fxopt({"mem", twin, two, "--baseline", steps.base, "--max-growth", "0%"}).exit == 0);
  // Two files match the name, so neither is compared with it.
  check_ended(run_fxopt({"mem", one, twin, two, "--baseline", steps.base, "--max-growth", "0%"}), 3,
              "does not have this graph");
}

TEST_CASE("cli mem --update-baseline: what was made with other options is not kept, and the user is told") {
  const Steps steps;
  steps.bless();
  check_ended(steps.mem({"--steady", "--baseline", steps.base, "--update-baseline"}), 0, "warning[baseline-replaced]");
  CHECK_FALSE(
      contains(steps.mem({"--steady", "--baseline", steps.base, "--update-baseline"}).err, "baseline-replaced"));
}

TEST_CASE("cli mem --max-growth: growth as fields, with the storages that grew") {
  const Steps steps;
  steps.bless();
  steps.write(step("1100000"));
  const nlohmann::json growth =
      steps.mem({"--baseline", steps.base, "--max-growth", "requested=50%,ideal=0%", "--json"}).graph()["growth"];
  REQUIRE(growth.size() == 2);
  CHECK(growth[0]["metric"] == "requested");
  CHECK(growth[0]["holds"] == true);
  CHECK(growth[1]["holds"] == false);
  CHECK(growth[1]["growth_bytes"] == 100000);
  CHECK(growth[1]["after_bytes"].get<int64_t>() - growth[1]["before_bytes"].get<int64_t>() == 100000);
  REQUIRE(growth[1]["grew"].size() == 1);
  CHECK(growth[1]["grew"][0]["node"] == "mid");
  CHECK(growth[1]["grew"][0]["before_bytes"] == 1000000);
  CHECK(growth[1]["grew"][0]["after_bytes"] == 1100000);
}

// Two layers, each with four values of 64 MiB that backward uses and that can be recomputed.
const std::string kSaves = [] {
  std::string text =
      "graph @main {\n  %x: f32[16777216]@cuda:0 = placeholder()\n  %w: f32[16777216]@cuda:0 = placeholder()\n";
  const std::string type = ": f32[16777216]@cuda:0 = ";
  std::string last = "x";
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i), layer = std::to_string(i / 4);
    text +=
        "  %a" + n + type + "aten.sin.default(%" + last + ") {phase=forward, module_path=\"layers." + layer + "\"}\n";
    text +=
        "  %m" + n + type + "aten.mul.Tensor(%a" + n + ", %w) {phase=forward, module_path=\"layers." + layer + "\"}\n";
    last = "m" + n;
  }
  text += "  %g" + type + "aten.ones_like.default(%m7) {phase=backward}\n";
  last = "g";
  for (int i = 8; i-- > 0;) {
    const std::string n = std::to_string(i), layer = std::to_string(i / 4);
    text += "  %b" + n + type + "aten.mul.Tensor(%" + last + ", %a" + n + ") {phase=backward, module_path=\"layers." +
            layer + "\"}\n";
    last = "b" + n;
  }
  return text + "  return %" + last + "\n}\n";
}();

TEST_CASE("cli mem: the verdict first, and what makes it fit") {
  const Steps steps;
  steps.write(kSaves);
  const auto device = [&](const std::string& bytes) {
    return steps.mem({"--device-memory", bytes, "--json"}).graph()["devices"][0];
  };
  const nlohmann::json roomy = device("1GiB");
  CHECK(roomy["fit"]["fits"] == true);
  CHECK(roomy["advice"].is_null());
  CHECK(steps.mem({"--device-memory", "1GiB"}).out.starts_with("fits in 1.00 GiB, "));
  const int64_t reserved = roomy["allocator"][0]["reserved"]["peak_bytes"];
  CHECK(roomy["fit"]["spare_bytes"] == (int64_t{1} << 30) - reserved);
  CHECK(device(std::to_string(reserved) + "B")["fit"]["fits"] == true);
  const nlohmann::json tight = device(std::to_string(reserved - 1) + "B");
  CHECK(tight["fit"]["fits"] == false);
  CHECK(tight["fit"]["step"] == 1);
  CHECK(tight["fit"]["asked_bytes"] == 64 << 20);
  const nlohmann::json& advice = tight["advice"];
  REQUIRE(advice.is_object());
  CHECK(advice["holds"] == true);
  CHECK(advice["pipeline"].get<std::string>() ==
        "sac{policy=per-op,recompute-every=0},remat");  // the cheapest is enough
  CHECK(advice["flops_after"].get<int64_t>() >= advice["flops_before"].get<int64_t>());
  // The pipeline reaches the peak that the advice predicts.
  const std::string after = steps.folder / "after.fxg";
  REQUIRE(run_fxopt({"opt", steps.path, "-o", after, "--passes", advice["pipeline"]}).exit == 0);
  const nlohmann::json then = run_fxopt({"mem", after, "--json"}).graph()["devices"][0];
  CHECK(then["allocator"][0]["reserved"]["peak_bytes"] == advice["after_bytes"]);
  const CliResult gate = steps.mem({"--device-memory", std::to_string(reserved - 1) + "B", "--must-fit"});
  CHECK(gate.exit == 5);
  CHECK(gate.out.starts_with("does not fit in "));
  CHECK(contains(gate.err, "sac{policy=per-op,recompute-every=0},remat"));
  // Too little memory for any policy: the advice has the lowest peak that was reached.
  const nlohmann::json hopeless = device("130MiB")["advice"];
  REQUIRE(hopeless.is_object());
  CHECK(hopeless["holds"] == false);
  CHECK(hopeless["metric"] == "requested");
  CHECK(hopeless["after_bytes"] == then["requested"]["peak_bytes"]);
}

TEST_CASE("cli mem --budget: what keeps it") {
  const Steps steps;
  steps.write(kSaves);
  const auto advice = [&](int64_t budget) {
    return steps.mem({"--budget", std::to_string(budget) + "B", "--json"}).graph()["devices"][0]["advice"];
  };
  const nlohmann::json first = advice(1);
  CHECK(first["holds"] == false);
  CHECK(advice(first["after_bytes"])["holds"] == true);
  CHECK(advice(first["after_bytes"].get<int64_t>() - 1)["holds"] == false);
  CHECK(advice(int64_t{1} << 40).is_null());
}

}  // namespace
}  // namespace fxopt
