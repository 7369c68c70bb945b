// fxopt show --summary: the contents of a graph in figures.

#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

constexpr std::string_view kStep = R"(fxg 0
symbol {name="s0", kind=backed, hint=8}
symbol {name="u0", kind=unbacked}
process_group {uid="7", ranks=[0, 1, 2, 3], description="mesh_dp", mesh="world", mesh_dims=["dp"]}
process_group {uid="8", ranks=[0, 2], description="odd"}
device_mesh {name="world", device_type="cuda", shape=[4], dim_names=["dp"], ranks=[0, 1, 2, 3], groups=["7"]}
graph @main {
  %w: f32[256]@cuda:0$0 = placeholder() {input={role=parameter, fqn="embed.weight"}}
  %tied: f32[256]@cuda:0$0 = placeholder() {input={role=parameter, fqn="head.weight"}}
  %half: f32[64]@cuda:0$1 = placeholder() {input={role=parameter, fqn="norm.weight", subclass_path=["_local_tensor"]}}
  %mesh: opaque("DeviceMesh") = placeholder() {input={role=parameter, fqn="norm.weight", subclass_path=["device_mesh"]}}
  %stat: f32[16]@cuda:0$2 = placeholder() {input={role=buffer, fqn="norm.mean"}}
  %x: f32[s0, 32]@cuda:0$3 = placeholder() {input={role=input}}
  %e: f32[256]@cuda:0 = aten.mul.Tensor(%w, %tied) {module_path="embed"}
  %g: f32[1024]@cuda:0 = _c10d_functional.all_gather_into_tensor.default(%e, 4, "7") {module_path="layers.0.comm"}
  %gw: f32[1024]@cuda:0 = _c10d_functional.wait_tensor.default(%g) {module_path="layers.0.comm"}
  %h: f32[1024]@cuda:0 = aten.neg.default(%gw) {module_path="layers.0"}
  %g2: f32[1024]@cuda:0 = _c10d_functional.all_gather_into_tensor.default(%e, 4, "7") {module_path="layers.1.comm"}
  %gw2: f32[1024]@cuda:0 = _c10d_functional.wait_tensor.default(%g2) {module_path="layers.1.comm"}
  %h2: f32[1024]@cuda:0 = aten.neg.default(%gw2) {module_path="layers.1"}
  %y: f32[s0, 32]@cuda:0 = aten.neg.default(%x) {module_path="layers.2"}
  %r: f32[1024]@cuda:0 = _c10d_functional.all_reduce.default(%h, "sum", "8") {module_path="layers.2"}
  %rw: f32[1024]@cuda:0 = _c10d_functional.wait_tensor.default(%r) {module_path="layers.2"}
  %m: f32[u0]@cuda:0 = mylib.mystery.default(%y) {module_path="layers.2"}
  %f = torch.nn.functional.strange(%h2)
  return (%rw, %m, %f)
}
)";

struct StepFile {
  TempFolder folder;
  std::string path = folder / "step.fxg";
  explicit StepFile(std::string_view text = kStep) { write_text(path, text); }

  std::string summary(const std::vector<std::string>& more = {}) const {
    const CliResult result = run_fxopt({"show", path, "--summary"}, more);
    CAPTURE(result.err);
    CHECK(result.exit == 0);
    return result.out;
  }
  nlohmann::json json(const std::vector<std::string>& more = {}) const {
    return run_fxopt({"show", path, "--summary", "--json"}, more).file();
  }
};

