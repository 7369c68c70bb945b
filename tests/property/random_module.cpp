#include "tests/property/random_module.h"

#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/graph/pool.h"

namespace fxopt {
namespace {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

class Generator {
 public:
  Generator(uint64_t seed, const RandomModuleOptions& options) : random_(seed), options_(options) {}

  RandomModule run() {
    result_.module = std::make_unique<Module>();
    module_ = result_.module.get();
    for (size_t i = 0; i < kNumFeatures; ++i) wanted_[i] = chance(40);
    make_shared_records();
    Graph& main = module_->add_graph(name("main"));
    main.kind = GraphKind::kForwardLossBackward;
    if (wanted(Feature::kSubgraph)) {
      subgraph_ = name("body");
      fill_graph(main);
      Graph& body = module_->add_graph(subgraph_);
      body.owner = main.name();
      body.kind = GraphKind::kSubgraph;
      subgraph_ = StringId();
      fill_graph(body);
    } else {
      fill_graph(main);
    }
    if (wanted(Feature::kSeveralGraphs)) {
      Graph& second = module_->add_graph(name("second"));
      second.kind = GraphKind::kOptimizer;
      fill_graph(second);
      mark(Feature::kSeveralGraphs);
    }
    if (options_.fill_records) fill_records();
    return std::move(result_);
  }

 private:
  // -- chance
  uint64_t below(uint64_t limit) { return random_() % limit; }
  bool chance(uint64_t percent) { return below(100) < percent; }
  bool wanted(Feature feature) const { return wanted_[static_cast<size_t>(feature)]; }
  void mark(Feature feature) { result_.has[static_cast<size_t>(feature)] = true; }
  StringId name(std::string_view text) { return module_->intern(text); }
  StringId word() {
    static constexpr std::string_view kWords[] = {"alpha",       "layers.0.mlp", "a b",       "\"quoted\"",
                                                  "line\nbreak", "ünïcode",      "x",         "",
                                                  "#no",         "%percent",     "tab\there", "@at"};
    return name(kWords[below(std::size(kWords))]);
  }

  // -- arguments of metadata: every kind that is allowed there
  void push_meta(ArgStack& stack, Pool& pool, int depth) {
    const size_t mark = stack.mark();
    const uint64_t kind = below(depth > 0 ? 22 : 16);
    if (kind == 0) stack.push(Arg::none());
    if (kind == 1) stack.push(Arg::boolean(chance(50)));
    if (kind == 2) stack.push(Arg::integer(static_cast<int64_t>(random_())));
    if (kind == 3) stack.push(Arg::floating_bits(random_()));
    if (kind == 4) stack.push(Arg::floating(static_cast<double>(below(1000)) / 8.0));
    if (kind == 5) stack.push(Arg::string(word()));
    if (kind == 6) stack.push(Arg::dtype(DType::kBfloat16));
    if (kind == 7) stack.push(Arg::named(ArgKind::kDevice, name("cuda:0")));
    if (kind == 8) stack.push(Arg::layout(Layout::kSparseCsr));
    if (kind == 9) stack.push(Arg::memory_format(MemoryFormat::kChannelsLast));
    if (kind == 10) stack.push(Arg::named(ArgKind::kOp, name("aten.mm.default")));
    if (kind == 11) stack.push(Arg::named(ArgKind::kBytes, name("raw\x01\xff")));
    if (kind == 12) stack.push(Arg::uid_ref(below(100)));
    if (kind == 13) stack.push(Arg::ellipsis());
    if (kind == 14) stack.push(Arg::value(pool.append_value(random_tensor(pool))));
    if (kind == 15) stack.push(Arg::named(ArgKind::kMesh, name("mesh")));
    if (kind == 16 || kind == 17) push_children(stack, pool, depth, below(4));
    if (kind == 16) stack.close(ArgKind::kList, mark);
    if (kind == 17) stack.close(ArgKind::kTuple, mark, chance(20) ? name("torch.Size") : StringId());
    if (kind == 18) push_children(stack, pool, depth, 2 * below(3));
    if (kind == 18) stack.close(ArgKind::kDict, mark);
    if (kind == 19) push_children(stack, pool, depth, 3);
    if (kind == 19) stack.close(ArgKind::kSlice, mark);
    if (kind == 20) {
      stack.push(Arg::string(name("CheckpointPolicy")));
      stack.push(Arg::string(name("MUST_SAVE")));
      stack.push(chance(50) ? Arg::integer(1) : Arg::none());
      stack.close(ArgKind::kEnum, mark);
    }
    if (kind == 21) {
      stack.push(Arg::floating(1.5));
      stack.push(Arg::floating(-0.0));
      stack.close(ArgKind::kComplex, mark);
    }
  }

