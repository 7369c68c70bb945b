// fxopt opt: load, verify, run the pipeline, write.

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/doubts.h"
#include "cli/files.h"
#include "cli/gate_check.h"
#include "cli/gates.h"
#include "cli/memory_options.h"
#include "cli/print/table.h"
#include "cli/products.h"
#include "cli/report/certificate.h"
#include "cli/report/stats.h"
#include "cli/report/tags.h"
#include "cli/reproducer.h"
#include "cli/step.h"
#include "cli/take.h"
#include "core/bytes.h"
#include "core/file.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "ir/graph/top_level.h"
#include "ir/io/control_deps.h"
#include "ir/step/step.h"
#include "ir/step/tag_rules.h"
#include "ir/step/tags.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {
namespace {

constexpr std::string_view kIdleWork = "recomputed-for-nothing";

struct OptFlags {
  FileFlags files;
  std::vector<std::string> parts;  // all inputs; with --step, `files.inputs` has only the first
  bool step = false;
  bool split = false;
  std::optional<std::string> passes;
  std::vector<std::string> print_after;
  size_t stop_after = SIZE_MAX;
  bool print_after_change = false;
  bool timing = false;
  bool no_verify = false;
  bool no_prove = false;
  std::string numerics = std::string(name_of(Numerics::kExact));
  bool no_reproducer = false;
  bool explain = false;
  bool strict = false;
  bool strict_tags = false;
  bool raise_control_deps = false;
  MemoryFlags memory;
  GateFlags gates;
};

// The parsed options, which all inputs share.
struct OptPlan {
  Pipeline pipeline;
  Numerics numerics = Numerics::kExact;
  std::vector<Product> products;
  MemoryPlan memory;
  MemoryGates gates;

