// Several graphs as one step: which values flow between runs, and the composed graph.
#include "ir/step/step.h"

#include <memory>
#include <string>

#include "ir/memory/footprint.h"
#include "ir/step/compose.h"
#include "tests/catch.h"
#include "tests/parse.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

// The composed graph, a node per line: name, target, inputs, and nodes kept alive; lines of
// backward nodes start with '|'. Or the error.
std::string composed(const std::string& text) {
  const std::unique_ptr<Module> module = parse(text);
  const Result<Step> step = find_step(*module);
  if (!step.ok()) return step.error().message;
  const Graph& graph = module->graph(compose_step(*module, *step));
  std::string lines;
  for (const NodeId node : graph.nodes()) {
    const bool is_backward = graph[node].phase == Phase::kBackward;
    lines += (is_backward ? "| " : "") + std::string(graph.name_of(node));
    if (graph[node].is_call()) lines += " = " + std::string(module->text(module->target(graph[node].target).name));
    std::string inputs;
    for (const NodeId input : graph.inputs(node)) {
      inputs += (inputs.empty() ? "" : ", ") + std::string(graph.name_of(input));
    }
    if (!inputs.empty()) lines += "(" + inputs + ")";
    if (const NodeExtra* extra = graph.extra(node)) {
      for (const ControlDep& dep : extra->control) lines += ", keeps " + std::string(graph.name_of(dep.node));
    }
    lines += "\n";
  }
  return lines;
}

int64_t ideal_peak(const std::string& text) {
  const std::unique_ptr<Module> module = parse(text);
  const Result<Step> step = find_step(*module);
  if (!step.ok()) FAIL(step.error().message);
  return measure(module->graph(compose_step(*module, *step)), {}).memory.peak_bytes();
}

const std::string kForward = R"(graph @f {kind=forward} {
  output_spec {role=loss}
  output_spec {role=saved_value}
  output_spec {role=saved_value}
  %w: f32[1024] = placeholder() {input={role=parameter, fqn="w"}}
  %x: f32[1024] = placeholder() {input={role=input}}
  %a: f32[1024] = aten.mul.Tensor(%w, %x)
  %b: f32[1024] = aten.exp.default(%a)
  %l: f32[] = aten.sum.default(%b)
  return (%l, %b, %x)
}
)";

// `b`: the roles of the two saved inputs.
std::string backward(const std::string& b, const std::string& x) {
  return "graph @b {kind=backward} {\n  output_spec {role=gradient, fqn=\"w\"}\n  %b: " + b + "\n  %x: " + x +
         R"(
  %t: f32[] = placeholder() {input={role=tangent}}
  %e: f32[1024] = aten.mul.Tensor(%b, %t)
  %g: f32[1024] = aten.mul.Tensor(%e, %x)
  return (%g,)
}
)";
}

const std::string kSaved1 = "f32[1024] = placeholder() {input={role=saved_value, saved_from_output=1}}";
const std::string kSaved2 = "f32[1024] = placeholder() {input={role=saved_value, saved_from_output=2}}";
const std::string kSaved = "f32[1024] = placeholder() {input={role=saved_value}}";

constexpr const char* kPair = R"(forward.w
forward.x
forward.a = aten.mul.Tensor(forward.w, forward.x)
forward.b = aten.exp.default(forward.a)
forward.l = aten.sum.default(forward.b)
| backward.t
| backward.e = aten.mul.Tensor(forward.b, backward.t)
| backward.g = aten.mul.Tensor(backward.e, forward.x), keeps backward.t
output(forward.l, backward.g)
)";

TEST_CASE("step: backward takes what forward saved, by what the file says or else by name", "[step]") {
  CHECK(composed(kForward + backward(kSaved1, kSaved2)) == kPair);
  CHECK(composed(kForward + backward(kSaved, kSaved)) == kPair);
  CHECK(composed(backward(kSaved, kSaved) + kForward) == kPair);  // in any order of graphs
  CHECK(composed(kForward + backward(kSaved, "f32[1024] = placeholder()")) == kPair);
}