  void push_children(ArgStack& stack, Pool& pool, int depth, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) push_meta(stack, pool, depth - 1);
  }

  ArgRange random_meta(Pool& pool) {
    ArgStack stack(pool);
    const uint64_t count = below(3);
    for (uint64_t i = 0; i < count; ++i) {
      stack.push(Arg::string(name("key" + std::to_string(i))));
      push_meta(stack, pool, 3);
    }
    return stack.take(0);
  }

  // -- values
  Dim random_dim() {
    if (!wanted(Feature::kSymbol) || !chance(30)) return Dim{static_cast<int64_t>(1 + below(8)), ExprId()};
    mark(Feature::kSymbol);
    const ExprId s0 = module_->exprs.symbol(name("s0"));
    if (chance(50)) return Dim{0, s0};
    return Dim{0, module_->exprs.make(ExprKind::kMul, {s0, module_->exprs.constant(2)})};
  }

  Value random_tensor(Pool& pool) {
    Tensor tensor;
    tensor.dtype = chance(50) ? DType::kFloat32 : DType::kBfloat16;
    std::vector<Dim> sizes;
    for (uint64_t i = below(4); i > 0; --i) sizes.push_back(random_dim());
    tensor.sizes = module_->dims(sizes);
    tensor.strides = module_->contiguous_strides(tensor.sizes);
    if (chance(60)) tensor.device = name(chance(80) ? "cuda:0" : "cpu");
    if (chance(60)) tensor.storage = module_->fresh_storage(Integer::of(int64_t{65536}), tensor.device);
    tensor.requires_grad = chance(10);
    tensor.pinned = chance(5);
    if (chance(5)) tensor.subclass = name("DTensor");
    if (chance(5))
      tensor.placements = module_->placements({Placement{PlacementKind::kShard, true, 0, false, 0, StringId()}});
    return pool.tensor_value(tensor);
  }

  // -- nodes
  NodeId any_tensor() { return tensors_[below(tensors_.size())]; }

  NodeId call(Graph& graph, std::string_view target, std::string_view base) {
    return graph.insert_node(NodeId(), NodeKind::kCallFunction, base, module_->target(target));
  }

  void set_args(Graph& graph, NodeId node, ArgStack& args, ArgStack* kwargs = nullptr) {
    graph.set_args(node, args.take(0), kwargs != nullptr ? kwargs->take(0) : ArgRange());
  }

  void set_value(Graph& graph, NodeId node, const Value& value) {
    graph[node].value = graph.pool().append_value(value);
  }

  void add_unary(Graph& graph, std::string_view target, const Value& value) {
    const NodeId node = call(graph, target, "node");
    ArgStack args(graph.pool());
    args.push(Arg::node(any_tensor()));
    set_args(graph, node, args);
    set_value(graph, node, value);
    tensors_.push_back(node);
  }

  void add_node(Graph& graph) {
    const uint64_t kind = below(10);
    if (kind == 0 && wanted(Feature::kView)) return add_alias(graph);
    if (kind == 1 && wanted(Feature::kMultiOutput)) return add_multi_output(graph);
    if (kind == 2 && wanted(Feature::kInPlace)) return add_in_place(graph);
    if (kind == 3 && wanted(Feature::kOutVariant)) return add_out_variant(graph);
    if (kind == 4 && wanted(Feature::kCollective)) return add_collective(graph);
    if (kind == 5 && wanted(Feature::kRandomness)) return add_random(graph);
    if (kind == 6 && subgraph_.is_valid()) return add_higher_order(graph);
    add_unary(graph, chance(50) ? "aten.exp.default" : "aten.neg.default", random_tensor(graph.pool()));
  }

