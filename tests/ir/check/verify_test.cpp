// The verifier against cases/verify/*.fxg. A line that breaks an invariant ends in
//
//   # error: FX0402 part of the message
//
// (repeated for several diagnostics). On a node's line it is about the node, on a graph's line or a
// record inside it about the graph, on any other line about the module. verify() must report
// exactly these. Errors that text cannot express are built here by hand.

#include "ir/check/verify.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/must.h"

namespace fxopt {
namespace {

struct Expectation {
  std::string graph;
  std::string node;
  std::string code;
  std::string part;
  size_t line = 0;
};

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string unquoted(std::string name) {
  const size_t end = name.front() == '"' ? name.find('"', 1) + 1 : name.find_first_of(" :={");
  name.resize(std::min(end, name.size()));
  return name.front() == '"' ? name.substr(1, name.size() - 2) : name;
}

std::vector<Expectation> expectations(const std::string& text) {
  constexpr std::string_view kMarker = "# error: ";
  std::vector<Expectation> result;
  std::istringstream lines(text);
  std::string line, graph;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    if (line.starts_with("graph @")) graph = unquoted(line.substr(7));
    if (line.starts_with("}")) graph.clear();
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    std::string node;
    if (line.compare(begin, 1, "%") == 0) node = unquoted(line.substr(begin + 1));
    if (line.compare(begin, 6, "return") == 0) node = "output";
    for (size_t at = line.find(kMarker); at != std::string::npos;) {
      const size_t next = line.find(kMarker, at + kMarker.size());
      std::string item = line.substr(at + kMarker.size(), next - at - kMarker.size());
      item.erase(item.find_last_not_of(' ') + 1);
      result.push_back(Expectation{graph, node, item.substr(0, 6), item.substr(7), number});
      at = next;
    }
  }
  return result;
}

bool matches(const Expectation& expected, const Error& error) {
  return expected.graph == error.where.graph && expected.node == error.where.node &&
         expected.code == code_name(error.code) && error.message.find(expected.part) != std::string::npos;
}

std::string show(const std::vector<Error>& errors) {
  std::string out;
  for (const Error& error : errors) out += format_error(error) + "\n";
  return out;
}

// Each expectation consumes one diagnostic; a leftover on either side is a failure.
void check_case(const std::string& text, const std::string& name) {
  std::vector<Error> errors = verify(*must(parse_text(text, name)));
  for (const Expectation& expected : expectations(text)) {
    const std::vector<Error>::iterator found =
        std::find_if(errors.begin(), errors.end(), [&](const Error& error) { return matches(expected, error); });
    if (found == errors.end()) {
      FAIL_CHECK(name << ":" << expected.line << ": not diagnosed: " << expected.code << " " << expected.part
                      << "\nleft are:\n"
                      << show(errors));
      continue;
    }
    errors.erase(found);
  }
  INFO(show(errors));
  CHECK(errors.empty());
}

std::vector<std::filesystem::path> case_files() {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = std::filesystem::path(FXOPT_SOURCE_DIR) / "tests" / "cases" / "verify";
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".fxg") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> messages(const Module& module, size_t limit = 100) {
  std::vector<std::string> result;
  for (const Error& error : verify(module, limit)) result.push_back(code_name(error.code) + " " + error.message);
  return result;
}

// A graph of a placeholder x, a call y that negates it, and an output that returns y.
struct Small {
  Small() : graph(module.add_graph(module.intern("g"))) {
    x = graph.add_node(NodeKind::kPlaceholder, module.intern("x"), module.target("x"), 0);
    y = graph.add_node(NodeKind::kCallFunction, module.intern("y"), module.target("aten.neg.default"), 1);
    graph.set_args(y, one(Arg::node(x)), ArgRange());
    output = graph.add_node(NodeKind::kOutput, module.intern("output"), module.target("output"), 2);
    graph.set_args(output, one(Arg::node(y)), ArgRange());
  }
  ArgRange one(const Arg& arg) { return graph.pool().append(std::span(&arg, 1)); }
  void give_tensor(NodeId node, const Tensor& tensor) {
    graph[node].value = graph.pool().append_value(graph.pool().tensor_value(tensor));
  }

