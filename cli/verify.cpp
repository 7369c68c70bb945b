// fxopt verify: reports every broken invariant of each input, and its opaque nodes.

#include "ir/check/verify.h"

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/print/table.h"
#include "cli/report/certificate.h"
#include "cli/step.h"
#include "core/bytes.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "ir/alias/effect_map.h"
#include "ir/check/equivalence/equivalence.h"
#include "ir/graph/top_level.h"
#include "ir/io/control_deps.h"
#include "ir/ranks/ranks.h"
#include "ir/step/phases.h"
#include "ir/step/step.h"
#include "ir/summary/opaque.h"
#include "passes/pipeline/origin_claims.h"
#include "passes/pipeline/proof_error.h"

namespace fxopt {
namespace {

constexpr size_t kMaxOpaqueLines = 10;  // lines for each file

struct VerifyFlags {
  std::vector<std::string> inputs;
  size_t max_errors = 100;
  bool step = false;
  std::string against;
  std::vector<std::string> allow;
  bool strict = false;
};

std::optional<RewriteRule> find_rule(std::string_view word) {
  for (const auto& [rule, name] : EnumNames<RewriteRule>::kAll) {
    if (name == word) return rule;
  }
  return std::nullopt;
}

Result<ProofOptions> proof_options(const VerifyFlags& flags) {
  ProofOptions options;
  options.recorded_apart = true;
  options.as_step = flags.step;
  std::vector<std::string_view> words;
  for (const ProofAllowance& item : kProofAllowances) words.push_back(item.word);
  for (const auto& [rule, name] : EnumNames<RewriteRule>::kAll) words.push_back(name);
  for (const std::string& word : flags.allow) {
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end()) {
      return bad_value_error(
          "--allow does not take '" + word + "'",
          suggestion(word, words, "it takes " + join(std::vector<std::string>(words.begin(), words.end()), ", ")));
    }
    if (const std::optional<RewriteRule> rule = find_rule(word); rule.has_value()) {
      options.numerics = std::max(options.numerics, numerics_of(*rule));
      continue;
    }
    options.*kProofAllowances[static_cast<size_t>(found - words.begin())].option = true;
  }
  options.as_step = options.as_step || options.allow_no_backward;
  return options;
}

// Reports opaque nodes by graph. Passes assume the worst about such nodes. They are no error,
// because real graphs have them.
nlohmann::ordered_json report_opaque(std::ostream& out, const Module& module, Validity validity) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  SubgraphEffects subgraphs(module);
  size_t left_out = 0;
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    const std::vector<NodeId> nodes(graph.nodes().begin(), graph.nodes().end());
    EffectMap effects(graph, subgraphs);
    for (const OpaqueRow& row : find_opaque(graph, nodes, validity == Validity::kValid ? &effects : nullptr)) {
      const std::string first(graph.name_of(row.first));
      json.push_back({{"graph", module.text(graph.name())},
                      {"why", opaque_reason_text(row.reason)},
                      {"what", row.what},
                      {"nodes", row.count},
                      {"first", first}});
      if (json.size() > kMaxOpaqueLines) {
        ++left_out;
        continue;
      }
      out << "  opaque: " << (row.what.empty() ? "" : printable_line(row.what) + ", ") << opaque_reason_text(row.reason)
          << "; " << count_text(row.count, "node") << ", first %" << printable_line(first) << '\n';
    }
  }
  if (left_out > 0) out << "  opaque: " << left_out << " more, which --json lists\n";
  return json;
}

// Reports the file's certificate: the proofs that `opt` recorded. If the module has changed since,
// prints a warning instead.
void report_certificate(Console& console, const Module& module, const std::string& path, nlohmann::ordered_json& file) {
  const Certificate& certificate = *module.certificate;
  ProofOptions options;
  allow(options, module, certificate);
  const bool issues_same =
      !certificate.calls.is_valid() || name_of_calls(trace_rank(module, 0, path)) == module.text(certificate.calls);
  const bool fits = issues_same && Prover(module, options).name().text == module.text(certificate.computes);
  file["certificate"] = certificate_json(module, certificate);
  file["certificate"]["fits"] = fits;
  if (fits) {
    console.product() << "  " << certificate_text(module, certificate) << '\n';
    return;
  }
  console.warning("stale-certificate", where_in(shown_input(path)),
                  "the proofs recorded in the file no longer hold: the graph changed after its passes were proved");
}

