// Reports of the commands about a graph.

#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

struct TwinsFile {
  TempFolder folder;
  std::string path = folder / "twins.fxg";
  TwinsFile() { write_text(path, kTwins); }
};

TEST_CASE("cli mem: the peak, its node, its classes and modules") {
  const TwinsFile file;
  const nlohmann::json graph = run_fxopt({"mem", file.path, "--json"}).graph();
  CHECK(graph["graph"] == "twins");
  CHECK(graph["peak_bytes"] == 16384);
  CHECK(graph["unknown_storages"] == 0);
  const nlohmann::json device = graph["devices"][0];
  CHECK(device["node"] == "c");
  CHECK(device["module_path"] == "layers.1.mlp");
  CHECK(device["input_bytes"] == 4096);
  CHECK(device["live_storages"] == 4);
  const nlohmann::json by_layer = nlohmann::json::parse(R"json([
    {"name": "layers.1", "bytes": 8192, "storages": 2},
    {"name": "(no layer)", "bytes": 4096, "storages": 1},
    {"name": "layers.0", "bytes": 4096, "storages": 1}])json");
  CHECK(device["by_layer"] == by_layer);
  const nlohmann::json by_module = nlohmann::json::parse(R"json([
    {"name": "layers.*.mlp", "bytes": 12288, "storages": 3},
    {"name": "(no module)", "bytes": 4096, "storages": 1}])json");
  CHECK(device["by_module"] == by_module);
  CHECK(device["top"][1]["node"] == "a");
  CHECK(device["top"][1]["type"] == "f32[1024]");
  CHECK(device["top"][1]["first"] == "a");
  CHECK(device["top"][1]["last"] == "c");

  const std::string text = run_fxopt({"mem", file.path, "--top", "1", "--module-depth", "1"}).out;
  CHECK(contains(text, "ideal peak 16.00 KiB (16384 B)"));
  CHECK(contains(text, "at %c, node 4 of 5, module layers.1.mlp"));
  CHECK(contains(text, "(1 of 4)"));
  CHECK(contains(text, "layers "));
}

TEST_CASE("cli mem --input-lifetime boxed: an input ends at its last use") {
  const TwinsFile file;
  const nlohmann::json graph = run_fxopt({"mem", file.path, "--input-lifetime", "boxed", "--json"}).graph();
  CHECK(graph["peak_bytes"] == 12288);
}

// The collective is the only consumer of its input of 20 MiB. Meanwhile another 20 MiB are
// allocated and freed.
constexpr std::string_view kGathered = R"(process_group {uid="0", ranks=[0, 1]}
graph @main {
  %p: f32[5242880]@cuda:0 = placeholder() {input={role=input}}
  %x: f32[5242880]@cuda:0 = aten.exp.default(%p)
  %all: f32[10485760]@cuda:0 = _c10d_functional.all_gather_into_tensor.default(%x, 2, group("0"))
  %y: f32[5242880]@cuda:0 = aten.exp.default(%p)
  %w: f32[10485760]@cuda:0 = _c10d_functional.wait_tensor.default(%all)
  return %w
}
)";

TEST_CASE("cli mem --comm-lifetime: what collectives hold is allocated, or only active") {
  const TempFolder folder;
  const std::string path = folder.write("gathered.fxg", kGathered);
  const auto report = [&path](const std::vector<std::string>& more) {
    return run_fxopt({"mem", path, "--json"}, more).json()["result"];
  };
  const nlohmann::json wait = report({}), recorded = report({"--comm-lifetime", "record_stream"});
  CHECK(report({"--comm-lifetime", "wait"}) == wait);
  CHECK(wait["options"]["comm_lifetime"] == "wait");
  CHECK(recorded["options"]["comm_lifetime"] == "record_stream");
  nlohmann::json expected = wait["files"][0]["graphs"][0];
  for (nlohmann::json& row : expected["devices"][0]["allocator"]) {
    CHECK(row["allocated"]["peak_bytes"] == 100 * 1048576);  // p, x, all and y at %y
    row["allocated"] = {{"peak_bytes", 80 * 1048576}, {"node", "all"}};
  }
  // The ideal, requested, active and reserved peaks are unchanged.
  CHECK(recorded["files"][0]["graphs"][0] == expected);
  CHECK(contains(run_fxopt({"mem", path, "--comm-lifetime", "record_stream"}).out, "allocated    80.00 MiB"));

  check_ended(run_fxopt({"mem", path, "--comm-lifetime", "stream"}), 2,
              "--comm-lifetime takes wait or record_stream, not 'stream'");
}