  Module module;
  Graph& graph;
  NodeId x, y, output;
};

using Messages = std::vector<std::string>;

TEST_CASE("verify: every case file gives the diagnostics it expects", "[verify]") {
  const std::vector<std::filesystem::path> files = case_files();
  REQUIRE(files.size() >= 49);
  for (const std::filesystem::path& file : files) {
    const std::string text = read_text(file);
    DYNAMIC_SECTION(file.filename().string()) { check_case(text, file.filename().string()); }
  }
}

TEST_CASE("verify: a sound graph has no diagnostics", "[verify]") {
  const Small small;
  CHECK(messages(small.module) == Messages());
}

TEST_CASE("verify: a diagnostic says where", "[verify]") {
  const std::unique_ptr<Module> module =
      must(parse_text("graph @g {\n"
                      "  %x: f32[4] = placeholder()\n"
                      "  %a = call[\"my.op\"](%x, [1, (2, %b)], out={\"k\": slice(%b, 1, 2)})"
                      " {module_path=\"layers.0\", source={file=\"model.py\", line=12}}\n"
                      "  %b: (f32[4], f32[-1](1)) = call[\"my.op\"](%x)\n"
                      "  return (%a, %b)\n"
                      "}\n",
                      "test.fxg"));
  const std::vector<Error> errors = verify(*module);
  REQUIRE(errors.size() == 3);
  CHECK(errors[0].where.graph == "g");
  CHECK(errors[0].where.node == "a");
  CHECK(errors[0].where.field == "args[1].list[1].tuple[1]");
  CHECK(errors[0].where.module_path == "layers.0");
  CHECK(errors[0].where.source == "model.py:12");
  CHECK(errors[1].where.field == "kwargs.out.dict.k.slice[0]");
  CHECK(errors[2].where.node == "b");
  CHECK(errors[2].where.field == "value.tuple[1]");
}

TEST_CASE("verify: an unknown name is answered with the nearest known one", "[verify]") {
  const std::unique_ptr<Module> module =
      must(parse_text("process_group {uid=\"mesh_fsdp\"}\n"
                      "graph @g {\n"
                      "  return (group(\"mesh_fsd\"),)\n"
                      "}\n",
                      "test.fxg"));
  const std::vector<Error> errors = verify(*module);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].hint == "did you mean 'mesh_fsdp'?");
}

TEST_CASE("verify: the list is bounded and says how many are hidden", "[verify]") {
  Small small;
  for (uint64_t i = 0; i < 4; ++i) {
    const std::string name = "n" + std::to_string(i);
    small.graph.insert_node(small.output, NodeKind::kCallFunction, name, TargetId());
  }
  CHECK(messages(small.module, 4) == Messages(4, "FX0401 call without a target"));
  CHECK(messages(small.module, 3) ==
        Messages{"FX0401 call without a target", "FX0401 call without a target", "FX0401 2 more diagnostics"});
  CHECK(messages(small.module, 0) == Messages());
}

TEST_CASE("verify: use-lists agree with arguments", "[verify]") {
  Small small;
  SECTION("an edge that is in no use-list") {
    small.graph[small.output].args = small.one(Arg::node(small.x));
    CHECK(messages(small.module) == Messages{"FX0401 edge is missing from the use-list of \"x\""});
  }
  SECTION("an edge that is in the use-list for another user") {
    small.graph[small.output].args = small.graph[small.y].args;
    CHECK(messages(small.module) == Messages{"FX0401 edge is missing from the use-list of \"x\""});
  }
  SECTION("a use-list with an edge that is gone") {
    small.graph[small.output].args = ArgRange();
    CHECK(messages(small.module) == Messages{"FX0401 use-lists have 2 edges, but arguments have 1"});
  }
  SECTION("an edge to a node that is not there") {
    small.graph.set_args(small.output, ArgRange(), ArgRange());
    small.graph[small.output].args = small.one(Arg::node(NodeId(99)));
    CHECK(messages(small.module) == Messages{"FX0401 input is not a node of the graph"});
  }
  SECTION("an edge to an erased node") {
    small.graph.set_args(small.output, ArgRange(), ArgRange());
    small.graph.erase(small.y);
    small.graph[small.output].args = small.one(Arg::node(small.y));
    CHECK(messages(small.module) == Messages{"FX0401 input is not a node of the graph"});
  }
}

TEST_CASE("verify: uids and storage ids are below their counters", "[verify]") {
  Small small;
  StorageRecord storage;
  storage.id = 4;
  small.module.add_storage(storage);
  CHECK(small.module.next_uid == 3);
  CHECK(small.module.next_storage == 5);
  CHECK(messages(small.module) == Messages());
  small.module.next_uid = 2;
  small.module.next_storage = 4;
  CHECK(messages(small.module) == Messages{"FX0401 storage 4 is not below the counter next_storage, which is 4",
                                           "FX0401 uid 2 is not below the counter next_uid, which is 2"});
}

