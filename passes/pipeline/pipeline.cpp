#include "passes/pipeline/pipeline.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/stopwatch.h"
#include "core/version.h"
#include "ir/check/equivalence/equivalence.h"
#include "ir/check/verify.h"
#include "ir/graph/top_level.h"
#include "ir/ranks/ranks.h"
#include "passes/pipeline/decisions.h"
#include "passes/pipeline/proof_error.h"

namespace fxopt {
namespace {

Error failure_of(const PipelineStep& step, Error error) {
  error.message = step.text + ": " + error.message;
  return error;
}

Result<PassResult> run_on_module(Module& module, const PipelineStep& step, const PassRun<Module>& run,
                                 PassContext& context) {
  Result<PassResult> result = run(module, context);
  if (!result.ok()) return failure_of(step, std::move(result).error());
  for (const GraphId id : module.graphs()) module.graph(id).prune_control();
  if (result->changed()) context.facts.forget();
  return result;
}

Result<PassResult> run_on_graphs(Module& module, const PipelineStep& step, const PassRun<Graph>& run,
                                 PassContext& context) {
  PassResult result;
  for (const GraphId id : top_level_graphs(module)) {
    Graph& graph = module.graph(id);
    Result<PassResult> one = run(graph, context);
    if (!one.ok()) {
      Error error = failure_of(step, std::move(one).error());
      if (error.where.graph.empty()) error.where.graph = module.text(graph.name());
      return error;
    }
    graph.prune_control();
    if (one->changed()) context.facts.of(graph).forget();
    result.merge(std::move(*one));
  }
  return result;
}

Result<PassResult> run_step(Module& module, const PipelineStep& step, PassContext& context) {
  if (const auto* run = std::get_if<PassRun<Module>>(&step.bound.run)) {
    return run_on_module(module, step, *run, context);
  }
  return run_on_graphs(module, step, std::get<PassRun<Graph>>(step.bound.run), context);
}

std::optional<Error> check_output(const Module& module, const PipelineStep& step, size_t index,
                                  const std::vector<bool>& is_known) {
  const std::vector<Error> broken = verify(module, 100, is_known);
  if (broken.empty()) return std::nullopt;
  Error error = broken.front();
  error.message = "after pass " + std::to_string(index + 1) + " (" + step.text + "): " + error.message;
  if (broken.size() > 1) error.message += "; " + std::to_string(broken.size() - 1) + " more broken invariants";
  error.hint = "this is a bug in the pass, not in the input";
  return error;
}

class PipelineProof {
 public:
  // Keeps a reference to `facts`, which must know the module at each call.
  PipelineProof(const Module& module, const Pipeline& pipeline, Numerics numerics, const StructuralHash& hash,
                ModuleFacts& facts)
      : phases_([&facts](const Graph& graph) -> const PhaseMap& { return facts.of(graph).phases(); }), proved_(hash) {
    options_.numerics = numerics;
    const auto any = [&pipeline](ProofTerm term) {
      return std::ranges::any_of(pipeline.steps, [term](const PipelineStep& step) { return step.has(term); });
    };
    options_.allow_dead_draws = any(ProofTerm::kDropsDraws);
    options_.allow_dead_collectives = any(ProofTerm::kDropsCollectives);
    options_.allow_dead_assertions = any(ProofTerm::kDropsAssertions);
    options_.allow_no_backward = any(ProofTerm::kDropsBackward);
    if (module.certificate.has_value()) allow(options_, module, *module.certificate);
    start_at(module);
    note_views();
    if (!module.certificate.has_value()) return;
    // The certificate records a name for the computation of the module. The name depends on the
    // allowed changes, so compute it with the changes that the certificate allows.
    ProofOptions then;
    allow(then, module, *module.certificate);
    const bool is_alike = then.allow_dead_draws == options_.allow_dead_draws;
    const ModuleName name = is_alike ? prover_->name() : Prover(module, then, {}, phases_).name();
    is_stale_ = module.text(module.certificate->computes) != name.text;
    if (!is_stale_) certificate_ = module.certificate;
  }