  bool has_gates() const { return gates.has_limits() || gates.needs_all_storages(); }
};

// True if the value of --print-after is the step's pass or the step's text in the pipeline.
bool names_step(const std::string& wanted, const PipelineStep& step) {
  return wanted == step.pass->name || wanted == step.text;
}

// Returns a step in the spelling of Pipeline::text(): 'remat{ compat = torch }' becomes
// 'remat{compat=torch}'.
std::string canonical_step(const std::string& wanted) {
  const Result<Pipeline> parsed = parse_pipeline(wanted);
  return parsed.ok() && parsed->steps.size() == 1 ? parsed->steps.front().text : wanted;
}

Status check_print_after(const OptFlags& flags, const Pipeline& pipeline) {
  for (const std::string& wanted : flags.print_after) {
    std::vector<std::string_view> names;
    bool is_run = false, is_stopped = false;
    for (size_t i = 0; i < pipeline.steps.size(); ++i) {
      const PipelineStep& step = pipeline.steps[i];
      names.push_back(step.pass->name);
      if (names_step(canonical_step(wanted), step)) (i < flags.stop_after ? is_run : is_stopped) = true;
    }
    if (is_run) continue;
    if (is_stopped) {
      return usage_error("--print-after " + wanted + " prints nothing: --stop-after " +
                             std::to_string(flags.stop_after) + " ends the pipeline before this pass",
                         "the pipeline is '" + pipeline.text() + "'; stop later, or omit one of the two options");
    }
    return usage_error("--print-after names '" + wanted + "', which the pipeline does not run",
                       suggestion(wanted, names, "give the name of a pass in the pipeline '" + pipeline.text() + "'"));
  }
  return ok_status();
}

Result<Numerics> read_numerics(const std::string& word) {
  if (const std::optional<Numerics> numerics = parse_enum<Numerics>(word); numerics.has_value()) return *numerics;
  std::vector<std::string_view> words;
  std::string all;
  for (const EnumName<Numerics>& entry : EnumNames<Numerics>::kAll) {
    words.push_back(entry.name);
    all += (all.empty() ? "it takes " : ", ") + std::string(entry.name);
  }
  return bad_value_error("--numerics does not take '" + word + "'", suggestion(word, words, all));
}

// Returns the file name under which a baseline stores a result: the output file, or the input if
// the output is no file.
const std::string& gated_name(const OptFlags& flags, const std::vector<Product>& products, size_t index) {
  const std::string& output = products[index].path;
  return output == "-" || output.starts_with("/dev/") ? flags.files.inputs[index] : output;
}

// Fails if an output graph would overwrite the baseline, or if the new baseline would overwrite a
// graph.
Status check_baseline(Console& console, const OptFlags& flags, const std::vector<Product>& products) {
  if (flags.gates.baseline.empty()) return ok_status();
  std::vector<std::string> graphs = flags.parts;
  std::vector<ExtraProduct> outputs;
  for (const Product& product : products) {
    if (product.path == "-" || product.path.starts_with("/dev/")) continue;
    graphs.push_back(product.path);
    outputs.emplace_back("-o", product.path);
  }
  return flags.gates.update_baseline ? check_extra_product(console, graphs, "--baseline", flags.gates.baseline)
                                     : check_extra_products(console, {flags.gates.baseline}, outputs);
}

Result<OptPlan> make_plan(Console& console, const OptFlags& flags) {
  OptPlan plan;
  const std::string passes = flags.passes.value_or(std::string(default_pipeline_text()));
  if (const Status status = take(plan.pipeline, parse_pipeline(passes)); !status.ok()) return status.error();
  if (const Status status = take(plan.numerics, read_numerics(flags.numerics)); !status.ok()) return status.error();
  if (std::optional<Error> error = numerics_error(plan.pipeline, plan.numerics)) return *std::move(error);
  const size_t num_passes = plan.pipeline.steps.size();
  if (flags.stop_after != SIZE_MAX && flags.stop_after > num_passes) {
    return usage_error("--stop-after " + std::to_string(flags.stop_after) + " is too high: the pipeline has " +
                           std::to_string(num_passes) + (num_passes == 1 ? " pass" : " passes"),
                       "give a number from 0 to " + std::to_string(num_passes));
  }
  if (const Status print_after = check_print_after(flags, plan.pipeline); !print_after.ok()) return print_after.error();
  if (const Status status = take(plan.products, plan_products(console, flags.files)); !status.ok())
    return status.error();
  if (const Status status = take(plan.memory, MemoryPlan::make(flags.memory)); !status.ok()) return status.error();
  GateFlags gate_flags = flags.gates;
  for (size_t i = 0; i < plan.products.size(); ++i) gate_flags.inputs.push_back(gated_name(flags, plan.products, i));
  if (const Status status = take(plan.gates, MemoryGates::make(gate_flags, plan.memory)); !status.ok())
    return status.error();
  if (const Status baseline = check_baseline(console, flags, plan.products); !baseline.ok()) return baseline.error();
  return plan;
}

void print_graph_after(Console& console, const OptFlags& flags, const std::string& path, size_t index,
                       const PipelineStep& step, const StepReport& done, const Module& now) {
  const bool is_named = std::any_of(flags.print_after.begin(), flags.print_after.end(), [&](const std::string& wanted) {
    return names_step(canonical_step(wanted), step);
  });
  const bool has_changed = flags.print_after_change && done.result.changed();
  if (!is_named && !has_changed) return;
  print_file_title(console.notes(), flags.files.inputs, path);
  console.notes() << "# after pass " << index + 1 << ": " << printable_line(step.text) << '\n' << print_text(now);
}

// Reports the tags and marks that --strict-tags refuses. Equal outcomes become one error. Returns
// false if there is an error.
bool check_tags(Console& console, const std::vector<TagOutcome>& outcomes, const std::string& path) {
  std::vector<std::pair<Error, size_t>> errors;
  for (const TagOutcome& outcome : outcomes) {
    if (!breaks_strict_tags(outcome)) continue;
    Error error{ErrorCode::kTagConflict,
                (outcome.is_mark ? "mark " : "tag ") + std::string(decision_word(outcome)) + " is " +
                    std::string(name_of(outcome.verdict)),
                "`fxopt tags` lists all tags; `fxopt help tag-rules` explains the rules",
                {}};
    if (!outcome.pass.empty()) error.message += " by " + outcome.pass;
    if (outcome.rule != TagRule::kNone) error.message += ": " + std::string(tag_rule(outcome.rule).reason);
    const auto alike = std::find_if(errors.begin(), errors.end(), [&](const auto& known) {
      return known.first.message == error.message && known.first.where.graph == outcome.graph;
    });
    if (alike != errors.end()) {
      ++alike->second;
      continue;
    }
    error.where.file = shown_input(path);
    error.where.graph = outcome.graph;
    error.where.node = outcome.node;
    errors.emplace_back(std::move(error), 1);
  }
  for (auto& [error, count] : errors) {
    if (count > 1) error.message += "; so are " + std::to_string(count - 1) + " more";
    console.error(error);
  }
  const ptrdiff_t unjudged = std::count_if(outcomes.begin(), outcomes.end(), [](const TagOutcome& outcome) {
    return awaits_remat(outcome) && outcome.written_by.empty();
  });
  if (unjudged > 0) {
    console.error({ErrorCode::kTagConflict,
                   count_text(static_cast<size_t>(unjudged), "recompute tag") +
                       " not carried out, because no pass of the pipeline carries out recompute tags",
                   "add remat to the pipeline, or give --strict-tags only to the call that runs remat",
                   where_in(shown_input(path))});
  }
  return errors.empty() && unjudged == 0;
}

// Reports a finding. If `is_strict` is true, the finding is an error. Otherwise it is a warning.
// Returns true for a warning.
bool warn_or_fail(Console& console, bool is_strict, std::string_view code, const Error& error) {
  is_strict ? console.error(error) : console.warning(code, error.where, error.message);
  return !is_strict;
}

// Reports passes that were not proved. These are warnings, or errors with --strict. Returns false
// if there is an error.
bool check_proofs(Console& console, const OptFlags& flags, const std::string& path,
                  const std::vector<StepReport>& steps) {
  bool ok = true;
  for (const StepReport& step : steps) {
    if (step.unproved.empty()) continue;
    const Error error{ErrorCode::kNotProved,
                      step.pass + ": its output is not proved equal to its input: " + step.unproved,
                      "without --strict this is a warning", where_in(shown_input(path))};
    ok = warn_or_fail(console, flags.strict, "unproved", error) && ok;
  }
  return ok;
}

// Reports graphs that have recompute tags but no backward nodes. These are warnings, or errors with
// --strict-tags.
bool check_backward(Console& console, const OptFlags& flags, const std::string& path, const Module& module,
                    const std::vector<StepReport>& steps) {
  bool ok = true;
  for (const StepReport& step : steps) {
    for (const PassRemark& remark : step.result.remarks()) {
      if (remark.code != kNoBackward) continue;
      const Error error{ErrorCode::kTagConflict, remark.text,
                        "trace the backward pass into the graph, or mark the backward nodes",
                        where_in(shown_input(path), module.text(remark.graph), remark.node_name)};
      ok = warn_or_fail(console, flags.strict_tags, kNoBackward, error) && ok;
    }
  }
  return ok;
}

// Prints one line of tag outcomes. Prints nothing if a report on standard error contains them.
void print_outcomes(Console& console, const OptFlags& flags, const std::vector<TagOutcome>& outcomes,
                    const std::string& product) {
  if (outcomes.empty() || flags.files.report == "-") return;
  const std::string tags = outcomes_text(outcomes, OutcomesOf::kTags);
  const std::string marks = outcomes_text(outcomes, OutcomesOf::kMarks);
  if (!tags.empty()) console.notes() << "tags: " << tags;
  if (std::any_of(outcomes.begin(), outcomes.end(), awaits_remat)) {
    console.notes() << " (no pass of the pipeline carries out recompute tags)";
  }
  if (!marks.empty()) console.notes() << (tags.empty() ? "" : "; ") << "marks (ap_must_save): " << marks;
  console.notes() << "; details: ";
  if (product != "-" && !is_special_file(product)) console.notes() << "fxopt tags " << printable_line(product) << ", ";
  console.notes() << "fxopt help verdicts\n";
}

void deliver_report(Console& console, const OptFlags& flags, const OptReport& report, const std::string& path,
                    std::string& report_file) {
  const Timing timing = flags.timing ? Timing::kOn : Timing::kOff;
  const bool is_report_shown = flags.files.report == "-";
  if (is_report_shown) {
    print_opt_report(console.notes(), report, timing);
  } else if (!flags.files.report.empty()) {
    std::ostringstream text;
    print_opt_report(text, report, timing);
    report_file += text.str();
  }
  if (!is_report_shown && (flags.timing || flags.explain)) {
    print_file_title(console.notes(), flags.files.inputs, path);  // a report already has it
  }
  if (!is_report_shown && flags.timing) print_passes(console.notes(), report, Timing::kOn);
  flags.explain ? print_remarks(console.notes(), report.steps) : print_remark_counts(console.notes(), report.steps);
}

// Prints the remarks that are warnings, even without --explain. With --strict-tags, lost marks and
// options that match nothing are errors. Returns false if there is an error.
bool warn_of_remarks(Console& console, const OptFlags& flags, const std::string& path, const Module& module,
                     const std::vector<StepReport>& steps) {
  bool ok = true;
  for (const StepReport& step : steps) {
    for (const PassRemark& remark : step.result.remarks()) {
      if (!remark.is_warning) continue;
      const bool is_slip = remark.code == kNamesNothing;
      const Error error{
          ErrorCode::kTagConflict, step.pass + ": " + remark.text,
          is_slip ? "correct the option" : "keep the metadata `custom` of every node when you trace the graph",
          where_in(shown_input(path), module.text(remark.graph), remark.node_name)};
      const bool is_strict = flags.strict_tags && (is_slip || remark.code == kMarksLost);
      ok = warn_or_fail(console, is_strict, remark.code, error) && ok;
    }
  }
  return ok;
}

// Loads the input, and sets `bytes` to the content for a reproducer. Returns null after an error.
std::unique_ptr<Module> load_bytes(Console& console, const OptFlags& flags, const std::string& path,
                                   std::string& bytes) {
  if (flags.step && flags.parts.size() > 1) {
    std::unique_ptr<Module> module = load_parts(console, flags.parts);
    Result<std::string> whole = module == nullptr ? std::string() : print_pb(*module);
    if (whole.ok()) {
      bytes = *std::move(whole);
      return module;
    }
    console.error(whole.error());
    return nullptr;
  }
  return load_input(console, path, bytes);
}

// Records the connections of the step in the module. Without this record, values are matched by
// name, and passes may merge or rename them.
void write_step(Module& module) {
  const Result<Step> step = find_step(module);
  if (step.ok() && step->runs.size() > 1) record_step(module, *step);
}

void log_step(Console& console, const PipelineStep& step, const StepReport& done) {
  console.stage("ran " + step.text + ": " + (done.result.changed() ? "changed" : "nothing changed") + ", " +
                    std::to_string(done.nodes_before) + " to " + count_text(done.nodes_after, "node"),
                done.seconds);
  console.stage("checked the output of " + step.text, done.check_seconds);
}

// Removes erased nodes of other graphs from `part`, the module of one output file. The first file
// also keeps the erased nodes of graphs that no longer exist.
void keep_own_ledger(Module& part, const Module& module, bool is_first) {
  std::erase_if(part.erased, [&](const ErasedNode& entry) {
    if (part.find_graph(entry.graph).is_valid()) return false;
    const StringId name = module.strings.find(part.text(entry.graph));
    return !is_first || (name.is_valid() && module.find_graph(name).is_valid());
  });
}

// Writes the module. With --split, writes each top-level graph to its own file, and never
// overwrites an input.
bool write_products(Console& console, const OptFlags& flags, const Module& module, const Product& product) {
  if (!flags.split) return save_product(console, module, product);
  std::vector<std::string> names;
  const std::vector<GraphId> graphs = top_level_graphs(module);
  for (const GraphId id : graphs) names.emplace_back(module.text(module.graph(id).name()));
  const std::vector<Product> products = split_product(product, names);
  std::vector<ExtraProduct> paths;
  for (const Product& each : products) paths.emplace_back("--split -o", each.path);
  if (!console.is_ok(check_extra_products(console, flags.parts, paths))) return false;
  for (size_t i = 0; i < graphs.size(); ++i) {
    const std::unique_ptr<Module> part = extract_graph(module, graphs[i]);
    keep_own_ledger(*part, module, i == 0);
    if (!save_product(console, *part, products[i])) return false;
  }
  return true;
}

bool may_recompute(const Pipeline& pipeline) {
  return std::any_of(pipeline.steps.begin(), pipeline.steps.end(),
                     [](const PipelineStep& step) { return step.pass->name == "remat"; });
}

std::vector<PeakBytes> ideal_peaks(const ModuleStats& stats) {
  std::vector<PeakBytes> peaks;
  std::copy_if(stats.peaks.begin(), stats.peaks.end(), std::back_inserter(peaks),
               [](const PeakBytes& peak) { return peak.metric == "ideal"; });
  return peaks;
}

// Returns the warning that recomputation lowers no ideal peak. Returns an empty text if the passes
// recompute nothing, if a peak is lower, or if the peaks cannot be compared.
std::string idle_work(const ModuleStats& before, const ModuleStats& after) {
  const std::vector<PeakBytes> old_peaks = ideal_peaks(before), peaks = ideal_peaks(after);
  if (after.recomputed <= before.recomputed || peaks.empty() || peaks.size() != old_peaks.size()) return "";
  for (size_t i = 0; i < peaks.size(); ++i) {
    const bool is_same = peaks[i].graph == old_peaks[i].graph && peaks[i].device == old_peaks[i].device;
    if (!is_same || peaks[i].unknown_buffers > 0 || peaks[i].bytes < old_peaks[i].bytes) return "";
  }
  return count_text(after.recomputed - before.recomputed, "node") +
         " recomputed, but no ideal peak fell (before: " + human_bytes(static_cast<double>(old_peaks.front().bytes)) +
         ", now: " + human_bytes(static_cast<double>(peaks.front().bytes)) + ")";
}

void warn_of_idle_work(Console& console, const std::string& path, const std::string& text) {
  if (!text.empty()) console.warning(kIdleWork, where_in(shown_input(path)), text);
}

// Adds the peaks of a step to `stats`, under the name `label`. If the step is a single graph, its
// peaks are renamed to `label`. A report can then compare them with the peaks after a pass splits
// the graph.
void add_step(const ComposedStep& step, const PeakView& view, const std::string& label, ModuleStats& stats) {
  if (!step.runs.empty()) {
    ModuleFacts facts(*step.module);
    add_peaks(facts.of(*step.graph), view, stats.peaks);
  }
  const std::string_view graph = step.module->text(step.graph->name());
  for (PeakBytes& peak : stats.peaks) {
    if (peak.graph == graph) peak.graph = label;
  }
}

// Processes one input, from loading to its report. Reports errors to the console.
class Optimization {
 public:
  Optimization(Console& console, const OptFlags& flags, const OptPlan& plan, GateCheck& gate, size_t index)
      : console_(console),
        flags_(flags),
        plan_(plan),
        gate_(gate),
        path_(flags.files.inputs[index]),
        product_(plan.products[index]),
        gated_name_(gated_name(flags, plan.products, index)),
        wants_report_(!flags.files.report.empty() || console.wants_json()),
        is_measured_(wants_report_ || may_recompute(plan.pipeline)) {}

