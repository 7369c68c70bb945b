#include <memory>
#include <string>

#include "ir/io/io.h"
#include "ir/step/infer_roles.h"
#include "tests/catch.h"
#include "tests/must.h"

namespace fxopt {
namespace {

// Roles of the placeholders and then of the outputs, such as "x=input" and "gradient(w)", separated
// by spaces.
std::string roles(const std::string& kind, const std::string& lines) {
  const std::string text = "symbol {name=\"s0\", kind=backed}\ngraph @main {kind=" + kind + "} {\n" + lines + "}";
  std::unique_ptr<Module> module = must(parse_text(text, "test"));
  const Graph& graph = module->main();
  const RoleMap map = infer_roles(graph);
  std::string result;
  for (const DerivedInput& input : map.inputs) {
    result +=
        std::string(graph.name_of(input.node)) + "=" + std::string(name_of(input.role)) + (input.mutated ? "! " : " ");
  }
  for (const DerivedOutput& output : map.outputs) {
    result += "| " + std::string(name_of(output.role));
    if (output.of.is_valid()) result += "(" + std::string(graph.name_of(output.of)) + ")";
    result += " ";
  }
  return result;
}

TEST_CASE("roles: a joint graph is read by places, shapes and dependencies", "[roles]") {
  const std::string body = R"(
    %w: f32[4, 4] = placeholder()
    %x: f32[2, 4] = placeholder()
    %t: f32[2, 4] = placeholder()
    %y: f32[2, 4] = aten.mm.default(%x, %w)
    %xt: f32[4, 2](1, 4) = aten.t.default(%x)
    %g: f32[4, 4] = aten.mm.default(%xt, %t)
  )";
  CHECK(roles("joint", body + "return (%y, %g, None)") ==
        "w=parameter x=unspecified t=tangent | unspecified | gradient(w) | unspecified ");
  // An extra output, a missing one, and a gradient of another shape.
  CHECK(roles("joint", body + "return (%y, %g, None, None)").find("tangent") == std::string::npos);
  CHECK(roles("joint", body + "return (%y, None)").find("tangent") == std::string::npos);
  CHECK(roles("joint", body + "return (%y, %xt, None)").find("tangent") == std::string::npos);
  CHECK(roles("forward", body + "return (%y, %g, None)").find("tangent") == std::string::npos);
}

TEST_CASE("roles: what a forward output depends on is no tangent", "[roles]") {
  CHECK(roles("joint", R"(
    %w: f32[4] = placeholder()
    %t: f32[4] = placeholder()
    %y: f32[4] = aten.mul.Tensor(%w, %t)
    %g: f32[4] = aten.exp.default(%t)
    return (%y, %g)
  )") == "w=unspecified t=unspecified | unspecified | unspecified ");
}

TEST_CASE("roles: one None stands for a tensor and the mesh beside it", "[roles]") {
  CHECK(roles("joint", R"(
    %w: f32[4] = placeholder()
    %wm: opaque("DeviceMesh") = placeholder()
    %b: f32[4] = placeholder()
    %bm: opaque("DeviceMesh") = placeholder()
    %t: f32[] = placeholder()
    %m: f32[4] = aten.mul.Tensor(%w, %b)
    %y: f32[] = aten.sum.default(%m)
    %e: f32[4](0) = aten.expand.default(%t, [4])
    %g: f32[4] = aten.mul.Tensor(%e, %b)
    return (%y, %g, %wm, None)
  )") == "w=parameter wm=parameter b=unspecified bm=unspecified t=tangent "
         "| loss | gradient(w) | gradient(wm) | unspecified ");
}

const char* const kStep = R"(
    %m: f32[4] = aten.mul.Tensor(%w, %v)
    %loss: f32[] = aten.sum.default(%m)
    %ones: f32[] = aten.ones_like.default(%loss)
    %e: f32[4](0) = aten.expand.default(%ones, [4])
    %g: f32[4] = aten.mul.Tensor(%e, %v)
    %h: f32[4] = aten.mul.Tensor(%e, %w)
  )";

TEST_CASE("roles: gradients are laid over placeholders in order and in shape", "[roles]") {
  const std::string step = std::string("%w: f32[4] = placeholder()\n%v: f32[4] = placeholder()\n") + kStep;
  CHECK(roles("forward_loss_backward", step + "return (%loss, %g, %h)") ==
        "w=parameter v=parameter | loss | gradient(w) | gradient(v) ");
}

TEST_CASE("roles: a gradient that two placeholders could have is nobody's", "[roles]") {
  const std::string step = std::string("%w: f32[4] = placeholder()\n%v: f32[4] = placeholder()\n") + kStep;
  CHECK(roles("forward_loss_backward", step + "return (%loss, %g)") ==
        "w=unspecified v=unspecified | loss | gradient ");
  const std::string told =
      std::string("%w: f32[4] = placeholder()\n%v: f32[4]{requires_grad} = placeholder()\n") + kStep;
  CHECK(roles("forward_loss_backward", told + "return (%loss, %h)") ==
        "w=unspecified v=parameter | loss | gradient(v) ");
}

TEST_CASE("roles: gradients out of order stay without a placeholder", "[roles]") {
  const std::string step = R"(
    %w: f32[4] = placeholder()
    %v: f32[1] = placeholder()
    %m: f32[4] = aten.mul.Tensor(%w, %v)
    %loss: f32[] = aten.sum.default(%m)
    %ones: f32[] = aten.ones_like.default(%loss)
    %e: f32[4](0) = aten.expand.default(%ones, [4])
    %g: f32[4] = aten.mul.Tensor(%e, %v)
    %p: f32[4] = aten.mul.Tensor(%e, %w)
    %h: f32[1] = aten.sum.dim_IntList(%p, [0], True)
  )";
  CHECK(roles("forward_loss_backward", step + "return (%loss, %h, %g)") ==
        "w=unspecified v=unspecified | loss | gradient | gradient ");
  CHECK(roles("forward_loss_backward", step + "return (%loss, %g, %h)") ==
        "w=parameter v=parameter | loss | gradient(w) | gradient(v) ");
}

