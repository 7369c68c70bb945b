// The binary form: reading restores the written content, and equal content gives equal bytes.
#include <algorithm>
#include <set>
#include <string>

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "ir/io/io.h"
#include "ir/io/pb_envelope.h"
#include "ir/io/pb_ids.h"
#include "ir/io/strides.h"
#include "tests/catch.h"
#include "tests/fuzz/mutate.h"
#include "tests/ir/sample_module.h"
#include "tests/must.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

std::string printed_pb(const Module& module) { return must(print_pb(module)); }

schema::File decode(const std::string& bytes) {
  schema::File file;
  REQUIRE(file.ParseFromString(bytes));
  return file;
}

// Wraps a message of the schema in a file.
std::string encoded(const schema::Module& module) { return seal(module.SerializeAsString()); }

// Collects the names of the fields, alternatives included, that are set anywhere in `message`.
void collect_fields(const google::protobuf::Message& message, std::set<std::string>& names) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    names.insert(field->full_name());
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) collect_fields(message.GetReflection()->GetMessage(message, field), names);
    for (int i = 0; field->is_repeated() && i < message.GetReflection()->FieldSize(message, field); ++i) {
      collect_fields(message.GetReflection()->GetRepeatedMessage(message, field, i), names);
    }
  }
}

TEST_CASE("the sample module sets every field of the schema", "[pb]") {
  const schema::File file = decode(printed_pb(*make_sample_module()));
  std::set<std::string> set;
  collect_fields(file, set);
  const google::protobuf::FileDescriptor& schema = *schema::File::descriptor()->file();
  for (int i = 0; i < schema.message_type_count(); ++i) {
    for (int j = 0; j < schema.message_type(i)->field_count(); ++j) {
      const std::string name = schema.message_type(i)->field(j)->full_name();
      if (name == "fxopt.schema.File.version") continue;  // 0 until the first release
      INFO(name);
      CHECK(set.count(name) == 1);
    }
  }
}

TEST_CASE("a module written, read and written again gives the same bytes", "[pb]") {
  const std::unique_ptr<Module> sample = make_sample_module();
  const std::string bytes = printed_pb(*sample);
  CHECK(printed_pb(*sample) == bytes);
  const std::unique_ptr<Module> again = parse(bytes, Format::kPb);
  CHECK(printed_pb(*again) == bytes);
  CHECK(printed_pb(*parse(printed_pb(Module()), Format::kPb)) == printed_pb(Module()));
}

TEST_CASE("what the reader makes equals what was written", "[pb]") {
  const std::unique_ptr<Module> module = parse(printed_pb(*make_sample_module()), Format::kPb);
  const Graph& graph = module->main();
  CHECK(module->text(graph.name()) == "main");
  CHECK(graph.num_nodes() == 13);
  CHECK(module->next_uid == 1000);
  CHECK(module->next_storage == 2000);
  CHECK(module->name_counters.at({GraphId(0), "mm"}) == 8);
  CHECK(module->op_schemas.front().pure == false);
  const NodeId x = graph.find(module->strings.find("x"));
  const Tensor& tensor = graph.pool().tensor(graph.value(x));
  CHECK(module->exprs.to_string(module->dims(tensor.sizes)[1].expr) == "s0 * 2");
  CHECK(module->storage(tensor.storage).id == 7);
  CHECK(module->placements(tensor.placements).front().dim == -1);
  CHECK(graph.num_uses(x) == 3);
  const NodeId call = graph.find(module->strings.find("call"));
  CHECK(graph.inputs(call) == std::vector<NodeId>{x, NodeId(1), call});
  CHECK(graph.kwarg(call, "alpha")->as_double() == 0.5);
  CHECK(graph.op(call).writes == std::vector<uint8_t>{0});
  const NodeId output = graph.output();
  CHECK(graph[output].module_path == module->strings.find(""));
  CHECK(graph[x].module_path == StringId());
  CHECK(graph.extra(output)->stream == module->strings.find(""));
  CHECK(graph.extra(output)->rng->offset.expr == *module->exprs.parse("s0*4"));
  CHECK(graph[output].phase_markers == ((1U << 1) | (1U << 11) | (1U << 31)));
  CHECK(graph.value(graph.find(module->strings.find("empty"))).kind == ValueKind::kTuple);
}

TEST_CASE("bytes do not depend on the history of the string table", "[pb]") {
  const std::unique_ptr<Module> plain = make_chain_module(5);
  Module other;
  other.intern("never used");
  other.intern("n4");
  Graph& graph = other.add_graph(other.intern("main"));
  const std::unique_ptr<Module> copy = parse(printed_pb(*plain), Format::kPb);
  CHECK(printed_pb(*copy) == printed_pb(*plain));
  copy->intern("unused too");
  static_cast<void>(copy->exprs.parse("q + 1"));
  CHECK(printed_pb(*copy) == printed_pb(*plain));
  static_cast<void>(graph.add_node(NodeKind::kPlaceholder, other.intern("n4"), other.target("n4"), 0));
  CHECK(decode(printed_pb(other)).module().strings_size() == 3);
}