TEST_CASE("cli opt --report: to standard error, the graph alone on standard output") {
  const TwinsFile file;
  const CliResult result = run_fxopt({"opt", file.path, "--passes", "cse", "--report"});
  CHECK(result.exit == 0);
  CHECK(result.out == run_fxopt({"opt", file.path, "--passes", "cse"}).out);
  CHECK(contains(result.err, "nodes"));
  CHECK(contains(result.err, "-25.0 %"));
  CHECK(contains(result.err, "merged=1"));
  CHECK(contains(result.err, "aten.neg.default  2  1  -1"));
  CHECK_FALSE(contains(result.err, " s\n"));  // times only with --timing

  const CliResult filed = run_fxopt({"opt", file.path, "--passes", "cse", "--report=" + (file.folder / "r.txt")});
  CHECK(filed.err.empty());
  CHECK(read_text(file.folder / "r.txt") == result.err);
  CHECK(contains(run_fxopt({"opt", file.path, "--timing"}).err, "total"));
}

TEST_CASE("cli opt: print-after, print-after-change, stop-after") {
  const TwinsFile file;
  const std::vector<std::string> base = {"opt", file.path, "-o", file.folder / "out.pb", "--passes", "cse,dce"};
  const auto with = [&base](const std::vector<std::string>& more) { return run_fxopt(base, more).err; };
  const std::string after_dce = with({"--print-after", "dce"});
  CHECK(contains(after_dce, "# after pass 2: dce"));
  CHECK_FALSE(contains(after_dce, "# after pass 1"));
  CHECK(contains(after_dce, "graph @twins"));
  const std::string changed = with({"--print-after-change"});
  CHECK(contains(changed, "# after pass 1: cse"));
  CHECK_FALSE(contains(changed, "# after pass 2"));
  const CliResult stopped = run_fxopt({"opt", file.path, "--passes", "cse", "--stop-after", "0"});
  CHECK(stopped.out == kTwins);
}

TEST_CASE("cli opt --print-after: what would print nothing is refused, a step is found as the pipeline writes it") {
  const TwinsFile file;
  const std::vector<std::string> base = {"opt", file.path, "-o", file.folder / "out.pb", "--passes"};
  const auto with = [&base](const std::vector<std::string>& more) { return run_fxopt(base, more); };
  check_ended(with({"cse,dce", "--print-after", "dce", "--stop-after", "1"}), 2,
              "--stop-after 1 ends the pipeline before this pass");
  CHECK(contains(with({"cse,dce", "--print-after", "dce", "--stop-after", "2"}).err, "# after pass 2: dce"));
  const CliResult step = with({"remat,remat{compat=torch}", "--print-after", "remat{ compat = torch }"});
  CHECK(contains(step.err, "# after pass 2: remat{compat=torch}"));
  CHECK_FALSE(contains(step.err, "# after pass 1"));
  CHECK(with({"remat", "--print-after", "remat{compat=torch}"}).exit == 2);
}

TEST_CASE("cli with several inputs says which file a line is about") {
  const TwinsFile file;
  const std::string other = file.folder / "other.fxg", title = "# " + other + "\n";
  write_text(other, kTwins);
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--print-after", "cse"}, {"--print-after-change"}, {"--timing"}}) {
    CAPTURE(more);
    CHECK(
        contains(run_fxopt({"opt", file.path, other, "-o", file.folder / "to/", "--passes", "cse"}, more).err, title));
  }
  CHECK(contains(run_fxopt({"mem", file.path, other}).out, title));
  CHECK(contains(run_fxopt({"show", file.path, other, "--summary"}).out, title));
  CHECK_FALSE(contains(run_fxopt({"mem", other}).out, title));
}

