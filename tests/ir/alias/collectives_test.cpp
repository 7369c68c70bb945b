// The payload and the group of collectives.

#include "ir/alias/collectives.h"

#include <memory>

#include "ir/alias/sizes.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

std::vector<GroupRow> groups_of(const Module& module) {
  std::vector<NodeId> nodes;
  for (const NodeId node : module.main().nodes()) nodes.push_back(node);
  return collectives_by_group(module.main(), nodes, symbol_values(module, {}));
}

CollectiveKind kind_of(const std::string& target) {
  const Op* op = find_builtin_op(target);
  REQUIRE(op != nullptr);
  return collective_kind(*op);
}

TEST_CASE("the pattern of a collective is told from its name") {
  CHECK(kind_of("_c10d_functional.all_gather_into_tensor_coalesced.default") == CollectiveKind::kAllGather);
  CHECK(kind_of("c10d._allgather_base_.default") == CollectiveKind::kAllGather);
  CHECK(kind_of("_c10d_functional.reduce_scatter_tensor.default") == CollectiveKind::kReduceScatter);
  CHECK(kind_of("cplib.flex_cp_allgather.default") == CollectiveKind::kAllGather);
  CHECK(kind_of("cplib.flex_cp_allgather_backward.default") == CollectiveKind::kReduceScatter);
  CHECK(kind_of("_c10d_functional.all_reduce_.default") == CollectiveKind::kAllReduce);
  CHECK(kind_of("_c10d_functional_autograd.all_to_all_single.default") == CollectiveKind::kAllToAll);
  CHECK(kind_of("c10d.broadcast_.default") == CollectiveKind::kBroadcast);
  CHECK(kind_of("symm_mem.fused_all_gather_matmul.default") == CollectiveKind::kOther);  // does more than gather
  CHECK(kind_of("c10d.send.default") == CollectiveKind::kOther);
  CHECK(kind_of("aten.mm.default") == CollectiveKind::kOther);
}

TEST_CASE("bytes around a ring") {
  CHECK(ring_bytes(CollectiveKind::kAllGather, 100, 4) == 300);
  CHECK(ring_bytes(CollectiveKind::kReduceScatter, 100, 4) == 75);
  CHECK(ring_bytes(CollectiveKind::kAllToAll, 100, 4) == 75);
  CHECK(ring_bytes(CollectiveKind::kAllReduce, 100, 4) == 150);
  CHECK(ring_bytes(CollectiveKind::kAllReduce, 4, 16) == 8);  // 7.5, rounded up
  CHECK(ring_bytes(CollectiveKind::kBroadcast, 100, 4) == 100);
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                    CollectiveKind::kAllReduce, CollectiveKind::kBroadcast}) {
    CHECK(ring_bytes(kind, 100, 1) == 0);
    CHECK_FALSE(ring_bytes(kind, 100, 0).has_value());
  }
  CHECK_FALSE(ring_bytes(CollectiveKind::kOther, 100, 4).has_value());
  CHECK(ring_bytes(CollectiveKind::kAllGather, INT64_MAX / 2, 3) == INT64_MAX - 1);
  CHECK_FALSE(ring_bytes(CollectiveKind::kAllGather, INT64_MAX / 2, 4).has_value());
}

TEST_CASE("collectives by group: sums, most moved bytes first, mesh dimension") {
  const std::unique_ptr<Module> module = parse(R"(symbol {name="u0", kind=unbacked}
process_group {uid="7", ranks=[0, 1, 2, 3]}
process_group {uid="8", ranks=[0, 1]}
device_mesh {name="world", device_type="cuda", shape=[4], dim_names=["dp"], ranks=[0, 1, 2, 3], groups=["7"]}
graph @main {
  %x: f32[16] = placeholder()
  %u: f32[u0] = placeholder()
  %a: f32[64] = _c10d_functional.all_reduce.default(%x, "sum", "8")
  %b: f32[64] = _c10d_functional.all_gather_into_tensor.default(%x, 4, "7")
  %c = _c10d_functional.all_gather_into_tensor_coalesced.default([%x, %x], 4, "7")
  %d: f32[16] = _c10d_functional.all_reduce.default(%u, "sum", "7")
  %e: f32[16] = _c10d_functional.all_reduce.default(%x, "sum", "9")
  return (%a, %b, %c, %d, %e)
}
)");
  const std::vector<GroupRow> rows = groups_of(*module);
  REQUIRE(rows.size() == 3);
  CHECK(module->text(rows[0].key.uid) == "7");
  CHECK(module->text(rows[0].mesh) == "world");
  REQUIRE(rows[0].mesh_dims.size() == 1);
  CHECK(module->text(rows[0].mesh_dims[0]) == "dp");
  CHECK(rows[0].calls() == 3);
  CHECK(rows[0].input_bytes() == 64 + 128);
  CHECK(rows[0].moved_bytes() == 3 * (64 + 128));
  REQUIRE(rows[0].collectives.size() == 3);
  CHECK(rows[0].collectives[0].input_bytes == 128);  // the coalesced one
  CHECK(rows[0].collectives[2].unknown_input == 1);
  CHECK(rows[0].collectives[2].unknown_moved == 1);
  CHECK(module->text(rows[1].key.uid) == "8");
  CHECK(rows[1].moved_bytes() == 64);
  CHECK(rows[1].mesh_dims.empty());
  CHECK(rows[2].group == nullptr);  // the file lists no "9"
  CHECK(rows[2].input_bytes() == 64);
  CHECK(rows[2].collectives[0].unknown_moved == 1);
}

TEST_CASE("collectives: what is written to is no input, and a group may be an argument of any kind") {
  const std::unique_ptr<Module> module = parse(R"(process_group {uid="7", ranks=[0, 1]}
graph @main {
  %x: f32[16] = placeholder()
  %o: f32[32] = placeholder()
  %pg: opaque("ProcessGroup", group="7") = placeholder()
  %a: f32[32] = _c10d_functional.all_gather_into_tensor_out.default(%x, 2, "7", out=%o)
  %b: f32[16] = _c10d_functional.all_reduce.default(%x, "sum", group_name="7")
  %c: f32[16] = _c10d_functional.all_reduce.default(%x, "sum", group("7"))
  %d: f32[16] = _c10d_functional.all_reduce.default(%x, "sum", %pg)
  return (%a, %b, %c, %d)
}
)");
  const std::vector<GroupRow> rows = groups_of(*module);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].calls() == 4);
  CHECK(rows[0].input_bytes() == 4 * 64);
}

}  // namespace
}  // namespace fxopt
