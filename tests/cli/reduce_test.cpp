// The command `fxopt reduce`: programs as judges, the ways they end, and the output of the command.

#include <cstdlib>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

// A chain of 40 nodes in two layers. Judges look for %bad.
std::string chain() {
  std::string text = "fxg 0\ngraph @chain {\n  %x: f32[4] = placeholder()\n";
  std::string last = "x";
  for (int i = 0; i < 40; ++i) {
    const std::string name = i == 23 ? "bad" : "n" + std::to_string(i);
    text += "  %" + name + ": f32[4] = aten." + (i == 23 ? "cos" : "neg") + ".default(%" + last +
            ") {module_path=\"layers." + std::to_string(i / 20) + "\"}\n";
    last = name;
  }
  return text + "  return (%" + last + ",)\n}\n";
}

constexpr std::string_view kOnlyBad =
    "fxg 0\ngraph @chain {\n  %x: f32[4] = placeholder()\n"
    "  %bad: f32[4] = aten.cos.default(%x)\n  return ()\n}\n";

class Setting {
 public:
  Setting() { write_text(in, chain()); }

  CliResult reduce(std::vector<std::string> options, const std::vector<std::string>& command) const {
    options.emplace_back("--");
    return run_fxopt({"reduce", in, "-o", out}, options, command);
  }

  TempFolder folder;
  std::string in = folder / "in.fxg";
  std::string out = folder / "out.fxg";
};

TEST_CASE("cli reduce: what a command looks for is what is left") {
  const Setting setting;
  const CliResult result = setting.reduce({}, {"grep", "-q", "aten.cos", "{}"});
  CAPTURE(result.err);
  CHECK(result.exit == 0);
  CHECK(result.out.empty());
  CHECK(read_text(setting.out) == kOnlyBad);
  CHECK(contains(result.err, "reduced 42 nodes to 3 in "));
  CHECK(contains(result.err, "exit status 0"));
  CHECK_FALSE(contains(result.err, "\r"));  // progress appears only on terminals
  CHECK(setting.folder.num_entries() == 2);
}

TEST_CASE("cli reduce: the path is the last argument where no {} stands, and may stand inside a word") {
  const Setting setting;
  CHECK(setting.reduce({}, {"grep", "-q", "aten.cos"}).exit == 0);
  CHECK(read_text(setting.out) == kOnlyBad);
  std::filesystem::remove(setting.out);
  CHECK(setting.reduce({}, {"sh", "-c", "test -s {} && grep -q aten.cos '{}'"}).exit == 0);
  CHECK(read_text(setting.out) == kOnlyBad);
}

TEST_CASE("cli reduce: a command that does not fail is warned of, unless --exit 0 asks for it") {
  const Setting setting;
  const std::string words = "warning[passes-on-input]";
  CHECK(contains(setting.reduce({}, {"true"}).err, words));
  CHECK_FALSE(contains(setting.reduce({"--exit", "0"}, {"true"}).err, words));
  CHECK_FALSE(contains(setting.reduce({}, {"false"}).err, words));
}

TEST_CASE("cli reduce: the exit status of IN decides, or the one that --exit names") {
  const Setting setting;
  const std::vector<std::string> seven = {"sh", "-c", "if grep -q aten.cos {}; then exit 7; else exit 8; fi"};
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{{}, {"--exit", "7"}}) {
    std::filesystem::remove(setting.out);
    CHECK(setting.reduce(options, seven).exit == 0);
    CHECK(read_text(setting.out) == kOnlyBad);
  }
  // Exit status 8 is nonzero as well.
  CHECK(setting.reduce({"--exit", "nonzero"}, seven).exit == 0);
  CHECK(read_text(setting.out) == "fxg 0\ngraph @chain {\n  return ()\n}\n");
}

TEST_CASE("cli reduce: an end by a signal is not an exit status") {
  const Setting setting;
  const std::vector<std::string> killed = {"sh", "-c", "grep -q aten.cos {} && kill -SEGV $$; exit 139"};
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{{}, {"--exit", "signal"}}) {
    std::filesystem::remove(setting.out);
    const CliResult result = setting.reduce(options, killed);
    CHECK(result.exit == 0);
    CHECK(read_text(setting.out) == kOnlyBad);
    CHECK(contains(result.err, "signal"));
  }
  CHECK(setting.reduce({"--exit", "139"}, killed).exit == 2);
}

TEST_CASE("cli reduce: IN must be interesting itself") {
  const Setting setting;
  for (const char* exit : {"0", "nonzero", "signal", "timeout", "3"}) {
    const std::string status = std::string(exit) == "nonzero" ? "exit 0" : "exit 9";
    check_ended(setting.reduce({"--exit", exit}, {"sh", "-c", status}), 2, ", but --exit expects ");
    CHECK_FALSE(std::filesystem::exists(setting.out));
  }
}