TEST_CASE("verify: nodes are found by their names", "[verify]") {
  Small small;
  small.graph[small.y].name = small.module.intern("x");
  CHECK(messages(small.module) == Messages{"FX0401 node is not found by its name"});
}

TEST_CASE("verify: keyword arguments are pairs", "[verify]") {
  Small small;
  small.graph[small.y].target = small.module.target("nobody.knows");
  SECTION("a key without a value") { small.graph[small.y].kwargs = small.one(Arg::string(small.module.intern("out"))); }
  SECTION("a key that is no string") {
    const Arg entries[] = {Arg::integer(1), Arg::integer(2)};
    small.graph[small.y].kwargs = small.graph.pool().append(entries);
  }
  CHECK(messages(small.module) == Messages{"FX0401 keyword arguments are not pairs of a name and a value"});
}

TEST_CASE("verify: no control dependency on an erased node", "[verify]") {
  Small small;
  const NodeId gone =
      small.graph.insert_node(small.y, NodeKind::kCallFunction, "gone", small.module.target("nobody.knows"));
  small.graph.mutable_extra(small.y).control.push_back(ControlDep{gone, ControlKind::kOrder});
  CHECK(messages(small.module) == Messages());
  small.graph.erase(gone);
  CHECK(messages(small.module) == Messages{"FX0402 control dependency on an erased node"});
  small.graph.prune_control();
  CHECK(messages(small.module) == Messages());
}

TEST_CASE("verify: a strided tensor has sizes and strides", "[verify]") {
  Small small;
  Tensor tensor;
  tensor.dtype = DType::kFloat32;
  SECTION("without sizes") {
    small.give_tensor(small.x, tensor);
    CHECK(messages(small.module) == Messages{"FX0403 tensor without sizes"});
  }
  SECTION("with a stride too few") {
    tensor.sizes = small.module.dims(std::vector<Dim>{Dim{2, ExprId()}, Dim{2, ExprId()}});
    tensor.strides = small.module.dims(std::vector<Dim>{Dim{1, ExprId()}});
    small.give_tensor(small.x, tensor);
    CHECK(messages(small.module) == Messages{"FX0403 1 strides for 2 sizes"});
  }
  SECTION("without strides") {
    tensor.sizes = small.module.dims(std::vector<Dim>{Dim{2, ExprId()}});
    small.give_tensor(small.x, tensor);
    CHECK(messages(small.module) == Messages{"FX0403 strided tensor without strides"});
  }
  SECTION("sparse, without strides") {
    tensor.sizes = small.module.dims(std::vector<Dim>{Dim{2, ExprId()}});
    tensor.layout = Layout::kSparseCoo;
    small.give_tensor(small.x, tensor);
    CHECK(messages(small.module) == Messages());
  }
}

TEST_CASE("verify: nesting costs no stack", "[verify]") {
  Small small;
  ArgRange range = small.one(Arg::integer(1));
  for (int depth = 0; depth < 200000; ++depth) range = small.one(Arg::children(ArgKind::kList, range));
  small.graph[small.y].kwargs = ArgRange();
  const Arg args[] = {Arg::string(small.module.intern("deep")), small.graph.pool().arg(ArgIndex(range.first))};
  small.graph[small.y].target = small.module.target("nobody.knows");
  small.graph[small.y].kwargs = small.graph.pool().append(args);
  Value value;
  for (int depth = 0; depth < 200000; ++depth) {
    const ValueId child = small.graph.pool().append_value(value);
    value = Value();
    value.kind = ValueKind::kTuple;
    value.first = child.index();
    value.count = 1;
  }
  small.graph[small.y].value = small.graph.pool().append_value(value);
  ExprId expr = small.module.exprs.constant(1);
  for (int depth = 0; depth < 200000; ++depth) expr = small.module.exprs.make(ExprKind::kNeg, {expr});
  Tensor tensor;
  tensor.dtype = DType::kFloat32;
  tensor.sizes = small.module.dims(std::vector<Dim>{Dim{0, expr}});
  tensor.strides = small.module.dims(std::vector<Dim>{Dim{1, ExprId()}});
  small.give_tensor(small.x, tensor);
  CHECK(messages(small.module) == Messages());
}

}  // namespace
}  // namespace fxopt
