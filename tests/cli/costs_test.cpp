// Call times in the commands that report them: --device, --measurement and the memory options of
// opt.
#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

constexpr std::string_view kGraph = R"(process_group {uid="7", ranks=[0, 1]}
graph @main {
  %x: f32[512, 512]@cuda:0 = placeholder()
  %a: f32[512, 512]@cuda:0 = aten.mm.default(%x, %x)
  %b: f32[512, 512]@cuda:0 = aten.mm.default(%a, %x)
  %c: f32[512, 512]@cuda:0 = aten.mm.default(%a, %x)
  %g: f32[1024, 512]@cuda:0 = _c10d_functional.all_gather_into_tensor.default(%b, 2, "7")
  %w: f32[1024, 512]@cuda:0 = _c10d_functional.wait_tensor.default(%g)
  return (%w, %c)
}
)";

struct Folder {
  TempFolder folder;
  std::string graph = folder / "graph.fxg", times = folder / "times.json";
  Folder() {
    write_text(graph, kGraph);
    write_times("aten.mm.default", "f32[512,512], f32[512,512] -> f32[512,512]");
  }
  void write_times(std::string_view target, std::string_view types) const {
    write_text(times, R"({"version": 1, "graphs": [{"graph": "main", "nodes": [{"target": ")" + std::string(target) +
                          R"(", "seconds": 0.25, "types": ")" + std::string(types) + R"("}]}]})");
  }
  nlohmann::json work(const std::vector<std::string>& options) const {
    return run_fxopt({"diff", graph, graph, "--json"}, options).json()["result"]["graphs"][0]["after"]["work"];
  }
};

TEST_CASE("cli costs: diff says what seconds rest on") {
  const Folder in;
  const nlohmann::json none = in.work({});
  CHECK(none["seconds"].is_null());
  CHECK(none["collective_seconds"].is_null());
  const nlohmann::json roofline = in.work({"--device", "h100"});
  CHECK(roofline["kernels"] == nlohmann::json({{"roofline", 3}, {"free", 1}}));
  CHECK(roofline["collective_basis"] == nlohmann::json({{"links", 1}}));
  CHECK(roofline["collective_seconds"] > 7e-6);
  const nlohmann::json measured = in.work({"--device", "h100", "--measurement", in.times});
  CHECK(measured["kernels"] == nlohmann::json({{"measured", 3}, {"free", 1}}));
  CHECK(measured["seconds"] == 0.75);
  CHECK(contains(run_fxopt({"diff", in.graph, in.graph, "--measurement", in.times}).out, "time (measured), ms"));
}

TEST_CASE("cli costs: calls that were not measured stay by the roofline, and it is said") {
  const Folder in;
  in.write_times("_c10d_functional.all_gather_into_tensor.default", "f32[512,512] -> f32[1024,512]");
  const nlohmann::json work = in.work({"--device", "h100", "--measurement", in.times});
  CHECK(work["kernels"] == nlohmann::json({{"roofline", 3}, {"free", 1}}));
  CHECK(work["collective_basis"] == nlohmann::json({{"measured", 1}}));
  CHECK(work["collective_seconds"] == 0.25);
  const CliResult text = run_fxopt({"diff", in.graph, in.graph, "--device", "h100", "--measurement", in.times});
  CHECK(contains(text.out, "time at least (roofline), ms"));
  CHECK(contains(text.out, "time of collectives"));
}

