// The brief text: lines for reading, no wider than asked, graphs first.

#include "cli/print/brief.h"

#include <filesystem>

#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

const std::string kData = FXOPT_SOURCE_DIR "/testdata/";

size_t widest(const std::string& text) {
  size_t most = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
  return most;
}

TEST_CASE("brief: name, type, call, then phase, tag, module and source") {
  const std::unique_ptr<Module> module = parse(R"(fxg 0
symbol {name="s0", kind=backed, hint=4}
graph @main {
  %x: f32[s0, 8] = placeholder()
  %a: f32[s0, 8]@cpu$3 = aten.mul.Tensor(%x, 2) {phase=forward, tag=MUST_SAVE, module_path="layers.0.mlp", source={file="/home/me/model.py", line=12}}
  return (%a,)
}
)");
  const Graph& graph = module->main();
  const NodeId node = graph.next(graph.first());
  const std::string line = "%a: f32[s0, 8] = aten.mul.Tensor(%x, 2)  {forward, MUST_SAVE, layers.0.mlp, model.py:12}";
  CHECK(brief_node(graph, node, 160) == line);
  for (const size_t width : {size_t{40}, size_t{60}, size_t{80}}) {
    const std::string shorter = brief_node(graph, node, width);
    INFO(shorter);
    CHECK(shorter.size() <= width);
    CHECK(shorter.starts_with("%a: f32["));
    CHECK((width < 48 || contains(shorter, "...")));
  }
  std::ostringstream out;
  print_brief(out, *module, 160);
  CHECK(out.str() == "graph @main, unspecified, 3 nodes\n  %x: f32[s0, 8] = placeholder()\n  " + line +
                         "\n  return (%a,)\nsymbol {name=\"s0\", kind=backed, hint=4}\n"
                         "not printed: 1 storage (fxopt show --full)\n");
}

TEST_CASE("show is brief unless --full is given, and --full can be read back", "[cli]") {
  const TempFolder folder;
  const std::string path = kData + "llama8b_joint.pb.zst", full = folder / "full.fxg", pb = folder / "full.pb";
  const CliResult brief = run_fxopt({"show", path});
  CHECK(brief.out.starts_with("graph @main, joint, "));
  CHECK(widest(brief.out) <= kBriefWidth);
  CHECK(run_fxopt({"show", path, "--brief"}).out == brief.out);
  write_text(full, run_fxopt({"show", path, "--full"}).out);
  CHECK(run_fxopt({"convert", full, "-o", pb}).exit == 0);
  CHECK(run_fxopt({"verify", pb}).exit == 0);
  const CliResult node = run_fxopt({"show", path, "--node", "mm_4"});
  CHECK(node.out.starts_with("%mm_4: bf16[16384, 4096] = aten.mm.default(%view_64, %t_4)  {forward, "));
  CHECK(widest(node.out) <= kBriefWidth);
  CHECK(run_fxopt({"show", path, "--brief", "--full"}).exit == 2);
}

TEST_CASE("convert --brief writes a text, and no file that is named like a graph", "[cli]") {
  const TempFolder folder;
  const std::string path = kData + "gpt2_flb_twin.pb.zst", text = folder / "step.txt";
  const CliResult shown = run_fxopt({"convert", path, "--brief"});
  CHECK(shown.exit == 0);
  CHECK(shown.out == run_fxopt({"show", path}).out);
  CHECK(run_fxopt({"convert", path, "--brief", "-o", text}).exit == 0);
  CHECK(read_text(text) == shown.out);
  for (const char* name : {"step.pb", "step.fxg", "step.json", "step.fxg.zst"}) {
    CHECK(run_fxopt({"convert", path, "--brief", "-o", folder / name}).exit == 2);
    CHECK_FALSE(std::filesystem::exists(folder / name));
  }
  CHECK(run_fxopt({"convert", path, "--brief", "--format", "pb", "-o", text}).exit == 2);
}

}  // namespace
}  // namespace fxopt