// Returns one error for each graph in which nodes are marked forward but depend on a gradient. The
// error names the first of these nodes.
std::vector<Error> phase_errors(const Module& module) {
  std::vector<Error> errors;
  for (const GraphId id : top_level_graphs(module)) {
    const Graph& graph = module.graph(id);
    const std::vector<NodeId> conflicts = resolve_phases(graph).conflicts;
    if (conflicts.empty()) continue;
    const NodeId first = conflicts.front();
    errors.push_back(
        {ErrorCode::kVerifyPhase,
         "the node is marked " + std::string(name_of(graph[first].phase)) + ", but it depends on a gradient" +
             (conflicts.size() > 1 ? "; so do " + std::to_string(conflicts.size() - 1) + " more" : ""),
         "mark it backward, or remove the mark", where_in("", module.text(graph.name()), graph.name_of(first))});
  }
  return errors;
}

// Verifies one input. Returns the module, or null if the input cannot be read.
std::unique_ptr<Module> verify_one(Console& console, const VerifyFlags& flags, const std::string& path,
                                   nlohmann::ordered_json& file) {
  std::unique_ptr<Module> module = load_input(console, path);
  const std::string shown = printable_line(shown_input(path));
  if (module == nullptr) {
    console.product() << shown << ": unreadable\n";
    file["verdict"] = "unreadable";
    return nullptr;
  }
  const size_t limit = std::max(flags.max_errors, size_t{1});  // the verdict needs one error
  Stopwatch watch;
  std::vector<Error> broken = verify(*module, limit + 1);
  console.stage("verified " + shown_input(path), watch.lap());
  if (broken.empty()) broken = phase_errors(*module);
  const bool is_cut = broken.size() > limit;
  if (is_cut) broken.resize(limit);
  for (Error& error : broken) {
    error.where.file = shown_input(path);
    console.error(error);
  }
  if (is_cut) {
    console.warning("errors-cut", where_in(shown_input(path)),
                    "there are more errors than the " + std::to_string(limit) + " printed; --max-errors N prints more");
  }
  const size_t nodes = module->num_nodes();
  console.product() << shown << ": " << (broken.empty() ? "ok" : "broken") << ", "
                    << count_text(module->num_graphs(), "graph") << ", " << count_text(nodes, "node") << '\n';
  file["verdict"] = broken.empty() ? "ok" : "broken";
  file["graphs"] = module->num_graphs();
  file["nodes"] = nodes;
  file["errors"] = broken.size();
  file["is_cut"] = is_cut;
  if (broken.empty() && module->certificate.has_value()) report_certificate(console, *module, path, file);
  file["opaque"] = report_opaque(console.product(), *module, broken.empty() ? Validity::kValid : Validity::kBroken);
  return module;
}

// Proves that modules compute the same as the module of --against. Broken modules are not judged.
class AgainstFile {
 public:
  // Reads the file of --against. After an error, reports the error and returns null.
  static std::unique_ptr<AgainstFile> load(Console& console, const VerifyFlags& flags) {
    const Result<ProofOptions> options = proof_options(flags);
    if (!console.is_ok(options)) return nullptr;
    std::unique_ptr<Module> module = load_input(console, flags.against);
    if (module == nullptr) return nullptr;
    if (std::vector<Error> broken = verify(*module, 1); !broken.empty()) {
      broken.front().where.file = shown_input(flags.against);
      console.error(broken.front());
      return nullptr;
    }
    lower_control_deps(*module);  // as opt does before its passes
    std::unique_ptr<AgainstFile> file(new AgainstFile(std::move(module), *options));
    for (const std::string& word : flags.allow) {
      if (const std::optional<RewriteRule> rule = find_rule(word); rule.has_value()) file->rewrites_.push_back(*rule);
    }
    return file;
  }