TEST_CASE("step: the file's word goes before the name", "[step]") {
  CHECK(composed(kForward + backward(kSaved2, kSaved1)).find("backward.e = aten.mul.Tensor(forward.x, backward.t)") !=
        std::string::npos);
}

TEST_CASE("step: what does not fit is refused", "[step]") {
  CHECK(composed(kForward + backward("f64[1024] = placeholder() {input={role=saved_value}}", kSaved)) ==
        "input %b of backward and output 1 of forward, %b, differ in their dtype");
  CHECK(composed(kForward + backward("f32[1023] = placeholder() {input={role=saved_value}}", kSaved)) ==
        "input %b of backward and output 1 of forward, %b, differ in their size");
  CHECK(composed(kForward + backward("f32[32, 32] = placeholder() {input={role=saved_value}}", kSaved)) ==
        "input %b of backward and output 1 of forward, %b, differ in their number of dimensions");
  CHECK(composed(kForward + backward("sym_int(2) = placeholder() {input={role=saved_value}}", kSaved)) ==
        "input %b of backward and output 1 of forward, %b, differ in their kind");
  CHECK(composed(kForward +
                 backward(kSaved, "f32[1024] = placeholder() {input={role=saved_value, saved_from_output=3}}")) ==
        "input %x of backward is bound to output 3 of forward, but the number of outputs is 3");
  std::string renamed = backward(kSaved, kSaved);
  for (size_t at; (at = renamed.find("%b")) != std::string::npos;) renamed.replace(at, 2, "%c");
  CHECK(composed(kForward + renamed) == "no output of forward is the saved value %c that backward takes");
  CHECK(composed(kForward + replaced(kForward, "@f", "@f2") + backward(kSaved, kSaved)) ==
        "the file does not record how 2 forward and 1 backward graphs belong together");
}

TEST_CASE("step: one graph is its own step", "[step]") {
  const std::string text = "graph @main {\n  %x: f32[4] = placeholder()\n  return (%x,)\n}\n";
  const std::unique_ptr<Module> module = parse(text);
  CHECK(compose_step(*module, find_step(*module).value()) == module->main().id());
  CHECK(module->num_graphs() == 1);
}

TEST_CASE("step: the new value of a mutated input is copied into it", "[step]") {
  CHECK(composed(R"(graph @f {kind=forward} {
  output_spec {role=mutation, of="n"}
  output_spec {role=saved_value}
  %n: f32[4] = placeholder() {input={role=buffer, fqn="n"}}
  %m: f32[4] = aten.add.Tensor(%n, 1)
  return (%m, %m)
}
graph @b {kind=backward} {
  %m: f32[4] = placeholder() {input={role=saved_value}}
  %g: f32[4] = aten.neg.default(%m)
  return (%g,)
}
)") == R"(forward.n
forward.m = aten.add.Tensor(forward.n)
forward.copy_ = aten.copy_.default(forward.n, forward.m)
| backward.g = aten.neg.default(forward.m)
output(backward.g)
)");
}

TEST_CASE("step: a saved value that backward does not read is there until backward ends", "[step]") {
  CHECK(composed(kForward + R"(graph @b {kind=backward} {
  %b: f32[1024] = placeholder() {input={role=saved_value}}
  %x: f32[1024] = placeholder() {input={role=saved_value}}
  %y: f32[1024] = aten.neg.default(%x)
  %z: f32[1024] = aten.neg.default(%y)
  return (%z,)
}
)")
            .find("| backward.z = aten.neg.default(backward.y), keeps forward.b") != std::string::npos);
}

const std::string kMicrobatches = R"(invocation {graph="f", microbatch=0}
invocation {graph="f", microbatch=1}
invocation {graph="b", microbatch=1}
invocation {graph="b", microbatch=0}
)";

