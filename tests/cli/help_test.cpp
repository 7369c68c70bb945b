// Help covers every command, pass, code and topic. Completion offers them all. The text equals its
// snapshot.

#include <algorithm>
#include <cstdlib>

#include "cli/topics.h"
#include "core/error.h"
#include "passes/pipeline/registry.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

TEST_CASE("cli help: every error code, however it is written") {
  for (const ErrorInfo& info : error_table()) {
    const CliResult result = run_fxopt({"help", code_name(info.code)});
    CAPTURE(result.out);
    CHECK(result.exit == 0);
    CHECK(contains(result.out, code_name(info.code) + ": " + std::string(info.title)));
    CHECK(contains(result.out, "exit code " + std::to_string(static_cast<int>(info.exit))));
    CHECK(run_fxopt({"help", std::to_string(static_cast<int>(info.code))}).out == result.out);
  }
  const std::string codes = run_fxopt({"help", "codes"}).out;
  for (const ErrorInfo& info : error_table()) CHECK(contains(codes, code_name(info.code)));
}

TEST_CASE("cli help: every command, pass and topic") {
  for (const Command& command : commands()) {
    const std::string name(command.name);
    const CliResult result = run_fxopt({"help", name});
    CHECK(result.exit == 0);
    CHECK(contains(result.out, "usage: fxopt " + name));
    CHECK(run_fxopt({name, "--help"}).out == result.out);
  }
  for (const PassInfo& pass : pass_registry()) {
    const CliResult result = run_fxopt({"help", std::string(pass.name)});
    CHECK(result.exit == 0);
    for (const PassOptionInfo& option : pass.options) CHECK(contains(result.out, option.name + "="));
    CHECK(run_fxopt({"passes", std::string(pass.name)}).out == result.out);
  }
  for (const Topic& topic : topics()) {
    const CliResult result = run_fxopt({"help", std::string(topic.name)});
    CHECK(result.exit == 0);
    CHECK(result.out == topic.text());
  }
}

TEST_CASE("cli help: the exit codes are those of the contract") {
  const std::string text = run_fxopt({"help", "exit-codes"}).out;
  for (int code = 0; code <= 10; ++code) {
    const size_t line = text.find("  " + std::to_string(code) + " ");
    REQUIRE(line != std::string::npos);
    const bool is_used =
        code == 0 || std::any_of(error_table().begin(), error_table().end(),
                                 [code](const ErrorInfo& info) { return static_cast<int>(info.exit) == code; });
    CAPTURE(code);
    CHECK(contains(text.substr(line, text.find('\n', line) - line), "unused so far") == !is_used);
  }
}

TEST_CASE("cli suggestions for what nearly matches") {
  CHECK(contains(run_fxopt({"otp"}).err, "did you mean 'opt'?"));
  CHECK(contains(run_fxopt({"opt", "x", "--pases=cse"}).err, "did you mean '--passes'?"));
  CHECK(contains(run_fxopt({"mem", "x", "--budgte", "1"}).err, "did you mean '--budget'?"));
  CHECK(contains(run_fxopt({"help", "exit-code"}).err, "did you mean 'exit-codes'?"));
  CHECK(contains(run_fxopt({"help", "FX03066"}).err, "did you mean 'FX0306'?"));
  CHECK(contains(run_fxopt({"passes", "remt"}).err, "did you mean 'remat'?"));
  CHECK(contains(run_fxopt({"completion", "bahs"}).err, "did you mean 'bash'?"));
  CHECK(contains(run_fxopt({"opt", "--out", "x", "y"}).err, "did you mean '--output'?"));
  CHECK(contains(run_fxopt({"opt", "--reprot"}).err, "did you mean '--report'?"));
  CHECK(contains(run_fxopt({"opt", "x", "--REPORT"}).err, "did you mean '--report'?"));
  CHECK(contains(run_fxopt({"opt", "x", "-output", "y"}).err, "did you mean '--output'?"));
  CHECK(contains(run_fxopt({"opt", "x", "--passes=CSE"}).err, "did you mean 'cse'"));
}

TEST_CASE("cli suggests nothing far-fetched") {
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"opt", "x", "-x"}, {"completion", "pwsh"}, {"help", "version"}, {"x"}}) {
    const CliResult result = run_fxopt(line);
    CAPTURE(line, result.err);
    CHECK(result.exit == 2);
    CHECK_FALSE(contains(result.err, "did you mean"));
  }
}

// The completions of a command line, each followed by a space.
std::string offered(const std::vector<std::string>& words) {
  const CliResult result = run_fxopt({"__complete"}, words);
  CHECK(result.exit == 0);
  std::string found;
  for (size_t begin = 0; begin < result.out.size();) {
    const size_t end = result.out.find('\n', begin);
    const std::string line = result.out.substr(begin, end - begin);
    found += line.substr(0, line.find('\t')) + " ";
    begin = end + 1;
  }
  return found;
}