  // Adds the JSON of the report to `file`, and its text to `report_file`.
  void run(nlohmann::ordered_json& file, std::string& report_file) {
    const size_t errors_before = console_.num_errors();
    if (!load() || !measure_input() || !run_passes() || !check() || !measure_result()) return;
    const std::string idle = is_measured_ ? idle_work(report_.before, report_.after) : "";
    if (console_.is_error(kIdleWork)) warn_of_idle_work(console_, path_, idle);
    if (plan_.has_gates()) check_gates();
    const bool is_refused = console_.num_errors() > errors_before;  // by a limit or --werror
    watch_.lap();
    if (flags_.raise_control_deps) raise_control_deps(*module_);
    if (!is_refused && !write_products(console_, flags_, *module_, product_)) return;
    report_.times.write = watch_.lap();
    print_outcomes(console_, flags_, outcomes_, is_refused ? "-" : product_.path);
    deliver_report(console_, flags_, report_, path_, report_file);
    if (!console_.is_error(kIdleWork)) warn_of_idle_work(console_, path_, idle);  // printed last
    if (console_.wants_json()) write_json(file);
  }

 private:
  bool load() {
    module_ = load_bytes(console_, flags_, path_, bytes_);
    if (module_ == nullptr) return false;
    report_.file = flags_.step ? shown_inputs(flags_.parts) : shown_input(path_);
    report_.output = product_.path;
    report_.pipeline = plan_.pipeline.text();
    report_.times.load = watch_.lap();
    const std::optional<ControlDepsResult> lowered = prepare_input(console_, *module_, path_);
    if (!lowered.has_value()) return false;
    report_.lowered = *lowered;
    report_.times.verify = watch_.lap();
    return true;
  }