  // The certificate after these steps. Sets `is_stale` if the module's own certificate is for
  // another module.
  std::optional<Certificate> certify(Module& module, const std::vector<StepReport>& steps, bool& is_stale) {
    is_stale = is_stale_;
    Certificate out = certificate_.value_or(Certificate());
    for (const StepReport& step : steps) {
      if (step.proof == ProofVerdict::kNone) continue;
      ProvedStep& proved = out.steps.emplace_back();
      proved.pass = module.intern(step.pass);
      proved.version = module.intern(kVersion);
      proved.verdict = step.proof;
      if (!step.unproved.empty()) proved.why = module.intern(step.unproved);
      if (step.proof != ProofVerdict::kProved) continue;
      for (const Claim& claim : step.result.claims()) {
        const StringId rule = module.intern(name_of(claim.rule));
        if (std::ranges::count(proved.laws, rule) == 0) proved.laws.push_back(rule);
      }
    }
    if (out.steps.empty()) return std::nullopt;
    const ModuleName name =
        prover_->is_named_alike(module, phases_) ? prover_->name() : Prover(module, options_, {}, phases_).name();
    out.computes = module.intern(name.text);
    out.recorded_views = std::max<uint64_t>(out.recorded_views, most_.recorded_views);
    out.storage_id_views = std::max<uint64_t>(out.storage_id_views, most_.storage_id_views);
    const std::string calls = name_of_calls(trace_rank(module, 0, ""));
    out.calls = calls.empty() ? StringId() : module.intern(calls);
    out.allowed.clear();
    for (const ProofAllowance& item : kProofAllowances) {
      if (options_.*item.option) out.allowed.push_back(module.intern(item.word));
    }
    return out;
  }

  // Whether the proof of the step needs the module from directly before the step, which keep()
  // stores. All earlier steps must be proved first.
  static bool needs_module_before(const PipelineStep& step) {
    return step.pass->is_on_module || step.has(ProofTerm::kClaims);
  }

  // Call keep() before a step for which needs_module_before() is true.
  void keep(const Module& module, const PipelineStep& step) {
    if (step.has(ProofTerm::kClaims)) before_ = module.clone();
    if (!step.pass->is_on_module) return;
    ProofOptions options = options_;
    options.as_step = true;
    options.allow_no_backward = step.has(ProofTerm::kDropsBackward);
    step_prover_.emplace(module, options);
  }

  // Call check() after a step that changed the module. `is_last` is true if no later step can be
  // proved together with this step. `hash` is the hash of the module, if hashes are requested.
  std::optional<Error> check(const Module& module, const PipelineStep& step, size_t index, bool is_last,
                             const StructuralHash& hash, StepReport& report) {
    if (step.has(ProofTerm::kMarksOnly) && !is_last) return std::nullopt;  // proved with the next step
    const std::vector<bool> is_known = hash.unchanged_since(std::exchange(proved_, hash));
    const std::vector<Claim>& claims = report.result.claims();
    ModuleProof proof;
    if (claims.empty()) {
      proof = prover_->prove(module, is_known);
    } else {
      proof = Prover(*before_, options_, claims).prove(module);
      if (proof.answer == ProofAnswer::kProved) start_at(module);
    }
    before_.reset();
    if (proof.has_other_graphs && step_prover_.has_value()) {
      proof = step_prover_->prove(module);
      if (proof.answer == ProofAnswer::kProved) start_at(module);
    }
    step_prover_.reset();
    if (proof.answer == ProofAnswer::kProved) {
      note_views();
      if (!step.has(ProofTerm::kMarksOnly)) report.proof = ProofVerdict::kProved;
      return std::nullopt;
    }
    report.proof = ProofVerdict::kUnproved;
    Error error = proof_error(module, proof);
    if (step.has(ProofTerm::kImitates) || proof.has_other_graphs || proof.answer == ProofAnswer::kUndecided) {
      report.unproved = std::move(error.message);
      start_at(module);
      return std::nullopt;
    }
    error.message = "after pass " + std::to_string(index + 1) + " (" + step.text + "): " + error.message;
    return error;
  }

 private:
  // Makes `module` the input module of later proofs.
  void start_at(const Module& module) { prover_.emplace(module, options_, std::vector<Claim>(), phases_); }

