#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ir/ops/op.h"
#include "tests/catch.h"

namespace fxopt {
namespace {

using Positions = std::vector<uint8_t>;
using Aliases = std::vector<int16_t>;

const Op& op(std::string_view name) {
  INFO(name);
  const Op* found = find_builtin_op(name);
  REQUIRE(found != nullptr);
  return *found;
}

Op described(std::string_view text, std::vector<std::string_view> tags = {}, std::optional<bool> pure = std::nullopt,
             std::optional<bool> effectful = std::nullopt) {
  const Schema schema = parse_schema(text).value();
  return describe_op("lib.f.default", schema, tags, pure, effectful);
}

TEST_CASE("every row of the op table parses and stands in its place") {
  const std::vector<const Op*>& ops = builtin_ops();
  std::map<std::string_view, size_t> counts;
  for (size_t i = 0; i < ops.size(); ++i) {
    INFO(ops[i]->name);
    CHECK(find_builtin_op(ops[i]->name) == ops[i]);
    CHECK((i == 0 || ops[i - 1]->name < ops[i]->name));
    ++counts[std::string_view(ops[i]->name).substr(0, ops[i]->name.find('.'))];
  }
  CHECK(counts["aten"] == 2686);
  CHECK(counts["_c10d_functional"] == 19);
  CHECK(counts["prims"] == 142);
  CHECK(counts["higher_order"] == 48);
}

TEST_CASE("ids of the op table are dense") {
  std::vector<bool> is_taken(num_builtin_ops());
  for (const Op* each : builtin_ops()) {
    INFO(each->name);
    REQUIRE(each->id.index() < is_taken.size());
    CHECK_FALSE(is_taken[each->id.index()]);
    is_taken[each->id.index()] = true;
    CHECK(each->is_builtin());
    CHECK(&builtin_op(each->id) == each);
    CHECK(find_op_id(each->name) == each->id);
  }
  CHECK(std::find(is_taken.begin(), is_taken.end(), false) == is_taken.end());
  CHECK_FALSE(find_op_id("my_lib.my_op.default").is_valid());
  CHECK_FALSE(find_op_id("").is_valid());
  CHECK_FALSE(opaque_op().is_builtin());
  CHECK_FALSE(described("lib::f(Tensor x) -> Tensor").is_builtin());
}

TEST_CASE("what the op table says of an op is consistent") {
  for (const Op* each : builtin_ops()) {
    INFO(each->name);
    CHECK(each->has(Effect::kMutates) == !each->writes.empty());
    CHECK(std::is_sorted(each->writes.begin(), each->writes.end()));
    CHECK((!each->hides_writes || !each->writes.empty()));
    CHECK((each->dropout_arg < 0 || each->has(Effect::kRandom)));
    CHECK((each->training_arg < 0 || !each->writes.empty()));
    const size_t arg_count = each->schema ? each->schema->args.size() : 0;
    CHECK(each->aliases.size() == (each->schema ? each->schema->returns.size() : 0));
    for (const uint8_t position : each->writes) CHECK(position < arg_count);
    for (const int16_t position : each->aliases) CHECK(position < static_cast<int16_t>(arg_count));
    const bool has_kind = each->view != ViewKind::kNone && each->view != ViewKind::kProjection;
    CHECK((!has_kind || !each->schema || each->aliases.at(0) == 0));
    CHECK((each->hands_on == HandsOn::kNothing || !each->schema || each->has(Effect::kBarrier)));
    CHECK((each->hands_on == HandsOn::kNothing || !each->schema || each->view == ViewKind::kNone));
    CHECK((!each->chooses_layout || (each->schema && each->aliases.at(0) < 0)));
  }
}

TEST_CASE("the table knows every op of the recorded graphs, and their schemas") {
  std::ifstream file(std::string(FXOPT_SOURCE_DIR "/tests/ir/data/dump_ops.txt"));
  size_t count = 0;
  size_t without_schema = 0;
  for (std::string line; std::getline(file, line); ++count) {
    INFO(line);
    const size_t tab = line.find('\t');
    const Op& known = op(line.substr(0, tab));
    CHECK_FALSE(known.is_opaque());
    CHECK(known.schema.has_value() == (tab != std::string::npos));
    without_schema += tab == std::string::npos;
    if (!known.schema) continue;
    const Schema recorded = parse_schema(line.substr(tab + 1)).value();
    CHECK(recorded.name == known.schema->name);
    REQUIRE(recorded.args.size() == known.schema->args.size());
    CHECK(recorded.returns.size() == known.schema->returns.size());
    for (size_t i = 0; i < recorded.args.size(); ++i) {
      CHECK(recorded.args[i].name == known.schema->args[i].name);
      CHECK(recorded.args[i].type == known.schema->args[i].type);
      CHECK(recorded.args[i].is_write == known.schema->args[i].is_write);
    }
  }
  CHECK(count == 128);
  CHECK(without_schema == 4);
}

TEST_CASE("an unknown target has no row") {
  CHECK(find_builtin_op("aten.mm") == nullptr);
  CHECK(find_builtin_op("aten.mm.defaul") == nullptr);
  CHECK(find_builtin_op("") == nullptr);
  CHECK(find_builtin_op("my_lib.my_op.default") == nullptr);
  CHECK(op("aten.mm.default").name == "aten.mm.default");
}

TEST_CASE("threads that ask for the same rows get the same ops") {
  const std::vector<std::string> names = {"aten.bmm.default", "aten.sin.default", "aten.cos.default",
                                          "aten.cat.default"};
  std::vector<std::vector<const Op*>> found(4);
  std::vector<std::thread> threads;
  for (std::vector<const Op*>& ops : found) {
    threads.emplace_back([&ops, &names] {
      for (const std::string& name : names) ops.push_back(find_builtin_op(name));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<const Op*>& ops : found) CHECK(ops == found[0]);
  CHECK(found[0][3]->name == "aten.cat.default");
}

TEST_CASE("writes come from the schema") {
  CHECK(op("aten.add.Tensor").is_pure());
  CHECK(op("aten.add.Tensor").writes.empty());
  CHECK(op("aten.add_.Tensor").writes == Positions{0});
  CHECK(op("aten.add_.Tensor").view == ViewKind::kIdentity);
  CHECK_FALSE(op("aten.add_.Tensor").is_pure());
  // An out-variant writes its last argument and returns it.
  CHECK(op("aten.add.out").writes == Positions{3});
  CHECK(op("aten.add.out").aliases == Aliases{3});
  CHECK(op("aten.add.out").view == ViewKind::kNone);
  CHECK(op("_c10d_functional.all_gather_into_tensor_out.default").writes == Positions{3});
  CHECK(op("aten.split_with_sizes_copy.out").writes == Positions{3});
  CHECK(op("aten._fused_adamw_.default").writes == Positions{0, 1, 2, 3, 4});
  CHECK(op("aten._foreach_add_.List").writes == Positions{0});
  CHECK(op("aten._foreach_add.List").writes.empty());
}

TEST_CASE("batch norm writes its running statistics without saying so") {
  for (const std::string_view name : {"aten.cudnn_batch_norm.default", "aten.native_batch_norm.default"}) {
    const Op& norm = op(name);
    CHECK_FALSE(norm.schema->mutates());
    CHECK(norm.writes == Positions{3, 4});
    CHECK(norm.hides_writes);
    CHECK(norm.training_arg == 5);
  }
  const Op& legit = op("aten._native_batch_norm_legit.default");
  CHECK(legit.writes == Positions{3, 4});
  CHECK_FALSE(legit.hides_writes);
  CHECK(legit.training_arg == 5);
  CHECK(op("aten._native_batch_norm_legit_functional.default").is_pure());
  CHECK(op("aten.native_batch_norm_backward.default").is_pure());
  // The out-variant writes its outputs whether it trains or not.
  CHECK(op("aten.native_batch_norm.out").writes == Positions{3, 4, 8, 9, 10});
  CHECK(op("aten.native_batch_norm.out").training_arg == -1);
}

TEST_CASE("random ops draw, their backward does not") {
  CHECK(op("aten.native_dropout.default").has(Effect::kRandom));
  CHECK(op("aten.native_dropout.default").in(OpSet::kSeeded));
  CHECK(op("aten.native_dropout_backward.default").is_pure());
  CHECK(op("aten.rand_like.default").in(OpSet::kPartitionerRandom));
  CHECK_FALSE(op("aten.bernoulli.default").in(OpSet::kPartitionerRandom));
  CHECK(op("aten.bernoulli.default").has(Effect::kRandom));
  CHECK(op("aten.normal_.default").has(Effect::kRandom));
  // The seed and the offset are arguments: the same call gives the same numbers.
  CHECK(op("rngprims.philox_rand.default").is_pure());
  CHECK(op("rngprims.philox_rand.default").in(OpSet::kSeeded));
  // Only Inductor's kernels draw from the seed that it is given.
  CHECK(op("prims.inductor_random.default").has(Effect::kRandom));
  CHECK(op("prims.inductor_randint.default").has(Effect::kRandom));
  CHECK(op("prims.inductor_lookup_seed.default").is_pure());
  CHECK(op("prims.inductor_seed.default").has(Effect::kRandom));
}

TEST_CASE("attention is random by its dropout probability") {
  CHECK(op("aten._scaled_dot_product_flash_attention.default").has(Effect::kRandom));
  CHECK(op("aten._scaled_dot_product_flash_attention.default").dropout_arg == 3);
  CHECK(op("aten._scaled_dot_product_efficient_attention.default").dropout_arg == 5);
  CHECK(op("aten._scaled_dot_product_efficient_attention_backward.default").is_pure());
  CHECK(op("aten._scaled_dot_product_efficient_attention_backward.default").dropout_arg == -1);
  CHECK(op("aten.native_dropout.default").dropout_arg == -1);
}

TEST_CASE("views share the storage of argument 0, copies do not") {
  CHECK(op("aten.view.default").view == ViewKind::kView);
  CHECK(op("aten.view_copy.default").view == ViewKind::kNone);
  CHECK(op("aten.clone.default").view == ViewKind::kNone);
  CHECK(op("aten.expand.default").view == ViewKind::kView);
  CHECK(op("aten.slice.Tensor").aliases == Aliases{0});
  CHECK(op("aten.slice_backward.default").aliases == Aliases{-1});
  CHECK(op("aten.reshape.default").view == ViewKind::kMaybeView);
  CHECK(op("aten.contiguous.default").view == ViewKind::kMaybeView);
  CHECK(op("aten.to.dtype").view == ViewKind::kMaybeView);
  CHECK(op("aten._to_copy.default").view == ViewKind::kNone);
  CHECK(op("aten.split.Tensor").view == ViewKind::kMultiView);
  CHECK(op("aten.unbind.int").view == ViewKind::kMultiView);
  CHECK(op("aten.split_with_sizes.default").view == ViewKind::kMultiView);
  CHECK(op("aten.split_with_sizes_copy.default").view == ViewKind::kNone);
  CHECK(op("aten.split_with_sizes_copy.default").is_multi_output);
  CHECK(op("operator.getitem").view == ViewKind::kProjection);
  CHECK(op("prims.broadcast_in_dim.default").view == ViewKind::kView);
  CHECK(op("prims.reshape.default").view == ViewKind::kNone);
}

TEST_CASE("aliases that the schema hides are known") {
  CHECK(op("aten._unsafe_view.default").view == ViewKind::kView);
  CHECK(op("aten._unsafe_view.default").hides_alias);
  CHECK_FALSE(op("aten.view.default").hides_alias);
  CHECK(op("aten.unsafe_split.Tensor").view == ViewKind::kMultiView);
  CHECK(op("aten.unsafe_split.Tensor").hides_alias);
  CHECK_FALSE(op("aten.split.Tensor").hides_alias);
  CHECK(op("prims.device_put.default").hides_alias);
  CHECK_FALSE(op("prims.convert_element_type.default").hides_alias);
  // Both returns are in the second argument, which is written.
  const Op& copy_in = op("fsdp.all_gather_copy_in.default");
  CHECK(copy_in.aliases == Aliases{1, 1});
  CHECK(copy_in.writes == Positions{1});
  CHECK((copy_in.hides_alias && copy_in.hides_writes));
  // Annotated as a write, but in fact a view.
  CHECK(op("prims.as_strided.default").writes.empty());
  CHECK(op("prims.as_strided.default").view == ViewKind::kView);
  CHECK(op("prims.copy_to.default").writes == Positions{0});
}

TEST_CASE("what an op shares in some calls only is known") {
  CHECK(op("aten.einsum.default").shared_arg == 1);
  CHECK_FALSE(op("aten.einsum.default").shares_only_empty);
  CHECK(op("aten.histogramdd.TensorList_bins").aliases == Aliases{-1, 1});
  CHECK(op("aten.histogramdd.TensorList_bins").may_return_argument);
  CHECK_FALSE(op("aten.histogramdd.int_bins").may_return_argument);
  CHECK(op("aten.native_dropout.default").shared_arg == 0);
  CHECK(op("aten.native_dropout.default").shares_only_empty);
  CHECK(op("aten.native_dropout.out").shared_arg == -1);
  CHECK(op("aten.cummaxmin_backward.default").shared_arg == 1);
  CHECK(op("aten.matmul.default").shared_arg == -1);
  CHECK(op("aten.where.default").joins_outputs);
  CHECK_FALSE(op("aten.where.self").joins_outputs);
  CHECK_FALSE(op("aten.nonzero.default").joins_outputs);
  for (const char* name : {"aten.copy_.default", "aten.zero_.default", "aten.fill_.Scalar", "aten.fill_.Tensor"}) {
    CHECK(op(name).overwrites);
  }
  CHECK_FALSE(op("aten.masked_fill_.Scalar").overwrites);
  CHECK_FALSE(op("aten.copy.default").overwrites);
  CHECK_FALSE(op("aten._foreach_zero_.default").overwrites);  // a list
  CHECK(op("aten.narrow.Tensor").reads_index);
  CHECK_FALSE(op("aten.narrow.default").reads_index);
  CHECK(op("aten.tensor_split.tensor_indices_or_sections").reads_index);
  CHECK_FALSE(op("aten.tensor_split.sections").reads_index);
}

TEST_CASE("what schemas hide is the list of README.md, and no more") {
  std::map<std::string, size_t> writes;
  std::map<std::string, size_t> aliases;
  for (const Op* each : builtin_ops()) {
    const std::string packet = each->name.substr(0, each->name.rfind('.'));
    if (each->hides_writes) ++writes[each->name.starts_with("c10d.") ? "c10d" : packet];
    if (each->hides_alias) ++aliases[each->name.starts_with("aten.") ? "aten" : packet.substr(0, packet.find('.'))];
  }
  CHECK(writes == std::map<std::string, size_t>{{"_c10d_functional.batch_p2p_ops", 1},
                                                {"_c10d_functional.irecv", 1},
                                                {"c10d_functional.batch_p2p_ops", 1},
                                                {"c10d_functional.irecv", 1},
                                                {"aten._batch_norm_impl_index", 1},
                                                {"aten._copy_from", 2},
                                                {"aten._copy_from_and_resize", 2},
                                                {"aten._cudnn_rnn_flatten_weight", 2},
                                                {"aten._saturate_weight_to_fp16", 1},
                                                {"aten.batch_norm", 1},
                                                {"aten.batch_norm_gather_stats", 2},
                                                {"aten.batch_norm_gather_stats_with_counts", 2},
                                                {"aten.batch_norm_update_stats", 2},
                                                {"aten.cudnn_batch_norm", 2},
                                                {"aten.instance_norm", 1},
                                                {"aten.miopen_batch_norm", 2},
                                                {"aten.native_batch_norm", 2},
                                                {"aten.set", 2},
                                                {"c10d", 18},
                                                {"fsdp.all_gather_copy_in", 1},
                                                {"inductor.resize_storage_bytes_", 1},
                                                {"onednn.qlinear_pointwise", 2},
                                                {"quantized.leaky_relu", 1},
                                                {"quantized.relu6", 1}});
  CHECK(aliases == std::map<std::string, size_t>{{"_c10d_functional", 5},
                                                 {"aten", 41},
                                                 {"c10d", 9},
                                                 {"c10d_functional", 3},
                                                 {"fsdp", 1},
                                                 {"inductor", 2},
                                                 {"onednn", 2},
                                                 {"prims", 1}});
}

TEST_CASE("collectives are launched and waited for") {
  for (const std::string_view name :
       {"all_gather_into_tensor", "all_gather_into_tensor_out", "all_gather_into_tensor_coalesced",
        "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced", "all_reduce", "all_reduce_",
        "all_reduce_coalesced_", "all_to_all_single", "broadcast", "broadcast_", "isend", "irecv", "batch_p2p_ops"}) {
    CHECK(op("_c10d_functional." + std::string(name) + ".default").has(Effect::kCollective));
  }
  CHECK(op("_dtensor.shard_dim_alltoall.default").has(Effect::kCollective));
  CHECK(op("_c10d_functional.all_reduce_.default").view == ViewKind::kIdentity);
  CHECK(op("_c10d_functional.all_reduce.default").view == ViewKind::kNone);
  const Op& wait = op("_c10d_functional.wait_tensor.default");
  CHECK(wait.has(Effect::kWaits));
  CHECK_FALSE(wait.has(Effect::kCollective));
  CHECK(wait.view == ViewKind::kIdentity);
  CHECK(wait.hides_alias);
  CHECK(op("_c10d_functional.wait_tensors.default").view == ViewKind::kIdentity);
  CHECK(op("ao.wait_tensor.default").has(Effect::kWaits));
  CHECK_FALSE(op("ao.wait_tensor.default").hides_alias);
  CHECK(op("ao.offload.default").is_pure());
}

TEST_CASE("host waits, assertions and barriers") {
  CHECK(op("aten._local_scalar_dense.default").has(Effect::kHostSync));
  CHECK(op("aten._local_scalar_dense.default").is_pure());
  CHECK(op("aten.nonzero.default").has(Effect::kHostSync));
  CHECK_FALSE(op("aten.nonzero_static.default").has(Effect::kHostSync));
  CHECK_FALSE(op("aten.sym_size.int").has(Effect::kHostSync));
  // Only a boolean index makes the host wait, and only a call's arguments show it.
  CHECK(op("aten.index.Tensor").mask_arg == 1);
  CHECK_FALSE(op("aten.index.Tensor").has(Effect::kHostSync));
  CHECK(op("aten.index_select.default").mask_arg == -1);
  CHECK(op("aten._assert_scalar.default").has(Effect::kAsserts));
  CHECK(op("aten._assert_async.msg").has(Effect::kAsserts));
  CHECK(op("aten.sym_constrain_range_for_size.default").has(Effect::kAsserts));
  CHECK(op("profiler._record_function_enter.default").has(Effect::kBarrier));
  CHECK(op("streams.wait_event.default").has(Effect::kBarrier));
  CHECK(op("aten.index_put.default").has(Effect::kNondeterministic));
  CHECK_FALSE(op("aten.index.Tensor").has(Effect::kNondeterministic));
}

TEST_CASE("in-place changes of sizes, strides and storage") {
  for (const char* name : {"aten.t_.default", "aten.unsqueeze_.default", "aten.as_strided_.default",
                           "aten.resize_.default", "aten.resize_as_.default", "aten.set_.source_Tensor"}) {
    INFO(name);
    CHECK(op(name).changes_metadata);
    CHECK(op(name).moves_storage == op(name).name.starts_with("aten.set_"));
  }
  CHECK(op("aten.addbmm_.default").changes_metadata);
  CHECK_FALSE(op("aten.baddbmm_.default").changes_metadata);
  CHECK_FALSE(op("aten.add_.Tensor").changes_metadata);
  CHECK_FALSE(op("aten.t.default").changes_metadata);
  CHECK(op("aten.conj.default").may_return_argument);
  CHECK_FALSE(op("aten.alias.default").may_return_argument);
  CHECK(op("torch._C._set_grad_enabled").has(Effect::kChangesMode));
  CHECK_FALSE(op("torch.sym_fresh_size").has(Effect::kChangesMode));
}

TEST_CASE("higher-order ops") {
  CHECK(op("higher_order.control_deps").has_subgraphs);
  CHECK(op("higher_order.flex_attention").compute == ComputeClass::kAttention);
  CHECK(op("higher_order.flex_attention").is_multi_output);
  CHECK(op("higher_order.flex_attention").is_pure());
  CHECK(op("higher_order.run_and_save_rng_state").has(Effect::kRandom));
  CHECK(op("higher_order.run_with_rng_state").is_pure());
  CHECK(op("higher_order.run_with_rng_state").operator_arg == 1);
  CHECK(op("higher_order.graphsafe_run_with_rng_state").operator_arg == 0);
  CHECK(op("higher_order.triton_kernel_wrapper_functional").is_pure());
  CHECK(op("higher_order.triton_kernel_wrapper_mutation").is_opaque());
  CHECK(op("higher_order.inductor_compiled_code").is_opaque());
}

TEST_CASE("the sets of the partitioner and of torchtitan") {
  // By packet: includes every overload.
  CHECK(op("aten.mm.default").in(OpSet::kComputeIntensive));
  CHECK(op("aten.mm.out").in(OpSet::kComputeIntensive));
  CHECK_FALSE(op("aten.baddbmm.default").in(OpSet::kComputeIntensive));
  CHECK_FALSE(op("aten._scaled_dot_product_cudnn_attention.default").in(OpSet::kComputeIntensive));
  CHECK(op("aten.view.default").in(OpSet::kPartitionerView));
  CHECK_FALSE(op("aten.reshape.default").in(OpSet::kPartitionerView));
  CHECK(op("aten.reshape.default").in(OpSet::kRecomputable));
  CHECK(op("operator.getitem").in(OpSet::kRecomputable));
  CHECK(op("operator.add").in(OpSet::kRecomputable));
  CHECK_FALSE(op("operator.not_").in(OpSet::kRecomputable));
  CHECK_FALSE(op("aten.cat.default").in(OpSet::kRecomputable));
  CHECK(op("prims.prepare_softmax_online.default").in(OpSet::kRecomputable));
  // By overload.
  CHECK(op("aten.mm.default").in(OpSet::kTitanSave));
  CHECK_FALSE(op("aten.mm.out").in(OpSet::kTitanSave));
  CHECK(op("aten.max.default").in(OpSet::kTitanSave));
  CHECK_FALSE(op("aten.max.dim").in(OpSet::kTitanSave));
  CHECK(op("_c10d_functional.reduce_scatter_tensor.default").in(OpSet::kTitanSave));
  CHECK_FALSE(op("_c10d_functional.all_gather_into_tensor.default").in(OpSet::kTitanSave));
  CHECK(op("higher_order.flex_attention").in(OpSet::kTitanSave));
  CHECK(op("deepep.dispatch.default").in(OpSet::kTitanSave));
  CHECK(op("aten.silu.default").in(OpSet::kPointwiseTag));
  CHECK_FALSE(op("aten.hardswish.default").in(OpSet::kPointwiseTag));
}

TEST_CASE("the partitioner's lists are complete") {
  std::map<std::string, OpSet> packets;
  for (const Op* each : builtin_ops()) {
    if (each->schema) packets[each->name.substr(0, each->name.rfind('.'))] = each->sets;
  }
  const auto members = [&packets](OpSet set) {
    return std::count_if(packets.begin(), packets.end(),
                         [set](const auto& row) { return has_op_set(row.second, set); });
  };
  CHECK(members(OpSet::kComputeIntensive) == 11);
  CHECK(members(OpSet::kPartitionerView) == 12);
  CHECK(members(OpSet::kPartitionerRandom) == 3);
  // 353 in the framework, including 43 Python functions.
  CHECK(members(OpSet::kRecomputable) == 310);
}

TEST_CASE("compute classes") {
  const std::pair<std::string_view, ComputeClass> cases[] = {
      {"aten.add.Tensor", ComputeClass::kPointwise},
      {"aten.sum.dim_IntList", ComputeClass::kReduction},
      {"aten.max.default", ComputeClass::kReduction},
      {"aten.max.other", ComputeClass::kPointwise},
      {"aten.bmm.default", ComputeClass::kContraction},
      {"aten._grouped_mm.default", ComputeClass::kContraction},
      {"aten.t.default", ComputeClass::kView},
      {"aten.t_.default", ComputeClass::kView},
      {"aten.t_copy.default", ComputeClass::kDataMovement},
      {"aten.cat.default", ComputeClass::kDataMovement},
      {"aten.embedding.default", ComputeClass::kGatherScatter},
      {"aten.zeros.default", ComputeClass::kFactory},
      {"aten._softmax.default", ComputeClass::kNormalization},
      {"aten.topk.default", ComputeClass::kSort},
      {"aten.item.default", ComputeClass::kScalar},
      {"operator.floordiv", ComputeClass::kScalar},
      {"aten.convolution.default", ComputeClass::kConvolution},
      {"aten.randn.default", ComputeClass::kRandom},
      {"aten._fused_adam_.default", ComputeClass::kOptimizer},
      {"aten._linalg_svd.default", ComputeClass::kOther},
      {"aten._scaled_dot_product_flash_attention.default", ComputeClass::kAttention},
      {"_c10d_functional.all_reduce.default", ComputeClass::kCollective},
      {"_c10d_functional.wait_tensor.default", ComputeClass::kWait},
      {"aten._assert_async.msg", ComputeClass::kAssertion},
      {"higher_order.cond", ComputeClass::kHigherOrder},
  };
  for (const auto& [name, expected] : cases) {
    INFO(name);
    CHECK(compute_class_name(op(name).compute) == compute_class_name(expected));
  }
}

TEST_CASE("ops whose results hold arguments by reference are barriers, not opaque") {
  for (const char* name : {"aten.sparse_coo_tensor.indices", "aten._make_dual.default", "aten.set.source_Tensor",
                           "aten.requires_grad_.default", "aten.is_leaf.default", "aten._backward.default",
                           "aten.q_per_channel_scales.default", "quantized.linear_prepack.default",
                           "quantized.linear_dynamic_fp16.default", "mkldnn_prepacked.conv2d_prepack.default"}) {
    INFO(name);
    CHECK_FALSE(op(name).is_opaque());
    CHECK(op(name).has(Effect::kBarrier));
    CHECK(op(name).hands_on == HandsOn::kAnything);
  }
  CHECK(op("aten._backward.default").has(Effect::kUnknownWrites));
  CHECK(op("pippy._pipe_split.default").has(Effect::kBarrier));
  CHECK(op("cplib.flex_cp_allgather.default").has(Effect::kCollective));
  CHECK(op("quantized.linear_prepack.default").yields_tensor());  // packed weights hold tensors
  CHECK_FALSE(op("aten.is_leaf.default").yields_tensor());
  CHECK_FALSE(op("c10d.send.default").yields_tensor());  // an object without tensors
  CHECK(op("aten.clone.default").hands_on == HandsOn::kNothing);
  CHECK(described("lib::pack(Tensor x) -> __torch__.torch.classes.lib.Packed", {}, true).hands_on ==
        HandsOn::kAnything);
  CHECK(described("lib::f(Tensor x) -> Tensor", {}, true).hands_on == HandsOn::kNothing);
}

TEST_CASE("an op that a file describes is opaque unless it is promised to be pure") {
  const std::string_view text = "lib::f(Tensor x, Tensor y) -> Tensor";
  CHECK(described(text).is_opaque());
  CHECK(described(text, {"pt2_compliant_tag", "pointwise"}).is_opaque());
  CHECK(described(text, {}, false).is_opaque());
  CHECK(described(text, {}, true).is_pure());
  CHECK(described(text, {}, true, false).is_pure());
  const Op ordered = described(text, {}, true, true);
  CHECK(ordered.is_opaque());
  CHECK(ordered.has(Effect::kBarrier));
  CHECK(described(text, {"maybe_aliasing_or_mutating"}, true).is_opaque());
  CHECK(described(text, {}, true).name == "lib.f.default");
}

TEST_CASE("an op that a file describes takes its writes, aliases and effects from schema and tags") {
  const Op mutating = described("lib::f(Tensor x, Tensor(a!) y) -> ()");
  CHECK(mutating.writes == Positions{1});
  CHECK(mutating.has(Effect::kMutates));
  CHECK(mutating.is_opaque());
  CHECK_FALSE(mutating.hides_writes);
  const Op promised = described("lib::f(Tensor x, Tensor(a!) y) -> Tensor(a!)", {}, true);
  CHECK_FALSE(promised.is_opaque());
  CHECK_FALSE(promised.is_pure());
  CHECK(promised.aliases == Aliases{1});
  CHECK(promised.view == ViewKind::kNone);

  CHECK(described("lib::f(Tensor(a) x) -> Tensor(a)", {}, true).view == ViewKind::kView);
  CHECK(described("lib::f(Tensor(a) x) -> Tensor(a)", {}, true).compute == ComputeClass::kView);
  CHECK(described("lib::f(Tensor(a|b) x, Tensor(c) y) -> Tensor(b)", {}, true).aliases == Aliases{0});
  CHECK(described("lib::f(Tensor(ab) x) -> Tensor(a)", {}, true).aliases == Aliases{-1});
  CHECK(described("lib::f(Tensor(a -> *) x) -> Tensor(a)[]", {}, true).view == ViewKind::kMultiView);
  CHECK(described("lib::f(Tensor(a!) x) -> Tensor(a!)", {}, true).view == ViewKind::kIdentity);
  CHECK(described("lib::f(Tensor x) -> Tensor(*)", {}, true).is_opaque());
  CHECK(described("lib::f(Tensor x) -> (Tensor, Tensor)", {}, true).is_multi_output);
  CHECK_FALSE(described("lib::f(Tensor x) -> Tensor", {}, true).is_multi_output);

  const Op seeded = described("lib::f(Tensor x, float dropout_p=0.) -> Tensor", {"nondeterministic_seeded"}, true);
  CHECK(seeded.has(Effect::kRandom));
  CHECK(seeded.in(OpSet::kSeeded));
  CHECK(seeded.dropout_arg == 1);
  const Op syncing = described("lib::f(Tensor x) -> Tensor", {"dynamic_output_shape"}, true);
  CHECK(syncing.has(Effect::kHostSync));
  CHECK(described("lib::f(Tensor x) -> Tensor", {"pointwise"}, true).compute == ComputeClass::kPointwise);
}

TEST_CASE("the op nobody described") {
  CHECK(opaque_op().is_opaque());
  CHECK_FALSE(opaque_op().is_pure());
  CHECK(&opaque_op() == &opaque_op());
  CHECK_FALSE(opaque_op().schema.has_value());
}

TEST_CASE("effects have names, in a fixed order") {
  CHECK(effect_names(Effect::kNone).empty());
  CHECK(effect_names(Effect::kNondeterministic | Effect::kMutates) ==
        std::vector<std::string_view>{"mutates", "nondeterministic"});
  CHECK(compute_class_name(ComputeClass::kGatherScatter) == "gather-scatter");
}

TEST_CASE("op table: fxopt.save knows the rows from PyTorch's registry, and no others") {
  std::ifstream file(FXOPT_SOURCE_DIR "/scripts/fxopt/known_ops.txt");
  std::set<std::string> listed, rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string packet, overload;
    if (line.starts_with('#') || !(words >> packet)) continue;
    while (words >> overload) listed.insert(packet + "." + overload);
  }
  for (const char* name : {"aten.inc", "libraries.inc"}) {
    std::ifstream table(std::string(FXOPT_SOURCE_DIR "/ir/ops/") + name);
    for (std::string line; std::getline(table, line);) {
      if (line.starts_with("{\"")) rows.insert(line.substr(2, line.find('"', 2) - 2));
    }
  }
  CHECK(listed == rows);
  for (const std::string& name : listed) CHECK(find_builtin_op(name) != nullptr);
}

TEST_CASE("op table: kernels of recurrent layers, quantization-aware training and packed products") {
  for (const char* name :
       {"aten.mkldnn_rnn_layer.default", "aten._cudnn_rnn.default", "aten._thnn_fused_lstm_cell.default",
        "aten.fake_quantize_per_tensor_affine_cachemask.default", "aten._efficientzerotensor.default",
        "aten._weight_int4pack_mm.default", "aten._sparse_semi_structured_mm.default"}) {
    INFO(name);
    REQUIRE(find_builtin_op(name) != nullptr);
    CHECK(find_builtin_op(name)->writes.empty());
  }
  CHECK(find_builtin_op("aten._cudnn_rnn.default")->has(Effect::kRandom));
  CHECK_FALSE(find_builtin_op("aten.mkldnn_rnn_layer.default")->has(Effect::kRandom));
  CHECK(find_builtin_op("aten._fused_moving_avg_obs_fq_helper.default")->writes.size() == 4);
  CHECK_FALSE(find_builtin_op("aten._cudnn_rnn_flatten_weight.default")->writes.empty());
}

}  // namespace
}  // namespace fxopt