  bool measure_input() {
    const Result<MemoryView> memory = plan_.memory.view(*module_, path_);
    if (!console_.is_ok(memory)) return false;
    context_.emplace(*module_);
    context_->measure = memory->measure;
    context_->costs = memory->costs;
    warn_of_doubts(console_, shown_input(path_), *module_, context_->facts);
    // Without a report, only ideal peaks are measured.
    peaks_ = {memory->measure, !wants_report_ || !plan_.memory.wants_allocator()};
    is_step_ = flags_.step || (wants_report_ && linked_runs(*module_) > 0);
    was_one_graph_ = top_level_graphs(*module_).size() == 1;
    if (!measure(report_.before)) return false;
    if (flags_.step) write_step(*module_);
    return true;
  }

  // Measures the peaks of the graphs. If the graphs form a step, also measures the peaks of the
  // step.
  bool measure(ModuleStats& stats) {
    if (is_measured_) {
      Stopwatch watch;
      stats = module_stats(*module_, context_->facts, peaks_);
      console_.stage("measured " + shown_input(path_) + " for the report", watch.lap());
    }
    composed_.reset();
    if (!is_step_) return true;
    composed_ = compose(console_, module_->clone(), flags_.parts);
    if (composed_.has_value()) add_step(*composed_, peaks_, label(), stats);
    return composed_.has_value();
  }

