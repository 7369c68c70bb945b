// fxopt diff and fxopt explain.

#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

// A step whose forward value %p (4 MiB) stays live for backward, past the lifetime of %big (8 MiB).
constexpr std::string_view kStep = R"(process_group {uid="0", ranks=[0, 1]}
graph @main {kind=forward_loss_backward} {
  output_spec {role=loss}
  output_spec {role=gradient, of="w"}
  %w: f32[1048576]@cuda:0 = placeholder() {phase=forward, input={role=parameter}}
  %x: f32[1048576]@cuda:0 = placeholder() {phase=forward, input={role=input}}
  %m: f32[1024, 1024]@cuda:0 = aten.view.default(%x, [1024, 1024]) {phase=forward}
  %p: f32[1024, 1024]@cuda:0 = aten.mm.default(%m, %m) {phase=forward, module_path="layers.0"}
  %q: f32[1048576]@cuda:0 = aten.view.default(%p, [1048576]) {phase=forward}
  %a: f32[1048576]@cuda:0 = aten.mul.Tensor(%w, %q) {phase=forward, module_path="layers.0"}
  %big: f32[2097152]@cuda:0 = aten.cat.default([%a, %x]) {phase=forward, module_path="layers.1"}
  %loss: f32[]@cuda:0 = aten.sum.default(%big) {phase=loss, module_path="loss"}
  %seed: f32[]@cuda:0 = aten.ones_like.default(%loss) {phase=backward}
  %e: f32[1048576]@cuda:0 = aten.expand.default(%seed, [1048576]) {phase=backward}
  %g: f32[1048576]@cuda:0 = aten.mul.Tensor(%e, %q) {phase=backward, module_path="layers.0"}
  %r: f32[1048576]@cuda:0 = _c10d_functional.all_reduce.default(%g, "sum", group("0")) {phase=backward}
  %d: f32[1048576]@cuda:0 = _c10d_functional.wait_tensor.default(%r) {phase=backward}
  return (%loss, %d)
}
)";

// The step with a tag on %p.
const std::string kTagged = [] {
  std::string text(kStep);
  return text.insert(text.find("phase=forward, module_path=\"layers.0\"}"), "tag=MUST_RECOMPUTE, ");
}();

struct Step {
  TempFolder folder;
  std::string path = folder / "step.fxg", other = folder / "other.fxg";
  Step() { write_text(path, kStep); }

  nlohmann::json explain(const std::string& node) const {
    return run_fxopt({"explain", path, node, "--json"}).json()["result"]["explanation"];
  }
};

TEST_CASE("cli explain: who makes a value, who keeps it, and what recomputing it would change") {
  const Step step;
  const nlohmann::json about = step.explain("%p");
  CHECK(about["phase"] == "forward");
  CHECK(about["decision"] == "saved: no tag says otherwise");
  REQUIRE(about["storages"].size() == 1);
  const nlohmann::json storage = about["storages"][0];
  CHECK(storage["bytes"] == 4194304);
  CHECK(storage["class"] == "saved value");
  CHECK(storage["kept_by"] == "%g, its last reader");
  CHECK(storage["readers"] == nlohmann::json::parse(R"(["q", "a", "g"])"));
  CHECK(storage["readers_behind_peak"] == 1);
  CHECK(storage["at_peak"] == true);
  CHECK(about["peak"]["node"] == "big");
  const nlohmann::json tried = about["what_if"];
  CHECK(tried["tag"] == "MUST_RECOMPUTE");
  CHECK(tried["copies"] == nlohmann::json::parse(R"(["p_recomputed", "q_recomputed"])"));
  CHECK(tried["flops"] == int64_t{2} * 1024 * 1024 * 1024);
  CHECK(tried["before"][0]["ideal"]["bytes"] == 24 * 1048576);  // w, x, p, a, big
  CHECK(tried["after"][0]["ideal"]["bytes"] == 20 * 1048576);   // without p
}

TEST_CASE("cli explain: a view stands on what it views, and the maker is what would be recomputed") {
  const Step step;
  const nlohmann::json about = step.explain("q");
  CHECK(about["storages"][0]["made_by"] == "p");
  CHECK(about["what_if"]["copies"][0] == "p_recomputed");
  CHECK(contains(run_fxopt({"explain", step.path, "q"}).out, "made by    %p, of which %q is a view"));
}

TEST_CASE("cli explain: values that nothing recomputes") {
  const Step step;
  CHECK(step.explain("w")["storages"][0]["kept_by"] == "the caller, who owns the input");
  CHECK(step.explain("w")["what_if"] == nullptr);
  CHECK(step.explain("big")["decision"] == "");  // not used in backward
  CHECK(step.explain("g")["storages"][0]["kept_by"] ==
        "%d, because a collective or a keep-alive dependency holds the storage until this node");
  CHECK(step.explain("d")["storages"][0]["kept_by"] == "the caller, to whom the graph returns it");
  check_ended(run_fxopt({"explain", step.path, "bigg"}), 2, "did you mean 'big'?");
}

