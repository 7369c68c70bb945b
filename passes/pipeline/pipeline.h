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

// One entry of a pipeline.
struct PipelineStep {
  const PassInfo* pass = nullptr;
  std::string text;  // the canonical text: "remat{compat=torch}"
  BoundPass bound;

  // Whether the pass, with these options, may change the computation in the way that `term`
  // describes.
  bool has(ProofTerm term) const;
  // The value as given in the pipeline, or the default value.
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
// kBadPipeline (syntax), kUnknownPass, kUnknownOption, kBadOptionValue, kPassOrder. The Where of
// each error has the column, and the text with a caret.
Result<Pipeline> parse_pipeline(std::string_view text);

// Returns an error for the first pass that may change results more than `allowed` permits. Returns
// nothing if no such pass exists.
std::optional<Error> numerics_error(const Pipeline& pipeline, Numerics allowed);

// The pipeline that `opt` runs if --passes is not given.
std::string_view default_pipeline_text();

// The result of one step.
struct StepReport {
  std::string pass;
  PassResult result;
  double seconds = 0;
  double check_seconds = 0;  // time of the structural hash, the verifier and the prover
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  // Whether the module is proved to compute the same results as before the step. kNone if no proof
  // was requested, or if only marks changed. Changed marks are proved together with the following
  // step.
  ProofVerdict proof = ProofVerdict::kNone;
  // The reason if `proof` is kUnproved. Later passes are then proved against the output of this
  // step.
  std::string unproved;
};

struct RunOptions {
  // Run the structural verifier after each pass that changed something. Set this to false only to
  // measure run times.
  bool verify = true;
  // After each pass that changed more than marks, prove that the module computes the same results
  // as before.
  bool prove = true;
  // How far a claimed rewrite rule may change results.
  Numerics numerics = Numerics::kExact;
  // Check the changes that passes report against a hash, and check that passes keep all decisions.
  bool check_hash = true;
  size_t stop_after = SIZE_MAX;  // run only this many steps
  // Called after each step, with the step's index.
  std::function<void(size_t, const PipelineStep&, const StepReport&, const Module&)> observer;
};

struct RunReport {
  std::vector<StepReport> steps;
  // The certificate of the output module. The certificate contains the proofs of this run and the
  // proofs of the module's own certificate. Absent if nothing is proved. The caller stores the
  // certificate in the module.
  std::optional<Certificate> certificate;
  bool has_stale_certificate = false;  // the module changed after its own certificate was made
};

// Runs the pipeline pass by pass. A pass on graphs runs once on every graph that is top-level when
// the pass begins. A pass on the module runs once. `context` belongs to the module. The run uses
// the facts that `context` already has, and the facts in `context` are valid after the run.
//
// Errors:
// - the errors of the passes
// - kVerify... if the output of a pass breaks an invariant
// - kNotEquivalent if the output of a pass computes something different from its input
// - kUsage if a claimed rewrite rule may change results further than `options.numerics`
// - an InternalError if a pass misreports whether it changed the module, or loses a tag or mark
//   (decisions.h)
Result<RunReport> run_pipeline(Module& module, const Pipeline& pipeline, const RunOptions& options,
                               PassContext& context);
Result<RunReport> run_pipeline(Module& module, const Pipeline& pipeline, const RunOptions& options = {});

// A hash of everything that a pass may change: the order of nodes, names, targets, arguments,
// values, phases, tags, control dependencies, rare fields.
struct StructuralHash {
  uint64_t records = 0;          // covers the list of graphs, and the module outside of its graphs
  std::vector<uint64_t> graphs;  // by id

  friend bool operator==(const StructuralHash&, const StructuralHash&) = default;
  // Returns, for each graph id, whether the graph is unchanged. Returns an empty list if `records`
  // differs. O(graphs).
  std::vector<bool> unchanged_since(const StructuralHash& before) const;
};
// O(nodes + arguments).
StructuralHash structural_hash(const Module& module);

}  // namespace fxopt
