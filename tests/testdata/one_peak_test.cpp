// All commands print the same peak for one file.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "ir/graph/module.h"
#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

using Json = nlohmann::json;
using Peaks = std::map<std::pair<std::string, std::string>, int64_t>;  // by graph and device

std::string path_of(const std::string& file) { return std::string(FXOPT_SOURCE_DIR "/testdata/") + file; }

Json file_of(const std::vector<std::string>& args) {
  const CliResult result = run_fxopt(args);
  INFO(result.err);
  REQUIRE(result.exit == 0);
  return result.file();
}

Peaks peaks_of_mem(const std::string& path) {
  Peaks peaks;
  const Json file = file_of({"mem", path, "--json"});
  for (const Json& graph : file["graphs"]) {
    for (const Json& device : graph["devices"]) {
      peaks[{graph["graph"], device["device"]}] = device["ideal"]["peak_bytes"];
    }
  }
  return peaks;
}

Peaks peaks_of_report(const Json& stats) {
  Peaks peaks;
  for (const Json& peak : stats.at("peaks")) {
    peaks[{peak.at("graph").get<std::string>(), peak.at("device").get<std::string>()}] = peak.at("bytes");
  }
  return peaks;
}

TEST_CASE("testdata: mem, show --summary and opt --report print the same ideal peak", "[testdata]") {
  const TempFolder folder;
  for (const std::string& file : testdata_files()) {
    INFO(file);
    const Peaks of_mem = peaks_of_mem(path_of(file));
    REQUIRE_FALSE(of_mem.empty());
    Peaks of_show;
    const Json summary = file_of({"show", path_of(file), "--summary", "--json"});
    for (const Json& graph : summary["graphs"]) {
      for (const Json& peak : graph["peaks"]) {
        const std::pair<std::string, std::string> key = {graph["graph"], peak["device"]};
        if (of_mem.contains(key)) of_show[key] = peak["bytes"];  // show also lists subgraphs
      }
    }
    CHECK((of_show == of_mem));
    const std::string after = folder / "after.pb";
    const Json report = file_of({"opt", path_of(file), "-o", after, "--passes", "canonicalize,cse,dce", "--json"});
    CHECK((peaks_of_report(report.at("before")) == of_mem));
    CHECK((peaks_of_report(report.at("after")) == peaks_of_mem(after)));
  }
}

TEST_CASE("testdata: explain and diff have the ideal peak that mem prints", "[testdata]") {
  for (const std::string& file : testdata_files()) {
    INFO(file);
    const std::string path = path_of(file);
    const Json graphs = file_of({"mem", path, "--json", "--top", "1"})["graphs"];
    const Json& device = graphs[0]["devices"][0];
    const std::string name = graphs[0]["graph"];
    const CliResult explained =
        run_fxopt({"explain", path, device["top"][0]["node"].get<std::string>(), "--graph", name, "--json"});
    REQUIRE(explained.exit == 0);
    const Json peak = explained.json()["result"]["explanation"]["peak"];
    CHECK(peak["bytes"] == device["ideal"]["peak_bytes"]);
    CHECK(peak["node"] == device["ideal"]["node"]);
    const Json diff = run_fxopt({"diff", path, path, "--graph", name, "--json"}).json()["result"]["graphs"][0];
    CHECK(diff["devices"][0]["peaks"][0]["metric"] == "ideal");
    CHECK(diff["devices"][0]["peaks"][0]["before"]["bytes"] == device["ideal"]["peak_bytes"]);
    CHECK(diff["devices"][0]["peaks"][0]["after"]["bytes"] == device["ideal"]["peak_bytes"]);
  }
}

}  // namespace
}  // namespace fxopt