TEST_CASE("cli explain --steady: what is kept between steps because of a parameter or a gradient") {
  const Step step;
  const auto kept = [&step](const std::string& node, const std::vector<std::string>& more = {}) {
    return run_fxopt({"explain", step.path, node, "--json", "--steady"}, more)
        .json()["result"]["explanation"]["kept_between_steps"];
  };
  const auto row = [](const char* label, const char* node, const char* kind) {
    return nlohmann::json{
        {"label", label}, {"node", node}, {"class", kind}, {"device", "cuda:0"}, {"bytes", 4 * 1048576}};
  };
  const nlohmann::json first = row("exp_avg", "w", "optimizer state");
  const nlohmann::json second = row("exp_avg_sq", "w", "optimizer state");
  // The gradient is in the output buffer of the collective.
  const nlohmann::json gradient = row("gradient", "r", "gradient");
  CHECK(kept("w") == nlohmann::json{first, second, gradient});
  CHECK(kept("d") == kept("w"));
  CHECK(kept("w", {"--gradients", "freed"}) == nlohmann::json{first, second});
  CHECK(kept("w", {"--optimizer", "none"}) == nlohmann::json::array({gradient}));
  CHECK(kept("d", {"--optimizer", "momentum", "--gradients", "freed"}) ==
        nlohmann::json::array({row("momentum_buffer", "w", "optimizer state")}));
  CHECK(kept("d", {"--optimizer", "none", "--gradients", "freed"}) == nlohmann::json::array());
  CHECK(kept("x") == nlohmann::json::array());  // neither parameter nor gradient
  CHECK(kept("g") == nlohmann::json::array());  // %d, the reduced value, leaves the graph instead
  CHECK(step.explain("w")["kept_between_steps"] == nullptr);

  const std::string text = run_fxopt({"explain", step.path, "w", "--steady"}).out;
  CHECK(contains(text,
                 "kept between steps because of this node: 12.00 MiB (12582912 B)\n"
                 "  exp_avg     4.00 MiB (4194304 B)  for %w\n"
                 "  exp_avg_sq  4.00 MiB (4194304 B)  for %w\n"
                 "  gradient    4.00 MiB (4194304 B)  for %r\n"));
  CHECK_FALSE(contains(run_fxopt({"explain", step.path, "w"}).out, "kept between steps"));
  CHECK_FALSE(contains(run_fxopt({"explain", step.path, "x", "--steady"}).out, "kept between steps"));
}

// A parameter without a gradient keeps nothing. Two gradients of one parameter are kept as one.
TEST_CASE("cli explain --steady: parameters without a gradient, and gradients of one parameter") {
  const Step step;
  const std::string parameters = replaced(kStep, "role=input", "role=parameter");
  const std::string text = replaced(parameters, "output_spec {role=loss}", "output_spec {role=gradient, of=\"w\"}");
  write_text(step.path, replaced(text, "(%loss, %d)", "(%g, %d)"));
  const auto labels = [&step](const std::string& node) {
    std::string list;
    const nlohmann::json result = run_fxopt({"explain", step.path, node, "--json", "--steady"}).json()["result"];
    for (const nlohmann::json& each : result["explanation"]["kept_between_steps"]) {
      list += each["label"].get<std::string>() + " of " + each["node"].get<std::string>() + " ";
    }
    return list;
  };
  CHECK(labels("x").empty());
  CHECK(labels("w") == "exp_avg of w exp_avg_sq of w gradient of g ");
  CHECK(labels("g") == labels("w"));
  CHECK(labels("d") == labels("w"));  // accumulated into the same gradient
}

TEST_CASE("cli explain: an element is kept by the last getitem of the value it is part of") {
  const Step step;
  write_text(step.path,
             "graph @main {\n  %x: f32[10] = placeholder()\n"
             "  %m: (f32[10], i64[10]) = aten.topk.default(%x, 10)\n"
             "  %values: f32[10] = operator.getitem(%m, 0)\n  %n: f32[10] = aten.neg.default(%values)\n"
             "  %indices: i64[10] = operator.getitem(%m, 1)\n  %e: i64[10] = aten.neg.default(%indices)\n"
             "  return (%n, %e)\n}\n");
  const nlohmann::json values = step.explain("values")["storages"][0], indices = step.explain("indices")["storages"][0];
  CHECK(values["kept_by"] == "%indices, which takes the last element of the value that contains this storage");
  CHECK(values["readers"] == nlohmann::json::parse(R"(["values", "n"])"));
  CHECK(indices["kept_by"] == "%e, its last reader");
  CHECK(indices["readers"] == nlohmann::json::parse(R"(["indices", "e"])"));
}