TEST_CASE("roles: a written placeholder that is returned is its mutation", "[roles]") {
  CHECK(roles("inference", R"(
    %b: f32[4] = placeholder()
    %n: sym_int(s0) = placeholder()
    %c: f32[4] = aten.add_.Tensor(%b, 1)
    %d: f32[4] = aten.add.Tensor(%b, 1)
    return (%c, %d)
  )") == "b=unspecified! n=symbol | mutation(b) | unspecified ");
}

TEST_CASE("roles: random operators name what they read", "[roles]") {
  const std::string draw = R"(
    %s: i64[] = placeholder()
    %o: i64[] = placeholder()
    %r: u8[16] = placeholder()
    %x: f32[4] = placeholder()
    %p: (f32[4], i64[]) = rngprims.philox_rand.default([4], %s, %o, None)
    %d: f32[4] = higher_order.run_with_rng_state(%r, op(aten.rand_like.default), %x)
  )";
  CHECK(roles("forward", draw + "return (%p, %d)") ==
        "s=seed o=rng_offset r=rng_state x=unspecified | unspecified | unspecified ");
  CHECK(roles("forward", draw + "%e: i64[] = aten.neg.default(%s)\nreturn (%e,)") ==
        "s=unspecified o=rng_offset r=rng_state x=unspecified | unspecified ");
}

TEST_CASE("roles: only numbers a gradient could be may be tangents of a backward graph", "[roles]") {
  CHECK(roles("backward", R"(
    %saved: b8[4] = placeholder()
    %other: f32[4] = placeholder()
    %g: f32[4] = aten.mul.Tensor(%other, %saved)
    return (%g,)
  )") == "saved=saved_value other=unspecified | unspecified ");
}

}  // namespace
}  // namespace fxopt
