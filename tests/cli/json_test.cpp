// The envelope of --json has the same keys on success and on failure, is alone on standard output,
// and is equal for equal calls.

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

void check_envelope(const nlohmann::json& json, const std::string& command, int exit) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"command", "errors", "exit", "ok", "result", "schema", "tool", "warnings"});
  CHECK(json["schema"] == "fxopt." + command + "/1");
  CHECK(json["tool"]["name"] == "fxopt");
  CHECK(json["tool"]["version"] == "0.1.0");
  CHECK(json["command"][0] == "fxopt");
  CHECK(json["ok"] == (exit == 0));
  CHECK(json["exit"] == exit);
  CHECK(json["errors"].empty() == (exit == 0));
  CHECK(json["result"].is_object());
  for (const nlohmann::json& error : json["errors"]) {
    CHECK(error["code"].get<std::string>().starts_with("FX"));
    CHECK(error["message"].is_string());
    CHECK(error.contains("hint"));
    for (const char* key : {"file", "line", "column", "byte", "graph", "node", "field", "module_path", "source"}) {
      CHECK(error["where"].contains(key));
    }
  }
}

TEST_CASE("cli json: success and failure of every command") {
  const TempFolder folder;
  const std::string good = folder / "good.fxg";
  const std::string bad = folder / "bad.fxg";
  write_text(good, kTwins);
  write_text(bad, kOutOfOrder);
  struct Line {
    std::vector<std::string> args;
    std::string command;
    int exit;
  };
  const std::vector<Line> lines = {
      {{"opt", good, "-o", folder / "o.pb", "--json"}, "opt", 0},
      {{"opt", bad, "-o", folder / "o.pb", "--json"}, "opt", 3},
      {{"opt", good, "--json"}, "opt", 2},  // two outputs on one standard output
      {{"opt", good, "--pases", "cse", "--json"}, "opt", 2},
      {{"mem", good, "--json"}, "mem", 0},
      {{"mem", good, "--json", "--budget", "1B"}, "mem", 5},
      {{"verify", good, "--json"}, "verify", 0},
      {{"verify", bad, "--json"}, "verify", 4},
      {{"show", good, "--json"}, "show", 0},
      {{"show", good, "--node", "none", "--json"}, "show", 2},
      {{"convert", good, "-o", folder / "c.json", "--json"}, "convert", 0},
      {{"convert", folder / "missing", "-o", folder / "c.json", "--json"}, "convert", 10},
      {{"passes", "--json"}, "passes", 0},
      {{"passes", "none", "--json"}, "passes", 2},
      {{"help", "--json"}, "help", 0},
      {{"completion", "bash", "--json"}, "completion", 0},
      {{"none", "--json"}, "usage", 2},
  };
  for (const Line& line : lines) {
    const CliResult result = run_fxopt(line.args);
    CAPTURE(line.args, result.out, result.err);
    CHECK(result.exit == line.exit);
    check_envelope(result.json(), line.command, line.exit);
    CHECK(run_fxopt(line.args).out == result.out);
  }
}

TEST_CASE("cli json: to a file, beside the product") {
  const TempFolder folder;
  const std::string good = folder.write("good.fxg", kTwins);
  const CliResult result = run_fxopt({"opt", good, "--passes", "cse", "--json=" + (folder / "r.json")});
  CHECK(result.exit == 0);
  CHECK(contains(result.out, "graph @twins"));
  check_envelope(nlohmann::json::parse(read_text(folder / "r.json")), "opt", 0);
}

TEST_CASE("cli json: where an error points") {
  const TempFolder folder;
  const std::string bad = folder.write("bad.fxg", kNoSyntax);
  const nlohmann::json syntax = run_fxopt({"verify", bad, "--json"}).json()["errors"][0];
  CHECK(syntax["code"] == "FX0306");
  CHECK(syntax["where"]["file"] == bad);
  CHECK(syntax["where"]["line"] == 3);
  CHECK(syntax["where"]["byte"].is_null());
  write_text(bad, kOutOfOrder);
  const nlohmann::json order = run_fxopt({"verify", bad, "--json"}).json()["errors"][0];
  CHECK(order["code"] == "FX0402");
  CHECK(order["where"]["graph"] == "broken");
  CHECK(order["where"]["node"] == "b");
  CHECK(order["where"]["field"] == "args[0]");
}

TEST_CASE("cli json: every command lists every input, failed or not") {
  const TempFolder folder;
  const std::string good = folder.write("good.fxg", kTwins), missing = folder / "missing.fxg";
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"opt", "-o", folder / "to/"}, {"mem"}, {"verify"}, {"show"}, {"convert", "-o", folder / "to/"}}) {
    std::vector<std::string> line = {command.front(), missing, good, "--json"};
    line.insert(line.end(), command.begin() + 1, command.end());
    const nlohmann::json list = run_fxopt(line).json()["result"]["files"];
    CAPTURE(line);
    REQUIRE(list.size() == 2);
    CHECK(list[0]["file"] == missing);
    CHECK(list[0]["ok"] == false);
    CHECK(list[1]["file"] == good);
    CHECK(list[1]["ok"] == true);
    CHECK(list[1].size() > 2);
  }
}

TEST_CASE("cli json: opt says what each pass did, and seconds only with --timing") {
  const TempFolder folder;
  const std::string good = folder.write("good.fxg", kTwins);
  const std::vector<std::string> args = {"opt", good, "-o", folder / "o.fxg", "--passes", "cse,dce", "--json"};
  const nlohmann::json file = run_fxopt(args).file();
  CHECK(file["before"]["nodes"] == 5);
  CHECK(file["after"]["nodes"] == 4);
  CHECK(file["before"]["peaks"][0]["bytes"] == 16384);
  CHECK(file["after"]["peaks"][0]["bytes"] == 12288);
  CHECK(file["passes"][0]["pass"] == "cse");
  CHECK(file["passes"][0]["changed"] == true);
  CHECK(file["passes"][0]["nodes_after"] == 4);
  CHECK(file["passes"][1]["changed"] == false);
  CHECK_FALSE(file["passes"][0].contains("seconds"));
  CHECK_FALSE(file.contains("seconds"));
  std::vector<std::string> timed = args;
  timed.push_back("--timing");
  const nlohmann::json with_times = run_fxopt(timed).file();
  CHECK(with_times["passes"][0]["seconds"].is_number());
  CHECK(with_times["passes"][0]["check_seconds"].is_number());
  CHECK(with_times["seconds"]["load"].is_number());
  CHECK(with_times["analyses"]["storages"] == 2);  // before and after cse, which changed the graph
}

TEST_CASE("cli json: names that are not UTF-8 do not break it") {
  const CliResult result = run_fxopt({"verify", "no\xff-such", "--json"});
  CHECK(result.exit == 10);
  CHECK(contains(result.json()["errors"][0]["where"]["file"].get<std::string>(), "-such"));
}

}  // namespace
}  // namespace fxopt
