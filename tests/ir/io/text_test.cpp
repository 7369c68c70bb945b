// The text form: reading restores the printed content. Canonical texts are in tests/cases/text,
// wrong ones in tests/cases/parse and in text_errors_test.cpp.
#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "ir/graph/module.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

// The canonical print of `text`; checks that printing it again changes nothing.
std::string canonical(const std::string& text) {
  std::string once = print_text(*parse(text));
  CHECK(print_text(*parse(once)) == once);
  return once;
}

// A graph of one node, with the tested argument, type or fields filled in.
std::string with_arg(const std::string& arg) {
  return "fxg 0\ngraph @g {\n  %x = placeholder()\n  %y = f.g.h(" + arg + ")\n}\n";
}
std::string with_type(const std::string& type) { return "fxg 0\ngraph @g {\n  %x: " + type + " = placeholder()\n}\n"; }
std::string with_fields(const std::string& fields) {
  return "fxg 0\ngraph @g {\n  %x = placeholder() {" + fields + "}\n}\n";
}

std::string read_text_case(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

TEST_CASE("canonical texts print as they are", "[text]") {
  const std::filesystem::path folder = std::filesystem::path(FXOPT_SOURCE_DIR) / "tests/cases/text";
  size_t count = 0;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder)) {
    INFO(entry.path().filename().string());
    const std::string text = read_text_case(entry.path());
    CHECK(print_text(*parse(text)) == text);
    ++count;
  }
  CHECK(count >= 4);
}

TEST_CASE("the example of the documentation prints as it is", "[text]") {
  const std::string page = read_text_case(std::filesystem::path(FXOPT_SOURCE_DIR) / "ir/io/README.md");
  const std::string fence = "\n```\n";
  const size_t begin = page.find(fence + "fxg 0\n") + fence.size();
  REQUIRE(begin > fence.size());
  const std::string text = page.substr(begin, page.find("```", begin) - begin);
  CHECK(print_text(*parse(text)) == text);
}

TEST_CASE("arguments print as they are read", "[text]") {
  const std::string arg = GENERATE(values<std::string>({"None",
                                                        "True",
                                                        "False",
                                                        "0",
                                                        "-9223372036854775808",
                                                        "9223372036854775807",
                                                        "0.5",
                                                        "-0.0",
                                                        "1e+300",
                                                        "5e-324",
                                                        "1e+05",
                                                        "inf",
                                                        "-inf",
                                                        "nan",
                                                        "float(0x7ff8000000000001)",
                                                        "float(0xfff8000000000000)",
                                                        "float(0x7ff0000000000001)",
                                                        "complex(1.0, -0.0)",
                                                        "complex(nan, float(0xffffffffffffffff))",
                                                        "\"\"",
                                                        "\"a \\\"b\\\" \\\\ \\n \\t \\x01 \xc3\xa9\"",
                                                        "%x",
                                                        "sym(s0 // 2 + 1)",
                                                        "sym(Max(s0, 1))",
                                                        "sym(\"a b\" + 1)",
                                                        "dtype(bf16)",
                                                        "dtype(?40)",
                                                        "device(\"cuda:0\")",
                                                        "layout(strided)",
                                                        "layout(?9)",
                                                        "memory_format(preserve)",
                                                        "[]",
                                                        "[1, [2.0, [%x]], None]",
                                                        "()",
                                                        "(1,)",
                                                        "(1, (), [])",
                                                        "{}",
                                                        "{1: 2, \"a\": {None: (%x,)}, (1, 2): 3}",
                                                        "typed(\"torch.Size\", [2, 4])",
                                                        "typed(\"T\", (1,))",
                                                        "typed(\"D\", {1: 2})",
                                                        "typed(\"S\", slice(None, 1, 2))",
                                                        "typed(\"F\", set(1))",
                                                        "slice(None, sym(s0), -1)",
                                                        "op(aten.mm.default)",
                                                        "op(\"a b\")",
                                                        "@g",
                                                        "@\"weird graph\"",
                                                        "group(\"545\")",
                                                        "group_expr(rank % 2)",
                                                        "mesh(\"m\")",
                                                        "enum(\"T\", \"A\")",
                                                        "enum(\"T\", \"A\", -1)",
                                                        "opaque(\"T\")",
                                                        "opaque(\"T\", \"text\")",
                                                        "opaque(\"T\", \"\", base64\"AAE=\")",
                                                        "base64\"\"",
                                                        "base64\"AP8=\"",
                                                        "value(_)",
                                                        "value(f32[2])",
                                                        "value((f32[2], None))",
                                                        "uid(18446744073709551615)",
                                                        "...",
                                                        "rng_slot(\"default\")",
                                                        "set()",
                                                        "set(1, \"a\")",
                                                        "unknown(base64\"AAE=\")",
                                                        "1~base64\"AAE=\"",
                                                        "[1~base64\"AAE=\", 2]~base64\"AA==\"",
                                                        "%x~base64\"AA==\"",
                                                        "value(f32[2]~base64\"AA==\")~base64\"AAA=\"",
                                                        "1, %x, key=2, \"a key\"=%x",
                                                        "None=None, dtype=dtype(f32)",
                                                        "1, k=~base64\"AA==\" 2~base64\"AAA=\", l=3",
                                                        "{1~base64\"AA==\": 2}",
                                                        "a.b=1, a.b=2"}));
  CHECK(print_text(*parse(with_arg(arg))) == with_arg(arg));
}

