#include "ir/memory/memory.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "ir/alias/storages.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

MemoryReport analyze(const Module& module, const MemoryOptions& options = {}) {
  return analyze_memory(module.main(), StorageMap(module.main()), options);
}

// The ideal peak of the graph; all its tensors are on one device.
int64_t peak(const std::string& text) { return analyze(*parse(text)).peak_bytes(); }

TEST_CASE("memory: a node's inputs and outputs coexist, then inputs are freed", "[memory]") {
  CHECK(peak(R"(graph @main {
    %x: f32[4] = placeholder()
    %a: f32[100] = aten.expand_copy.default(%x, [100])
    %b: f32[100] = aten.exp.default(%a)
    %c: f32[100] = aten.exp.default(%b)
    return %c
  })") == 16 + 400 + 400);
}

TEST_CASE("memory: a resized storage is there from one size above 0 to the next size", "[memory]") {
  const auto layer = [](const std::string& n, const std::string& before) {
    return "%on" + n + " = inductor.resize_storage_bytes_.default(%full" + n + ", 400)\n" + "%fill" + n +
           ": f32[100] = aten.copy_.default(%full" + n + ", %x)\n%y" + n + ": f32[100] = aten.mul.Tensor(" + before +
           ", %full" + n + ")\n%off" + n + " = inductor.resize_storage_bytes_.default(%full" + n + ", 0)\n";
  };
  const std::string inputs =
      "graph @main {\n%x: f32[100] = placeholder()\n%full0: f32[100] = placeholder()\n"
      "%full1: f32[100] = placeholder()\n";
  // x, one full parameter, the operand and the result of a product.
  const auto module = parse(inputs + layer("0", "%x") + layer("1", "%y0") + "return %y1\n}");
  const MemoryReport report = analyze(*module);
  CHECK(report.peak_bytes() == 4 * 400);
  CHECK(report.resized.size() == 2);
  CHECK(report.devices.front().input_bytes == 400);
  // The same parameter again, as in backward: two stays.
  const auto again = parse(inputs + layer("0", "%x") + layer("1", "%y0") +
                           "%on = inductor.resize_storage_bytes_.default(%full0, 400)\n"
                           "%z: f32[100] = aten.mul.Tensor(%y1, %full0)\n"
                           "%off = inductor.resize_storage_bytes_.default(%full0, 0)\nreturn %z\n}");
  const MemoryReport twice = analyze(*again);
  CHECK(report.stays.size() == 2);
  CHECK(twice.stays.size() == 3);
  CHECK(twice.peak_bytes() == 4 * 400);
  // Memory of the graph that is given up early, and an input that is there until its first size.
  const auto early = parse(R"(graph @main {
    %x: f32[100] = placeholder()
    %a: f32[1000] = aten.expand_copy.default(%x, [1000])
    %s: f32[] = aten.sum.default(%a)
    %off = inductor.resize_storage_bytes_.default(%a, 0)
    %off2 = inductor.resize_storage_bytes_.default(%x, 0)
    %b: f32[1000] = aten.expand_copy.default(%s, [1000])
    return (%b, %a)
  })");
  CHECK(analyze(*early).peak_bytes() == 4000 + 400 + 4);
  CHECK(analyze(*early).devices.front().input_bytes == 400);
  // An input that is read before its first size is not empty before.
  const auto grown = parse(R"(graph @main {
    %x: f32[1000] = placeholder()
    %s: f32[] = aten.sum.default(%x)
    %on = inductor.resize_storage_bytes_.default(%x, 40)
    return %s
  })");
  CHECK(analyze(*grown).peak_bytes() == 4000 + 4 + 40);
  // A size that depends on a symbol: known by its hint, else a lower bound.
  const auto sized = [](const std::string& symbol) {
    return parse("symbol {name=\"s0\", " + symbol + "}\ngraph @main {\n%x: f32[100] = placeholder()\n" +
                 "%on = inductor.resize_storage_bytes_.default(%x, sym(4*s0))\n" +
                 "%s: f32[] = aten.sum.default(%x)\nreturn %s\n}");
  };
  CHECK(analyze(*sized("kind=backed, hint=1000")).peak_bytes() == 4000 + 4);
  CHECK(analyze(*sized("kind=unbacked, min=2")).unknown_buffers == 1);
}