  // Counts the recorded views on which the proofs so far rely.
  void note_views() {
    const ModuleName name = prover_->name();
    most_.recorded_views = std::max(most_.recorded_views, name.recorded_views);
    most_.storage_id_views = std::max(most_.storage_id_views, name.storage_id_views);
  }

  ProofOptions options_;
  PhasesOf phases_;
  ModuleName most_;
  StructuralHash proved_;  // hash of the module at the last proof
  std::optional<Prover> prover_;
  std::optional<Prover> step_prover_;       // for a pass on the module
  std::unique_ptr<Module> before_;          // for a pass that may claim equalities
  std::optional<Certificate> certificate_;  // the module's, if it is valid for this module
  bool is_stale_ = false;
};

}  // namespace

bool PipelineStep::has(ProofTerm term) const {
  return std::ranges::any_of(pass->rules.proof, [&](const ProofRule& rule) {
    return rule.term == term && (rule.option.empty() || value_of(rule.option) == rule.value);
  });
}

std::string_view PipelineStep::value_of(std::string_view option) const {
  const auto given = std::ranges::find(bound.options, option, &OptionTexts::value_type::first);
  if (given != bound.options.end()) return given->second;
  const auto known = std::ranges::find(pass->options, option, &PassOptionInfo::name);
  return known == pass->options.end() ? std::string_view() : known->default_value;
}

namespace {

Error numerics_error(const PipelineStep& step, Numerics needs, Numerics allowed) {
  const std::string needed(name_of(needs));
  return Error{ErrorCode::kUsage,
               step.text + " has the numerics class " + needed + ", which --numerics " + std::string(name_of(allowed)) +
                   " does not allow",
               "to allow this change of results, add --numerics " + needed,
               {}};
}

// The first node of the module that has a claim of this rule.
Where place_of(const Module& module, const std::vector<Claim>& claims, RewriteRule rule) {
  Where where;
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    std::set<uint64_t> uids;
    for (const Claim& claim : claims) {
      if (claim.rule == rule && module.text(graph.name()) == claim.graph) uids.insert(claim.uid);
    }
    for (const NodeId node : graph.nodes()) {
      if (!where.node.empty() || !uids.contains(graph[node].uid)) continue;
      where.graph = module.text(graph.name());
      where.node = graph.name_of(node);
    }
  }
  return where;
}

// One run of a pipeline over a module: run() is called once.
class PipelineRun {
 public:
  PipelineRun(Module& module, const Pipeline& pipeline, const RunOptions& options, PassContext& context)
      : module_(module), pipeline_(pipeline), options_(options), context_(context) {
    if (options.check_hash) {
      hash_ = structural_hash(module);
      decisions_ = find_decisions(module);
    }
    if (options.prove && num_steps_ > 0) proof_.emplace(module, pipeline, options.numerics, hash_, context.facts);
  }

  Result<RunReport> run() {
    RunReport report;
    for (size_t i = 0; i < num_steps_; ++i) {
      StepReport done;
      if (std::optional<Error> error = run(i, done)) return *std::move(error);
      if (options_.observer) options_.observer(i, pipeline_.steps[i], done, module_);
      report.steps.push_back(std::move(done));
    }
    if (proof_.has_value()) {
      report.certificate = proof_->certify(module_, report.steps, report.has_stale_certificate);
    } else if (std::ranges::none_of(report.steps, [](const StepReport& step) { return step.result.changed(); })) {
      report.certificate = module_.certificate;
    }
    return report;
  }

 private:
  std::optional<Error> run(size_t index, StepReport& done) {
    const PipelineStep& step = pipeline_.steps[index];
    done.pass = step.text;
    done.nodes_before = module_.num_nodes();
    Stopwatch watch;
    if (proof_.has_value() && PipelineProof::needs_module_before(step)) proof_->keep(module_, step);
    const double keep_seconds = watch.lap();
    Result<PassResult> result = run_step(module_, step, context_);
    if (!result.ok()) return std::move(result).error();
    done.seconds = watch.lap();
    done.result = std::move(*result);
    done.nodes_after = module_.num_nodes();
    if (std::optional<Error> error = check_claims(step, done.result)) return error;
    const bool has_changed = !options_.check_hash || check_counts(step, done.result);
    if (options_.verify && has_changed) {
      if (std::optional<Error> broken = check_output(module_, step, index, is_known_)) return broken;
    }
    if (std::optional<Error> differs = prove(step, index, has_changed, done)) return differs;
    done.check_seconds = keep_seconds + watch.lap();
    return std::nullopt;
  }

