#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "ir/graph/records.h"
#include "passes/pipeline/registry.h"

namespace fxopt {

// One pass of a pipeline, with its options.
struct PipelineStep {
  const PassInfo* pass = nullptr;
  std::string text;  // the canonical text: "remat{compat=torch}"
  BoundPass bound;

  // Whether the pass, with these options, may change the computation in the way that `term`
  // describes.
  bool has(ProofTerm term) const;
  // The value of the option as given in the pipeline. If the pipeline does not give the option, its
  // default value.
  std::string_view value_of(std::string_view option) const;
};

// Returns the canonical text of a pass with `options`, which are the options that differ from their
// defaults.
std::string step_text(const PassInfo& pass, const OptionTexts& options);

struct Pipeline {
  std::vector<PipelineStep> steps;
  std::string text() const;  // parse_pipeline() of this text returns the same pipeline
};

// Parses 'cse,sac{policy=per-op,compat=torch},remat,dce'. Values may be in double quotes. Errors:
// kBadPipeline (syntax), kUnknownPass, kUnknownOption, kBadOptionValue, kPassOrder. The field
// `where` of each error has the column and an excerpt of the text with a caret.
Result<Pipeline> parse_pipeline(std::string_view text);

// Returns an error for the first pass that may change results more than `allowed` permits. Returns
// nothing if no such pass exists.
std::optional<Error> numerics_error(const Pipeline& pipeline, Numerics allowed);

// The pipeline that `opt` runs if --passes is not given.
std::string_view default_pipeline_text();

// The result of one step, which is one run of a pass.
struct StepReport {
  std::string pass;
  PassResult result;
  double seconds = 0;
  double check_seconds = 0;  // time of the structural hash, the verifier and the prover
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  // Whether the module is proved to compute the same results as before the step. The verdict is
  // kNone in three cases:
  // - No proof was requested.
  // - No proof ran directly after the pass, because the pass changed nothing, or may change only
  //   phases, tags and other annotations. The next proof compares with a module from before this
  //   step, so that proof covers this step as well.
  // - The pass may change only annotations, and the proof directly after the pass succeeded. If
  //   this proof fails, the verdict is kUnproved.
  ProofVerdict proof = ProofVerdict::kNone;
  // The reason if `proof` is kUnproved. Later passes are then proved against the output of this
  // step.
  std::string unproved;
};

struct RunOptions {
  // Run the structural verifier after each pass that changed something. Set this to false only to
  // measure run times.
  bool verify = true;
  // After each pass that changed more than annotations (phases, tags, save marks), prove that the
  // module computes the same results as before.
  bool prove = true;
  // How much a rewrite rule may change results. A pass makes a claim (claims.h) if it replaces an
  // expression by another expression, and the prover needs a rewrite rule to prove them equal. The
  // claim names this rewrite rule. run_pipeline() returns kUsage if the rule may change results
  // more than `numerics` allows.
  Numerics numerics = Numerics::kExact;
  // Check with a structural hash whether each pass reports correctly that it changed the module.
  // Also check that passes keep all tags and save marks (decisions.h).
  bool check_hash = true;
  size_t stop_after = SIZE_MAX;  // run only this many steps
  // Called after each step, with the step's index.
  std::function<void(size_t, const PipelineStep&, const StepReport&, const Module&)> observer;
};

struct RunReport {
  std::vector<StepReport> steps;
  // The certificate of the output module. It contains first the steps of the input module's
  // certificate (none if that certificate is stale), and after them the steps that the prover
  // judged in this run. Absent if there are no steps. Without proofs (RunOptions::prove), this is
  // the input module's certificate if no pass changed the module, and absent otherwise. The caller
  // stores the certificate in the module.
  std::optional<Certificate> certificate;
  bool has_stale_certificate = false;  // the input module was changed after its certificate was made
};

// Runs the pipeline pass by pass. A pass on graphs runs once on every graph that is top-level when
// the pass begins. A pass on the module runs once. `context` belongs to the module. The run uses
// the results of analyses (facts) that `context` already has. After the run, the results in
// `context` are valid for the output.
//
// Errors:
// - the errors of the passes
// - kVerify... if the output of a pass breaks an invariant
// - kNotEquivalent if the output of a pass computes something different from its input
// - kUsage if a claim of a pass (PassResult::claims) names a rewrite rule that `options.numerics`
//   forbids. For example, kExact forbids a rule that reorders sums.
// - an InternalError if a pass misreports whether it changed the module, or loses a tag or a save
//   mark (decisions.h)
Result<RunReport> run_pipeline(Module& module, const Pipeline& pipeline, const RunOptions& options,
                               PassContext& context);
Result<RunReport> run_pipeline(Module& module, const Pipeline& pipeline, const RunOptions& options = {});

// A hash of everything that a pass may change: the order of nodes, names, targets, arguments,
// values, phases, tags, control dependencies, and the fields of NodeExtra.
struct StructuralHash {
  uint64_t records = 0;          // hash of the list of graphs, and of the module outside of its graphs
  std::vector<uint64_t> graphs;  // by id

  friend bool operator==(const StructuralHash&, const StructuralHash&) = default;
  // Returns, for each graph id, whether the graph is unchanged since `before`. Returns an empty
  // list if the field `records` of the two hashes differs. The module outside of its graphs, or the
  // list of graphs, then changed. O(graphs).
  std::vector<bool> unchanged_since(const StructuralHash& before) const;
};
// O(nodes + arguments).
StructuralHash structural_hash(const Module& module);

}  // namespace fxopt
