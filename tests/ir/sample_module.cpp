#include "tests/ir/sample_module.h"

#include <limits>
#include <string>
#include <vector>

namespace fxopt {
namespace {

class SampleBuilder {
 public:
  std::unique_ptr<Module> build();

 private:
  StringId id(std::string_view text) { return module_.intern(text); }
  ExprId expr(std::string_view text) { return *module_.exprs.parse(text); }
  Integer symbolic(std::string_view text) { return Integer{std::nullopt, expr(text)}; }
  ArgRange meta(Pool& pool, std::string_view key, const Arg& value);

  void module_records();
  void rank_records();
  void op_records();
  void ledger();
  void graph_records(Graph& graph);
  void add_node(Graph& graph, std::string_view name, const Value& value);
  void all_values(Graph& graph);
  void symbolic_values(Graph& graph);
  void all_args(Graph& graph);
  void leaf_args(ArgStack& stack);
  void nested_args(Graph& graph, ArgStack& stack);
  void rich_node(Graph& graph);
  void rich_extra(Graph& graph, NodeExtra& extra);
  Tensor tensor();

  std::unique_ptr<Module> owned_ = std::make_unique<Module>();
  Module& module_ = *owned_;
  StorageId storage_;
};

ArgRange SampleBuilder::meta(Pool& pool, std::string_view key, const Arg& value) {
  const std::vector<Arg> entries = {Arg::string(id(key)), value};
  return pool.append(entries);
}

Tensor SampleBuilder::tensor() {
  Tensor result;
  result.dtype = DType::kBfloat16;
  result.sizes = module_.dims({Dim{8, {}}, Dim{0, expr("s0 * 2")}});
  result.strides = module_.dims({Dim{1, {}}, Dim{0, expr("Max(1, s0)")}});
  result.offset = Dim{16, {}};
  result.device = id("cuda:0");
  result.requires_grad = result.conjugate = result.negative = result.pinned = true;
  result.storage = storage_;
  result.layout = Layout::kJagged;
  result.mesh = id("mesh");
  result.subclass = id("torch.distributed.tensor.DTensor");
  Placement shard;
  shard.kind = PlacementKind::kStridedShard;
  shard.has_dim = shard.has_split_factor = true;
  shard.dim = -1;
  shard.split_factor = 2;
  Placement partial;
  partial.kind = PlacementKind::kPartial;
  partial.reduce_op = id("sum");
  result.placements = module_.placements({shard, partial});
  return result;
}

void SampleBuilder::module_records() {
  module_.name = id("sample");
  module_.producer = Producer{id("fxopt_torch"), id("0.1"), id("torch"), id("2.15"), id("make it"), ""};
  StorageRecord storage;
  storage.id = 7;
  storage.bytes = symbolic("s0 * 4");
  storage.device = id("cpu");
  storage.pinned = true;
  storage_ = module_.add_storage(storage);
  module_.fresh_storage(Integer::of(int64_t{64}), id("cuda:0"));
  Symbol symbol;
  symbol.name = id("s0");
  symbol.kind = SymbolKind::kUnbacked;
  symbol.type = SymbolType::kFloat;
  symbol.min = std::numeric_limits<int64_t>::min();
  symbol.max = std::numeric_limits<int64_t>::max();
  symbol.hint = 0;
  symbol.graph = id("main");
  symbol.node = id("x");
  symbol.key_path = {id("0"), id("size")};
  symbol.source = id("L['x'].size()[0]");
  module_.symbols = {symbol};
  module_.assertions = {Assertion{ExprField{expr("s0 >= 2")}, id("too small"), id("model.py"), ""}};
  module_.streams = {Stream{id("side"), id("cuda:0"), -1, ""}};
  module_.rng_slots = {RngSlot{id("default"), id("philox"), id("cuda:0"), RngState::kKnown, ""}};
  module_.profile = module_.memory_plan = "";
  module_.certificate = Certificate{module_.intern("00112233445566778899aabbccddeeff"),
                                    {{module_.intern("cse"),
                                      module_.intern("0.1.0"),
                                      ProofVerdict::kProved,
                                      {module_.intern("part")},
                                      StringId(),
                                      ""},
                                     {module_.intern("dce{random=remove}"),
                                      module_.intern("0.1.0"),
                                      ProofVerdict::kUnproved,
                                      {},
                                      module_.intern("another graph"),
                                      ""}},
                                    {module_.intern("dead-draws")},
                                    3,
                                    1,
                                    module_.intern("ffeeddccbbaa99887766554433221100"),
                                    ""};
  module_.meta = meta(module_.pool, "origin", Arg::string(id("traced")));
}

void SampleBuilder::rank_records() {
  module_.rank = RankContext{0, 8, ""};
  ProcessGroup group;
  group.uid = id("545");
  group.ranks = {0, 1, 2, 3};
  group.description = id("data parallel");
  group.backend = id("nccl");
  group.mesh = id("mesh");
  group.mesh_dims = {id("dp")};
  group.made_by_pass = true;
  group.made_by = id("bucket");
  module_.groups = {group};
  DeviceMesh mesh;
  mesh.name = id("mesh");
  mesh.device_type = id("cuda");
  mesh.shape = {2, 2};
  mesh.dim_names = {id("dp"), id("tp")};
  mesh.ranks = {0, 1, 2, 3};
  mesh.coordinate = {0, 1};
  mesh.groups = {id("545"), id("546")};
  module_.meshes = {mesh};
  Invocation invocation;
  invocation.graph = id("main");
  invocation.stage = Integer::of(int64_t{1});
  invocation.microbatch = symbolic("s0");
  invocation.peer = Integer::of(int64_t{-1});
  invocation.bindings = {Binding{1, 0, 2, ""}, Binding{0, std::nullopt, 0, ""}};
  invocation.label = id("F1");
  module_.invocations = {invocation};
}

void SampleBuilder::op_records() {
  OpSchemaRecord schema;
  schema.target = id("mylib.op.default");
  schema.schema = id("mylib::op(Tensor(a!) x) -> Tensor(a!)");
  schema.tags = {id("pt2_compliant_tag")};
  schema.is_mutable = true;
  schema.effectful = false;
  schema.pure = false;
  module_.op_schemas = {schema};
  Constant constant;
  constant.name = id("_tensor_constant0");
  constant.tensor = module_.pool.append_value(module_.pool.tensor_value(tensor()));
  constant.inline_data = std::string("\x00\xff", 2);
  constant.path = id("c.safetensors");
  constant.key = id("k");
  constant.xxh64 = std::numeric_limits<uint64_t>::max();
  module_.constants = {constant};
}

void SampleBuilder::ledger() {
  ErasedNode erased;
  erased.graph = id("main");
  erased.uid = 99;
  erased.name = id("mm_7");
  erased.target = id("aten.mm.default");
  erased.tag = Tag::kMustSave;
  erased.verdict = TagVerdict{Verdict::kDropped, TagRule::kMerged, id("cse"), ""};
  erased.pass = id("cse");
  erased.origins = {Origin{id("main"), 3, OriginKind::kMerged, id("cse"), ""}};
  erased.tag_source = TagSource{id("sac"), false, ""};
  module_.erased = {erased};
  erased.tag = Tag::kNone;
  erased.is_mark = true;
  module_.erased.push_back(erased);
  module_.next_uid = 1000;
  module_.next_storage = 2000;
  module_.name_counters[{GraphId(0), "mm"}] = 8;
  module_.name_counters[{GraphId(1), "add"}] = 1;
}

void SampleBuilder::graph_records(Graph& graph) {
  graph.kind = GraphKind::kJoint;
  OutputSpec output;
  output.role = OutputRole::kGradient;
  output.of = id("x");
  output.fqn = id("layers.0.wq");
  output.guessed = output.no_version_check = true;
  output.alias_of_input = 0;
  output.alias_of_output = -1;
  output.subclass_path = {id("_local_tensor")};
  output.desc = id("GradAOTOutput");
  graph.outputs = {output, OutputSpec()};
  Attribute attribute;
  attribute.path = id("_tensor_constant0");
  attribute.constant = id("_tensor_constant0");
  attribute.graph = id("body");
  attribute.opaque = OpaqueRecord{id("torch.ScriptObject"), id("<obj>"), std::string("\x01\x00", 2), ""};
  graph.attributes = {attribute};
  graph.num_forward_outputs = 0;
  graph.in_spec = id("[1, {}]");
  graph.out_spec = id("[1, []]");
  SubclassLayout layout;
  layout.type = id("DTensor");
  layout.side = id("input");
  layout.first = 1;
  layout.count = 2;
  layout.attributes = {id("_local_tensor")};
  layout.meta.range = meta(graph.pool(), "spec", Arg::integer(3));
  graph.subclasses = {layout};
  graph.owner = id("body");
  graph.class_name = id("GraphModule");
  graph.meta = meta(graph.pool(), "mode", Arg::boolean(false));
}

void SampleBuilder::add_node(Graph& graph, std::string_view name, const Value& value) {
  const NodeId node = graph.add_node(NodeKind::kPlaceholder, id(name), module_.target(name), module_.fresh_uid());
  graph[node].value = graph.pool().append_value(value);
}

void SampleBuilder::all_values(Graph& graph) {
  Pool& pool = graph.pool();
  add_node(graph, "x", pool.tensor_value(tensor()));
  Value none;
  none.kind = ValueKind::kNone;
  add_node(graph, "none", none);
  Tensor scalar;
  scalar.sizes = scalar.strides = module_.dims({});
  const std::vector<Value> items = {none, Value(), pool.tensor_value(scalar)};
  Value list;
  list.count = static_cast<uint32_t>(items.size());
  for (const ValueKind kind : {ValueKind::kTuple, ValueKind::kList, ValueKind::kDict}) {
    list.kind = kind;
    list.first = pool.append_values(items).index();
    if (kind == ValueKind::kDict) list.keys = pool.append_keys(std::vector<StringId>{id("a"), id(""), id("b")});
    add_node(graph, "children_" + std::to_string(static_cast<int>(kind)), list);
  }
  Value empty;
  empty.kind = ValueKind::kTuple;
  add_node(graph, "empty", empty);
  symbolic_values(graph);
}

void SampleBuilder::symbolic_values(Graph& graph) {
  Value symbol;
  symbol.kind = ValueKind::kSymbolic;
  symbol.symbol_type = SymbolType::kBool;
  symbol.first = expr("s0 < 4").index();
  add_node(graph, "symbolic", symbol);
  Value scalar;
  scalar.kind = ValueKind::kScalar;
  scalar.first = graph.pool().append(std::vector<Arg>{Arg::floating(-0.0)}).first;
  add_node(graph, "scalar", scalar);
  Value opaque;
  opaque.kind = ValueKind::kOpaque;
  opaque.name = id("DeviceMesh");
  opaque.mesh = id("mesh");
  opaque.group = id("545");
  opaque.text = id("DeviceMesh([0, 1])");
  add_node(graph, "opaque", opaque);
  Value body;
  body.kind = ValueKind::kGraph;
  body.name = id("body");
  add_node(graph, "graph", body);
  Tensor strided;
  strided.dtype = DType::kFloat32;
  strided.sizes = module_.dims({Dim{3, {}}, Dim{0, expr("s0")}, Dim{5, {}}});
  strided.strides = module_.contiguous_strides(strided.sizes);
  strided.offset = Dim{0, expr("s0 + 1")};
  add_node(graph, "contiguous", graph.pool().tensor_value(strided));
}

void SampleBuilder::leaf_args(ArgStack& stack) {
  for (const Arg& arg :
       {Arg::none(), Arg::ellipsis(), Arg::boolean(false), Arg::boolean(true), Arg::integer(0),
        Arg::integer(std::numeric_limits<int64_t>::min()), Arg::floating(-0.0), Arg::floating_bits(0x7FF8000000000001),
        Arg::string(id("")), Arg::string(id("quote \" and \xE2\x88\x9E")), Arg::expr(expr("s0 // 2")),
        Arg::group_expr(expr("s0 % 2")), Arg::dtype(DType::kFloat8E4m3fn), Arg::dtype(static_cast<DType>(200)),
        Arg::layout(Layout::kStrided), Arg::memory_format(MemoryFormat::kChannelsLast),
        Arg::uid_ref(std::numeric_limits<uint64_t>::max())}) {
    stack.push(arg);
  }
  for (const ArgKind kind : {ArgKind::kDevice, ArgKind::kOp, ArgKind::kGraph, ArgKind::kGroup, ArgKind::kMesh,
                             ArgKind::kRngSlot, ArgKind::kBytes}) {
    stack.push(Arg::named(kind, id("cpu")));
  }
  stack.push(Arg::named(ArgKind::kBytes, id(std::string_view("\x00\xFF\x80", 3))));
  stack.push(Arg::named(ArgKind::kUnknown, id("\xA0\x3F\x07")));  // field 1012, a number: 7
}

void SampleBuilder::nested_args(Graph& graph, ArgStack& stack) {
  const auto close = [&](ArgKind kind, const std::vector<Arg>& items, StringId type) {
    const size_t mark = stack.mark();
    for (const Arg& item : items) stack.push(item);
    stack.close(kind, mark, type);
  };
  const Arg text = Arg::string(id("text"));
  const Arg type = Arg::string(id("Type"));
  const Arg bytes = Arg::named(ArgKind::kBytes, id("\x80"));
  const Arg two = Arg::integer(2);
  close(ArgKind::kComplex, {Arg::floating(1.0), Arg::floating(-2.0)}, StringId());
  close(ArgKind::kEnum, {type, text, Arg::integer(-3)}, StringId());
  close(ArgKind::kEnum, {type, text, Arg::none()}, StringId());
  close(ArgKind::kOpaque, {type, text, bytes}, StringId());
  close(ArgKind::kSlice, {Arg::none(), two, Arg::none()}, StringId());
  close(ArgKind::kSet, {two, text}, StringId());
  close(ArgKind::kDict, {text, two, two, Arg::none()}, id("collections.OrderedDict"));
  for (const ArgKind kind : {ArgKind::kList, ArgKind::kTuple}) {
    close(kind, {}, StringId());
    close(kind, {two, Arg::integer(-1)}, StringId());
    close(kind, {two, Arg::integer(-1)}, id("torch.Size"));
    close(kind, {two, Arg::floating(2)}, StringId());
  }
  const size_t outer = stack.mark();
  close(ArgKind::kList, {Arg::node(NodeId(0)), Arg::node(NodeId(1))}, StringId());
  close(ArgKind::kDict, {text, Arg::node(NodeId(0))}, StringId());
  stack.close(ArgKind::kTuple, outer);
  stack.push(Arg::value(graph.pool().append_value(graph.pool().tensor_value(tensor()))));
}

void SampleBuilder::all_args(Graph& graph) {
  const NodeId node = graph.add_node(NodeKind::kCallFunction, id("call"), module_.target("mylib.op.default"), 70);
  ArgStack stack(graph.pool());
  stack.push(Arg::node(NodeId(0)));
  leaf_args(stack);
  nested_args(graph, stack);
  const ArgRange args = stack.take(0);
  stack.push(Arg::string(id("self")));
  stack.push(Arg::node(node));
  stack.push(Arg::string(id("alpha")));
  stack.push(Arg::floating(0.5));
  graph.set_args(node, args, stack.take(0));
}

void SampleBuilder::rich_extra(Graph& graph, NodeExtra& extra) {
  extra.verdict = TagVerdict{Verdict::kHonoured, TagRule::kMustRecompute, id("remat"), ""};
  extra.mark_verdict = TagVerdict{Verdict::kOverridden, TagRule::kPreference, id("partition"), ""};
  extra.tag_source = TagSource{id("sac"), true, ""};
  extra.origins = {Origin{graph.name(), 1, OriginKind::kRecomputed, id("remat"), ""}, Origin()};
  extra.control = {ControlDep{NodeId(1), ControlKind::kKeepAlive}, ControlDep{NodeId(0), ControlKind::kOrder}};
  extra.stream = id("");
  extra.bucket = Bucket{id("b0"), {id("layers.0"), id("layers.1")}, id("forward"), 0, ""};
  extra.capture = Capture::kForbidden;
  extra.remarks = {Remark{id("remat"), id("not-cheap"), id("reads a mutated value"), ""}};
  InputSpec input;
  input.role = InputRole::kOptimizerState;
  input.fqn = id("layers.0.wq");
  input.guessed = input.persistent = input.donated = input.static_address = input.mutated = true;
  input.alias_of_input = 0;
  input.subclass_path = {id("_local_tensor"), id("")};
  input.user_index = 2;
  input.optimizer_key = id("exp_avg");
  input.saved_from_output = 5;
  input.desc = id("ParamAOTInput");
  extra.input = input;
  RngUse rng;
  rng.slot = id("default");
  rng.seed = Integer::of(int64_t{42});
  rng.offset = symbolic("s0 * 4");
  rng.increment = Integer::of(int64_t{0});
  rng.grid = {1, 2, 3};
  rng.block = {256, 1, 1};
  rng.order = 0;
  extra.rng = rng;
  extra.event_record = {id("e0")};
  extra.event_wait = {id("e1"), id("")};
}

void SampleBuilder::rich_node(Graph& graph) {
  const NodeId id_of_node = graph.add_node(NodeKind::kOutput, id("output"), module_.target("output"), 71);
  Node& node = graph[id_of_node];
  node.phase = Phase::kBackward;
  node.tag = Tag::kPreferRecompute;
  node.phase_markers = (1U << 1) | (1U << 11) | (1U << 31);
  node.has_seq_nr = true;
  node.seq_nr = 0;
  node.module_path = id("");
  node.module_path_source = id("nn_module_stack");
  node.region = module_.region(Region{0, true, id("block"), true, ""});
  node.source = module_.source(Source{id("model.py"), 12, id("forward"), id("return x"), ""});
  rich_extra(graph, graph.mutable_extra(id_of_node));
  ArgStack stack(graph.pool());
  stack.push(Arg::string(id("val")));
  leaf_args(stack);
  const ArgRange values = stack.take(1);
  const std::vector<Arg> entries = {Arg::string(id("val")), Arg::children(ArgKind::kList, values)};
  graph.set_meta(id_of_node, graph.pool().append(entries));
}

std::unique_ptr<Module> SampleBuilder::build() {
  module_records();
  rank_records();
  op_records();
  Graph& graph = module_.add_graph(id("main"));
  graph_records(graph);
  all_values(graph);
  all_args(graph);
  rich_node(graph);
  Graph& body = module_.add_graph(id("body"));
  body.kind = GraphKind::kSubgraph;
  ledger();
  return std::move(owned_);
}

}  // namespace

std::unique_ptr<Module> make_sample_module() { return SampleBuilder().build(); }

std::unique_ptr<Module> make_chain_module(size_t num_nodes) {
  std::unique_ptr<Module> module = std::make_unique<Module>();
  Graph& graph = module->add_graph(module->intern("main"));
  for (size_t i = 0; i < num_nodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    const NodeKind kind = i == 0 ? NodeKind::kPlaceholder : NodeKind::kCallFunction;
    const NodeId id = graph.add_node(kind, module->intern(name), module->target(i == 0 ? name : "aten.neg.default"), i);
    Tensor tensor;
    tensor.dtype = DType::kFloat32;
    tensor.sizes = module->dims({Dim{4, {}}, Dim{static_cast<int64_t>(i), {}}});
    tensor.strides = module->contiguous_strides(tensor.sizes);
    graph[id].value = graph.pool().append_value(graph.pool().tensor_value(tensor));
    if (i > 0) graph.set_args(id, graph.pool().append(std::vector<Arg>{Arg::node(NodeId(i - 1))}), ArgRange());
  }
  return module;
}

}  // namespace fxopt