TEST_CASE("cli costs: a measurement that cannot be read is refused, and a profile's formula without a value") {
  const Folder in;
  CHECK(run_fxopt({"mem", in.graph, "--measurement", in.folder / "none.json"}).exit == 10);
  const CliResult other = run_fxopt({"mem", in.graph, "--measurement", in.graph, "--json"});
  CHECK(other.exit == 3);
  CHECK(other.json()["errors"][0]["code"] == "FX0317");
  const std::string device = in.folder / "my.device";
  write_text(device, "collective all-gather = bites // 2 [estimate]\n");
  const CliResult misspelt = run_fxopt({"mem", in.graph, "--device", "h100," + device, "--json"});
  CHECK(misspelt.exit == 3);
  CHECK(contains(misspelt.json()["errors"][0]["message"].get<std::string>(), "the statement has no value for 1 MiB"));
  write_text(device, "collective gather = bytes [estimate]\n");
  CHECK(contains(run_fxopt({"mem", in.graph, "--device", device}).err, "'gather' is not a supported collective"));
}

TEST_CASE("cli costs: opt measures as mem does, by its options") {
  const Folder in;
  const std::string out = in.folder / "out.pb";
  const auto peaks = [&](const std::vector<std::string>& options) {
    return run_fxopt({"opt", in.graph, "-o", out, "--passes", "dce", "--json"}, options).file()["before"]["peaks"];
  };
  CHECK(peaks({}).size() == 1);
  const nlohmann::json all = peaks({"--device", "h100"});
  REQUIRE(all.size() == 6);
  const nlohmann::json mem = run_fxopt({"mem", in.graph, "--device", "h100", "--json"}).graph()["devices"][0];
  for (const nlohmann::json& peak : all) {
    if (peak["model"] == "requested") CHECK(peak["bytes"] == mem["requested"]["peak_bytes"]);
    if (peak["model"] == "reserved") CHECK(peak["bytes"] == mem["allocator"][0]["reserved"]["peak_bytes"]);
  }
  CHECK(peaks({"--input-lifetime", "boxed"})[0]["bytes"] < peaks({})[0]["bytes"]);
  const CliResult short_of =
      run_fxopt({"opt", in.graph, "-o", out, "--passes", "dce", "--report", "--device-memory", "4MiB"});
  CHECK(contains(short_of.err, "runs out"));
}

TEST_CASE("cli costs: fuse-gathers asks what the one gather takes, and what those take that it stands for") {
  const TempFolder folder;
  const std::string graph = folder / "graph.fxg", device = folder / "my.device", out = folder / "out.fxg";
  write_text(graph,
             "fxg 0\nprocess_group {uid=\"dp\", ranks=[0, 2]}\nprocess_group {uid=\"tp\", ranks=[0, 1]}\n"
             "process_group {uid=\"all\", ranks=[0, 1, 2, 3]}\nrank {rank=0, world_size=4}\n"
             "graph @main {kind=inference} {\n  %x: f32[4] = placeholder()\n"
             "  %a: f32[8] = _c10d_functional.all_gather_into_tensor.default(%x, 2, \"tp\")\n"
             "  %w: f32[8] = _c10d_functional.wait_tensor.default(%a)\n"
             "  %b: f32[16] = _c10d_functional.all_gather_into_tensor.default(%w, 2, \"dp\")\n"
             "  %v: f32[16] = _c10d_functional.wait_tensor.default(%b)\n  return (%v,)\n}\n");
  const auto run = [&](const std::string& nanoseconds, const std::string& passes) {
    write_text(device, "collective all-gather = " + nanoseconds + " [estimate]\n");
    const CliResult result = run_fxopt({"opt", graph, "-o", out, "--passes", passes, "--device", "h100," + device});
    REQUIRE(result.exit == 0);
    return contains(read_text(out), "\"all\")") ? "fused" : contains(result.err, "by fuse-gathers") ? "left" : "silent";
  };
  CHECK(run("1000 + moved", "fuse-gathers") == std::string("fused"));
  CHECK(run("1000 * group.ranks", "fuse-gathers") == std::string("fused"));  // equally fast
  CHECK(run("1000 * group.ranks + Max(0, group.ranks - 3)", "fuse-gathers") == std::string("left"));
  CHECK(run("1000 * group.ranks + Max(0, group.ranks - 3)", "fuse-gathers{gate=none}") == std::string("fused"));
}

}  // namespace
}  // namespace fxopt
