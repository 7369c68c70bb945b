// Values of calls that were traced without them, and storages as large as the storage they are
// cloned from.

#include "ir/values/complete_values.h"

#include <memory>
#include <string>

#include "ir/alias/storages.h"
#include "ir/io/io.h"
#include "ir/memory/memory.h"
#include "tests/catch.h"
#include "tests/parse.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

MemoryReport analyze(const Module& module) { return analyze_memory(module.main(), StorageMap(module.main())); }

const char* const kDropout = R"(graph @main {
  %s: u8[16] = placeholder()
  %x: f32[8, 4] = placeholder()
  %y: f32[8, 4] = aten.exp.default(%x)
  %run = higher_order.run_with_rng_state(%s, op(aten.native_dropout.default), %y, 0.1, True)
  %a: f32[8, 4] = operator.getitem(%run, 0)
  return %a
})";

TEST_CASE("complete values: what getitems show, and a mask that nobody takes", "[memory]") {
  const std::unique_ptr<Module> module = parse(kDropout);
  CHECK(analyze(*module).unknown_buffers == 1);
  CHECK(complete_values(*module) == 1);
  const MemoryReport report = analyze(*module);
  CHECK(report.unknown_buffers == 0);
  CHECK(report.peak_bytes() == 16 + 128 + 128 + 128 + 32);  // s, x, y, the result, the mask
  CHECK(complete_values(*module) == 0);
}

TEST_CASE("complete values: the state that is saved beside the result", "[memory]") {
  const std::unique_ptr<Module> module = parse(R"(graph @main {
  %x: f32[8, 4] = placeholder()
  %run = higher_order.run_and_save_rng_state(op(aten.native_dropout.default), %x, 0.1, True)
  %state: u8[16] = operator.getitem(%run, 0)
  %pair = operator.getitem(%run, 1)
  %mask: b8[8, 4] = operator.getitem(%pair, 1)
  return (%state, %mask)
})");
  CHECK(complete_values(*module) == 1);
  const MemoryReport report = analyze(*module);
  CHECK(report.unknown_buffers == 0);
  CHECK(report.peak_bytes() == 128 + 16 + 128 + 32);
}

TEST_CASE("complete values: an element that nothing shows leaves the call alone", "[memory]") {
  const std::unique_ptr<Module> module =
      parse(replaced(kDropout, "aten.native_dropout.default", "aten.native_layer_norm.default"));
  CHECK(complete_values(*module) == 0);
  CHECK(analyze(*module).unknown_buffers == 1);
}

// Bytes of %y.
int64_t bytes_of(const std::string& nodes) {
  const std::unique_ptr<Module> module = parse("graph @main {\n" + nodes + "  return %y\n}\n");
  const StorageMap storages(module->main());
  const NodeId y = module->main().find(module->strings.find("y"));
  return analyze_memory(module->main(), storages).lifetimes[storages.buffers(y)[0].index()].bytes;
}

TEST_CASE("memory: a copy into a view of little is as large as all of its storage", "[memory]") {
  const std::string view = R"(
  %base: f32[64, 256] = placeholder()
  %src: f32[64, 4] = placeholder()
  %v: f32[64, 4](256, 1) = aten.slice.Tensor(%base, 1, 0, 4)
)";
  CHECK(bytes_of(view + "  %y: f32[64, 4](256, 1) = aten.copy.default(%v, %src)\n") == 65536);
  CHECK(bytes_of(view + "  %y: f32[64, 4](256, 1) = aten.slice_scatter.default(%v, %src, 1)\n") == 65536);
  CHECK(bytes_of(view + "  %y: f32[64, 4] = aten.clone.default(%v)\n") == 1024);
  CHECK(bytes_of(view + "  %y: f32[64, 4] = aten.copy.default(%src, %v)\n") == 1024);
  // With strides not preserved, they follow an argument whose elements share memory.
  CHECK(bytes_of(R"(
  %one: f32[1, 4] = placeholder()
  %src: f32[64, 4] = placeholder()
  %v: f32[64, 4](0, 1) = aten.expand.default(%one, [64, 4])
  %y: f32[64, 4] = aten.copy.default(%v, %src)
)") == 1024);
}

}  // namespace
}  // namespace fxopt