TEST_CASE("types print as they are read", "[text]") {
  const std::string type = GENERATE(values<std::string>(
      {"None",
       "f32[]",
       "f32[0]",
       "bf16[2, 3]",
       "bf16[2, 3](1, 2)",
       "?40[2]",
       "unspecified[]",
       "f32[s0, 4]",
       "f32[s0, s1, 4]",
       "f32[4, s0 * 2]",
       "f32[s0, 1, s1]",
       "f32[s0, s1](1, s0)",
       "f32[s0](2)",
       "f32[(4)]",
       "f32[2, (4)]",
       "f32[2, (4)](4, 1)",
       "f32[-1]",
       "f32[Max(s0, 1), 2]",
       "f32[2]+16",
       "f32[2]+(s0 * 4)",
       "f32[2]+-1",
       "f32[2]@cuda:0",
       "f32[2]@cuda",
       "f32[2]@\"cuda:(rank)\"",
       "f32[2]{requires_grad}",
       "f32[2]{requires_grad, conjugate, negative, pinned}",
       "f32[2]{layout=sparse_coo}",
       "f32[2](1){layout=sparse_coo}",
       "f32[2]{layout=?9}",
       "f32[]{layout=jagged}",
       "f32[]{layout=jagged, subclass=\"x\"}",
       "f32[2]{mesh=\"m\", placements=[{kind=replicate}, {kind=shard, dim=0}, {kind=strided_shard, dim=1, "
       "split_factor=2}, {kind=partial, reduce_op=\"sum\"}, {kind=?7}]}",
       "f32[2]{subclass=\"torch.nn.Parameter\"}",
       "f32[2]~base64\"AA==\"",
       "()",
       "(f32[2],)",
       "(f32[2], _, None)",
       "(f32[2], ())~base64\"AA==\"",
       "[]",
       "[f32[2]~base64\"AA==\", [None]]",
       "{}",
       "{\"a\": f32[2], \"b c\": (_,), \"\": None}",
       "sym_int(s0 + 1)",
       "sym_float(s0 * 0.5)",
       "sym_bool(s0 > 1)",
       "sym(?5, s0)",
       "const(1)",
       "const(2.5)",
       "const(True)",
       "const(\"a\")",
       "const(1~base64\"AA==\")",
       "opaque(\"T\")",
       "opaque(\"DeviceMesh\", mesh=\"m\", group=\"g\", text=\"t\")",
       "graph(@g)",
       "graph(@\"a b\")",
       "unknown(base64\"AAE=\")",
       "f32[9223372036854775807, 9223372036854775807, 2]"}));
  CHECK(print_text(*parse(with_type(type))) == with_type(type));
}