  void add_alias(Graph& graph) {
    mark(Feature::kView);
    const NodeId base = any_tensor();
    const NodeId node = call(graph, "aten.alias.default", "alias");
    ArgStack args(graph.pool());
    args.push(Arg::node(base));
    set_args(graph, node, args);
    graph[node].value = graph[base].value;
    tensors_.push_back(node);
  }

  void add_multi_output(Graph& graph) {
    mark(Feature::kMultiOutput);
    const NodeId node = call(graph, "aten.topk.default", "topk");
    ArgStack args(graph.pool());
    args.push(Arg::node(any_tensor()));
    args.push(Arg::integer(2));
    set_args(graph, node, args);
    const Value children[] = {random_tensor(graph.pool()), random_tensor(graph.pool())};
    Value tuple;
    tuple.kind = ValueKind::kTuple;
    tuple.first = graph.pool().append_values(children).index();
    tuple.count = 2;
    set_value(graph, node, tuple);
    for (int64_t i = 0; i < 2; ++i) {
      if (chance(20)) continue;
      const NodeId item = call(graph, "operator.getitem", "getitem");
      ArgStack item_args(graph.pool());
      item_args.push(Arg::node(node));
      item_args.push(Arg::integer(i));
      set_args(graph, item, item_args);
      set_value(graph, item, children[i]);
      tensors_.push_back(item);
    }
  }

  void add_in_place(Graph& graph) {
    mark(Feature::kInPlace);
    const NodeId base = any_tensor();
    const NodeId node = call(graph, "aten.add_.Tensor", "add_");
    ArgStack args(graph.pool());
    args.push(Arg::node(base));
    args.push(Arg::node(any_tensor()));
    ArgStack kwargs(graph.pool());
    kwargs.push(Arg::string(name("alpha")));
    kwargs.push(Arg::integer(2));
    set_args(graph, node, args, &kwargs);
    graph[node].value = graph[base].value;
    tensors_.push_back(node);
  }

  void add_out_variant(Graph& graph) {
    mark(Feature::kOutVariant);
    const NodeId out = any_tensor();
    const NodeId node = call(graph, "aten.add.out", "add_out");
    ArgStack args(graph.pool());
    args.push(Arg::node(any_tensor()));
    args.push(Arg::node(any_tensor()));
    ArgStack kwargs(graph.pool());
    kwargs.push(Arg::string(name("out")));
    kwargs.push(Arg::node(out));
    set_args(graph, node, args, &kwargs);
    graph[node].value = graph[out].value;
    tensors_.push_back(node);
  }

  void add_collective(Graph& graph) {
    mark(Feature::kCollective);
    const NodeId node = call(graph, "_c10d_functional.all_reduce.default", "all_reduce");
    ArgStack args(graph.pool());
    args.push(Arg::node(any_tensor()));
    args.push(Arg::string(name("sum")));
    args.push(Arg::named(ArgKind::kGroup, name("0")));
    set_args(graph, node, args);
    set_value(graph, node, random_tensor(graph.pool()));
    const NodeId wait = call(graph, "_c10d_functional.wait_tensor.default", "wait_tensor");
    ArgStack wait_args(graph.pool());
    wait_args.push(Arg::node(node));
    set_args(graph, wait, wait_args);
    graph[wait].value = graph[node].value;
    tensors_.push_back(wait);
  }

  void add_random(Graph& graph) {
    mark(Feature::kRandomness);
    const NodeId node = call(graph, "aten.rand_like.default", "rand_like");
    ArgStack args(graph.pool());
    args.push(Arg::node(any_tensor()));
    set_args(graph, node, args);
    set_value(graph, node, random_tensor(graph.pool()));
    if (chance(50)) {
      RngUse use;
      use.slot = name("slot");
      use.seed = Integer::of(int64_t{7});
      use.offset = Integer::of(static_cast<int64_t>(below(100)));
      use.increment = Integer::of(int64_t{4});
      use.grid = {1, 2, 3};
      graph.mutable_extra(node).rng = use;
    }
    tensors_.push_back(node);
  }