  // Returns the name of the step in tables of peaks. No graph has this name.
  std::string label() const {
    const StringId step = module_->strings.find("step");
    return step.is_valid() && module_->find_graph(step).is_valid() ? "the step" : "step";
  }

  void name_peaks(ModuleStats& stats) const {
    for (PeakBytes& peak : stats.peaks) peak.graph = label();
  }

  bool run_passes() {
    RunOptions options;
    options.verify = !flags_.no_verify;
    options.prove = !flags_.no_prove;
    options.numerics = plan_.numerics;
    options.stop_after = flags_.stop_after;
    options.observer = [&](size_t index, const PipelineStep& step, const StepReport& done, const Module& now) {
      log_step(console_, step, done);
      print_graph_after(console_, flags_, path_, index, step, done, now);
    };
    Result<RunReport> run = run_with_reproducer(*module_, plan_.pipeline, options, *context_, bytes_,
                                                flags_.no_reproducer ? Reproducer::kNone : Reproducer::kWritten);
    if (!run.ok()) {
      Error error = std::move(run).error();
      if (error.where.file.empty()) error.where.file = shown_input(path_);
      console_.error(error);
      return false;
    }
    report_.steps = std::move(run->steps);
    module_->certificate = std::move(run->certificate);
    if (module_->certificate.has_value()) report_.proof = certificate_text(*module_, *module_->certificate);
    if (run->has_stale_certificate) {
      console_.warning("stale-certificate", where_in(shown_input(path_)),
                       "the proofs recorded in the file no longer hold: the graph changed after its passes were "
                       "proved. The new proofs cover only the passes that run now");
    }
    return true;
  }