  // An error if the step claims an equality that the allowed numerics exclude.
  std::optional<Error> check_claims(const PipelineStep& step, const PassResult& result) const {
    FXOPT_CHECK(result.claims().empty() || step.has(ProofTerm::kClaims),
                "pass " + step.text + " claims equalities, but its registry row lacks that rule");
    for (const Claim& claim : result.claims()) {
      if (numerics_of(claim.rule) <= options_.numerics) continue;
      Error error = numerics_error(step, numerics_of(claim.rule), options_.numerics);
      error.where = place_of(module_, result.claims(), claim.rule);
      return error;
    }
    return std::nullopt;
  }

  // Checks that the step reported its changes and kept all tags and marks. Returns true if the
  // module changed.
  bool check_counts(const PipelineStep& step, const PassResult& result) {
    const StructuralHash before = std::exchange(hash_, structural_hash(module_));
    const bool has_changed = hash_ != before;
    is_known_ = hash_.unchanged_since(before);
    FXOPT_CHECK(result.changed() == has_changed,
                "pass " + step.text +
                    (has_changed ? " changed the module but counted nothing" : " counted a change but made none"));
    if (!has_changed) return false;
    const Decisions kept = std::exchange(decisions_, find_decisions(module_));
    const std::string broken = broken_decision(kept, decisions_);
    FXOPT_CHECK(broken.empty(), "pass " + step.text + " lost a decision: " + broken);
    return true;
  }

  // Steps that only mark nodes are proved together with the next step that does more.
  std::optional<Error> prove(const PipelineStep& step, size_t index, bool has_changed, StepReport& done) {
    is_unproved_ = is_unproved_ || has_changed;
    const bool is_last = index + 1 == num_steps_ || PipelineProof::needs_module_before(pipeline_.steps[index + 1]);
    if (!proof_.has_value() || !is_unproved_ || (!has_changed && !is_last)) return std::nullopt;
    if (std::optional<Error> differs = proof_->check(module_, step, index, is_last, hash_, done)) return differs;
    is_unproved_ = step.has(ProofTerm::kMarksOnly) && !is_last;
    return std::nullopt;
  }

  Module& module_;
  const Pipeline& pipeline_;
  const RunOptions& options_;
  PassContext& context_;
  const size_t num_steps_ = std::min(pipeline_.steps.size(), options_.stop_after);
  StructuralHash hash_;
  std::vector<bool> is_known_;  // by graph: well formed, and unchanged since that check
  Decisions decisions_;
  std::optional<PipelineProof> proof_;
  bool is_unproved_ = false;
};

}  // namespace

std::optional<Error> numerics_error(const Pipeline& pipeline, Numerics allowed) {
  for (const PipelineStep& step : pipeline.steps) {
    if (step.pass->numerics > allowed) return numerics_error(step, step.pass->numerics, allowed);
  }
  return std::nullopt;
}

std::string_view default_pipeline_text() {
  return "infer-phase,"   // first: the others need phases; keeps existing phase markers
         "canonicalize,"  // before cse and remat, so that neither has to look through aliases
         "cse,"           // fewer nodes to save or recompute
         "remat,"         // carries out the tags
         "dce";           // last: erases nodes that the others left without users
}

Result<RunReport> run_pipeline(Module& module, const Pipeline& pipeline, const RunOptions& options) {
  PassContext context(module);
  return run_pipeline(module, pipeline, options, context);
}

Result<RunReport> run_pipeline(Module& module, const Pipeline& pipeline, const RunOptions& options,
                               PassContext& context) {
  FXOPT_CHECK(module.num_graphs() > 0, "a module without graphs");
  return PipelineRun(module, pipeline, options, context).run();
}

}  // namespace fxopt