TEST_CASE("an erased node is not written and positions close up", "[pb]") {
  const std::unique_ptr<Module> module = make_chain_module(4);
  Graph& graph = module->main();
  graph.replace_all_uses(NodeId(1), NodeId(0));
  graph.erase(NodeId(1));
  const schema::File file = decode(printed_pb(*module));
  REQUIRE(file.module().graphs(0).nodes_size() == 3);
  CHECK(file.module().graphs(0).nodes(1).args(0).node() == 0);
  CHECK(file.module().graphs(0).nodes(2).args(0).node() == 1);
  CHECK(file.counts().nodes() == 3);
}

TEST_CASE("contiguous strides are left out and come back", "[pb]") {
  Module module;
  const auto tensor = [&module](const std::vector<Dim>& sizes, const std::vector<Dim>& strides) {
    Tensor result;
    result.sizes = module.dims(sizes);
    result.strides = module.dims(strides);
    return result;
  };
  const ExprId s0 = *module.exprs.parse("s0");
  const ExprId product = *module.exprs.parse("s0 * 3");
  const Dim one{1, {}};
  CHECK(are_strides_implied(module, tensor({}, {})));
  CHECK(are_strides_implied(module, tensor({Dim{0, {}}, Dim{0, {}}}, {one, one})));
  CHECK(are_strides_implied(module, tensor({Dim{2, {}}, Dim{3, {}}}, {Dim{3, {}}, one})));
  CHECK_FALSE(are_strides_implied(module, tensor({Dim{2, {}}, Dim{3, {}}}, {one, Dim{2, {}}})));
  CHECK_FALSE(are_strides_implied(module, tensor({Dim{2, {}}}, {Dim{2, {}}})));
  CHECK(are_strides_implied(module, tensor({one, Dim{0, s0}}, {Dim{0, s0}, one})));
  CHECK(are_strides_implied(module, tensor({one, Dim{3, {}}, Dim{0, s0}}, {Dim{0, product}, Dim{0, s0}, one})));
  CHECK_FALSE(are_strides_implied(module, tensor({one, Dim{4, {}}, Dim{0, s0}}, {Dim{0, product}, Dim{0, s0}, one})));
  const int64_t huge = int64_t{1} << 62;
  for (const std::vector<Dim>& sizes :
       {std::vector<Dim>{one, Dim{huge, {}}, Dim{huge, {}}, Dim{0, s0}, one, Dim{0, s0}},
        std::vector<Dim>{Dim{-1, {}}, Dim{0, product}, Dim{7, {}}, Dim{huge, {}}, Dim{3, {}}}}) {
    Tensor made;
    made.sizes = module.dims(sizes);
    made.strides = module.contiguous_strides(made.sizes);
    CHECK(are_strides_implied(module, made));
    made.layout = Layout::kSparseCoo;
    CHECK_FALSE(are_strides_implied(module, made));
  }
}

TEST_CASE("fields are read in any legal order, but what stands once is not given twice", "[pb]") {
  const std::string canonical = printed_pb(*make_sample_module());
  const schema::Module module = decode(canonical).module();
  // Each field of the module as a separate message, concatenated in reverse but in order within a
  // field.
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  module.GetReflection()->ListFields(module, &fields);
  std::string reversed;
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    schema::Module part = module;
    for (const google::protobuf::FieldDescriptor* other : fields) {
      if (other != *field) part.GetReflection()->ClearField(&part, other);
    }
    reversed += part.SerializeAsString();
  }
  const schema::File file = decode(canonical);
  const PbCounts counts{file.counts().graphs(), file.counts().nodes(), file.counts().strings(),
                        file.counts().storages()};
  CHECK(printed_pb(*parse(*write_envelope(counts, {reversed}), Format::kPb)) == canonical);

  schema::Module twice;
  twice.mutable_counters()->set_next_uid(module.counters().next_uid());
  const Result<std::string> bytes = write_envelope(counts, {reversed, twice.SerializeAsString()});
  CHECK(parse_pb(*bytes, "twice.pb").error().code == ErrorCode::kMalformed);
}