TEST_CASE("cli opt: a pipeline gives the same bytes as its pieces") {
  const TwinsFile file;
  const std::string whole = file.folder / "whole.pb", piece = file.folder / "piece.pb", end = file.folder / "end.pb";
  CHECK(run_fxopt({"opt", file.path, "-o", whole, "--passes", "canonicalize,cse,dce"}).exit == 0);
  CHECK(run_fxopt({"opt", file.path, "-o", piece, "--passes", "canonicalize"}).exit == 0);
  CHECK(run_fxopt({"opt", piece, "-o", piece, "--passes", "cse"}).exit == 0);
  CHECK(run_fxopt({"opt", piece, "-o", end, "--passes", "dce"}).exit == 0);
  CHECK(read_text(whole) == read_text(end));
}

TEST_CASE("cli show: the whole, a node with its neighbours, a filter, a summary") {
  const TwinsFile file;
  CHECK(run_fxopt({"show", file.path, "--full"}).out == kTwins);
  const std::string node = run_fxopt({"show", file.path, "--node", "a"}).out;
  CHECK(run_fxopt({"show", file.path, "--node", "%a"}).out == node);
  CHECK(node.starts_with("%a: f32[1024]"));
  CHECK(contains(node, "  inputs\n    %x: "));
  CHECK(contains(node, "  users\n    %c: "));
  const std::string below = run_fxopt({"show", file.path, "--module", "layers.1"}).out;
  CHECK(contains(below, "%b: "));
  CHECK_FALSE(contains(below, "%a: "));
  // --module matches whole components of a path.
  CHECK(run_fxopt({"show", file.path, "--module", "layer"}).out.empty());

  const nlohmann::json summary = run_fxopt({"show", file.path, "--summary", "--json"}).graph();
  CHECK(summary["nodes"] == 5);
  CHECK(summary["calls"]["aten.neg.default"] == 2);
  CHECK(summary["inputs"]["input"] == 1);
  CHECK(summary["dtypes"]["f32"] == 4);
  CHECK(summary["storages"]["bytes"] == 16384);
}

TEST_CASE("cli show: filters that match nothing say so") {
  const TwinsFile file;
  const CliResult module = run_fxopt({"show", file.path, "--module", "layer", "--json"});
  check_ended(module, 0, "warning[no-match]: no node at or below module 'layer'; did you mean 'layers'?");
  CHECK(module.json()["warnings"][0]["code"] == "no-match");
  CHECK(contains(run_fxopt({"show", file.path, "--phase", "backward"}).err, "no node of phase backward"));
  CHECK(run_fxopt({"show", file.path, "--module", "layers.0"}).err.empty());
}

TEST_CASE("cli show --phase: as mem names it, stored or not") {
  const TwinsFile file;
  CHECK(contains(run_fxopt({"show", file.path, "--phase", "forward"}).out, "%c: "));
  CHECK(contains(run_fxopt({"show", file.path, "--phase", "unspecified"}).out, "%c: "));
  const nlohmann::json node = run_fxopt({"show", file.path, "--node", "c", "--json"}).file()["nodes"][0];
  CHECK(node["phase"] == "forward");
  const nlohmann::json top = run_fxopt({"mem", file.path, "--json"}).graph();
  CHECK(top["devices"][0]["top"][3]["phase"] == node["phase"]);
  write_text(file.path, kOutOfOrder);
  // A broken graph is shown as stored.
  CHECK(contains(run_fxopt({"show", file.path, "--phase", "unspecified"}).out, "%b: "));
}