TEST_CASE("step: microbatches share parameters, and each backward belongs to its forward", "[step]") {
  CHECK(composed(kMicrobatches + kForward + backward(kSaved1, kSaved2)) == R"(forward[0].w
forward[0].x
forward[1].x
forward[0].a = aten.mul.Tensor(forward[0].w, forward[0].x)
forward[0].b = aten.exp.default(forward[0].a)
forward[0].l = aten.sum.default(forward[0].b)
forward[1].a = aten.mul.Tensor(forward[0].w, forward[1].x)
forward[1].b = aten.exp.default(forward[1].a)
forward[1].l = aten.sum.default(forward[1].b)
| backward[1].t
| backward[1].e = aten.mul.Tensor(forward[1].b, backward[1].t)
| backward[1].g = aten.mul.Tensor(backward[1].e, forward[1].x), keeps backward[1].t
| backward[0].t
| backward[0].e = aten.mul.Tensor(forward[0].b, backward[0].t)
| backward[0].g = aten.mul.Tensor(backward[0].e, forward[0].x), keeps backward[0].t
output(forward[0].l, forward[1].l, backward[1].g)
)");
}

TEST_CASE("step: a binding goes before what roles and names say", "[step]") {
  const std::string text = R"(invocation {graph="f"}
invocation {graph="b", bindings=[{input=0, invocation=0, output=2}, {input=1}], label="grad"}
)" + kForward + backward(kSaved1, kSaved2);
  CHECK(composed(text) == R"(forward.w
forward.x
forward.a = aten.mul.Tensor(forward.w, forward.x)
forward.b = aten.exp.default(forward.a)
forward.l = aten.sum.default(forward.b)
grad.x
| grad.t
| grad.e = aten.mul.Tensor(forward.x, grad.t)
| grad.g = aten.mul.Tensor(grad.e, grad.x), keeps grad.x, keeps grad.t
output(forward.l, forward.b, grad.g)
)");
}

TEST_CASE("step: what nothing pairs is refused", "[step]") {
  const std::string pair = kForward + backward(kSaved1, kSaved2);
  const std::string runs = "invocation {graph=\"f\"}\ninvocation {graph=\"f\"}\ninvocation {graph=\"b\"}\n";
  CHECK(composed(runs + pair) == "the saved values of backward may come from any of 2 runs, such as forward[0]");
  CHECK(composed("invocation {graph=\"f\"}\n" + pair) == "no invocation runs @b");
  CHECK(composed("invocation {graph=\"f\"}\ninvocation {graph=\"b\", bindings=[{input=0, output=1, invocation=0}, "
                 "{input=0}]}\n" +
                 pair) == "input %b of backward is bound twice");
}

TEST_CASE("step: labels differ, whatever the file calls its runs", "[step]") {
  const std::unique_ptr<Module> module = parse(R"(invocation {graph="a", label="x"}
invocation {graph="a", label="x"}
invocation {graph="a", label="x#1"}
graph @a {
  return ()
}
)");
  const Step step = find_step(*module).value();
  CHECK(step.runs[0].label == "x");
  CHECK(step.runs[1].label == "x#1");
  CHECK(step.runs[2].label == "x#1#1");
}

TEST_CASE("step: parts of one parameter are two inputs with two gradients", "[step]") {
  CHECK(composed(R"(graph @f {kind=forward} {
  output_spec {role=saved_value}
  %wa: f32[4] = placeholder() {input={role=parameter, fqn="w", subclass_path=["a"]}}
  %wb: f32[4] = placeholder() {input={role=parameter, fqn="w", subclass_path=["b"]}}
  %y: f32[4] = aten.mul.Tensor(%wa, %wb)
  return (%y,)
}
graph @b {kind=backward} {
  output_spec {role=gradient, fqn="w", subclass_path=["a"]}
  output_spec {role=gradient, fqn="w", subclass_path=["b"]}
  %y: f32[4] = placeholder() {input={role=saved_value}}
  %g: f32[4] = aten.neg.default(%y)
  %h: f32[4] = aten.exp.default(%y)
  return (%g, %h)
}
)") == R"(forward.wa
forward.wb
forward.y = aten.mul.Tensor(forward.wa, forward.wb)
| backward.g = aten.neg.default(forward.y)
| backward.h = aten.exp.default(forward.y)
output(backward.g, backward.h)
)");
}