TEST_CASE("cli show --summary: the whole screen") {
  const StepFile file;
  CHECK(file.summary() == R"(@main, unspecified: 19 nodes, 16 edges, 12 calls
  ideal peak        cuda:0: at least 15.31 KiB (15680 B), by hints, at %r
  storages          13, at least 24.31 KiB (24896 B), 2 by hint, 2 of unknown size
  made by nodes     9, at least 22.00 KiB (22528 B), 1 by hint, 2 of unknown size
  sizes unknown     made by %m, %f
  effects of calls  3 collective, 3 waits, 2 opaque
  inputs
    role       nodes  tensors  elements  bytes                         types
    parameter      4        2       320  1.25 KiB (1280 B)             2 f32  1 tied to another input, counted once; 1 part of tensor subclasses; 1 without a tensor
    input          1        1       256  1.00 KiB (1024 B), 1 by hint  1 f32
    buffer         1        1        16  64 B                          1 f32
  modules (identical numbered modules share a row; each row includes its submodules)
    module            nodes  parameter elements  made
    layers               10                   -  at least 21.00 KiB (21504 B), 1 by hint
      0, 1 (2 alike)      6                   -  16.00 KiB (16384 B)
        comm              4                   -  8.00 KiB (8192 B)
      2                   4                   -  at least 5.00 KiB (5120 B), 1 by hint
    (no module)           8                   -  unknown
    embed                 1                 256  1.00 KiB (1024 B)
    norm                  0                  64  -
  calls by kind (4 of 4)
    kind        calls  made                            ops
    pointwise       4  10.00 KiB (10240 B), 1 by hint  3 aten.neg.default, 1 aten.mul.Tensor
    collective      3  12.00 KiB (12288 B)             2 _c10d_functional.all_gather_into_tensor.default, 1 _c10d_functional.all_reduce.default
    wait            3  -                               3 _c10d_functional.wait_tensor.default
    other           2  unknown                         1 mylib.mystery.default, 1 torch.nn.functional.strange
  calls by op (7 of 7)
    op                                               calls  made                          kind
    aten.neg.default                                     3  9.00 KiB (9216 B), 1 by hint  pointwise
    _c10d_functional.wait_tensor.default                 3  -                             wait
    _c10d_functional.all_gather_into_tensor.default      2  8.00 KiB (8192 B)             collective
    _c10d_functional.all_reduce.default                  1  4.00 KiB (4096 B)             collective
    aten.mul.Tensor                                      1  1.00 KiB (1024 B)             pointwise
    mylib.mystery.default                                1  unknown                       other
    torch.nn.functional.strange                          1  unknown                       other
  collectives by group (moved: bytes that a rank sends around a ring)
    group  name         ranks    op                                               calls  in                 moved
    7      dp of world  4: 0..3  _c10d_functional.all_gather_into_tensor.default      2  2.00 KiB (2048 B)  6.00 KiB (6144 B)
    8      odd          2: 0, 2  _c10d_functional.all_reduce.default                  1  4.00 KiB (4096 B)  4.00 KiB (4096 B)
  tensors by type
    type  tensors  storages
    f32        16  at least 24.31 KiB (24896 B), 2 by hint
  opaque: passes assume the worst
    1  DeviceMesh                   the value is a Python object                            first %mesh
    1  mylib.mystery.default        an op that neither the op table nor the file describes  first %m
    1  torch.nn.functional.strange  a Python function, which no schema describes            first %f
    1  torch.nn.functional.strange  no value is recorded                                    first %f
)");
}

TEST_CASE("cli show --summary --top: what is left out is summed up, never dropped") {
  const StepFile file;
  const std::string text = file.summary({"--top", "1"});
  CHECK(contains(text, "    and 3 more rows: 9 nodes\n"));
  CHECK(contains(text, "calls by op (1 of 7)\n"));
  CHECK(contains(text, "    and 6 more ops: 9 calls, made at least 13.00 KiB (13312 B)\n"));
  CHECK(contains(text, "    and 1 more row: 1 call, in 4.00 KiB (4096 B), moved 4.00 KiB (4096 B)\n"));
  CHECK(contains(text, "    and 3 more rows: 3 nodes\n"));
  CHECK_FALSE(contains(file.summary({"--top", "7"}), "more op"));  // the graph has seven ops
  CHECK(contains(file.summary({"--top", "6"}), "and 1 more op: 1 call, made unknown\n"));
  CHECK(contains(file.summary({"--top", "0"}),
                 "and 7 more ops: 12 calls, made at least 22.00 KiB (22528 B), 1 by hint\n"));
  CHECK(file.json({"--top", "1"})["graphs"][0]["by_op"] == file.json()["graphs"][0]["by_op"]);
}