TEST_CASE("memory: the offset of a tangent does not count, that of another input does", "[memory]") {
  const auto peak_of = [](const std::string& role) {
    return peak("graph @main {kind=joint} {\n%d: f32[32, 64]+2048 = placeholder() {input={role=" + role +
                "}}\n%e: f32[64, 2](64, 1)+1 = placeholder() {input={role=" + role +
                "}}\n%s: f32[] = aten.sum.default(%d)\nreturn %s\n}");
  };
  CHECK(peak_of("tangent") == 32 * 64 * 4 + (63 * 64 + 2) * 4 + 4);
  CHECK(peak_of("input") == 64 * 64 * 4 + (63 * 64 + 3) * 4 + 4);
}

TEST_CASE("memory: views, identities and getitems of views own nothing", "[memory]") {
  CHECK(peak(R"(graph @main {
    %x: f32[4, 8] = placeholder()
    %t: f32[8, 4](1, 8) = aten.t.default(%x)
    %split: [f32[4, 4](1, 8), f32[4, 4](1, 8)+4] = aten.split.Tensor(%t, 4)
    %half: f32[4, 4](1, 8) = operator.getitem(%split, 0)
    return %half
  })") == 128);
}

TEST_CASE("memory: each element of a multi-output op lives as long as it is read", "[memory]") {
  CHECK(peak(R"(graph @main {
    %x: f32[10] = placeholder()
    %topk: (f32[10], i64[10]) = aten.topk.default(%x, 10)
    %values: f32[10] = operator.getitem(%topk, 0)
    %a: f32[100] = aten.expand_copy.default(%values, [100])
    return %a
  })") == 40 + 40 + 400);
}

TEST_CASE("memory: a tuple holds all its elements until the last getitem", "[memory]") {
  const auto peak_with = [](const std::string& early, const std::string& late) {
    return peak("graph @main {\n%x: f32[10] = placeholder()\n" + early +
                "%a: f32[100] = aten.expand_copy.default(%values, [100])\n"
                "%b: f32[1000] = aten.cat.default([%a, %a, %a, %a, %a, %a, %a, %a, %a, %a])\n" +
                late + "return (%b, %n)\n}");
  };
  const std::string topk =
      "%topk: (f32[10], i64[10]) = aten.topk.default(%x, 10)\n%values: f32[10] = operator.getitem(%topk, 0)\n";
  const std::string indices =
      "%indices: i64[10] = operator.getitem(%topk, 1)\n%n: i64[10] = aten.neg.default(%indices)\n";
  CHECK(peak_with(topk, indices) == 40 + 40 + 80 + 400 + 4000);
  CHECK(peak_with(topk + indices, "") == 40 + 80 + 400 + 4000);
}

TEST_CASE("memory: an in-place op reuses its argument", "[memory]") {
  CHECK(peak(R"(graph @main {
    %x: f32[10] = placeholder()
    %a: f32[10] = aten.exp.default(%x)
    %b: f32[10] = aten.relu_.default(%a)
    return %b
  })") == 80);
}

TEST_CASE("memory: an out-variant delivers into its buffer", "[memory]") {
  CHECK(peak(R"(graph @main {
    %x: f32[10] = placeholder()
    %buf: f32[10] = aten.empty.memory_format([10])
    %b: f32[10] = aten.add.out(%x, %x, out=%buf)
    return %b
  })") == 80);
}