  // Checks --strict and --strict-tags.
  bool check() {
    if (!warn_of_remarks(console_, flags_, path_, *module_, report_.steps)) return false;
    outcomes_ = tag_outcomes(*module_);
    return check_proofs(console_, flags_, path_, report_.steps) &&
           check_backward(console_, flags_, path_, *module_, report_.steps) &&
           (!flags_.strict_tags || check_tags(console_, outcomes_, path_));
  }

  bool measure_result() {
    const bool was_step = is_step_;
    is_step_ = flags_.step || ((wants_report_ || plan_.has_gates()) && linked_runs(*module_) > 0);
    if (!measure(report_.after)) return false;
    // If passes split the only graph, or joined the step into one graph, this graph is the step.
    const bool is_one_graph = top_level_graphs(*module_).size() == 1;
    if (is_step_ && !was_step && was_one_graph_) name_peaks(report_.before);
    if (!is_step_ && was_step && is_one_graph) name_peaks(report_.after);
    if (wants_report_) {
      for (const auto& [word, count] : count_outcomes(outcomes_, OutcomesOf::kTags)) report_.verdicts[word] = count;
      for (const auto& [word, count] : count_outcomes(outcomes_, OutcomesOf::kMarks)) report_.marks[word] = count;
      report_.tags_without_effect = std::count_if(outcomes_.begin(), outcomes_.end(), [](const TagOutcome& outcome) {
        return awaits_remat(outcome) || breaks_strict_tags(outcome);
      });
    }
    report_.analyses = context_->facts.counts();
    return true;
  }