TEST_CASE("fields of nodes print as they are read", "[text]") {
  const std::string fields = GENERATE(values<std::string>(
      {"uid=7",
       "uid=18446744073709551614",
       "phase=backward",
       "phase=?9",
       "phase_markers=[is_backward, inferred, ?31]",
       "tag=MUST_SAVE",
       "tag=?12",
       "verdict={}",
       "verdict={verdict=honoured, rule=random_slot, pass=\"remat\"}",
       "region={}",
       "region={id=0, name=\"layers.0\", has_backward_hook=true}",
       "region={id_is_none=true, unknown=base64\"AA==\"}",
       "module_path=\"\"",
       "module_path=\"layers.0.mlp\", module_path_source=\"nn_module_stack\"",
       "seq_nr=-1",
       "source={}",
       "source={file=\"model.py\", line=12, function=\"forward\", code=\"x = y\"}",
       "origins=[{graph=\"g\", uid=5, kind=recomputed, pass=\"remat\"}, {}]",
       "control=[order %x, data_ready %x, keep_alive %x, ?7 %x]",
       "stream=\"\"",
       "stream=\"comm\"",
       "bucket={id=\"b\", plan_fqns=[\"a\", \"\"], direction=\"ag\", position=0}",
       "bucket={}",
       "capture=break_before",
       "remarks=[{pass=\"cse\", code=\"x\", text=\"why\"}]",
       "input={role=parameter, fqn=\"w\", guessed=true, persistent=true, donated=true, static_address=true, "
       "mutated=true, alias_of_input=0, subclass_path=[\"_data\"], user_index=0, optimizer_key=\"exp_avg\", "
       "saved_from_output=3}",
       "rng={slot=\"s\", seed=1, offset=(s0 * 4), increment=0, grid=[1, 2], block=[256], order=0}",
       "event_record=[\"e\"], event_wait=[\"f\", \"g\"]",
       "meta={\"k\": [1, None, uid(3)], \"\": value(f32[2])}",
       "meta={\"k\": ~base64\"AA==\" 1~base64\"AAA=\"}",
       "unknown=base64\"AAE=\"",
       "uid=9, phase=forward, tag=PREFER_RECOMPUTE, seq_nr=0, stream=\"s\", meta={\"a\": 1}, unknown=base64\"AA==\""}));
  CHECK(print_text(*parse(with_fields(fields))) == with_fields(fields));
}

TEST_CASE("what is optional in the text may be left out or spelled otherwise", "[text]") {
  const auto [given, printed] = GENERATE(table<std::string, std::string>({
      {"", "fxg 0\n"},
      {"# only a comment", "fxg 0\n"},
      {"graph @g {}", "fxg 0\ngraph @g {\n}\n"},
      {"graph @g {} {}", "fxg 0\ngraph @g {\n}\n"},
      {"graph @\"g\" {kind=joint,} { %\"x\"=placeholder[\"x\"]() return(%x,)}",
       "fxg 0\ngraph @g {kind=joint} {\n  %x = placeholder()\n  return (%x,)\n}\n"},
      {"graph @g { %output = output[\"output\"](1) }", "fxg 0\ngraph @g {\n  return 1\n}\n"},
      {"graph @g { %o = output(1) }", "fxg 0\ngraph @g {\n  %o = output(1)\n}\n"},
      {"graph @g { %f = call[\"aten.mm.default\"]() }", "fxg 0\ngraph @g {\n  %f = aten.mm.default()\n}\n"},
      {"graph @g { %f: f32[2](1)+0 = a() {uid=0, phase=?1, tag=NONE} }",
       "fxg 0\ngraph @g {\n  %f: f32[2] = a() {phase=forward}\n}\n"},
      {"graph @g { %f: f32[ 2 , s0*4 ] = a(\n[1,],# why\n(1,),) }",
       "fxg 0\ngraph @g {\n  %f: f32[2, s0 * 4] = a([1], (1,))\n}\n"},
      {"graph @g { %f: f32[2]@dev$7 = a() }", "fxg 0\nstorage {id=7}\ngraph @g {\n  %f: f32[2]@dev$7 = a()\n}\n"},
      {"counters {next_uid=1, next_storage=0} graph @g { %f = a() }", "fxg 0\ngraph @g {\n  %f = a()\n}\n"},
      {"storage {device=\"cpu\", id=1, bytes=8}", "fxg 0\nstorage {id=1, bytes=8, device=\"cpu\"}\n"},
      {"symbol {name=\"s0\", node=\"\", graph=\"\"}", "fxg 0\nsymbol {name=\"s0\", node=\"\"}\n"},
      {"graph @g { %f: _ = a() }", "fxg 0\ngraph @g {\n  %f = a()\n}\n"},
      {"graph @g { %f: (_~base64\"AA==\",) = a() }", "fxg 0\ngraph @g {\n  %f: (unknown(base64\"AA==\"),) = a()\n}\n"},
      {"graph @g { %f: f32[](){layout=jagged} = a() }", "fxg 0\ngraph @g {\n  %f: f32[]{layout=jagged} = a()\n}\n"},
      {"graph @g { %f = a() {phase_markers=[inferred, is_forward, ?2]} }",
       "fxg 0\ngraph @g {\n  %f = a() {phase_markers=[is_forward, inferred]}\n}\n"},
      {"graph @g { %f = a(true, False, [false, True]) }",
       "fxg 0\ngraph @g {\n  %f = a(True, False, [False, True])\n}\n"},
      {"storage {id=1, pinned=True}", "fxg 0\nstorage {id=1, pinned=true}\n"},
      {"module {}", "fxg 0\n"},
      {"profile base64\"\"", "fxg 0\nprofile base64\"\"\n"},
  }));
  CHECK(canonical(given) == printed);
}