TEST_CASE("memory: a collective's input and output are held until its wait, and the wait makes nothing", "[memory]") {
  const std::string text = R"(process_group {uid="0", ranks=[0, 1]}
  graph @main {
    %p: f32[10] = placeholder()
    %x: f32[10] = aten.exp.default(%p)
    %ag: f32[20] = _c10d_functional.all_gather_into_tensor.default(%x, 2, group("0"))
    %y: f32[50] = aten.expand_copy.default(%p, [50])
    %wait: f32[20] = _c10d_functional.wait_tensor.default(%ag)
    %z: f32[20] = aten.exp.default(%wait)
    return (%y, %z)
  })";
  const std::unique_ptr<Module> module = parse(text);
  const MemoryReport report = analyze(*module);
  CHECK(report.peak_bytes() == 40 + 200 + 80 + 80);  // at %z: p, y, the gathered buffer once, z
  const StorageMap storages(module->main());
  const auto node = [&module](const char* name) { return module->main().find(module->strings.find(name)); };
  const auto life = [&](const char* name) { return report.lifetimes[storages.buffers(node(name))[0].index()]; };
  CHECK(life("x").last == module->main().position(node("wait")));
  CHECK(life("x").released == module->main().position(node("ag")));
  CHECK(life("ag").released == module->main().position(node("z")));  // the wait returns it
  CHECK(life("p").released == life("p").last);                       // owned by the caller
}

TEST_CASE("memory: a keep-alive dependency holds what it names, an order dependency does not", "[memory]") {
  const auto text = [](const char* kind) {
    return std::string(R"(graph @main {
    %x: f32[10] = placeholder()
    %a: f32[20] = aten.expand_copy.default(%x, [20])
    %b: f32[10] = aten.exp.default(%x)
    %c: f32[30] = aten.expand_copy.default(%b, [30]) {control=[)") +
           kind + " %a]}\n return %c\n}";
  };
  CHECK(peak(text("keep_alive")) == 40 + 80 + 40 + 120);
  CHECK(peak(text("order")) == 40 + 40 + 120);
}

TEST_CASE("memory: placeholders live throughout, donated ones to their last use", "[memory]") {
  const char* const body = R"(
    %a: f32[10] = aten.exp.default(%x)
    %b: f32[30] = aten.expand_copy.default(%a, [30])
    return %b
  })";
  CHECK(peak(std::string("graph @main {\n %x: f32[10] = placeholder()") + body) == 40 + 40 + 120);
  CHECK(peak(std::string("graph @main {\n %x: f32[10] = placeholder() {input={role=input, donated=true}}") + body) ==
        40 + 120);
}

TEST_CASE("memory: a sum beyond 63 bits is the largest number, never a small one", "[memory]") {
  const auto text = [](const char* size) {
    const std::string type = std::string("f32[") + size + ", 1048576]";
    return "graph @main {\n %x: " + type + " = placeholder()\n %y: " + type + " = placeholder()\n %a: " + type +
           " = aten.add.Tensor(%x, %y)\n return %a\n}";
  };
  CHECK(peak(text("549755813888")) == 3 * (int64_t{1} << 61));
  CHECK(peak(text("1099511627776")) == std::numeric_limits<int64_t>::max());  // 3 * 2^62
}

TEST_CASE("memory: classes without recorded roles follow what the graph shows, with them the roles", "[memory]") {
  const auto classes = [](const std::string& role) {
    const std::unique_ptr<Module> module =
        parse("graph @main {kind=forward_loss_backward} {\n %w: f32[10]{requires_grad} = placeholder()" + role + R"(
    %x: f32[10] = placeholder()
    %a: f32[10] = aten.mul.Tensor(%w, %x)
    %e: f32[10] = aten.exp.default(%a)
    %loss: f32[] = aten.sum.default(%e)
    %seed: f32[] = aten.ones_like.default(%loss)
    %g: f32[10] = aten.expand.default(%seed, [10])
    %h: f32[10] = aten.mul.Tensor(%g, %e)
    %dw: f32[10] = aten.mul.Tensor(%h, %x)
    return (%loss, %dw)
  })");
    const StorageMap storages(module->main());
    MemoryOptions options;
    options.derive_classes = true;
    const MemoryReport report = analyze_memory(module->main(), storages, options);
    const auto kind_of = [&](const char* name) {
      const NodeId node = module->main().find(module->strings.find(name));
      return memory_class_name(report.lifetimes[storages.buffers(node)[0].index()].kind);
    };
    return std::string(kind_of("w")) + " " + std::string(kind_of("e")) + " " + std::string(kind_of("dw")) +
           (report.roles_derived ? " derived" : " recorded");
  };
  CHECK(classes("") == "parameter saved value gradient derived");
  CHECK(classes(" {input={role=buffer}}") == "buffer saved value gradient recorded");  // outputs have no roles
}

