// Ops that copy only if they must: the file decides if it records storages, else the geometry of
// the two tensors.
#include <memory>
#include <string>

#include "ir/alias/storages.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/must.h"

namespace fxopt {
namespace {

enum class Sharing { kSame, kMaybe, kNever };

std::string name(Sharing sharing) {
  return sharing == Sharing::kSame ? "same" : sharing == Sharing::kMaybe ? "maybe" : "never";
}

// The relation of the storages of %a and %b in a graph of these lines.
std::string sharing(const std::string& lines, const std::string& header = "") {
  INFO(lines);
  std::unique_ptr<Module> module = must(parse_text(header + "graph @main {\n" + lines + "return %b }", "test"));
  const Graph& graph = module->main();
  const StorageMap map(graph);
  const BufferId a = map.buffers(graph.find(module->strings.find("a")))[0];
  const BufferId b = map.buffers(graph.find(module->strings.find("b")))[0];
  if (a == b) return name(Sharing::kSame);
  return name(map.alias_class(a) == map.alias_class(b) ? Sharing::kMaybe : Sharing::kNever);
}

TEST_CASE("storages: a reshape that strides allow is a view, one across a gap a copy", "[storages]") {
  const std::string slice = "%a: f32[8, 12] = placeholder()\n%s: f32[8, 4](12, 1) = aten.slice.Tensor(%a, 1, 0, 4)\n";
  CHECK(sharing(slice + "%b: f32[8, 2, 2](12, 2, 1) = aten.reshape.default(%s, [8, 2, 2])\n") == "same");
  CHECK(sharing(slice + "%b: f32[2, 4, 1, 4](48, 12, 4, 1) = aten.reshape.default(%s, [2, 4, 1, 4])\n") == "same");
  CHECK(sharing(slice + "%b: f32[32] = aten.reshape.default(%s, [32])\n") == "never");
  CHECK(sharing(slice + "%b: f32[16, 2] = aten.reshape.default(%s, [16, 2])\n") == "never");
}

TEST_CASE("storages: a reshape keeps the offset of what it views", "[storages]") {
  const std::string slice = "%a: f32[8, 4] = placeholder()\n%s: f32[4, 4]+16 = aten.slice.Tensor(%a, 0, 4, 8)\n";
  CHECK(sharing(slice + "%b: f32[16]+16 = aten.reshape.default(%s, [16])\n") == "same");
  CHECK(sharing(slice + "%b: f32[16] = aten.reshape.default(%s, [16])\n") == "never");
}

TEST_CASE("storages: repeated elements merge only with themselves", "[storages]") {
  const std::string expand = "%a: f32[1, 3] = placeholder()\n%e: f32[4, 3](0, 1) = aten.expand.default(%a, [4, 3])\n";
  CHECK(sharing(expand + "%b: f32[2, 2, 3](0, 0, 1) = aten.reshape.default(%e, [2, 2, 3])\n") == "same");
  CHECK(sharing(expand + "%b: f32[12] = aten.reshape.default(%e, [12])\n") == "never");
}

TEST_CASE("storages: contiguous hands back what is contiguous already", "[storages]") {
  CHECK(sharing("%a: f32[4, 8] = placeholder()\n%b: f32[4, 8] = aten.contiguous.default(%a)\n") == "same");
  CHECK(sharing("%a: f32[4, 8](1, 4) = placeholder()\n%b: f32[4, 8] = aten.contiguous.default(%a)\n") == "never");
}

TEST_CASE("storages: a conversion to the tensor's own dtype is no conversion, unless a copy is asked for",
          "[storages]") {
  const std::string a = "%a: f32[4] = placeholder()\n";
  CHECK(sharing(a + "%b: f32[4] = aten.to.dtype(%a, dtype(f32))\n") == "same");
  CHECK(sharing(a + "%b: f32[4] = aten.to.dtype(%a, dtype(f32), False, False)\n") == "same");
  CHECK(sharing(a + "%b: f32[4] = aten.to.dtype(%a, dtype(f32), False, True)\n") == "maybe");
  CHECK(sharing(a + "%b: f16[4] = aten.to.dtype(%a, dtype(f16))\n") == "never");
}

TEST_CASE("storages: without an annotation, equal tensors prove nothing", "[storages]") {
  CHECK(sharing("%a: f32[4] = placeholder()\n%b: f32[4] = aten.dropout.default(%a, 0.5, True)\n") == "maybe");
}

TEST_CASE("storages: what is symbolic, empty or not recorded is left open", "[storages]") {
  const std::string symbol = "symbol {name=\"s0\", kind=backed}\n";
  CHECK(sharing("%a: f32[s0, 4] = placeholder()\n%b: f32[s0 * 4] = aten.reshape.default(%a, [-1])\n", symbol) ==
        "maybe");
  CHECK(sharing("%a: f32[s0, 4] = placeholder()\n%b: f32[s0, 4] = aten.contiguous.default(%a)\n", symbol) == "same");
  CHECK(sharing("%a: f32[0, 4] = placeholder()\n%b: f32[4, 0] = aten.reshape.default(%a, [4, 0])\n") == "maybe");
  CHECK(sharing("%a = placeholder()\n%b = aten.reshape.default(%a, [4, 0])\n") == "maybe");
}

TEST_CASE("storages: einsum of one operand may be a view of it, and an empty dropout its argument", "[storages]") {
  const std::string a = "%a: f32[2, 3] = placeholder()\n%e: f32[0, 2] = placeholder()\n";
  CHECK(sharing(a + "%b: f32[3, 2](1, 3) = aten.einsum.default(\"ij->ji\", [%a])\n") == "maybe");
  CHECK(sharing(a + "%b: f32[0, 3] = aten.mm.default(%e, %a)\n") == "never");
  CHECK(sharing(a + "%b: (f32[2, 3], b8[2, 3]) = aten.native_dropout.default(%a, 0.5, True)\n") == "never");
  CHECK(sharing("%a: f32[0, 3] = placeholder()\n%b: (f32[0, 3], f32[0, 3]) = aten.native_dropout.default(%a, 0.5, "
                "True)\n") == "maybe");
  CHECK(sharing("%a: f32[s0] = placeholder()\n%b: (f32[s0], b8[s0]) = aten.native_dropout.default(%a, 0.5, True)\n",
                "symbol {name=\"s0\", kind=backed}\n") == "maybe");
}

TEST_CASE("storages: a getitem of a tuple that is written out is one of its tensors", "[storages]") {
  const std::string a = "%a: f32[4] = placeholder()\n%c: f32[4] = placeholder()\n";
  CHECK(sharing(a + "%b: f32[4] = operator.getitem((%c, %a), 1)\n") == "maybe");
  CHECK(sharing(a + "%b: f32[4] = operator.getitem((%c, %c), 1)\n") == "never");
}

TEST_CASE("storages: a getitem of a tensor by a tensor may be a view of fewer elements", "[storages]") {
  const std::string a = "%a: f32[4, 3] = placeholder()\n%i: i64[] = placeholder()\n";
  CHECK(sharing(a + "%b: f32[3]+3 = operator.getitem(%a, %i)\n") == "maybe");
  CHECK(sharing(a + "%b: f32[3]+3 = operator.getitem(%a, 1)\n") == "same");
}

TEST_CASE("storages: the tensors decide before the file's ids where the op copies only if it must", "[storages]") {
  const std::string ids = "storage {id=0}\nstorage {id=1}\n";
  CHECK(sharing("%a: f32[4]$0 = placeholder()\n%b: f32[4]$1 = aten.contiguous.default(%a)\n", ids) == "same");
  CHECK(sharing("%a: f32[4, 8]$0 = placeholder()\n%b: f32[32]$1 = aten.reshape.default(%a, [32])\n", ids) == "same");
}

TEST_CASE("storages: else the file's ids decide", "[storages]") {
  const std::string ids = "storage {id=0}\nstorage {id=1}\n";
  CHECK(sharing("%a: f32[4, 8](1, 4)$0 = placeholder()\n%b: f32[4, 8]$0 = aten.contiguous.default(%a)\n") == "same");
  CHECK(sharing("%a: f32[4]$0 = placeholder()\n%b: f32[4]$1 = aten.dropout.default(%a, 0.5, True)\n", ids) == "never");
  CHECK(sharing("%a: f32[4, 8](1, 4)$0 = placeholder()\n%b: f32[32]$1 = aten.reshape.default(%a, [32])\n", ids) ==
        "never");
}

}  // namespace
}  // namespace fxopt