TEST_CASE("cli reduce: a command that cannot be run is a usage error, by itself or in a shell") {
  const Setting setting;
  check_ended(setting.reduce({}, {"fxopt-no-such-program", "{}"}), 2, "cannot run 'fxopt-no-such-program'");
  check_ended(setting.reduce({}, {"sh", "-c", "fxopt-no-such-program {}"}), 2, "exit status 127");
  CHECK(setting.reduce({"--exit", "127"}, {"sh", "-c", "grep -q aten.cos {} && exit 127"}).exit == 0);
  CHECK(read_text(setting.out) == kOnlyBad);
}

TEST_CASE("cli reduce: a run that takes too long is ended, with what it started") {
  const Setting setting;
  const std::string marker = setting.folder / "late";
  check_ended(setting.reduce({"--timeout", "1"}, {"sh", "-c", "(sleep 2; touch '" + marker + "') & sleep 60"}), 2,
              "does not end within 1 s");
  // 60 runs of a second each would take a minute, but most candidates of this graph of three nodes
  // end at once.
  write_text(setting.in, kOnlyBad);
  check_ended(
      setting.reduce({"--timeout", "1", "--exit", "timeout"}, {"sh", "-c", "grep -q aten.cos {} && sleep 60; exit 0"}),
      0, "timeout");
  CHECK(contains(read_text(setting.out), "aten.cos"));
  CHECK_FALSE(std::filesystem::exists(marker));  // killed with the first command
}

TEST_CASE("cli reduce: --max-runs keeps the smallest graph so far") {
  const Setting setting;
  const CliResult result = setting.reduce({"--max-runs", "10", "--json"}, {"grep", "-q", "aten.cos", "{}"});
  check_ended(result, 0, "max-runs");
  const nlohmann::json json = result.json()["result"];
  CHECK(json["runs"] == 10);
  CHECK(json["stopped"] == "max-runs");
  CHECK(json["nodes_before"] == 42);
  CHECK(json["nodes"] < 42);
  CHECK(json["nodes"] > 3);
  CHECK(contains(read_text(setting.out), "aten.cos"));
}

TEST_CASE("cli reduce: a judge that counts its runs sees each graph once, and the same ones every time") {
  const Setting setting;
  const std::string log = setting.folder / "log";
  const std::vector<std::string> command = {"sh", "-c", "cksum < {} >> '" + log + "'; grep -q aten.cos {}"};
  const nlohmann::json json = [&] {
    return run_fxopt({"reduce", setting.in, "-o", setting.out, "--json", "--"}, command).json();
  }();
  const std::string first = read_text(log);
  std::istringstream lines(first);
  std::set<std::string> sums;
  size_t runs = 0;
  for (std::string line; std::getline(lines, line); ++runs) CHECK(sums.insert(line).second);
  CHECK(json["result"]["runs"] == runs);
  CHECK(json["result"]["stopped"].is_null());
  std::filesystem::remove(log);
  CHECK(setting.reduce({}, command).exit == 0);
  CHECK(read_text(log) == first);
}

TEST_CASE("cli reduce: any form in, text out, or the form that OUT names") {
  const Setting setting;
  const std::string pb = setting.folder / "in.pb";
  REQUIRE(run_fxopt({"convert", setting.in, "-o", pb}).exit == 0);
  const std::vector<std::string> judge = {"grep", "-q", "aten.cos", "{}"};
  const auto reduce = [&](const std::string& in, const std::string& out) {
    return run_fxopt({"reduce", in, "-o", out, "--"}, judge);
  };
  CHECK(reduce(pb, setting.out).exit == 0);
  CHECK(read_text(setting.out) == kOnlyBad);
  CHECK(reduce(pb, "-").out == kOnlyBad);
  const std::string small = setting.folder / "small.pb";
  CHECK(reduce(setting.in, small).exit == 0);
  CHECK(run_fxopt({"convert", small}).out == kOnlyBad);
}

TEST_CASE("cli reduce: inputs that are not valid graphs are rejected before a run") {
  const Setting setting;
  const std::string log = setting.folder / "log";
  for (const std::string_view text : {kOutOfOrder, kNoSyntax}) {
    write_text(setting.in, text);
    CHECK(setting.reduce({}, {"touch", log}).exit == 3);
    CHECK_FALSE(std::filesystem::exists(log));
  }
  std::filesystem::remove(setting.in);
  CHECK(setting.reduce({}, {"touch", log}).exit == 10);
  CHECK_FALSE(std::filesystem::exists(log));
}