TEST_CASE("memory: tied placeholders are counted once", "[memory]") {
  CHECK(peak(R"(storage {id=0, bytes=40}
  graph @main {
    %x: f32[10]$0 = placeholder()
    %y: f32[10]$0 = placeholder()
    return (%x, %y)
  })") == 40);
}

TEST_CASE("memory: an unknown size is counted and named, never zero, and a value makes it known", "[memory]") {
  const std::string text = R"(symbol {name="u0", kind=unbacked}
  graph @main {
    %x: f32[4] = placeholder()
    %a: f32[u0] = aten.expand_copy.default(%x, [sym(u0)])
    return %a
  })";
  const std::unique_ptr<Module> module = parse(text);
  const MemoryReport unknown = analyze(*module);
  CHECK(unknown.unknown_buffers == 1);
  REQUIRE(unknown.unknown_nodes.size() == 1);
  CHECK(module->main().name_of(unknown.unknown_nodes[0]) == "a");
  CHECK(unknown.peak_bytes() == 16);
  MemoryOptions options;
  options.symbols[module->strings.find("u0")] = 100;
  const MemoryReport known = analyze(*module, options);
  CHECK(known.unknown_buffers == 0);
  CHECK(known.peak_bytes() == 416);
}

TEST_CASE("memory: a size that turns out negative is unknown", "[memory]") {
  for (const char* line : {"%a: f32[s0 - 4] = aten.exp.default(%x)", "%a: f32[s0 - 4, 0 - s0] = aten.exp.default(%x)",
                           "%a: f32[8]$0 = aten.exp.default(%x)"}) {
    INFO(line);
    const std::unique_ptr<Module> module =
        parse(std::string("symbol {name=\"s0\", hint=2}\n storage {id=0, bytes=(s0 - 40)}\n graph @main {\n"
                          " %x: f32[10] = placeholder()\n ") +
              line + "\n return %a\n}");
    const MemoryReport report = analyze(*module);
    CHECK(report.peak_bytes() == 40);
    CHECK(report.unknown_buffers == 1);
  }
}

TEST_CASE("memory: devices have peaks of their own, the largest first", "[memory]") {
  const std::unique_ptr<Module> module = parse(R"(graph @main {
    %x: f32[4]@cpu = placeholder()
    %a: f32[8]@cuda:0 = aten._to_copy.default(%x, device=device("cuda:0"))
    return %a
  })");
  const MemoryReport report = analyze(*module);
  REQUIRE(report.devices.size() == 2);
  CHECK(module->text(report.devices[0].device) == "cuda:0");
  CHECK(report.devices[0].bytes == 32);
  CHECK(report.devices[1].bytes == 16);
}

TEST_CASE("storages: a getitem has and reads the storages of its element alone", "[storages]") {
  const std::unique_ptr<Module> module = parse(R"fxg(
  op_schema {target="lib.many.default", schema="lib::many(Tensor x) -> (Tensor, Tensor[], int, Tensor)"}
  graph @main {
    %x: f32[4] = placeholder()
    %m: (f32[1], (f32[2], f32[3]), const(7), f32[4]) = lib.many.default(%x)
    %first: f32[1] = operator.getitem(%m, 0)
    %pair: (f32[2], f32[3]) = operator.getitem(%m, 1)
    %number: const(7) = operator.getitem(%m, 2)
    %last: f32[4] = operator.getitem(%m, -1)
    %inner: f32[3] = operator.getitem(%pair, 1)
    %bare = operator.getitem(%m, 3)
    return (%first, %inner, %last, %bare)
  })fxg");
  const Graph& graph = module->main();
  const StorageMap storages(graph);
  const auto id = [&](const char* name) { return graph.find(module->strings.find(name)); };
  const std::span<const BufferId> made = storages.buffers(id("m"));
  REQUIRE(made.size() == 4);
  const auto check = [&](const char* name, std::span<const BufferId> expected) {
    INFO(name);
    CHECK(std::ranges::equal(storages.buffers(id(name)), expected));
    CHECK(std::ranges::equal(storages.reads(id(name)), expected));
  };
  check("first", made.subspan(0, 1));
  check("pair", made.subspan(1, 2));
  check("number", {});
  check("last", made.subspan(3, 1));
  check("inner", made.subspan(2, 1));
  check("bare", made.subspan(3, 1));
}

