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

  // Whether the pass, with these options, may do that.
  bool has(ProofTerm term) const;
  std::string_view value_of(std::string_view option) const;  // as given, else by default
};

// The canonical text of a pass with options that differ from its defaults.
std::string step_text(const PassInfo& pass, const OptionTexts& options);

struct Pipeline {
  std::vector<PipelineStep> steps;
  std::string text() const;  // parse_pipeline() of it gives the same pipeline
};

// Parses 'cse,sac{policy=per-op,compat=torch},remat,dce'. Values may be quoted with '"'. Errors, each with the column
// and the text with a caret in Where: kBadPipeline (syntax), kUnknownPass, kUnknownOption, kBadOptionValue, kPassOrder.
Result<Pipeline> parse_pipeline(std::string_view text);

// The first pass that changes results more than that, as an error; nothing where all stay within it.
std::optional<Error> numerics_error(const Pipeline& pipeline, Numerics allowed);

// What `opt` runs when no --passes is given.
std::string_view default_pipeline_text();

// What one step did.
struct StepReport {
  std::string pass;
  PassResult result;
  double seconds = 0;
  double check_seconds = 0;  // of the structural hash and the verifier after it
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  // Whether the module is proved to compute the same; kNone where nothing changed but marks, which are proved with what
  // follows, and where it is not asked.
  ProofVerdict proof = ProofVerdict::kNone;
  std::string unproved;  // kUnproved: why. Later passes are judged by what this one has left
};

struct RunOptions {
  bool verify = true;  // the structural verifier after each pass that changed something; off for timing only
  bool prove = true;   // that the module computes the same after each pass that changed more than marks
  Numerics numerics = Numerics::kExact;  // how far the laws that passes claim may change results
  bool check_hash = true;        // compare the claimed change with a structural hash; ask whether decisions were kept
  size_t stop_after = SIZE_MAX;  // run only the first so many steps
  // Called after each step, with the step's index.
  std::function<void(size_t, const PipelineStep&, const StepReport&, const Module&)> observer;
};

struct RunReport {
  std::vector<StepReport> steps;
  // What is proved of the module now: by this run, after what the module's own certificate says of it. Nothing where
  // nothing is; the caller puts it into the module.
  std::optional<Certificate> certificate;
  bool has_stale_certificate = false;  // the module's own was of another module: it was changed after it was proved
};

// Runs the pipeline pass by pass: a pass on graphs over every graph that is top-level when the pass begins, a pass on the
// module once. Errors: those of the passes; kVerify... when a pass's output breaks an invariant; kNotEquivalent when it
// computes something else than before. A pass that lies about
// having changed the module, or that loses a tag or mark (decisions.h), is an InternalError.
// `context` is the module's; what it knew before the first pass is used, and what it knows after the last one holds.
Result<RunReport> run_pipeline(Module& module, const Pipeline& pipeline, const RunOptions& options,
                               PassContext& context);
Result<RunReport> run_pipeline(Module& module, const Pipeline& pipeline, const RunOptions& options = {});

// A hash of everything a pass may change: nodes in order, names, targets, arguments, values, phases, tags, control
// dependencies, rare fields.
struct StructuralHash {
  uint64_t records = 0;          // what the module holds besides graphs, and which graphs there are
  std::vector<uint64_t> graphs;  // by id

  friend bool operator==(const StructuralHash&, const StructuralHash&) = default;
  // By id, the graphs that are as they were; empty where records differ. O(graphs).
  std::vector<bool> unchanged_since(const StructuralHash& before) const;
};
// O(nodes + arguments).
StructuralHash structural_hash(const Module& module);

}  // namespace fxopt
