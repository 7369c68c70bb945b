// Help is complete: every command, pass, code and topic; completion offers them all; the text is as blessed.

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
    CHECK(result.out == topic.text);
  }
}

TEST_CASE("cli help: the exit codes are those of the contract") {
  const std::string text = run_fxopt({"help", "exit-codes"}).out;
  for (int code = 0; code <= 10; ++code) {
    const size_t line = ("\n" + text).find("\n" + std::to_string(code) + " ");
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

TEST_CASE("cli completion offers every command, option and pass") {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const CliResult result = run_fxopt({"completion", shell});
    CAPTURE(shell);
    CHECK(result.exit == 0);
    for (const Command& command : commands()) CHECK(contains(result.out, command.name));
    for (const PassInfo& pass : pass_registry()) CHECK(contains(result.out, pass.name));
    for (const char* option : {"print-after-change", "strict-tags", "budget", "input-lifetime", "summary", "json"}) {
      CHECK(contains(result.out, option));
    }
  }
}

#ifdef FXOPT_BINARY
TEST_CASE("cli completion for bash completes") {
  const TempFolder folder;
  write_text(folder / "completion.bash", run_fxopt({"completion", "bash"}).out);
  const auto complete = [&folder](const std::string& words, int index) {
    const std::string reply = folder / "reply";
    const std::string script = ". '" + (folder / "completion.bash") + "'; COMP_WORDS=(" + words +
                               "); COMP_CWORD=" + std::to_string(index) + "; _fxopt; echo \"${COMPREPLY[*]}\" > '" +
                               reply + "'";
    write_text(folder / "try.bash", script);
    REQUIRE(std::system(("bash '" + (folder / "try.bash") + "'").c_str()) == 0);
    return read_text(reply);
  };
  CHECK(complete("fxopt o", 1) == "opt\n");
  CHECK(complete("fxopt opt --print-after-", 2) == "--print-after-change\n");
  CHECK(complete("fxopt opt x --print-after dc", 4) == "dce\n");
  CHECK(complete("fxopt opt x --passes cse,rema", 4) == "cse,remat\n");
  CHECK(complete("fxopt convert x --format f", 4) == "fxg\n");
  CHECK(complete("fxopt help exit", 2) == "exit-codes\n");
  CHECK(complete("fxopt completion z", 2) == "zsh\n");
  CHECK(complete("fxopt opt --report /", 3) == "\n");  // a file there would be an input
  CHECK(complete("fxopt help --json exit", 3) == "exit-codes\n");
}
#endif

// tests/cli/snapshots/help.txt; FXOPT_BLESS=1 writes it anew.
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