TEST_CASE("equal forms of a list are read alike and written in the shorter one", "[pb]") {
  schema::Module module = decode(printed_pb(*make_chain_module(1))).module();
  schema::Node& node = *module.mutable_graphs(0)->mutable_nodes(0);
  node.add_args()->mutable_list()->add_items()->set_int_value(5);
  node.add_args()->mutable_ints()->add_values(5);
  node.add_args()->mutable_ints();
  node.add_args()->mutable_tuple()->add_items()->set_int_value(5);
  const schema::File file = decode(printed_pb(*parse(encoded(module), Format::kPb)));
  const schema::Node& written = file.module().graphs(0).nodes(0);
  CHECK(written.args(0).ints().values_size() == 1);
  CHECK(written.args(1).ints().values_size() == 1);
  CHECK(written.args(2).has_list());
  CHECK(written.args(3).int_tuple().values(0) == 5);
}

TEST_CASE("without counters they are derived", "[pb]") {
  schema::Module module = decode(printed_pb(*make_chain_module(3))).module();
  module.clear_counters();
  CHECK(parse(encoded(module), Format::kPb)->next_uid == 3);
  module.mutable_counters()->set_next_uid(3);
  CHECK(parse(encoded(module), Format::kPb)->next_uid == 3);
}

TEST_CASE("an input may stand after its user, or be the node itself", "[pb]") {
  schema::Module module = decode(printed_pb(*make_chain_module(3))).module();
  module.mutable_graphs(0)->mutable_nodes(0)->add_args()->set_node(2);
  module.mutable_graphs(0)->mutable_nodes(1)->add_args()->set_node(1);
  const std::unique_ptr<Module> read = parse(encoded(module), Format::kPb);
  CHECK(read->main().inputs(NodeId(0)) == std::vector<NodeId>{NodeId(2)});
  CHECK(read->main().inputs(NodeId(1)) == std::vector<NodeId>{NodeId(0), NodeId(1)});
}

TEST_CASE("ids that count up are left out, over all graphs, and mean the same when given", "[pb]") {
  const std::unique_ptr<Module> module = must(parse_text(R"(storage {id=0}
storage {id=5}
storage {id=6}
storage {id=2}
graph @a { %x = f() %y = f() {uid=7} %z = f() {uid=8} }
graph @b { %x = f() %y = f() {uid=3} })",
                                                         "test.fxg"));
  schema::File file;
  REQUIRE(file.ParseFromString(printed_pb(*module)));
  std::string given;
  for (const schema::Storage& storage : file.module().storages()) given += storage.has_id() ? '1' : '0';
  for (const schema::Graph& graph : file.module().graphs()) {
    for (const schema::Node& node : graph.nodes()) given += node.has_uid() ? '1' : '0';
  }
  CHECK(given ==
        "0101"
        "010"
        "01");
  CHECK(printed_pb(*parse(printed_pb(*module), Format::kPb)) == printed_pb(*module));
  spell_ids(*file.mutable_module());
  CHECK(file.module().storages(2).id() == 6);
  CHECK(file.module().graphs(1).nodes(0).uid() == 9);
  CHECK(printed_pb(*parse(encoded(file.module()), Format::kPb)) == printed_pb(*module));
}

TEST_CASE("what the binary form cannot hold is an error that says so", "[pb]") {
  const std::unique_ptr<Module> module = make_chain_module(2);
  module->main()[NodeId(1)].module_path = module->intern("\xFF");
  const Error bytes = print_pb(*module).error();
  CHECK(bytes.code == ErrorCode::kBadValue);
  CHECK(bytes.where.node == "n1");
  module->main()[NodeId(1)].module_path = StringId();
  module->main().mutable_extra(NodeId(1)).unknown = "\x10\x05";  // field 2, which the schema has
  CHECK(print_pb(*module).error().code == ErrorCode::kBadValue);
}

TEST_CASE("the form follows from the name, or from the content", "[pb]") {
  CHECK(format_of_path("a.pb") == Format::kPb);
  CHECK(format_of_path("a.json.zst") == Format::kJson);
  CHECK(format_of_path("dir.pb/a.fxg") == Format::kText);
  CHECK(format_of_path("a.txt") == std::nullopt);
  CHECK(format_of_bytes(" \n{\"module\":{}}") == Format::kJson);
  CHECK(format_of_bytes("# a comment\n\n# two\nfxg 0\n") == Format::kText);
  CHECK(format_of_bytes(printed_pb(Module())) == Format::kPb);
  CHECK(format_of_bytes("") == Format::kPb);
  CHECK(format_of_bytes(printed_pb(Module()).substr(0, 3)) == Format::kPb);
  CHECK(format_of_bytes("graph @g {\n}\n") == Format::kText);
  CHECK(format_of_bytes("\xEF\xBB\xBF# not a graph\n") == Format::kText);
  CHECK(format_of_bytes("[]") == Format::kJson);
  CHECK(format_of_bytes("\x1f\x8b\x08") == Format::kPb);
  CHECK(format_of_bytes("graph \x01") == Format::kPb);
}

}  // namespace
}  // namespace fxopt