  // Checks the limits on the result, as `fxopt mem` would for the written file. If the graphs form
  // one step, checks them as `fxopt mem --step` would.
  void check_gates() {
    std::vector<const Graph*> graphs;
    if (composed_.has_value()) {
      graphs = {composed_->graph};
    } else {
      for (const GraphId id : top_level_graphs(*module_)) graphs.push_back(&module_->graph(id));
    }
    Result<MemoryView> view = plan_.memory.view(composed_.has_value() ? *composed_->module : *module_, gated_name_);
    if (!view.ok()) return console_.error(view.error());
    view->others = plan_.gates.needs_all_storages();
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Graph* graph : graphs) {
      GraphMemory memory = describe_memory(measure_logged(console_, gated_name_, *graph, view->measure), *view);
      if (gate_.check(gated_name_, shown_input(gated_name_), memory, *view).empty()) {
        for (const std::string& line : plan_.gates.kept_limits(memory)) console_.notes() << line << '\n';
      }
      gate_.compare(gated_name_, shown_input(gated_name_), memory, console_.notes());
      if (plan_.gates.updates()) all.push_back(memory_json(memory, Storages::kAll));
    }
    if (plan_.gates.updates()) gate_.add(gated_name_, std::move(all));
  }

  void write_json(nlohmann::ordered_json& file) const {
    file.update(opt_report_json(report_, flags_.timing ? Timing::kOn : Timing::kOff,
                                flags_.explain ? Remarks::kListed : Remarks::kCounted));
    if (module_->certificate.has_value()) file["certificate"] = certificate_json(*module_, *module_->certificate);
  }

  Console& console_;
  const OptFlags& flags_;
  const OptPlan& plan_;
  GateCheck& gate_;
  const std::string& path_;
  const Product& product_;
  const std::string& gated_name_;  // see gated_name()
  const bool wants_report_, is_measured_;
  Stopwatch watch_;
  std::string bytes_;  // the input file, for a reproducer
  std::unique_ptr<Module> module_;
  std::optional<PassContext> context_;
  PeakView peaks_;
  bool was_one_graph_ = false;
  bool is_step_ = false;  // the graphs are also measured as one step
  std::optional<ComposedStep> composed_;
  std::vector<TagOutcome> outcomes_;
  OptReport report_;
};

// Checks the input files of a step, and that the output overwrites none.
Status check_parts(Console& console, const OptFlags& flags) {
  const Status inputs = check_inputs(flags.parts);
  const std::string& output = flags.files.output;
  if (!inputs.ok() || flags.parts.size() == 1 || output.empty() || output == "-") return inputs;
  return check_extra_product(console, flags.parts, "-o", output);
}

void run_opt(Console& console, const OptFlags& given) {
  console.result()["files"] = nlohmann::ordered_json::array();
  OptFlags flags = given;
  flags.parts = flags.files.inputs;
  if (flags.step) {
    if (!console.is_ok(check_parts(console, flags))) return;
    flags.files.inputs = {flags.parts.front()};
  }
  const Result<OptPlan> plan = make_plan(console, flags);
  if (!plan.ok()) return console.error(plan.error());
  if (flags.split && (flags.files.output.empty() || flags.files.output == "-")) {
    return console.error(usage_error("--split needs an output file", "give -o OUT.pb"));
  }
  std::string report_file;
  GateCheck gate(console, plan->memory, plan->gates);
  for_each_input(console, flags.files.inputs, [&](size_t i, nlohmann::ordered_json& file) {
    Optimization(console, flags, *plan, gate, i).run(file, report_file);
  });
  if (plan->gates.updates()) gate.write_baseline();
  // If there is nothing to report, an old report is kept.
  if (!report_file.empty()) console.write_output(flags.files.report, report_file);
}