TEST_CASE("cli show --summary --json: inputs, sizes that are unknown or by hint, groups, reasons") {
  const nlohmann::json graph = StepFile().json()["graphs"][0];
  const nlohmann::json parameter = graph["by_role"][0];
  CHECK(parameter["role"] == "parameter");
  CHECK(parameter["nodes"] == 4);
  CHECK(parameter["tensors"] == 2);
  CHECK(parameter["tied"] == 1);
  CHECK(parameter["subclass_parts"] == 1);
  CHECK(parameter["elements"] == 320);
  CHECK(parameter["storages"]["bytes"] == 1280);
  CHECK(graph["storages"] == nlohmann::json{{"count", 13}, {"bytes", 24896}, {"unknown", 2}, {"by_hint", 2}});
  CHECK(graph["unknown_nodes"] == nlohmann::json{"m", "f"});
  CHECK(graph["by_group"][0]["mesh_dims"] == nlohmann::json{"dp"});
  CHECK(graph["by_group"][0]["ranks"] == nlohmann::json{0, 1, 2, 3});
  CHECK(graph["by_group"][0]["moved_bytes"] == 6144);
  CHECK(graph["by_module"][1]["name"] == "0, 1");
  CHECK(graph["by_module"][1]["alike"] == 2);
  CHECK(graph["why_opaque"][1]["what"] == "mylib.mystery.default");
  CHECK(graph["effects"]["opaque"] == 2);
}

TEST_CASE("cli show --summary: a part has the figures of its nodes, and its edges to the rest") {
  const StepFile file;
  const std::string text = file.summary({"--module", "layers.2"});
  CHECK(text.starts_with("@main, unspecified: 4 nodes of 19, 2 edges (2 in, 2 out), 4 calls\n"));
  CHECK_FALSE(contains(text, "ideal peak"));  // a part of a graph has no peak
  CHECK_FALSE(contains(text, "embed"));
  const nlohmann::json graph = file.json({"--node", "tied"})["graphs"][0];
  CHECK(graph["is_part"] == true);
  // A tied parameter counts itself if the node it is tied to is not selected.
  CHECK(graph["by_role"][0]["elements"] == 256);
  CHECK(graph["by_role"][0]["storages"]["bytes"] == 1024);
  CHECK(graph["by_role"][0]["tied"] == 0);
}

TEST_CASE("cli show --summary: nothing is there") {
  CHECK(StepFile("fxg 0\ngraph @g {\n  return ()\n}\n").summary() ==
        "@g, unspecified: 1 node, 0 edges, 0 calls\n  storages       0\n  made by nodes  0\n");
  const std::string bare = StepFile(
                               "fxg 0\ngraph @g {\n  %x = placeholder()\n  %a = aten.neg.default(%x)\n"
                               "  return (%a,)\n}\n")
                               .summary();
  CHECK(contains(bare, "made by nodes  1, unknown, 1 of unknown size\n"));
  CHECK(contains(bare, "sizes unknown  made by %a\n"));
  CHECK(contains(bare, "aten.neg.default      1  unknown  pointwise\n"));
  CHECK_FALSE(contains(bare, "modules"));
}

TEST_CASE("cli show --summary: phases and roles that the file does not give are derived, and said to be") {
  const std::string step = R"(fxg 0
graph @g {kind=forward_loss_backward} {
  %w: f32[4] = placeholder()
  %y: f32[4] = aten.exp.default(%w)
  %loss: f32[] = aten.sum.default(%y)
  %seed: f32[] = aten.ones_like.default(%loss)
  %wide: f32[4](0) = aten.expand.default(%seed, [4])
  %grad: f32[4] = aten.mul.Tensor(%wide, %y)
  return (%loss, %grad)
}
)";
  const StepFile file(step);
  const std::string text = file.summary();
  CHECK(contains(text, "inputs (roles derived: the file gives none)\n"));
  CHECK(contains(text, "parameter      1 "));
  CHECK(contains(text, "phases (derived: the file marks none)\n"));
  const nlohmann::json graph = file.json()["graphs"][0];
  CHECK(graph["phases_derived"] == true);
  CHECK(graph["roles_derived"] == true);
  CHECK(graph["phases"] == nlohmann::json{{"unspecified", 7}});  // as stored
  CHECK(graph["by_phase"][1]["phase"] == "backward");
  CHECK(graph["by_phase"][1]["calls"] == 3);

  std::string marked = step;
  marked.insert(marked.find("\n  %wide"), " {phase=backward}");
  marked.insert(marked.find("\n  %y"), " {input={role=parameter}}");
  CHECK_FALSE(contains(StepFile(marked).summary(), "(derived"));
  CHECK_FALSE(contains(StepFile(marked).summary(), "roles derived"));
}