TEST_CASE("cli explain: what a tag lets go is tried as saved, and a refusal is told") {
  const Step step;
  write_text(step.path, kTagged);
  const nlohmann::json tagged = step.explain("p");
  CHECK(contains(tagged["decision"].get<std::string>(), "recomputed: MUST_RECOMPUTE"));
  CHECK(tagged["what_if"]["tag"] == "MUST_SAVE");
  CHECK(tagged["what_if"]["before"][0]["ideal"]["bytes"] == 20 * 1048576);
  CHECK(tagged["what_if"]["after"][0]["ideal"]["bytes"] == 24 * 1048576);

  write_text(step.path, replaced(kStep, "aten.mm.default(%m, %m)", "aten.rand_like.default(%m)"));
  const nlohmann::json random = step.explain("p");
  CHECK(contains(random["decision"].get<std::string>(), "draws random numbers"));
  CHECK_FALSE(random["what_if"]["refusal"].get<std::string>().empty());
}

TEST_CASE("cli diff: peaks, calls, collectives, saved values and storages that changed") {
  const Step step;
  REQUIRE(run_fxopt({"opt", step.path, "-o", step.other, "--passes", "canonicalize"}).exit == 0);
  CHECK(run_fxopt({"diff", step.path, step.path, "--json"}).json()["result"]["graphs"][0]["ops"].empty());

  std::string text = replaced(kStep, "f32[2097152]@cuda:0 = aten.cat.default([%a, %x])",
                              "f32[3145728]@cuda:0 = aten.cat.default([%a, %x, %q])");
  text.erase(text.find("  %r:"), text.find("  return") - text.find("  %r:"));
  write_text(step.other, replaced(text, "(%loss, %d)", "(%loss, %g)"));
  const CliResult result = run_fxopt({"diff", step.path, step.other, "--json"});
  CHECK(result.exit == 0);
  const nlohmann::json diff = result.json()["result"]["graphs"][0];
  CHECK(diff["devices"][0]["peaks"][0]["metric"] == "ideal");
  CHECK(diff["devices"][0]["peaks"][0]["before"]["bytes"] == 24 * 1048576);
  CHECK(diff["devices"][0]["peaks"][0]["after"]["bytes"] == 28 * 1048576);
  CHECK(diff["devices"][0]["storages"][0]["node"] == "big");
  CHECK(diff["devices"][0]["storages"][0]["after"] == 12 * 1048576);
  CHECK(diff["collectives"][0]["name"] == "_c10d_functional.all_reduce.default on group 0");
  CHECK(diff["collectives"][0]["before"]["bytes"] == 4194304);
  CHECK(diff["collectives"][0]["after"]["count"] == 0);
  CHECK(diff["before"]["work"]["flops"] == int64_t{2} * 1024 * 1024 * 1024);
  CHECK(diff["before"]["work"]["seconds"] == nullptr);
  CHECK(contains(run_fxopt({"diff", step.path, step.other, "--device", "h100"}).out, "time at least (roofline), ms"));
  const std::string shown = run_fxopt({"diff", step.path, step.other}).out;
  CHECK(contains(shown, "%big (f32[3145728], temporary, layers.1): 8.00 MiB (8388608 B) -> 12.00 MiB"));
}

TEST_CASE("cli diff: what only one side saves is named by module, operator and type") {
  const Step step;
  write_text(step.path, kTagged);
  REQUIRE(run_fxopt({"opt", step.path, "-o", step.other, "--passes", "remat"}).exit == 0);
  const nlohmann::json diff = run_fxopt({"diff", step.path, step.other, "--json"}).json()["result"]["graphs"][0];
  REQUIRE(diff["saved"].size() == 1);
  CHECK(diff["saved"][0]["name"] == "layers.*: aten.mm.default f32[1024, 1024]");
  CHECK(diff["saved"][0]["before"]["bytes"] == 4194304);
  CHECK(diff["saved"][0]["after"]["count"] == 0);
}

TEST_CASE("cli diff and explain: two arguments, no more and no less") {
  const Step step;
  CHECK(contains(run_fxopt({"diff", step.path}).err, "fxopt diff needs a second graph file"));
  CHECK(run_fxopt({"diff"}).exit == 2);
  CHECK(contains(run_fxopt({"diff", step.path, step.path, step.path}).err,
                 "3 files given, but only two can be compared"));
  CHECK(contains(run_fxopt({"explain", step.path}).err, "fxopt explain needs a node's name"));
}

TEST_CASE("cli diff and explain: what is unknown, and what memory ran out for, is no figure") {
  const Step step;
  const nlohmann::json cut =
      run_fxopt({"diff", step.path, step.path, "--device-memory", "20MiB", "--json"}).json()["result"]["graphs"][0];
  CHECK(cut["devices"][0]["peaks"][2]["metric"] == "allocated, classic");
  CHECK(cut["devices"][0]["peaks"][2]["before"]["bytes"] == nullptr);
  CHECK(contains(run_fxopt({"diff", step.path, step.path, "--device-memory", "20MiB"}).out, "out of memory"));
  CHECK(contains(run_fxopt({"explain", step.path, "p", "--device-memory", "20MiB"}).out, "out of memory"));

  write_text(step.other, kSymbolicGraph);
  CHECK(contains(run_fxopt({"explain", step.other, "a"}).out, "storage of unknown size"));
  CHECK(contains(run_fxopt({"diff", step.other, step.other}).err, "2 storages of unknown size"));
}

}  // namespace
}  // namespace fxopt
