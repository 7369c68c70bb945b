#include <string>

#include "ir/alias/sizes.h"
#include "ir/alias/storages.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

// Bytes of the storage of the last call's tensor `index`. The expected values were measured in
// PyTorch 2.15 on a CPU: scripts/peers/layouts.py.
std::optional<int64_t> last_bytes(const std::string& lines, size_t index = 0) {
  const std::unique_ptr<Module> module = parse("graph @main {\n%x: f32[64, 512] = placeholder()\n" + lines + "\n}");
  const StorageMap storages(module->main());
  NodeId last;
  for (const NodeId node : module->main().nodes()) {
    if (module->main()[node].is_call()) last = node;
  }
  return evaluate_size(*module, size_source(module->main(), storages, storages.buffers(last)[index]), {});
}

TEST_CASE("room: a reduced loss lies in the storage of its terms", "[alias][room]") {
  const std::string target = "%y: f32[64, 512] = placeholder()\n";
  for (const char* name : {"mse_loss", "smooth_l1_loss", "soft_margin_loss"}) {
    const std::string call = "aten." + std::string(name) + ".default(%x, %y";
    CHECK(last_bytes(target + "%l: f32[] = " + call + ")\nreturn %l") == 64 * 512 * 4);
    CHECK(last_bytes(target + "%l: f32[] = " + call + ", 2)\nreturn %l") == 64 * 512 * 4);
    CHECK(last_bytes(target + "%l: f32[64, 512] = " + call + ", 0)\nreturn %l") == 64 * 512 * 4);
  }
  CHECK(last_bytes(target + "%l: f32[] = aten.binary_cross_entropy.default(%x, %y, None, 1)\nreturn %l") ==
        64 * 512 * 4);
  CHECK(last_bytes(target + "%l: f32[] = aten.huber_loss.default(%x, %y)\nreturn %l") == 4);
}

TEST_CASE("room: terms of a loss are broadcast, strided inputs are dense there", "[alias][room]") {
  CHECK(last_bytes("%y: f32[512] = placeholder()\n%l: f32[] = aten.mse_loss.default(%y, %x)\nreturn %l") ==
        64 * 512 * 4);
  CHECK(last_bytes("%y: f32[1, 512] = placeholder()\n%e: f32[64, 512](0, 1) = aten.expand.default(%y, [64, 512])\n"
                   "%l: f32[] = aten.mse_loss.default(%e, %e)\nreturn %l") == 64 * 512 * 4);
  CHECK(last_bytes(
            "%y: f64[64, 1] = placeholder()\n%z: f64[512] = placeholder()\n%l: f64[] = aten.mse_loss.default(%y, %z)\n"
            "return %l") == 64 * 512 * 8);
}

TEST_CASE("room: an image that is folded lies in a storage of all columns", "[alias][room]") {
  const std::string fold = ", [32, 32], [3, 3], [1, 1], [1, 1], [1, 1])\nreturn %f";
  CHECK(last_bytes("%u: f32[2, 36, 1024] = placeholder()\n%f: f32[2, 4, 32, 32] = aten.col2im.default(%u" + fold) ==
        294912);
  // Fewer columns than pixels.
  CHECK(last_bytes("%u: f32[2, 4, 256] = placeholder()\n%f: f32[2, 4, 32, 32] = aten.col2im.default(%u, [32, 32], [1, "
                   "1], [1, 1],"
                   " [0, 0], [2, 2])\nreturn %f") == 32768);
}

TEST_CASE("room: bags keep one index more, and a size for each offset", "[alias][room]") {
  const std::string bag =
      "%i: i64[6] = placeholder()\n%o: i64[3] = placeholder()\n%b: (f32[2, 512], i64[6], i64[2], i64[2]) = "
      "aten._embedding_bag.default(%x, %i, %o, False, 1, False, None, True)\nreturn %b";
  CHECK(last_bytes(bag, 0) == 2 * 512 * 4);
  CHECK(last_bytes(bag, 1) == 56);
  CHECK(last_bytes(bag, 2) == 24);
  CHECK(last_bytes(bag, 3) == 16);
}

TEST_CASE("room: what the file records counts where it is larger, and symbols are followed", "[alias][room]") {
  const auto peak = [](const std::string& text) {
    const std::unique_ptr<Module> module = parse(text);
    const StorageMap storages(module->main());
    NodeId loss;
    for (const NodeId node : module->main().nodes()) loss = module->main()[node].is_call() ? node : loss;
    const SizeSource source = size_source(module->main(), storages, storages.buffers(loss)[0]);
    CHECK(size_expressions(*module, source).size() == (text.find("symbol") != std::string::npos ? 1 : 0));
    return evaluate_size(*module, source, symbol_values(*module, {}));
  };
  CHECK(peak("storage {id=1, bytes=400}\ngraph @main {\n%x: f32[8] = placeholder()\n"
             "%l: f32[]$1 = aten.mse_loss.default(%x, %x)\nreturn %l\n}") == 400);
  CHECK(peak("symbol {name=\"s0\", kind=backed, min=2, max=64, hint=8}\ngraph @main {\n%x: f32[s0] = placeholder()\n"
             "%l: f32[] = aten.mse_loss.default(%x, %x)\nreturn %l\n}") == 32);
}

}  // namespace
}  // namespace fxopt
