// Memory of calls besides their outputs: the symbols of profile expressions, just inside and just
// outside their domain.

#include "ir/device/hidden_memory.h"

#include <memory>
#include <string>

#include "ir/alias/sizes.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/must.h"

namespace fxopt {
namespace {

struct Asked {
  std::optional<int64_t> bytes;
  bool is_known = true;
};

// The value of `expression` for node %y of a graph with these nodes.
Asked ask(const std::string& nodes, const std::string& target, const std::string& expression) {
  std::unique_ptr<Module> module = must(parse_text("graph @main {\n" + nodes + "  return %y\n}\n", "test"));
  // Adds 1, because a block of 0 bytes would be left out.
  const std::string text = "workspace " + target + " w = 1 + (" + expression + ") [source]\n";
  const std::vector<ProfileText> texts = {{"test.device", text}};
  const auto none = [](const std::string&, std::string_view) { return std::optional<ProfileText>(); };
  std::unique_ptr<DeviceProfile> profile = must(DeviceProfile::parse(texts, none));
  const SymbolValues values = symbol_values(*module, {});
  HiddenMemory hidden(module->main(), *profile, values);
  const NodeId y = module->main().find(module->strings.find("y"));
  const std::vector<HiddenBlock>& blocks = hidden.of(y);
  if (blocks.empty()) FAIL("no row");
  if (!blocks[0].bytes.has_value()) return {std::nullopt, false};
  return {*blocks[0].bytes - 1, true};
}

constexpr const char* kMm = R"(
  %a: bf16[4, 8]@cuda:0 = placeholder()
  %b: bf16[8, 16]@cuda:0 = placeholder()
  %y: bf16[4, 16]@cuda:0 = aten.mm.default(%a, %b)
)";

int64_t mm(const std::string& expression) { return ask(kMm, "aten.mm.default", expression).bytes.value_or(-1); }

TEST_CASE("hidden memory: properties of tensors", "[device]") {
  CHECK(mm("self.numel") == 32);
  CHECK(mm("self.bytes") == 64);
  CHECK(mm("self.itemsize") == 2);
  CHECK(mm("self.rank") == 2);
  CHECK(mm("mat2.size.1") == 16);
  CHECK(mm("mat2.last.2") == 8);
  CHECK(mm("self.is_bf16") == 1);
  CHECK(mm("self.is_f32") == 0);
  CHECK(mm("out.0.numel") == 64);
  CHECK(mm("out.0.itemsize") == 2);
  CHECK_FALSE(ask(kMm, "aten.mm.default", "self.size.2").is_known);  // no third dimension
  CHECK_FALSE(ask(kMm, "aten.mm.default", "out.1.numel").is_known);  // no second output
  CHECK_FALSE(ask(kMm, "aten.mm.default", "other.numel").is_known);  // no argument of this name
}

int64_t layout(const std::string& type, const std::string& expression) {
  return ask("  %x: " + type + "@cuda:0 = placeholder()\n  %y: f32[1]@cuda:0 = aten.exp.default(%x)\n",
             "aten.exp.default", expression)
      .bytes.value_or(-1);
}

TEST_CASE("hidden memory: layouts", "[device]") {
  CHECK(layout("f32[4, 8]", "self.contiguous") == 1);
  CHECK(layout("f32[4, 8](1, 4)", "self.contiguous") == 0);
  CHECK(layout("f32[1, 8](99, 1)", "self.contiguous") == 1);  // strides of size 1 do not count
  CHECK(layout("f32[0, 8](3, 7)", "self.contiguous") == 1);
  CHECK(layout("f32[2, 3, 4, 5](60, 5, 15, 1)", "self.contiguous.0.2.1.3") == 1);
  CHECK(layout("f32[2, 3, 4, 5]", "self.contiguous.0.2.1.3") == 0);
  CHECK(layout("f32[2, 3, 4]", "self.contiguous.0.2.1.3") == 0);  // another rank
}

TEST_CASE("hidden memory: operands that a matrix product takes as they lie", "[device]") {
  CHECK(layout("f32[4, 8]", "self.blas_ready") == 1);
  CHECK(layout("f32[4, 8](1, 4)", "self.blas_ready") == 1);   // transposed
  CHECK(layout("f32[4, 8](10, 1)", "self.blas_ready") == 1);  // gaps between rows
  CHECK(layout("f32[4, 8](7, 1)", "self.blas_ready") == 0);   // overlapping rows
  CHECK(layout("f32[4, 8](16, 2)", "self.blas_ready") == 0);  // gaps between elements
  CHECK(layout("f32[4, 8](0, 1)", "self.blas_ready") == 0);   // expanded
  CHECK(layout("f32[2, 4, 8]", "self.blas_ready") == 1);
  CHECK(layout("f32[2, 4, 8](8, 16, 1)", "self.blas_ready") == 1);  // rows of the batch interleave
  CHECK(layout("f32[2, 4, 8](64, 16, 2)", "self.blas_ready") == 0);
}

TEST_CASE("hidden memory: values, defaults and lists of arguments", "[device]") {
  const std::string sum = R"(
  %x: f32[4, 8]@cuda:0 = placeholder()
  %y: f32[4]@cuda:0 = aten.sum.dim_IntList(%x, [)";
  const auto has_last = [&sum](const std::string& dims) {
    return ask(sum + dims + "])\n", "aten.sum.dim_IntList", "dim.has_last").bytes.value_or(-1);
  };
  CHECK(has_last("1") == 1);
  CHECK(has_last("-1") == 1);
  CHECK(has_last("0") == 0);
  CHECK(has_last("") == 1);
  CHECK(ask(sum + "1])\n", "aten.sum.dim_IntList", "keepdim").bytes == 0);  // the default
  CHECK(ask(sum + "1], True)\n", "aten.sum.dim_IntList", "keepdim").bytes == 1);
  CHECK(ask(sum + "1])\n", "aten.sum.dim_IntList", "dtype.given").bytes == 0);
  CHECK(ask(sum + "1, 0])\n", "aten.sum.dim_IntList", "dim.at.1").bytes == 0);
  CHECK(ask(sum + "0, 1])\n", "aten.sum.dim_IntList", "dim.at.1").bytes == 1);
  CHECK_FALSE(ask(sum + "1])\n", "aten.sum.dim_IntList", "dim.at.1").is_known);

  const std::string cat = R"(
  %a: f32[4]@cuda:0 = placeholder()
  %b: f32[6]@cuda:0 = placeholder()
  %y: f32[10]@cuda:0 = aten.cat.default([%a, %b])
)";
  CHECK(ask(cat, "aten.cat.default", "tensors.count").bytes == 2);
  CHECK(ask(cat, "aten.cat.default", "tensors.numel").bytes == 6);  // the largest tensor

  const std::string cumsum = R"(
  %x: f32[4, 8]@cuda:0 = placeholder()
  %y: f32[4, 8]@cuda:0 = aten.cumsum.default(%x, -2)
)";
  CHECK(ask(cumsum, "aten.cumsum.default", "self.size.dim").bytes == 4);
}

TEST_CASE("hidden memory: a size that depends on a symbol without a value is unknown", "[device]") {
  const std::string nodes = R"(
  %x: f32[u0, 8]@cuda:0 = placeholder()
  %y: f32[u0, 8]@cuda:0 = aten.exp.default(%x)
)";
  CHECK_FALSE(ask(nodes, "aten.exp.default", "self.numel").is_known);
  CHECK(ask(nodes, "aten.exp.default", "self.rank").bytes == 2);
  CHECK(ask(nodes, "aten.exp.default", "Where(self.rank == 2, 5, self.numel)").bytes == 5);
}

}  // namespace
}  // namespace fxopt