TEST_CASE("storages: a getitem of a dict has the storages of its key", "[storages]") {
  const std::unique_ptr<Module> module = parse(R"fxg(graph @main {
    %x: f32[4] = placeholder()
    %d: {"a": f32[1], "b": f32[2]} = lib.named.default(%x)
    %b: f32[2] = operator.getitem(%d, "b")
    %c: f32[2] = operator.getitem(%d, "c")
    return (%b, %c)
  })fxg");
  const Graph& graph = module->main();
  const StorageMap storages(graph);
  const auto buffer = [&](const char* name, size_t i) {
    return storages.buffers(graph.find(module->strings.find(name)))[i];
  };
  CHECK(buffer("b", 0) == buffer("d", 1));
  CHECK(buffer("c", 0) != buffer("d", 0));
  CHECK(buffer("c", 0) != buffer("d", 1));
}

TEST_CASE("storages: where the file disagrees with the ops, the ops win and it is counted", "[memory]") {
  const std::unique_ptr<Module> module = parse(R"(storage {id=0, bytes=40}
  storage {id=1, bytes=80}
  storage {id=2, bytes=80}
  process_group {uid="0", ranks=[0, 1]}
  graph @main {
    %x: f32[10]$0 = placeholder()
    %ag: f32[20]$1 = _c10d_functional.all_gather_into_tensor.default(%x, 2, group("0"))
    %wait: f32[20]$2 = _c10d_functional.wait_tensor.default(%ag)
    %ag_recomputed: f32[20]$1 = _c10d_functional.all_gather_into_tensor.default(%x, 2, group("0"))
    %wait_recomputed: f32[20]$2 = _c10d_functional.wait_tensor.default(%ag_recomputed)
    return (%wait, %wait_recomputed)
  })");
  const Graph& graph = module->main();
  const StorageMap storages(graph);
  const auto buffer = [&](const char* name) { return storages.buffers(graph.find(module->strings.find(name)))[0]; };
  CHECK(buffer("wait") == buffer("ag"));
  CHECK(buffer("wait_recomputed") == buffer("ag_recomputed"));
  CHECK(buffer("ag") != buffer("ag_recomputed"));
}

TEST_CASE("storages: an undescribed op may write and hand back what it is given, a described one says", "[memory]") {
  const std::unique_ptr<Module> module = parse(R"fxg(
  op_schema {target="lib.pure.default", schema="lib::pure(Tensor x) -> Tensor"}
  op_schema {target="lib.write.default", schema="lib::write(Tensor(a!) x, Tensor y) -> Tensor(a!)"}
  graph @main {
    %x: f32[4] = placeholder()
    %a: f32[4] = aten.exp.default(%x)
    %b: f32[4] = lib.pure.default(%a)
    %c: f32[4] = lib.write.default(%b, %a)
    %d: f32[4] = lib.unknown.default(%a)
    return (%b, %c, %d)
  })fxg");
  const Graph& graph = module->main();
  const StorageMap storages(graph);
  const auto id = [&](const char* name) { return graph.find(module->strings.find(name)); };
  const auto buffer = [&](const char* name) { return storages.buffers(id(name))[0]; };
  CHECK(storages.writes(id("b")).empty());
  CHECK(storages.alias_class(buffer("a")) != storages.alias_class(buffer("b")));
  CHECK(buffer("c") == buffer("b"));
  REQUIRE(storages.writes(id("c")).size() == 1);
  CHECK(storages.writes(id("c"))[0] == buffer("b"));
  CHECK(storages.alias_class(buffer("d")) == storages.alias_class(buffer("a")));
  CHECK(storages.writes(id("d")).size() == 1);
  CHECK(storages.written_between(buffer("b"), id("b"), id("d")));
  CHECK_FALSE(storages.written_between(buffer("b"), id("c"), id("d")));
}

}  // namespace
}  // namespace fxopt