  // Compares `given` and reports the verdict. `what` names the file, or the files of a step, in
  // messages.
  void judge(Console& console, const VerifyFlags& flags, const Module& given, const std::string& what,
             nlohmann::ordered_json& file) {
    Stopwatch watch;
    std::unique_ptr<Module> lowered;
    if (given.find_target("higher_order.control_deps").is_valid()) {
      lowered = given.clone();
      lower_control_deps(*lowered);
    }
    const std::unique_ptr<Module> renamed = with_name_of_other(lowered != nullptr ? *lowered : given);
    const Module& module = renamed != nullptr ? *renamed : lowered != nullptr ? *lowered : given;
    ModuleProof proof = prove(module);
    const bool is_open = is_left_open(module, proof);
    if (is_open) {
      proof.answer = ProofAnswer::kUndecided;
      proof.missing =
          "an allowed rewrite rule may explain the call, but fxopt could not show that the conditions of the rule hold";
    }
    console.stage("compared " + what, watch.lap());
    const std::string shown = printable_line(what);
    const std::string other = printable_line(shown_input(flags.against));
    file["against"] = shown_input(flags.against);
    file["proof"] = answer_word(proof.answer);
    if (proof.answer == ProofAnswer::kProved) {
      console.product() << shown << ": proved, computes the same as " << other << '\n';
      return;
    }
    nlohmann::ordered_json& differences = file["differences"] = nlohmann::ordered_json::array();
    for (const ProofDifference& item : proof.differences) differences.push_back(item.what);
    Error error = proof_error(module, proof);
    error.where.file = what;
    if (renamed != nullptr) error.where.graph = given.text(given.graph(top_level_graphs(given)[0]).name());
    const bool lacks_graph = std::any_of(proof.differences.begin(), proof.differences.end(),
                                         [](const ProofDifference& item) { return item.what.starts_with("graph @"); });
    if (lacks_graph && !flags.step)
      error.hint = "graphs are matched by name; with --step, all graphs of a file are compared as one step";
    console.product() << shown << ": " << answer_word(proof.answer) << ", against " << other << '\n';
    // If an allowed rewrite rule may explain the difference (is_open), the verdict is undecided,
    // but still an error.
    if (proof.answer == ProofAnswer::kUndecided && !flags.strict && !is_open) {
      console.warning("undecided", error.where, error.message);
    } else {
      console.error(error);
    }
  }

 private:
  ModuleProof prove(const Module& module) {
    return rewrites_.empty() ? prover_.prove(module)
                             : Prover(*module_, options_, claims_by_origins(*module_, module, rewrites_)).prove(module);
  }

  // Graphs are compared by name. If both files have one graph, of different names, returns a copy
  // with the name of the other graph. Otherwise returns null.
  std::unique_ptr<Module> with_name_of_other(const Module& module) const {
    const std::vector<GraphId> before = top_level_graphs(*module_), after = top_level_graphs(module);
    if (options_.as_step || before.size() != 1 || after.size() != 1) return nullptr;
    const std::string_view wanted = module_->text(module_->graph(before[0]).name());
    if (module.text(module.graph(after[0]).name()) == wanted) return nullptr;
    std::unique_ptr<Module> copy = module.clone();
    const StringId name = copy->intern(wanted);
    if (copy->find_graph(name).is_valid()) return nullptr;  // a subgraph has this name
    IdMap<StringId, StringId> names;
    for (const GraphId id : copy->graphs()) names[copy->graph(id).name()] = copy->graph(id).name();
    names[copy->graph(after[0]).name()] = name;
    copy->rename_graphs(names);
    return copy;
  }

  // True if an allowed rewrite rule may have caused the first difference.
  bool is_left_open(const Module& module, const ModuleProof& proof) const {
    if (rewrites_.empty() || proof.answer != ProofAnswer::kDiffers || !proof.first_new.is_valid()) return false;
    const Module& after = proof.step != nullptr ? *proof.step : module;
    return may_follow_from(after.graph(after.find_graph(proof.graph)), proof.first_new, rewrites_);
  }

  AgainstFile(std::unique_ptr<Module> module, const ProofOptions& options)
      : module_(std::move(module)), options_(options), prover_(*module_, options) {}

