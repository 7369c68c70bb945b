// --verbose prints the stages of work on standard error.

#include <regex>

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

// The lines that --verbose adds, without the folder, and with placeholders for numbers, sizes and
// seconds.
std::vector<std::string> stages(const std::vector<std::string>& args, const TempFolder& folder) {
  std::vector<std::string> lines;
  std::istringstream text(run_fxopt(args).err);
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("info: ")) continue;
    for (size_t at; (at = line.find(folder / "")) != std::string::npos;) line.erase(at, (folder / "").size());
    line = std::regex_replace(line, std::regex("[0-9.]+ [KM]iB \\([0-9]+ B\\)|[0-9]+ B"), "SIZE");
    line = std::regex_replace(line, std::regex("[0-9]+\\.[0-9]+ s$"), "SECONDS");
    lines.push_back(std::regex_replace(line.substr(6), std::regex("[0-9]+"), "N"));
  }
  return lines;
}

TEST_CASE("cli --verbose tells the stages of opt, with sizes and seconds") {
  const TempFolder folder;
  write_text(folder / "in.fxg", kTwins);
  const std::vector<std::string> line = {"opt", folder / "in.fxg", "-o", folder / "out.pb", "--passes", "cse,dce"};
  CHECK(stages(line, folder).empty());
  std::vector<std::string> told = line;
  told.emplace_back("-v");
  CHECK(stages(told, folder) == std::vector<std::string>{
                                    "read in.fxg: SIZE, fxg, N graph, N nodes, SECONDS",
                                    "verified in.fxg, SECONDS",
                                    "prepared in.fxg: N calls lowered, N values completed, SECONDS",
                                    "ran cse: changed, N to N nodes, SECONDS",
                                    "checked the output of cse, SECONDS",
                                    "ran dce: nothing changed, N to N nodes, SECONDS",
                                    "checked the output of dce, SECONDS",
                                    "wrote out.pb: SIZE, SECONDS",
                                });
}

TEST_CASE("cli --verbose tells what mem measures and writes") {
  const TempFolder folder;
  write_text(folder / "in.fxg", kTwins);
  const std::vector<std::string> line = {"mem", folder / "in.fxg", "--markdown", folder / "report.md"};
  CHECK(stages(line, folder).empty());
  std::vector<std::string> told = line;
  told.emplace_back("--verbose");
  const std::vector<std::string> lines = stages(told, folder);
  REQUIRE(lines.size() == 5);
  CHECK(lines[3] == "measured @twins of in.fxg: no device, SECONDS");
  CHECK(lines[4] == "wrote report.md: SIZE, SECONDS");
  CHECK(run_fxopt(told).out == run_fxopt(line).out);
  CHECK(stages({"opt", folder / "in.fxg", "-vo", folder / "out.fxg"}, folder).back() == "wrote out.fxg: SIZE, SECONDS");
}

TEST_CASE("cli --verbose leaves the envelope and warnings as they are") {
  const TempFolder folder;
  write_text(folder / "in.fxg", kSymbolicGraph);
  const CliResult plain = run_fxopt({"mem", folder / "in.fxg", "--json"});
  const CliResult told = run_fxopt({"mem", folder / "in.fxg", "--json", "-v"});
  nlohmann::json envelope = told.json();
  envelope["command"].erase(4);
  CHECK(envelope == plain.json());
  CHECK(contains(plain.err, ": warning[unknown-sizes]: "));
  CHECK(contains(told.err, plain.err));
}

}  // namespace
}  // namespace fxopt