  void add_higher_order(Graph& graph) {
    mark(Feature::kSubgraph);
    const NodeId body = graph.insert_node(NodeId(), NodeKind::kGetAttr, "body", module_->target("body"));
    const NodeId node = call(graph, "higher_order.invoke_subgraph", "invoke");
    ArgStack args(graph.pool());
    args.push(Arg::node(body));
    args.push(Arg::string(name("key")));
    args.push(Arg::named(ArgKind::kGraph, subgraph_));
    args.push(Arg::node(any_tensor()));
    set_args(graph, node, args);
    set_value(graph, node, random_tensor(graph.pool()));
    if (graph.attributes.empty()) {
      Attribute attribute;
      attribute.path = name("body");
      attribute.graph = subgraph_;
      graph.attributes.push_back(attribute);
    }
    tensors_.push_back(node);
  }

  void decorate(Graph& graph, NodeId node, std::vector<NodeId>& earlier) {
    Node& record = graph[node];
    if (chance(40)) record.phase = static_cast<Phase>(below(5));
    if (chance(20)) record.phase_markers = 1U << (1 + below(10));
    if (record.is_call() && chance(30)) record.tag = static_cast<Tag>(below(7));
    if (wanted(Feature::kRegion) && chance(40)) {
      mark(Feature::kRegion);
      Region region;
      if (chance(80))
        region.id = static_cast<int64_t>(below(4));
      else
        region.id_is_none = true;
      record.region = module_->region(region);
    }
    if (chance(40)) record.module_path = name("layers." + std::to_string(below(3)));
    if (chance(5)) record.module_path_source = name("nn_module_stack");
    if (chance(50)) {
      record.has_seq_nr = true;
      record.seq_nr = static_cast<int64_t>(below(100)) - 1;
    }
    if (chance(20)) {
      Source source;
      fill(source, graph.pool());
      record.source = module_->source(source);
    }
    if (chance(30)) graph.set_meta(node, random_meta(graph.pool()));
    if (chance(15)) {
      NodeExtra& extra = graph.mutable_extra(node);
      fill(extra.origins, graph.pool());
      fill(extra.remarks, graph.pool());
      fill(extra.event_record, graph.pool());
      if (chance(30)) extra.stream = word();
      if (chance(30)) fill(extra.bucket, graph.pool());
      if (chance(30)) fill(extra.verdict, graph.pool());
      if (chance(30)) extra.capture = Capture::kForbidden;
      if (!earlier.empty() && chance(50)) {
        extra.control.push_back({earlier[below(earlier.size())], static_cast<ControlKind>(below(3))});
      }
      if (record.kind == NodeKind::kPlaceholder) fill(extra.input, graph.pool());
    }
    earlier.push_back(node);
  }

  void fill_graph(Graph& graph) {
    tensors_.clear();
    const uint64_t inputs = 1 + below(4);
    for (uint64_t i = 0; i < inputs; ++i) {
      const StringId text = graph.fresh_name("arg");
      const NodeId node =
          graph.add_node(NodeKind::kPlaceholder, text, module_->target(module_->text(text)), module_->fresh_uid());
      set_value(graph, node, random_tensor(graph.pool()));
      tensors_.push_back(node);
    }
    const uint64_t calls = below(options_.max_nodes);
    while (graph.num_nodes() < inputs + calls) add_node(graph);
    const NodeId output =
        graph.add_node(NodeKind::kOutput, graph.fresh_name("output"), module_->target("output"), module_->fresh_uid());
    ArgStack args(graph.pool());
    args.push(Arg::node(any_tensor()));
    if (chance(50)) args.push(Arg::none());
    args.push(Arg::node(any_tensor()));
    args.close(chance(50) ? ArgKind::kTuple : ArgKind::kList, 0);
    graph.set_args(output, args.take(0), ArgRange());
    std::vector<NodeId> earlier;
    for (const NodeId node : graph.nodes()) decorate(graph, node, earlier);
    if (chance(20)) graph.meta = random_meta(graph.pool());
    if (chance(20)) graph.num_forward_outputs = 1;
    if (chance(20)) fill(graph.subclasses, graph.pool());
  }

