// Warnings: each has a section of `fxopt help warnings`, and --werror makes them errors.

#include <filesystem>
#include <regex>
#include <set>

#include "cli/topics.h"
#include "passes/pass/pass.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

// The codes of warnings in the sources: the first literal in a call of warn() or warning(), and the
// named codes.
std::set<std::string> codes_in_sources() {
  std::set<std::string> codes;
  const std::regex call(R"((?:warn|warning|warn_or_fail)\(\s*(?:[\w.:>()-]+\s*,\s*){0,2}\"([a-z]+(?:-[a-z]+)*)\")");
  const std::regex doubt(R"(\{\"([a-z]+(?:-[a-z]+)+)\", first,)");
  for (const char* folder : {"cli", "ir/step", "passes"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(FXOPT_SOURCE_DIR "/") + folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      const std::string text = read_text(entry.path().string());
      for (const std::regex& form : {call, doubt}) {
        for (std::sregex_iterator at(text.begin(), text.end(), form), end; at != end; ++at) codes.insert((*at)[1]);
      }
    }
  }
  for (const std::string_view name : {kNamesNothing, kNotExact, kMarksLost, kNoBackward}) codes.emplace(name);
  codes.insert("recomputed-for-nothing");
  return codes;
}

TEST_CASE("warnings: every code has a section, and every section a code", "[cli]") {
  std::set<std::string> sections;
  for (const WarningText& row : warning_table()) {
    INFO(row.code);
    CHECK(sections.emplace(row.code).second);
    CHECK(contains(row.text(), "Do: "));
    CHECK(run_fxopt({"help", std::string(row.code)}).out == row.text());
  }
  CHECK(sections == codes_in_sources());
}

// A policy without layers, which warns.
std::vector<std::string> opt_of(const std::string& in, const std::string& out) {
  return {"opt", in, "-o", out, "--passes", "sac{policy=none,exclude=nowhere},dce"};
}

TEST_CASE("warnings: --werror makes them errors, and nothing is written", "[cli]") {
  const TempFolder folder;
  const std::string in = folder.write("in.fxg", kTwins), out = folder / "out.fxg";
  CHECK(contains(run_fxopt(opt_of(in, out)).err, "warning[no-match]"));
  CHECK(std::filesystem::remove(out));
  const auto with = [&](const std::string& flag) {
    std::vector<std::string> args = opt_of(in, out);
    args.push_back(flag);
    return run_fxopt(args);
  };
  for (const char* flag : {"--werror", "--werror=no-match", "--werror=no-layers,no-match"}) {
    check_ended(with(flag), 4, "error[FX0413]: no-match: ");
    CHECK_FALSE(std::filesystem::exists(out));
  }
  CHECK(with("--werror=no-layers").exit == 0);
  CHECK(std::filesystem::exists(out));
  check_ended(with("--werror=no-matches"), 2, "did you mean 'no-match'?");
}

}  // namespace
}  // namespace fxopt