TEST_CASE("cli: names of graphs with and without '@', lines of several graphs with theirs") {
  const TwinsFile file;
  const std::string two = file.folder / "two.fxg";
  write_text(two, std::string(kTwins) + replaced(kTwins.substr(6), "@twins", "@again"));
  for (const char* command : {"mem", "show"}) {
    const CliResult sigil = run_fxopt({command, two, "--graph", "@again"});
    CHECK(sigil.exit == 0);
    CHECK(sigil.out == run_fxopt({command, two, "--graph", "again"}).out);
  }
  for (const std::vector<std::string>& filter :
       std::vector<std::vector<std::string>>{{"--node", "a"}, {"--module", "layers.0"}, {"--phase", "forward"}}) {
    const std::string out = run_fxopt({"show", two, filter[0], filter[1]}).out;
    CHECK(out.starts_with("# @twins\n%"));
    CHECK(contains(out, "\n# @again\n%"));
    CHECK_FALSE(contains(run_fxopt({"show", two, filter[0], filter[1], "--graph", "twins"}).out, "# @"));
  }
}

TEST_CASE("cli counts one thing in the singular") {
  const TempFolder folder;
  const std::string path = folder.write("one.fxg", "fxg 0\ngraph @g {\n  return ()\n}\n");
  CHECK(contains(run_fxopt({"verify", path}).out, "1 graph, 1 node\n"));
  CHECK(contains(run_fxopt({"show", path, "--summary"}).out, "1 node, 0 edges"));
}

TEST_CASE("cli show --summary: collectives by group, opaque targets") {
  const TempFolder folder;
  const std::string path = folder / "g.fxg";
  write_text(path,
             "fxg 0\nprocess_group {uid=\"dp\", ranks=[0, 1]}\ngraph @g {\n  %x: f32[4] = placeholder()\n"
             "  %r: f32[4] = _c10d_functional.all_reduce.default(%x, \"sum\", \"dp\")\n"
             "  %w: f32[4] = _c10d_functional.wait_tensor.default(%r)\n"
             "  %o: f32[4] = mylib.mystery.default(%w)\n  return (%o,)\n}\n");
  const nlohmann::json summary = run_fxopt({"show", path, "--summary", "--json"}).graph();
  CHECK(summary["collectives"] == nlohmann::json{{"dp", 1}});
  CHECK(summary["opaque"] == nlohmann::json{{"mylib.mystery.default", 1}});
}

TEST_CASE("cli escapes control characters of names") {
  const TempFolder folder;
  const std::string path = folder / "g.fxg";
  write_text(path,
             "fxg 0\ngraph @\"\\x1b[31m\" {\n  %x: f32[4] = placeholder()\n"
             "  %a: f32[4] = aten.neg.default(%x) {module_path=\"\\x1b[2J\"}\n  return (%a,)\n}\n");
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"mem", path}, {"show", path, "--summary"}, {"opt", path, "--report"}, {"mem", path, "--budget", "1B"}}) {
    const CliResult result = run_fxopt(args);
    CAPTURE(args, result.err);
    CHECK((result.exit == 0 || result.exit == 5));
    CHECK_FALSE(contains(result.out + result.err, "\x1b"));
  }
}