  // -- records: any record, through its own visit()
  template <class T>
  void fill(T& field, Pool& pool) {
    if constexpr (std::is_same_v<T, bool>) {
      field = chance(50);
    } else if constexpr (std::is_integral_v<T>) {
      field = static_cast<T>(below(1000));
    } else if constexpr (std::is_enum_v<T>) {
      field = EnumNames<T>::kAll[below(std::size(EnumNames<T>::kAll))].value;
    } else if constexpr (std::is_same_v<T, StringId>) {
      const StringId text = word();
      field = module_->text(text).empty() ? StringId() : text;
    } else if constexpr (std::is_same_v<T, std::string>) {
      field = std::string("\x00\x01raw", 5);
    } else if constexpr (std::is_same_v<T, ExprField>) {
      field.id = chance(80) ? module_->exprs.symbol(name("s0")) : ExprId();
    } else if constexpr (std::is_same_v<T, Integer>) {
      if (chance(50))
        field = Integer::of(static_cast<int64_t>(below(1000)));
      else if (chance(50))
        field = Integer{std::nullopt, module_->exprs.symbol(name("s0"))};
    } else if constexpr (std::is_same_v<T, ValueId>) {
      field = pool.append_value(random_tensor(pool));
    } else if constexpr (std::is_same_v<T, MetaRange>) {
      field.range = random_meta(pool);
    } else if constexpr (IsOptional<T>::value) {
      if (chance(60)) fill(field.emplace(), pool);
    } else if constexpr (IsVector<T>::value) {
      for (uint64_t i = below(3); i > 0; --i) fill(field.emplace_back(), pool);
    } else {
      T::visit(field, [&](const char*, auto& member) { fill(member, pool); });
    }
  }

  void make_shared_records() {
    if (wanted(Feature::kSymbol)) {
      Symbol symbol;
      symbol.name = name("s0");
      symbol.kind = SymbolKind::kBacked;
      symbol.min = 1;
      symbol.hint = 4;
      module_->symbols.push_back(symbol);
    }
    if (wanted(Feature::kCollective)) {
      ProcessGroup group;
      group.uid = name("0");
      group.ranks = {0, 1};
      module_->groups.push_back(group);
    }
  }

  void fill_records() {
    if (chance(50)) fill(module_->producer, module_->pool);
    if (chance(20)) fill(module_->assertions, module_->pool);
    if (chance(20)) fill(module_->groups, module_->pool);
    if (chance(20)) fill(module_->meshes, module_->pool);
    if (chance(20)) fill(module_->constants, module_->pool);
    if (chance(20)) fill(module_->rng_slots, module_->pool);
    if (chance(20)) fill(module_->streams, module_->pool);
    if (chance(20)) fill(module_->rank, module_->pool);
    if (chance(20)) fill(module_->erased, module_->pool);
    if (chance(20)) fill(module_->invocations, module_->pool);
    if (chance(20)) module_->meta = random_meta(module_->pool);
  }

  std::mt19937_64 random_;
  RandomModuleOptions options_;
  RandomModule result_;
  Module* module_ = nullptr;
  std::array<bool, kNumFeatures> wanted_{};
  std::vector<NodeId> tensors_;
  StringId subgraph_;  // called by add_higher_order
};

}  // namespace

std::string_view feature_name(Feature feature) {
  static constexpr std::string_view kNames[kNumFeatures] = {"views",       "multi-output",  "in-place", "out-variants",
                                                            "collectives", "randomness",    "regions",  "symbols",
                                                            "subgraphs",   "several graphs"};
  return kNames[static_cast<size_t>(feature)];
}

RandomModule random_module(uint64_t seed, const RandomModuleOptions& options) { return Generator(seed, options).run(); }

}  // namespace fxopt