TEST_CASE("cli show --summary: a broken graph is counted as far as it can be") {
  const StepFile file(kOutOfOrder);
  const CliResult result = run_fxopt({"show", file.path, "--summary"});
  check_ended(result, 0, "warning[broken-invariants]");
  CHECK(contains(result.out, "calls by op"));
  CHECK_FALSE(contains(result.out, "made"));
  CHECK_FALSE(contains(result.out, " B)"));
  CHECK_FALSE(file.json()["graphs"][0].contains("storages"));
}

TEST_CASE("cli show --summary and --dot: no broken graph is too broken") {
  const std::filesystem::path cases = std::string(FXOPT_SOURCE_DIR "/tests/cases/verify");
  size_t count = 0;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(cases)) {
    for (const char* what : {"--summary", "--dot"}) {
      const CliResult result = run_fxopt({"show", entry.path().string(), what, "--json"});
      CAPTURE(entry.path().string(), what, result.err);
      CHECK(result.exit == 0);
    }
    ++count;
  }
  CHECK(count > 40);
}

TEST_CASE("cli show --summary: graphs that ops run, those with the same calls in one row") {
  std::string text = "fxg 0\ngraph @main {\n  %x: f32[4] = placeholder()\n  return (%x,)\n}\n";
  for (const char* name : {"a", "b", "c"}) {
    text += std::string("graph @main.") + name + " {kind=subgraph, owner=\"main\"} {\n  %x: f32[4] = placeholder()\n" +
            (*name == 'b' ? "  %n: f32[4] = aten.exp.default(%x)\n" : "  %n: f32[4] = aten.neg.default(%x)\n") +
            "  return (%n,)\n}\n";
  }
  const StepFile file(text);
  const std::string summary = file.summary();
  CHECK(
      summary.ends_with("3 subgraphs, run by ops of the graphs above\n"
                        "  2  @main.a  3 nodes  1 aten.neg.default\n"
                        "  1  @main.b  3 nodes  1 aten.exp.default\n"));
  CHECK(file.json()["graphs"].size() == 4);
  CHECK(file.summary({"--graph", "main.a"}).starts_with("@main.a, subgraph: 3 nodes, 2 edges, 1 call\n"));
}

TEST_CASE("cli show --summary: every reason why something is opaque") {
  const StepFile file(R"(fxg 0
process_group {uid="7", ranks=[0]}
op_schema {target="mylib.told.default", schema="mylib::told(Tensor x) -> Tensor"}
op_schema {target="mylib.pure.default", schema="mylib::pure(Tensor x) -> Tensor", pure=true}
graph @main {
  %x: f32[4] = placeholder()
  %nothing = placeholder()
  %sparse: f32[4]{layout=sparse_coo} = placeholder()
  %a: f32[4] = mylib.told.default(%x)
  %b: f32[4] = mylib.pure.default(%x)
  %c: f32[4] = call_method["frob"](%x)
  %d: f32[4] = _c10d_functional.all_reduce.default(%x, "sum", "9")
  %e: f32[4] = _c10d_functional.all_reduce.default(%x, "sum", "7")
  %f: (f32[4], None) = mylib.pure.default(%x)
  %g = operator.getitem(%f, 1)
  return (%a, %b, %c, %d, %e, %g)
}
)");
  const nlohmann::json rows = file.json()["graphs"][0]["why_opaque"];
  CAPTURE(rows.dump(1));
  std::map<std::string, std::string> why;
  for (const nlohmann::json& row : rows) why[row["what"]] = row["why"];
  CHECK(why.size() == 5);
  CHECK(why["mylib.told.default"] == "an op that the file describes, but not as pure");
  CHECK(why["frob"] == "a call of a method or a module");
  CHECK(why["placeholder"] == "no value is recorded");
  CHECK(why["sparse_coo"] == "a tensor without strides: its storage is not known");
  CHECK(why["9"] == "a collective on a group that the file does not list");
}

