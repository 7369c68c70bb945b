// Every pass output on testdata computes the same as its input: proved, with nothing undecided.
#include "ir/check/equivalence/equivalence.h"

#include <string>
#include <vector>

#include "ir/step/phases.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/registry.h"
#include "tests/catch.h"
#include "tests/parts.h"
#include "tests/prove.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

// The pipelines; the result is proved after each pass.
std::vector<std::string> pipelines() {
  std::vector<std::string> out;
  for (const PassInfo& pass : pass_registry()) out.push_back(std::string(pass.name));
  out.push_back(std::string(default_pipeline_text()));
  out.push_back("infer-phase,sac{policy=full},canonicalize,cse,remat,dce");
  out.push_back("infer-phase,sac{policy=per-op},canonicalize,cse,remat,raise-getitems,dce");
  return out;
}

// The pass's error for a file it does not apply to.
std::string refusal_of(const std::string& pass, const Module& module) {
  const bool is_for_joint = is_joint(module.main());
  if (pass == "partition" && !is_for_joint && module.main().kind != GraphKind::kBackward) {
    return "partition: no graph of this module is joint: no input is a tangent";
  }
  if (pass == "join" && !is_for_joint) {
    return "join: the step of this module does not consist of one forward graph and one backward graph, each run once";
  }
  return "";
}

void prove_every_pass(uint64_t part, uint64_t parts) {
  size_t changed = 0;
  const std::vector<std::string> files = testdata_files();
  for (size_t i = part; i < files.size(); i += parts) {
    const std::string& file = files[i];
    for (const std::string& text : pipelines()) {
      INFO(file << " " << text);
      const std::unique_ptr<Module> module = load_testdata(file);
      const Pipeline pipeline = parse_pipeline(text).value();
      const std::string refusal = refusal_of(text, *module);
      ProofOptions proof;
      proof.as_step = text == "partition";
      for (const PipelineStep& step : pipeline.steps) {
        proof.allow_dead_collectives = proof.allow_dead_collectives || step.has(ProofTerm::kDropsCollectives);
      }
      Prover prover(*module, proof);
      RunOptions options;
      options.observer = [&](size_t, const PipelineStep& step, const StepReport& report, const Module& after) {
        if (!report.result.changed()) return;
        ++changed;
        INFO("after " << step.text);
        const std::vector<Claim>& claims = report.result.claims();
        if (claims.empty()) {
          CHECK(proof_text(after, prover.prove(after)) == "proved");
        } else {  // claims are about the module just before the pass
          CHECK(text == step.text);
          CHECK(proof_text(after, Prover(*load_testdata(file), proof, claims).prove(after)) == "proved");
        }
      };
      const Result<RunReport> report = run_pipeline(*module, pipeline, options);
      CHECK((report.ok() ? "" : report.error().message) == refusal);
    }
  }
  if (has_all_testdata()) CHECK(changed > 100);
}

FXOPT_TEST_IN_PARTS(prove_every_pass, "testdata: what every pass makes is proved", "[testdata][equivalence]");

TEST_CASE("testdata: keys of 16 bits raise no alarm", "[testdata][equivalence]") {
  ProofOptions options;
  options.key_bits = 16;
  for (const char* file : {"llama1b.pb", "gpt2_joint.pb.zst", "deepseek16b_twin.pb.zst"}) {
    INFO(file);
    const std::unique_ptr<Module> module = load_testdata(file);
    const Pipeline pipeline = parse_pipeline(default_pipeline_text()).value();
    Prover prover(*module, options);
    REQUIRE(run_pipeline(*module, pipeline).ok());
    CHECK(proof_text(*module, prover.prove(*module)) == "proved");
  }
}

}  // namespace
}  // namespace fxopt
