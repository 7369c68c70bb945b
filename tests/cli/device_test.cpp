// Device profiles that --device names.

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

constexpr std::string_view kProduct = R"(graph @main {
  %x: f32[16, 16]@cuda:0 = placeholder()
  %y: f32[16, 16]@cuda:0 = aten.mm.default(%x, %x)
  return %y
}
)";

struct DeviceFolder {
  TempFolder folder;
  std::string graph = folder / "graph.fxg", own = folder / "h100.device";
  DeviceFolder() { write_text(graph, kProduct); }

  CliResult mem(const std::string& device) const { return run_fxopt({"mem", graph, "--device", device, "--json"}); }
  int64_t peak(const std::string& device) const { return mem(device).graph()["devices"][0]["requested"]["peak_bytes"]; }
};

TEST_CASE("cli --device: a word without '/' is a built-in name, and no other") {
  const DeviceFolder in;
  CHECK(in.mem("h100").exit == 0);
  CHECK(in.mem("torch-2.11,a100").exit == 0);
  for (const char* word : {"h100.device", "h10", "torch-2.14", "torch-common", "operators", "-", "h100.json"}) {
    CAPTURE(word);
    const CliResult refused = in.mem(word);
    CHECK(refused.exit == 2);
    const nlohmann::json error = refused.json()["errors"][0];
    CHECK(error["message"] == "there is no built-in device profile '" + std::string(word) + "'");
    CHECK(error["hint"].get<std::string>().ends_with("; to use a profile file, write a path with a '/': ./" +
                                                     std::string(word)));
  }
  CHECK(contains(in.mem("h10").json()["errors"][0]["hint"].get<std::string>(), "did you mean 'h100'?"));
}

TEST_CASE("cli --device: a word with '/' is a file, whatever its name") {
  const DeviceFolder in;
  const int64_t plain = in.peak("torch-2.15,h100");
  CHECK(in.mem(in.own).exit == 10);  // does not exist yet
  write_text(in.own, "include torch-2.15.workspaces\nworkspace aten.mm.* of_mine = 123456789 [measured]\n");
  CHECK(in.peak("h100," + in.own) == plain + 123456789);
}

TEST_CASE("cli --device: a mistake in a file is told with its line") {
  const DeviceFolder in;
  write_text(in.own, "# mine\nworkspace aten.mm.* of_mine = self.numel // 0 [measured]\n");
  const nlohmann::json error = in.mem("h100," + in.own).json()["errors"][0];
  CHECK(error["message"] == "'self.numel // 0' never has a value");
  CHECK(error["where"]["file"] == in.own);
  CHECK(error["where"]["line"] == 2);
}

}  // namespace
}  // namespace fxopt