TEST_CASE("step: gradients of inputs are one for each microbatch, and one that another run takes goes", "[step]") {
  const std::string graphs = R"(graph @f {kind=forward} {
  output_spec {role=saved_value}
  %x: f32[4] = placeholder() {input={role=input}}
  %y: f32[4] = aten.exp.default(%x)
  return (%y,)
}
graph @b {kind=backward} {
  output_spec {role=gradient, of="x"}
  %y: f32[4] = placeholder() {input={role=saved_value}}
  %t: f32[4] = placeholder() {input={role=tangent}}
  %g: f32[4] = aten.mul.Tensor(%y, %t)
  return (%g,)
}
)";
  CHECK(composed(kMicrobatches + graphs).ends_with("output(backward[1].g, backward[0].g)\n"));
  const std::string chained = R"(invocation {graph="f", microbatch=0}
invocation {graph="f", microbatch=1}
invocation {graph="b", microbatch=1}
invocation {graph="b", microbatch=0, bindings=[{input=1, invocation=2, output=0}]}
)";
  CHECK(composed(chained + graphs).ends_with("output(backward[0].g)\n"));
}

TEST_CASE("step: a constant is there once, under whatever path", "[step]") {
  std::string text;
  for (const char* graph : {"s", "u"}) {
    for (int i = 0; i < 2; ++i) {
      text += std::string("invocation {graph=\"") + graph + "\", microbatch=" + std::to_string(i) + "}\n";
    }
  }
  text +=
      "constant {name=\"c\", tensor=f32[2], inline_data=base64\"AAAAAAAAAAA=\"}\n"
      "constant {name=\"d\", tensor=f32[2], inline_data=base64\"AAAAAAAAAAE=\"}\n";
  for (const char* graph : {"s", "u"}) {
    text += std::string("graph @") + graph + " {\n  attribute {path=\"c\", constant=\"" + (*graph == 's' ? "c" : "d") +
            "\"}\n  %c: f32[2]@cpu = get_attr[\"c\"]()\n  return (%c,)\n}\n";
  }
  CHECK(ideal_peak(text) == 16);
}

// Bytes counted by hand: w and x throughout; b of each microbatch until its last use; the loss and
// the tangent.
TEST_CASE("step: memory of a pair and of microbatches", "[step]") {
  constexpr int64_t kTensor = 4096, kScalar = 4;
  const std::string pair = kForward + backward(kSaved1, kSaved2);
  // At %e: w, x, b, e, the loss and the tangent. At %a, %b: w, x, a, b.
  CHECK(ideal_peak(pair) == 4 * kTensor + 2 * kScalar);
  // At %backward[1].e: w, x twice, b twice, e; two losses and a tangent.
  CHECK(ideal_peak(kMicrobatches + pair) == 6 * kTensor + 3 * kScalar);
  // In turn: at %backward[0].e of the second: w, x twice, the first gradient, b, e.
  const std::string in_turn = R"(invocation {graph="f", microbatch=0}
invocation {graph="b", microbatch=0}
invocation {graph="f", microbatch=1}
invocation {graph="b", microbatch=1}
)";
  CHECK(ideal_peak(in_turn + pair) == 6 * kTensor + 3 * kScalar);
  // Storages recorded in the file belong to one run.
  const std::string recorded = replaced(pair, "%b: f32[1024] = aten", "%b: f32[1024]@cpu$0 = aten");
  CHECK(ideal_peak("storage {id=0, bytes=4096, device=\"cpu\"}\n" + kMicrobatches + recorded) > 0);
}

}  // namespace
}  // namespace fxopt