TEST_CASE("nodes may be named before they are defined", "[text]") {
  const std::string text =
      "fxg 0\n"
      "graph @g {\n"
      "  %a: f32[2]@dev:0 = f(%c, @return) {control=[order %output, order %\"b b\"]}\n"
      "  %\"b b\" = f(\"%d = x {\", %a)\n"
      "  %return = f(%b_2)\n"
      "  %b_2 = f(%b_2)\n"
      "  %c = f(%return)\n"
      "  return (%c,)\n"
      "}\n"
      "graph @h {\n"
      "  %b = f(%c)\n"
      "  %c = f(%b)\n"
      "}\n";
  const std::unique_ptr<Module> module = parse(text);
  CHECK(print_text(*module) == text);
  const Graph& graph = module->main();
  const NodeId c = graph.find(module->intern("c"));
  REQUIRE(graph.users(c).size() == 2);
  CHECK(graph.name_of(graph.users(c)[0]) == "a");
  CHECK(graph.name_of(graph.users(c)[1]) == "output");
}

TEST_CASE("uids go on from node to node and from graph to graph", "[text]") {
  const std::unique_ptr<Module> module = parse("graph @g { %a = f() %b = f() {uid=7} %c = f() } graph @h { %a = f() }");
  const Graph& first = module->main();
  CHECK(first[first.find(module->intern("a"))].uid == 0);
  CHECK(first[first.find(module->intern("c"))].uid == 8);
  const Graph& second = module->graph(GraphId(1));
  CHECK(second[second.first()].uid == 9);
  CHECK(module->next_uid == 10);
  CHECK(print_text(second) == "fxg 0\ngraph @h {\n  %a = f() {uid=9}\n}\n");
  TextOptions bare;
  bare.uids = false;
  bare.version = false;
  CHECK(print_text(second, bare) == "graph @h {\n  %a = f()\n}\n");
  CHECK(print_node(first, first.find(module->intern("b"))) == "%b = f() {uid=7}");
  CHECK(print_node(first, first.find(module->intern("c"))) == "%c = f()");
}

TEST_CASE("storage lines can be left out", "[text]") {
  TextOptions options;
  options.storages = false;
  options.version = false;
  CHECK(print_text(*parse("storage {id=3} graph @g { %a: f32[2]$3 = f() }"), options) ==
        "graph @g {\n  %a: f32[2]$3 = f()\n}\n");
}

TEST_CASE("omitted strides are those of a contiguous tensor", "[text]") {
  const std::unique_ptr<Module> module = parse("graph @g { %a: f32[2, 0, 3] = f() }");
  const Graph& graph = module->main();
  const Tensor& tensor = graph.pool().tensor(graph.value(graph.first()));
  const std::vector<Dim> expected = {Dim{3, ExprId()}, Dim{3, ExprId()}, Dim{1, ExprId()}};
  CHECK(module->dims(tensor.strides) == expected);
}

TEST_CASE("schemas given by the file describe the targets above and below them", "[text]") {
  const std::unique_ptr<Module> module = parse(
      "graph @g { %x = placeholder() %a = mylib.f.default(%x) } "
      "op_schema {target=\"mylib.f.default\", schema=\"mylib::f(Tensor x) -> Tensor\", pure=true}");
  const Graph& graph = module->main();
  CHECK(&graph.op(graph.last()) != &opaque_op());
}

TEST_CASE("every NaN and every zero keeps its bits", "[text]") {
  const uint64_t bits = GENERATE(values<uint64_t>({0, 0x8000000000000000, 0x7ff8000000000000, 0xfff8000000000000,
                                                   0x7ff0000000000001, 0xffffffffffffffff, 1, 0x7fefffffffffffff}));
  Module module;
  Graph& graph = module.add_graph(module.intern("g"));
  const NodeId node = graph.add_node(NodeKind::kCallFunction, module.intern("a"), module.target("f"), 0);
  const Arg arg = Arg::floating_bits(bits);
  graph.set_args(node, graph.pool().append(std::span(&arg, 1)), ArgRange());
  const std::unique_ptr<Module> again = parse(print_text(module));
  CHECK(again->main().arg(again->main().first(), 0)->as_bits() == bits);
}

}  // namespace
}  // namespace fxopt