void declare_checks(Options& options, OptFlags& flags) {
  options.flag("--no-verify", flags.no_verify,
               "skip the check of the graph's structure after each pass (for example, to time only the passes)");
  options.flag("--no-prove", flags.no_prove,
               "skip the proof of each pass (for example, to time only the passes). By default, fxopt proves that the "
               "output of each pass computes the same as the input");
  options
      .add("--numerics", flags.numerics,
           "how far passes may change results: exact (default) keeps every bit, reorders-reductions may change the "
           "order of sums, and changes-numerics may change results in other ways")
      .type("CLASS");
  options.flag(
      "--no-reproducer", flags.no_reproducer,
      "after an internal error, do not write a file that reproduces the error. Use this option in the command that "
      "`fxopt reduce` runs repeatedly");
  options.flag("--explain", flags.explain, "print the remarks: each node that a pass left unchanged, and the reason");
  options.flag("--strict", flags.strict,
               "exit with 4 and write nothing if fxopt cannot prove that the output of each pass computes the same as "
               "the input");
  options.flag(
      "--strict-tags", flags.strict_tags,
      "exit with 4 and write nothing in any of these cases: a save or recompute tag is dropped; a MUST_RECOMPUTE tag "
      "is overridden; the mark `ap_must_save` of a node is lost; the graph has recompute tags but no backward. "
      "`fxopt help verdicts` lists more cases. Tags that a pass wrote are not checked");
  options.flag(
      "--raise-control-deps", flags.raise_control_deps,
      "write control dependencies as calls of PyTorch's operator control_deps (see `fxopt help control-deps`)");
}

}  // namespace

CommandBody declare_opt(Options options) {
  const std::shared_ptr<OptFlags> flags = std::make_shared<OptFlags>();
  options.add("IN", flags->files.inputs, "graph files; '-' is standard input").type("IN").required();
  options.flag(
      "--step", flags->step,
      std::string(kStepHelp) + "; all graphs go into one output file, and --report shows the peak of the whole step");
  options
      .add("-o,--output", flags->files.output,
           "output file, folder (ending in '/'), or '-' for standard output (default)")
      .type("OUT");
  options.flag("--split", flags->split,
               "write each graph, with its subgraphs, to a separate file. For example, `--passes partition -o OUT.pb` "
               "writes OUT.forward.pb and OUT.backward.pb");
  options
      .add("--passes", flags->passes,
           "passes to run, in this order, as in 'cse,sac{policy=per-op},remat,dce' (default: '" +
               std::string(default_pipeline_text()) + "')")
      .type("PIPELINE");
  options
      .add("--format", flags->files.format,
           "output format: pb (protobuf), fxg (text) or json. By default, the name of the output decides, and standard "
           "output gets fxg")
      .type("FORMAT");
  options
      .flag("--report{-}", flags->files.report,
            "write a report to standard error, or to FILE. The report lists the passes, and compares nodes, calls and "
            "the peak of live bytes before and after the passes. With --device, the report also compares the peaks of "
            "the caching allocator and of the arena")
      .type("FILE");
  options.add("--print-after", flags->print_after, "print the graph to standard error after this pass; repeatable")
      .type("PASS")
      .one_each();
  options.flag("--print-after-change", flags->print_after_change,
               "print the graph to standard error after each pass that changed it");
  options.add("--stop-after", flags->stop_after, "run only the first N passes, to bisect a pipeline").type("N");
  options.flag("--timing", flags->timing,
               "print the time of each pass in seconds to standard error, and add the times to the report of --report");
  declare_checks(options, *flags);
  declare_measure_flags(options, flags->memory);
  declare_gate_flags(options, flags->gates);
  return [flags](Console& console) { run_opt(console, *flags); };
}

}  // namespace fxopt