TEST_CASE("cli reduce: slips on the command line") {
  const Setting setting;
  const std::vector<std::string> judge = {"grep", "-q", "aten.cos", "{}"};
  CHECK(contains(run_fxopt({"reduce"}).err, "fxopt reduce needs a graph file"));
  CHECK(contains(run_fxopt({"reduce", setting.in}).err, "needs a command after '--'"));
  CHECK(contains(setting.reduce({"--exit", "256"}, judge).err, "--exit does not take '256'"));
  CHECK(contains(setting.reduce({"--exit", "crash"}, judge).err, "--exit does not take 'crash'"));
  CHECK(contains(setting.reduce({"--passes", "cse"}, judge).err, "does not use"));
  CHECK(contains(setting.reduce({}, {"true", "{passes}"}).err, "no pipeline is given"));
  CHECK(contains(setting.reduce({"--passes", "cze"}, {"true", "{passes}"}).err, "there is no pass 'cze'"));
  CHECK(contains(run_fxopt({"reduce", setting.in, "grep", "-q", "x"}).err, "fxopt reduce has no option '-q'"));
  CHECK_FALSE(std::filesystem::exists(setting.out));
  // Options and blank arguments after "--" belong to COMMAND.
  CHECK(setting
            .reduce({}, {"sh", "-c", "test \"$1\" = ' ' && test \"$2\" = --json && grep -q aten.cos {}", "-", " ",
                         "--json"})
            .exit == 0);
  CHECK(read_text(setting.out) == kOnlyBad);
}

#ifdef FXOPT_BINARY
TEST_CASE("cli reduce: the graph and the pipeline of a wrong result") {
  const Setting setting;
  write_text(setting.in, R"(fxg 0
graph @g {kind=forward} {
  %x: f32[4] = placeholder()
  %y: f32[4] = placeholder()
  %s: f32[4] = aten.sin.default(%y)
  %a: f32[4] = aten.neg.default(%x)
  %b: f32[4] = aten.neg.default(%x)
  %c: f32[4] = aten.add.Tensor(%a, %b)
  %t: f32[4] = aten.mul.Tensor(%c, %s)
  return (%t, %s)
}
)");
  // A result is wrong here if an add has the same operand twice.
  const std::string judge = std::string(FXOPT_BINARY) + " opt {} --passes \"{passes}\" | grep -q 'add.Tensor(%a, %a)'";
  const CliResult result = setting.reduce(
      {"--passes", "canonicalize,infer-phase,cse{across-phases=true},remat,dce", "--json"}, {"sh", "-c", judge});
  CAPTURE(result.err);
  CHECK(result.exit == 0);
  CHECK(result.json()["result"]["passes"] == "cse");
  CHECK(contains(result.err, "passes: cse\n"));
  CHECK(result.json()["result"]["nodes"] == 5);
  CHECK(run_fxopt({"verify", setting.out}).exit == 0);
}

TEST_CASE("cli reduce: a signal ends it, with the smallest graph so far and no temporary files") {
  const Setting setting;
  const std::string temporary = setting.folder / "tmp";
  std::filesystem::create_directory(temporary);
  // The tenth run interrupts fxopt, its parent.
  const std::string count = setting.folder / "count";
  write_text(setting.folder / "judge.sh", "echo run >> '" + count + "'\n[ $(wc -l < '" + count +
                                              "') -eq 10 ] && kill -INT $PPID && sleep 30\ngrep -q aten.cos \"$1\"\n");
  const std::string line = "TMPDIR='" + temporary + "' '" + FXOPT_BINARY + "' reduce '" + setting.in + "' -o '" +
                           setting.out + "' -- sh '" + (setting.folder / "judge.sh") + "' {} 2> '" +
                           (setting.folder / "err") + "'; echo $? > '" + (setting.folder / "status") + "'";
  write_text(setting.folder / "run.sh", line);
  REQUIRE(std::system(("sh '" + (setting.folder / "run.sh") + "'").c_str()) == 0);
  CHECK(read_text(setting.folder / "status") == "130\n");  // as shells report SIGINT
  CHECK(contains(read_text(setting.folder / "err"), "interrupted"));
  CHECK(contains(read_text(setting.out), "aten.cos"));
  CHECK(read_text(setting.out).size() < chain().size());
  CHECK(std::filesystem::is_empty(temporary));
}

TEST_CASE("cli reduce: -v shows what the command prints") {
  const Setting setting;
  const auto err_of = [&](const std::string& options) {
    const std::string line = "'" + std::string(FXOPT_BINARY) + "' reduce '" + setting.in + "' -o '" + setting.out +
                             "' " + options + " -- sh -c 'echo said; grep -q aten.cos {}' 2> '" +
                             (setting.folder / "err") + "'";
    REQUIRE(std::system(line.c_str()) == 0);
    return read_text(setting.folder / "err");
  };
  CHECK_FALSE(contains(err_of(""), "said"));
  CHECK(contains(err_of("-v"), "said\n"));
}
#endif

}  // namespace
}  // namespace fxopt