TEST_CASE("cli completion offers every command, option, pass and topic") {
  const std::string all = " " + offered({""}), topics_offered = " " + offered({"help", ""});
  for (const Command& command : commands()) {
    CHECK(contains(all, " " + std::string(command.name) + " "));
    const std::string help = run_fxopt({std::string(command.name), "--help"}).out;
    const std::string options = offered({std::string(command.name), "-"});
    CHECK(contains(options, "--json "));
    for (size_t at = help.find(" --"); at != std::string::npos; at = help.find(" --", at + 1)) {
      const std::string name =
          help.substr(at + 1, help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at + 1) - at - 1);
      if (help[at - 1] == ' ' && help[at - 2] == '\n') CHECK(contains(options, name + " "));
    }
  }
  for (const PassInfo& pass : pass_registry()) {
    CHECK(contains(" " + offered({"opt", "x", "--passes", ""}), " " + std::string(pass.name) + " "));
    CHECK(contains(topics_offered, " " + std::string(pass.name) + " "));
  }
  for (const Topic& topic : topics()) CHECK(contains(topics_offered, " " + std::string(topic.name) + " "));
}

TEST_CASE("cli completion: what can stand where") {
  CHECK(offered({"o"}) == "opt ");
  CHECK(offered({"opt", "--print-after-"}) == "--print-after-change ");
  CHECK(offered({"opt", "x", "--print-after", "dc"}) == "dce ");
  CHECK(offered({"opt", "x", "--passes", "cse,rema"}) == "cse,remat ");
  CHECK(offered({"opt", "x", "--passes=cse,rema"}) == "--passes=cse,remat ");
  CHECK(offered({"opt", "x", "--passes", "=", "cse,rema"}) == "cse,remat ");
  CHECK(offered({"opt", "x", "--passes", "="}).find("cse ") != std::string::npos);
  CHECK(offered({"convert", "x", "--format", "f"}) == "fxg ");
  CHECK(offered({"help", "exit"}) == "exit-codes ");
  CHECK(offered({"help", "--json", "exit"}) == "exit-codes ");
  CHECK(offered({"completion", "z"}) == "zsh ");
  CHECK(offered({"opt", ""}) == ": ");
  CHECK(offered({"explain", "x", ""}) == "");
  CHECK(offered({"run", "x", "--state", ""}) == ": ");
  CHECK(offered({"opt", "--report", ""}) == "");  // a file there would be an input
  CHECK(offered({"opt", "--report", "="}) == ": ");
  CHECK(offered({"opt", "x", "--passes", "'cse,rema"}) == "cse,remat ");
  CHECK(offered({"none", ""}) == "");
  CHECK(offered({}) != "");
}

#ifdef FXOPT_BINARY
TEST_CASE("cli completion for bash completes") {
  const TempFolder folder;
  write_text(folder / "completion.bash", run_fxopt({"completion", "bash"}).out);
  const auto complete = [&folder](const std::string& words, int index) {
    const std::string reply = folder / "reply";
    const std::string script = ". '" + (folder / "completion.bash") + "'; COMP_WORDS=('" FXOPT_BINARY "' " + words +
                               "); COMP_CWORD=" + std::to_string(index) +
                               "; _fxopt 2>/dev/null; echo \"${COMPREPLY[*]}\" > '" + reply + "'";
    write_text(folder / "try.bash", script);
    REQUIRE(std::system(("bash '" + (folder / "try.bash") + "'").c_str()) == 0);
    return read_text(reply);
  };
  CHECK(complete("o", 1) == "opt\n");
  CHECK(complete("opt x --passes cse,rema", 4) == "cse,remat\n");
  CHECK(complete("opt --report /", 3) == "\n");
  CHECK(complete("mem x", 2) == "\n");  // the shell completes paths
}
#endif

// The snapshot is tests/cli/snapshots/help.txt. FXOPT_BLESS=1 rewrites it.
TEST_CASE("cli help is as blessed") {
  std::string text = run_fxopt({"help"}).out;
  for (const Command& command : commands()) text += "\n" + run_fxopt({std::string(command.name), "--help"}).out;
  const std::string path = std::string(FXOPT_SOURCE_DIR "/tests/cli/snapshots/help.txt");
  const char* bless = std::getenv("FXOPT_BLESS");
  if (bless != nullptr && std::string_view(bless) == "1") write_text(path, text);
  CHECK(text == read_text(path));
}

}  // namespace
}  // namespace fxopt
