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
  std::string text;  // canonical: "remat{compat=torch}"
  BoundPass bound;

  // Whether the pass, with these options, may do `term`.
  bool has(ProofTerm term) const;
  std::string_view value_of(std::string_view option) const;  // as given, or the default
};

// The canonical text of a pass with options that differ from its defaults.
std::string step_text(const PassInfo& pass, const OptionTexts& options);

struct Pipeline {
  std::vector<PipelineStep> steps;
  std::string text() const;  // parse_pipeline() of it returns the same pipeline
};

// Parses 'cse,sac{policy=per-op,compat=torch},remat,dce'. Values may be quoted with '"'. Errors,
// each with the column and the text with a caret in Where: kBadPipeline (syntax), kUnknownPass,
// kUnknownOption, kBadOptionValue, kPassOrder.
Result<Pipeline> parse_pipeline(std::string_view text);

// An error for the first pass that may change results more than `allowed`; nothing if there is
// none.
std::optional<Error> numerics_error(const Pipeline& pipeline, Numerics allowed);

// The pipeline that `opt` runs without --passes.
std::string_view default_pipeline_text();

// The result of one step.
struct StepReport {
  std::string pass;
  PassResult result;
  double seconds = 0;
  double check_seconds = 0;  // for the structural hash and the verifier after the step
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  // Whether the module is proved to compute the same. kNone if only marks changed, which are proved
  // with the following step, and if no proof was requested.
  ProofVerdict proof = ProofVerdict::kNone;
  // The reason for kUnproved. Later passes are proved against the output of this step.
  std::string unproved;
};

struct RunOptions {
  // Run the structural verifier after each pass that changed something; off for timing only.
  bool verify = true;
  // Prove that the module computes the same after each pass that changed more than marks.
  bool prove = true;
  Numerics numerics = Numerics::kExact;  // how far claimed rewrite rules may change results
  bool check_hash = true;                // check reported changes by a hash, and that decisions are kept
  size_t stop_after = SIZE_MAX;          // run only this many steps
  // Called after each step, with the step's index.
  std::function<void(size_t, const PipelineStep&, const StepReport&, const Module&)> observer;
};

struct RunReport {
  std::vector<StepReport> steps;
  // The proof for the output module: by this run, in addition to the module's own certificate.
  // Nothing if nothing is proved. The caller stores it in the module.
  std::optional<Certificate> certificate;
  bool has_stale_certificate = false;  // the module changed after its own certificate was made
};

// Runs the pipeline pass by pass. A pass on graphs runs over every graph that is top-level when the
// pass begins; a pass on the module runs once. Errors: those of the passes; kVerify... if a pass's
// output breaks an invariant; kNotEquivalent if it computes something else than the pass's input. A
// pass that misreports whether it changed the module, or that loses a tag or mark (decisions.h), is
// an InternalError. `context` belongs to the module. Its facts from before the run are used, and
// its facts after the run are valid.
Result<RunReport> run_pipeline(Module& module, const Pipeline& pipeline, const RunOptions& options,
                               PassContext& context);
Result<RunReport> run_pipeline(Module& module, const Pipeline& pipeline, const RunOptions& options = {});

// A hash of everything that a pass may change: nodes in order, names, targets, arguments, values,
// phases, tags, control dependencies, rare fields.
struct StructuralHash {
  uint64_t records = 0;          // covers the module outside of its graphs, and the list of graphs
  std::vector<uint64_t> graphs;  // by id

  friend bool operator==(const StructuralHash&, const StructuralHash&) = default;
  // By id, whether each graph is unchanged; empty if records differ. O(graphs).
  std::vector<bool> unchanged_since(const StructuralHash& before) const;
};
// O(nodes + arguments).
StructuralHash structural_hash(const Module& module);

}  // namespace fxopt
