// No output is lost: none overwrites another output or an input, and none goes to a closed stream.

#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

struct ProductFolder {
  TempFolder folder;
  std::string in = folder / "in.fxg";
  std::string other = folder / "other.fxg";
  std::string out = folder / "out.fxg";

  ProductFolder() {
    write_text(in, kTwins);
    write_text(other, kTwins);
  }
  std::string operator/(const std::string& name) const { return folder / name; }
};

TEST_CASE("cli: every command tells of a standard output that takes nothing") {
  const ProductFolder files;
  const std::vector<std::vector<std::string>> lines = {
      {"opt", files.in},
      {"mem", files.in},
      {"verify", files.in},
      {"show", files.in},
      {"show", files.in, "--summary"},
      {"show", files.in, "--node", "a"},
      {"show", files.in, "--module", "layers"},
      {"convert", files.in},
      {"passes"},
      {"help"},
      {"completion", "bash"},
      {"opt", "--help"},
      {"--version"},
      {"mem", files.in, "--json"},
      {"mem", files.in, "--json=" + (files / "e.json")},
  };
  for (const std::vector<std::string>& line : lines) {
    std::ostringstream err;
    std::ostream full(nullptr);
    CAPTURE(line);
    CHECK(run_cli(line, {full, err}) == 10);
    CHECK(contains(err.str(), "error[FX1003]"));
    CHECK(err.str().find("FX1003") == err.str().rfind("FX1003"));  // reported once
  }
  CHECK(nlohmann::json::parse(read_text(files / "e.json"))["exit"] == 10);
}

TEST_CASE("cli refuses to write one product over another or over an input") {
  const ProductFolder files;
  std::filesystem::create_directory(files / "sub");
  std::filesystem::create_symlink("../in.fxg", files / "sub/link.fxg");
  std::filesystem::create_hard_link(files.in, files / "hard.fxg");
  std::filesystem::create_symlink("new.txt", files / "dangling.txt");
  const std::vector<std::vector<std::string>> lines = {
      {"opt", files.in, "-o", files.out, "--report=" + files.in},
      {"opt", files.in, "-o", files.out, "--report=" + (files / "./sub/../in.fxg")},
      {"opt", files.in, "-o", files.out, "--report=" + (files / "sub/link.fxg")},
      {"opt", files.in, "-o", files.out, "--report=" + (files / "hard.fxg")},
      {"opt", files.in, "-o", files.out, "--report=" + files.out},
      {"opt", files.in, "-o", files.out, "--json=" + files.out},
      {"opt", files.in, "-o", files.out, "--report=" + (files / "new.txt"), "--json=" + (files / "sub/../new.txt")},
      {"opt", files.in, "-o", files.out, "--report=" + (files / "new.txt"), "--json=" + (files / "dangling.txt")},
      {"convert", files.in, files.other, "-o", files / "", "--report=x"},  // no such option
      {"mem", files.in, "--json=" + files.in},
      {"verify", files.in, "--json=" + (files / "hard.fxg")},
      {"show", files.in, "--json=" + files.in, "--bogus"},
      {"nonsense", files.in, "--json=" + files.in},
      {"opt", files.in, "-o", files / "sub/", "--json=" + (files / "sub/in.fxg")},
      {"opt", files.in, "-o", files / "sub/", "--report=" + (files / "sub/in.fxg")},
  };
  for (const std::vector<std::string>& line : lines) {
    const CliResult result = run_fxopt(line);
    CAPTURE(line, result.err);
    CHECK(result.exit == 2);
    CHECK(read_text(files.in) == kTwins);
    CHECK_FALSE(std::filesystem::exists(files.out));
    CHECK_FALSE(std::filesystem::exists(files / "new.txt"));
    CHECK_FALSE(std::filesystem::exists(files / "sub/in.fxg"));
  }
}

TEST_CASE("cli: a graph may go back to its own input, and to nobody else's") {
  const ProductFolder files;
  CHECK(run_fxopt({"opt", files.in, "-o", files.in, "--passes", "cse"}).exit == 0);
  CHECK(read_text(files.in) != kTwins);
  CHECK(run_fxopt({"convert", files.in, files.other, "-o", files / ""}).exit == 0);
  std::filesystem::create_directory(files / "sub");
  write_text(files / "sub/a.fxg", kTwins);
  std::filesystem::create_symlink("other.fxg", files / "a.fxg");
  check_ended(run_fxopt({"convert", files / "sub/a.fxg", files.other, "-o", files / ""}), 2,
              "would overwrite the input");
}

TEST_CASE("cli: the form of the output is known before anything is read") {
  const ProductFolder files;
  const std::string missing = files / "missing.pb";
  for (const char* name : {"x", "x.yaml", "x.zst"}) {
    check_ended(run_fxopt({"opt", missing, "-o", files / name}), 2, (files / name) + ": error[FX0207]");
  }
  write_text(files / "odd.bin", kTwins);
  CHECK(run_fxopt({"convert", files / "odd.bin", "-o", files / "to/"}).exit == 2);
  CHECK_FALSE(std::filesystem::exists(files / "to"));
  CHECK(run_fxopt({"convert", files / "odd.bin", "-o", files / "to/", "--format", "pb"}).exit == 0);
}

TEST_CASE("cli: /dev/null takes any number of graphs, and reports as well") {
  const ProductFolder files;
  CHECK(run_fxopt({"opt", files.in, "-o", "/dev/null"}).exit == 0);
  CHECK(run_fxopt({"opt", files.in, files.other, "-o", "/dev/null", "--report=/dev/null", "--json=/dev/null"}).exit ==
        0);
  CHECK(run_fxopt({"opt", files.in, files.other, "-o", files.out}).exit == 2);
}

TEST_CASE("cli: a file behind --report or --json is perhaps no input") {
  const ProductFolder files;
  const std::string report = files / "r.txt";
  check_ended(run_fxopt({"opt", files.in, "-o", files.out, "--report", report}), 2, "write --report=" + report);
  check_ended(run_fxopt({"mem", files.in, "--json", report}), 10, "write --json=" + report);
  write_text(report, "no graph");
  CHECK(contains(run_fxopt({"mem", files.in, "--json", report}).err, "write --json=" + report));
  const CliResult plain = run_fxopt({"mem", files / "missing", "--json"});
  CHECK_FALSE(contains(plain.err, "write --json"));
}

TEST_CASE("cli: a report of nothing is not written") {
  const ProductFolder files;
  const std::string report = files / "r.txt";
  write_text(report, "of yesterday");
  CHECK(run_fxopt({"opt", files / "missing", "-o", files.out, "--report=" + report}).exit == 10);
  CHECK(read_text(report) == "of yesterday");
}

TEST_CASE("cli: a file where a folder should be") {
  const ProductFolder files;
  check_ended(run_fxopt({"convert", files.in, "-o", files.other + "/"}), 10, "hint: a file has this name");
}

TEST_CASE("cli colours are for terminals that show them") {
  CHECK(wants_colours(true, nullptr, "xterm"));
  CHECK(wants_colours(true, "", "xterm"));
  CHECK_FALSE(wants_colours(false, nullptr, "xterm"));
  CHECK_FALSE(wants_colours(true, "1", "xterm"));
  CHECK_FALSE(wants_colours(true, nullptr, "dumb"));
  CHECK_FALSE(wants_colours(true, nullptr, nullptr));
}

}  // namespace
}  // namespace fxopt