// The lists of a summary agree with each other.
void check_sums(const nlohmann::json& graph) {
  const auto sum = [](const nlohmann::json& rows, const nlohmann::json::json_pointer& key) {
    int64_t total = 0;
    for (const nlohmann::json& row : rows) total += row[key].get<int64_t>();
    return total;
  };
  const auto at = [](const char* key) { return nlohmann::json::json_pointer(key); };
  int64_t calls = 0;
  for (const auto& [op, count] : graph["calls"].items()) calls += count.get<int64_t>();
  CHECK(sum(graph["by_op"], at("/calls")) == calls);
  CHECK(sum(graph["by_kind"], at("/calls")) == calls);
  CHECK(sum(graph["by_phase"], at("/calls")) == calls);
  CHECK(sum(graph["by_phase"], at("/nodes")) == graph["nodes"]);
  CHECK(sum(graph["by_op"], at("/made/bytes")) == graph["made"]["bytes"]);
  CHECK(sum(graph["by_kind"], at("/made/bytes")) == graph["made"]["bytes"]);
  CHECK(sum(graph["by_phase"], at("/made/bytes")) == graph["made"]["bytes"]);
  CHECK(sum(graph["by_role"], at("/storages/bytes")) + graph["made"]["bytes"].get<int64_t>() ==
        graph["storages"]["bytes"]);
  CHECK(sum(graph["by_role"], at("/storages/count")) + graph["made"]["count"].get<int64_t>() ==
        graph["storages"]["count"]);
  int64_t nodes = 0, made = 0, elements = 0;
  for (const nlohmann::json& row : graph["by_module"]) {
    if (row["depth"] != 1) continue;
    nodes += row["nodes"].get<int64_t>();
    made += row["made"]["bytes"].get<int64_t>();
    elements += row["elements"].get<int64_t>();
  }
  CHECK(nodes == graph["nodes"]);
  CHECK(made == graph["made"]["bytes"]);
  for (const nlohmann::json& row : graph["by_role"]) {
    if (row["role"] == "parameter") CHECK(row["elements"] == elements);
  }
}

TEST_CASE("cli show --summary: on real steps the lists agree with each other and with mem") {
  for (const char* name : {"llama1b.pb", "dumps/c_llama8B_flex_dp16_tp8_flb.fxg.zst", "dumps/e_gpt2_flb.fxg.zst",
                           "dumps/d_deepseek_v3_16B_flex_dp16_tp1_ep8.fxg.zst", "dumps/e_resnet50_joint.fxg.zst",
                           "dumps/g_debug_dp4_tp2_overlap.fxg.zst"}) {
    CAPTURE(name);
    const std::string path = std::string(FXOPT_SOURCE_DIR "/testdata/") + name;
    const nlohmann::json graph = run_fxopt({"show", path, "--summary", "--json"}).graph();
    check_sums(graph);
    const nlohmann::json mem = run_fxopt({"mem", path, "--json"}).graph();
    CHECK(graph["peaks"].size() == mem["devices"].size());
    for (size_t i = 0; i < graph["peaks"].size(); ++i) {
      CHECK(graph["peaks"][i]["bytes"] == mem["devices"][i]["peak_bytes"]);
      CHECK(graph["peaks"][i]["node"] == mem["devices"][i]["node"]);
    }
    CHECK(graph["storages"]["unknown"] == mem["unknown_storages"]);
  }
}

TEST_CASE("cli show --summary: figures known from elsewhere") {
  const std::string folder = std::string(FXOPT_SOURCE_DIR "/testdata/");
  const std::string llama = run_fxopt({"show", folder + "llama1b.pb", "--summary"}).out;
  CHECK(contains(llama, "parameter    146      146  1235814400  2.30 GiB (2471628800 B)  146 bf16\n"));
  CHECK(contains(llama, "      0..15 (16 alike)   3216 "));
  const std::string gpt2 = run_fxopt({"show", folder + "dumps/e_gpt2_flb.fxg.zst", "--summary"}).out;
  CHECK(contains(gpt2, " 124439808 "));  // GPT-2 small, its embedding tied to its head
  const std::string resnet = run_fxopt({"show", folder + "dumps/e_resnet50_flb.fxg.zst", "--summary"}).out;
  CHECK(contains(resnet, " 25557032 "));  // ResNet-50
}

}  // namespace
}  // namespace fxopt