TEST_CASE("cli: PyTorch's control_deps is lowered by opt and mem, and written again when asked for") {
  const std::string raised = R"(fxg 0
process_group {uid="0", ranks=[0, 1]}
graph @main {
  attribute {path="subgraph_ag", graph="main.subgraph_ag"}
  %x: f32[256] = placeholder()
  %a: f32[256] = aten.neg.default(%x)
  %subgraph_ag = get_attr["subgraph_ag"]()
  %ag: f32[512] = higher_order.control_deps((%a,), %subgraph_ag, %x)
  %b: f32[1024] = aten.expand_copy.default(%a, [1024])
  %w: f32[512] = _c10d_functional.wait_tensor.default(%ag)
  return (%b, %w)
}
graph @main.subgraph_ag {kind=subgraph, owner="main"} {
  %arg_0: f32[256] = placeholder()
  %all_gather_into_tensor_default: f32[512] = _c10d_functional.all_gather_into_tensor.default(%arg_0, 2, "0")
  %output: f32[512] = output(%all_gather_into_tensor_default)
}
)";
  const TempFolder folder;
  const std::string path = folder / "raised.fxg", lowered = folder / "lowered.fxg", again = folder / "again.fxg";
  write_text(path, raised);
  CHECK(run_fxopt({"opt", path, "-o", lowered, "--passes", "cse"}).exit == 0);
  CHECK(contains(read_text(lowered),
                 "_c10d_functional.all_gather_into_tensor.default(%x, 2, \"0\") {uid=3, control=[order %a]}"));
  CHECK_FALSE(contains(read_text(lowered), "subgraph_ag"));
  const CliResult result =
      run_fxopt({"opt", path, "-o", again, "--passes", "cse", "--raise-control-deps", "--report", "--json"});
  CHECK(contains(result.err, "control_deps  1 lowered to control dependencies, 0 not lowered"));
  CHECK(result.file()["control_deps"]["lowered"] == 1);
  CHECK(contains(read_text(again), "higher_order.control_deps((%a,), %subgraph_ag, %x)"));

  CHECK(run_fxopt({"convert", path, "-o", again}).exit == 0);
  CHECK(read_text(again) == raised);
  CHECK(run_fxopt({"convert", lowered, "-o", again, "--raise-control-deps"}).exit == 0);
  CHECK(contains(read_text(again), "higher_order.control_deps((%a,), %subgraph_ag, %x)"));
  CHECK(run_fxopt({"convert", path, "-o", again, "--lower-control-deps"}).exit == 0);
  CHECK(read_text(again) == read_text(lowered));
  CHECK(run_fxopt({"convert", path, "--lower-control-deps", "--raise-control-deps"}).exit == 2);

  // The gathered buffer counts as communication, and its input is held until the wait. The report
  // would show neither if the gather stayed hidden in a body.
  const nlohmann::json device = run_fxopt({"mem", path, "--json"}).graph()["devices"][0];
  CHECK(device["by_class"][1]["name"] == "communication");
  CHECK(device["by_class"][1]["bytes"] == 2048);
}

TEST_CASE("cli mem: collectives of several tensors") {
  const TempFolder folder;
  const std::string path = folder / "a.fxg", bucketed = folder / "b.fxg";
  write_text(path, R"(
process_group {uid="g", ranks=[0, 1]}
rank {rank=1, world_size=2}
graph @main {kind=inference} {
  %p: f32[64] = placeholder() {input={role=parameter}}
  %q: f32[32] = placeholder() {input={role=parameter}}
  %a: f32[128] = _c10d_functional.all_gather_into_tensor.default(%p, 2, "g")
  %w: f32[128] = _c10d_functional.wait_tensor.default(%a)
  %b: f32[64] = _c10d_functional.all_gather_into_tensor.default(%q, 2, "g")
  %v: f32[64] = _c10d_functional.wait_tensor.default(%b)
  return (%w, %v)
}
)");
  // Two results of 768 B in total, a send buffer of 384 B, and 768 B of copies out of a common
  // result buffer.
  struct Form {
    const char* name;
    int bytes, storages;
    const char* start;
  };
  for (const Form& form : {Form{"functional", 384 + 768 + 768, 4, "a_1"}, Form{"out", 384 + 768 + 768, 4, "a_1"},
                           Form{"coalesced", 768, 2, "a_1"}}) {
    INFO(form.name);
    const std::string passes = std::string("bucket{max-growth=-1,form=") + form.name + "}";
    REQUIRE(run_fxopt({"opt", path, "-o", bucketed, "--passes", passes}).exit == 0);
    const CliResult result = run_fxopt({"mem", bucketed, "--json"});
    const nlohmann::json device = result.graph()["devices"][0];
    REQUIRE(device["buckets"].size() == 1);
    const nlohmann::json bucket = device["buckets"][0];
    CHECK(bucket["node"] == form.start);
    CHECK(bucket["tensors"] == 2);
    CHECK(bucket["bytes"] == form.bytes);
    CHECK(bucket["storages"] == form.storages);
    const std::string text = run_fxopt({"mem", bucketed}).out;
    CHECK(contains(text, "1 collective of several tensors (2 in total): buffers, results and copies take "));
    CHECK(contains(text, std::to_string(form.bytes) + " B"));
  }
  // Collectives of one tensor are not counted.
  CHECK_FALSE(contains(run_fxopt({"mem", path}).out, "several tensors"));
}

}  // namespace
}  // namespace fxopt