  static std::string_view answer_word(ProofAnswer answer) {
    if (answer == ProofAnswer::kProved) return "proved";
    return answer == ProofAnswer::kDiffers ? "differs" : "undecided";
  }

  std::unique_ptr<Module> module_;
  ProofOptions options_;
  std::vector<RewriteRule> rewrites_;  // allowed rewrite rules that may explain a difference
  Prover prover_;
};

// If all files are valid, checks that they form one step. If `against` is not null, also compares
// this step with the graph of --against.
void verify_step(Console& console, const VerifyFlags& flags, std::vector<std::unique_ptr<Module>> modules,
                 AgainstFile* against) {
  nlohmann::ordered_json& result = console.result()["step"];
  const size_t errors = console.num_errors();
  std::optional<ComposedStep> step;
  if (errors == 0) {
    std::unique_ptr<Module> module = merge_parts(console, std::move(modules), flags.inputs);
    if (module != nullptr && against != nullptr && find_step(*module).ok()) {
      against->judge(console, flags, *module, shown_inputs(flags.inputs), result);
    }
    step = import_step(console, std::move(module), flags.inputs);
  }
  result["verdict"] = step.has_value() ? "ok" : errors == 0 ? "broken" : "not judged";
  result["runs"] = nlohmann::ordered_json::array();
  if (!step.has_value()) return;
  for (const StepRunRow& run : step->runs) result["runs"].push_back(step_run_json(run));
  console.product() << "step: ok, " << (step->runs.empty() ? "one graph" : printable_line(step_text(step->runs)))
                    << '\n';
}

}  // namespace

CommandBody declare_verify(Options options) {
  const std::shared_ptr<VerifyFlags> flags = std::make_shared<VerifyFlags>();
  options.add("IN", flags->inputs, "graph files; '-' is standard input").type("IN").required();
  options
      .add("--max-errors", flags->max_errors,
           "print at most N errors for each file (default: 100). 0 has the same effect as 1")
      .type("N");
  options.flag("--step", flags->step, std::string(kStepHelp) + "; also check that the graphs fit together");
  options
      .add("--against", flags->against,
           "prove that each graph file IN computes the same as the file BEFORE: the same outputs, in-place writes, "
           "aliases, random draws, collectives and other effects. If a difference is found, exit with 4. With --step, "
           "all files IN together are compared with BEFORE")
      .type("BEFORE");
  options
      .add("--allow", flags->allow,
           "differences to allow (repeatable). Four values allow IN to lack parts of BEFORE: dead-draws (unused random "
           "draws), dead-collectives (unused collectives), dead-assertions (assertions) and no-backward (the backward "
           "of a joint graph). All other values are rewrite rules that the proof may use: bucket, "
           "bucketed-reduction, gathers, own-shard, added-reductions. The proof uses a rule only at nodes that a pass "
           "changed, as recorded in the file")
      .type("LIST")
      .separated_by(',')
      .one_each();
  options.flag("--strict", flags->strict,
               "with --against: also exit with 4 if the graphs are neither proved equal nor shown to differ");
  return [flags](Console& console) {
    console.result()["files"] = nlohmann::ordered_json::array();
    if (!console.is_ok(check_inputs(flags->inputs))) return;
    std::unique_ptr<AgainstFile> against;
    if (!flags->against.empty()) {
      against = AgainstFile::load(console, *flags);
      if (against == nullptr) return;
    } else if (!flags->allow.empty() || flags->strict) {
      return console.error(usage_error("--allow and --strict need --against", "add --against BEFORE"));
    }
    std::vector<std::unique_ptr<Module>> modules(flags->inputs.size());  // used only with --step
    for_each_input(console, flags->inputs, [&](size_t i, nlohmann::ordered_json& file) {
      std::unique_ptr<Module> module = verify_one(console, *flags, flags->inputs[i], file);
      if (against != nullptr && !flags->step && module != nullptr && file["verdict"] == "ok") {
        against->judge(console, *flags, *module, shown_input(flags->inputs[i]), file);
      }
      if (flags->step) modules[i] = std::move(module);
    });
    if (flags->step) verify_step(console, *flags, std::move(modules), against.get());
  };
}

}  // namespace fxopt
