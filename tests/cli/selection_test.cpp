// fxopt show: options that select nodes.

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

constexpr std::string_view kChain = R"(fxg 0
graph @main {
  %x: f32[4] = placeholder()
  %a: f32[4] = aten.neg.default(%x) {phase=forward, module_path="m.p"}
  %b: f32[4] = aten.neg.default(%a) {phase=forward, module_path="m.q"}
  %c: f32[4] = aten.neg.default(%b) {phase=backward, module_path="m.q"}
  %d: f32[4] = aten.neg.default(%c) {phase=backward, module_path="m.p"}
  return (%d,)
}
)";

struct ChainFile {
  TempFolder folder;
  std::string path = folder / "chain.fxg";
  ChainFile() { write_text(path, kChain); }

  CliResult show(const std::vector<std::string>& more) const { return run_fxopt({"show", path}, more); }
  // The names at the beginning of the lines.
  std::string names(const std::vector<std::string>& more) const {
    std::string names;
    std::istringstream lines(show(more).out);
    for (std::string line; std::getline(lines, line);) {
      names += (names.empty() ? "" : " ") + line.substr(0, line.find_first_of(": "));
    }
    return names;
  }
};

TEST_CASE("cli show --depth: nodes around nodes") {
  const ChainFile file;
  CHECK(file.names({"--node", "b", "--depth", "0"}) == "%b");
  CHECK(file.names({"--node", "b", "--depth", "1"}) == "%a %b %c");
  CHECK(file.names({"--node", "%d", "--node", "a", "--depth", "0"}) == "%a %d");
  CHECK(file.names({"--node", "x", "--depth", "9"}) == "%x %a %b %c %d return");
}

TEST_CASE("cli show: several selections together select what all of them do") {
  const ChainFile file;
  CHECK(file.names({"--phase", "backward", "--module", "m.q"}) == "%c");
  CHECK(file.names({"--node", "b", "--depth", "1", "--phase", "forward"}) == "%a %b");
  CHECK(file.names({"--node", "b", "--depth", "1", "--phase", "forward", "--module", "m.p"}) == "%a");
  CHECK(file.names({"--module", "*.q"}) == "%b %c");
  CHECK(file.names({"--module", "m.*"}) == "%a %b %c %d");
  CHECK(contains(file.show({"--module", "*.r"}).err, "no-match"));
  const std::string node = file.show({"--node", "b", "--phase", "forward"}).out;
  CHECK(contains(node, "  inputs\n    %a: "));  // selections do not filter neighbours
  CHECK(contains(node, "  users\n    %c: "));
  const nlohmann::json list =
      file.show({"--node", "b", "--depth", "1", "--phase", "forward", "--json"}).file()["nodes"];
  CHECK(list.size() == 2);
}

TEST_CASE("cli show: a selection that is empty says what it was, a name that is not there is an error") {
  const ChainFile file;
  const CliResult none = file.show({"--node", "b", "--phase", "backward", "--module", "m.p"});
  CHECK(none.exit == 0);
  CHECK(none.out.empty());
  CHECK(contains(none.err, "no node among %b of phase backward at or below module 'm.p'\n"));
  CHECK(contains(file.show({"--node", "b", "--depth", "1", "--module", "m.pp", "--summary"}).err,
                 "no node within 1 edge of %b at or below module 'm.pp'; did you mean 'm.p'?"));
  const CliResult missing = file.show({"--node", "bb", "--node", "a", "--depth", "0"});
  check_ended(missing, 2, "there is no node 'bb'");
  CHECK(missing.out.starts_with("%a: "));  // the node that exists is shown
  CHECK(contains(file.show({"--graph", "mian"}).err, "did you mean 'main'?"));
  CHECK(contains(file.show({"--phase", "backwards"}).err, "did you mean 'backward'?"));
}

TEST_CASE("cli show: a node in place of a second file is found before a graph is printed") {
  const std::string file = FXOPT_SOURCE_DIR "/testdata/llama1b.pb";
  const CliResult result = run_fxopt({"show", file, "%mm_4"});
  check_ended(result, 2, "to print a node, use --node mm_4");
  CHECK(result.out.empty());
  CHECK(run_fxopt({"show", file, "mm_4.pb"}).exit == 10);
}

TEST_CASE("cli show: options that need another one") {
  const ChainFile file;
  CHECK(file.show({"--depth", "1"}).exit == 2);
  CHECK(contains(file.show({"--depth", "1", "--phase", "forward"}).err, "give --node NAME"));
  CHECK(contains(file.show({"--top", "3"}).err, "--top needs --summary"));
  CHECK(contains(file.show({"--module-depth", "3", "--module", "m"}).err, "--module-depth needs --summary"));
  CHECK(file.show({"--summary", "--top", "20", "--module-depth", "1"}).exit == 0);
  CHECK(file.show({"--summary", "--dot"}).exit == 2);
  CHECK(file.show({"--node", "a", "--depth", "-1"}).exit == 2);
}

TEST_CASE("cli show --dependences: what nodes must follow, and how far they may move") {
  const TempFolder folder;
  const std::string path = folder.write("writes.fxg", R"(graph @main {
  %x: f32[4] = placeholder()
  %y: f32[4] = placeholder()
  %v: f32[4] = aten.alias.default(%x)
  %w: f32[4] = aten.add_.Tensor(%x, %y)
  %r: f32[4] = aten.neg.default(%v)
  return (%r,)
}
)");
  const CliResult all = run_fxopt({"show", path, "--dependences"});
  CHECK(all.exit == 0);
  CHECK(all.out == R"(%x: f32[4] = placeholder()
    may not move: part of the graph's interface
%y: f32[4] = placeholder()
    may not move: part of the graph's interface
%v: f32[4] = aten.alias.default(%x)
    follows %x (value)
    may move up to right after %y, down to right before %r
%w: f32[4] = aten.add_.Tensor(%x, %y)
    follows %x (value), %y (value)
    may move up to right after %y, down to right before %r
%r: f32[4] = aten.neg.default(%v)
    follows %v (value), %w (storage)
    may not move
return (%r,)
    follows %r (value)
    may not move: part of the graph's interface
)");
  const CliResult one = run_fxopt({"show", path, "--dependences", "--node", "%w"});
  CHECK(one.out.starts_with("%w: "));
  const nlohmann::json row = run_fxopt({"show", path, "--dependences", "--json"}).file()["nodes"][4];
  CHECK(row["name"] == "r");
  CHECK(row["follows"][1]["node"] == "w");
  CHECK(row["follows"][1]["why"] == "storage");
  CHECK(row["followed_by"][0]["node"] == "output");
  CHECK(run_fxopt({"show", path, "--dependences", "--summary"}).exit == 2);
  CHECK(contains(run_fxopt({"help", "dependences"}).out, "- collective: both nodes are issued on one process group."));
}

}  // namespace
}  // namespace fxopt
