// fxopt opt: load, verify, run the pipeline, write.

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/report/json.h"
#include "cli/report/stats.h"
#include "cli/report/tags.h"
#include "cli/reproducer.h"
#include "core/file.h"
#include "ir/io/control_deps.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {
namespace {

struct OptFlags {
  std::vector<std::string> inputs;
  std::string output;
  std::optional<std::string> passes;
  std::string format;
  std::string report;  // empty: none; "-": standard error; else a file
  std::vector<std::string> print_after;
  size_t stop_after = SIZE_MAX;
  bool print_after_change = false;
  bool timing = false;
  bool no_verify = false;
  bool explain = false;
  bool strict_tags = false;
  bool raise_control_deps = false;
};

// What all inputs of one call share.
struct OptPlan {
  Pipeline pipeline;
  std::optional<Format> format;
  std::vector<std::string> outputs;
};

class Stopwatch {
 public:
  // Seconds since the last call, or since it was made.
  double lap() {
    const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - start_).count();
    start_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Status check_print_after(const OptFlags& flags, const Pipeline& pipeline) {
  std::vector<std::string_view> names;
  for (const PipelineStep& step : pipeline.steps) names.push_back(step.pass->name);
  for (const std::string& wanted : flags.print_after) {
    if (std::find(names.begin(), names.end(), wanted) != names.end()) continue;
    return Error{ErrorCode::kUsage,
                 "--print-after names '" + wanted + "', which the pipeline does not run",
                 suggestion(wanted, names, "the pipeline is '" + pipeline.text() + "'"),
                 {}};
  }
  return ok_status();
}

Result<OptPlan> make_plan(const Console& console, const OptFlags& flags) {
  OptPlan plan;
  const std::string text = flags.passes.value_or(std::string(default_pipeline_text()));
  Result<Pipeline> pipeline = parse_pipeline(text);
  if (!pipeline.ok()) return std::move(pipeline).error();
  plan.pipeline = std::move(*pipeline);
  const Result<std::optional<Format>> format = parse_format(flags.format);
  if (!format.ok()) return format.error();
  plan.format = *format;
  const Status inputs = check_inputs(flags.inputs);
  if (!inputs.ok()) return inputs.error();
  const Status print_after = check_print_after(flags, plan.pipeline);
  if (!print_after.ok()) return print_after.error();
  Result<std::vector<std::string>> outputs = plan_outputs(flags.inputs, flags.output, plan.format);
  if (!outputs.ok()) return std::move(outputs).error();
  plan.outputs = std::move(*outputs);
  const Status is_free = check_stdout_is_free(console, plan.outputs);
  if (!is_free.ok()) return is_free.error();
  return plan;
}

void print_graph_after(Console& console, const OptFlags& flags, size_t index, const PipelineStep& step,
                       const StepReport& done, const Module& now) {
  const bool is_named =
      std::find(flags.print_after.begin(), flags.print_after.end(), step.pass->name) != flags.print_after.end();
  const bool has_changed = flags.print_after_change && done.result.changed();
  if (!is_named && !has_changed) return;
  console.notes() << "# after pass " << index + 1 << ": " << printable_line(step.text) << '\n' << print_text(now);
}

// Tags a pass dropped or that contradict each other, as errors. False when there is one.
bool check_tags(Console& console, const std::vector<TagOutcome>& outcomes, const std::string& path) {
  bool ok = true;
  for (const TagOutcome& outcome : outcomes) {
    if (outcome.verdict != Verdict::kDropped && outcome.verdict != Verdict::kConflicting) continue;
    Error error{ErrorCode::kTagConflict,
                "tag " + std::string(name_of(outcome.tag)) + " is " + std::string(name_of(outcome.verdict)),
                "`fxopt help tags` lists the rules",
                {}};
    if (!outcome.pass.empty()) error.message += " by " + outcome.pass;
    if (outcome.rule != 0) error.message += ", rule " + std::to_string(outcome.rule);
    error.where.file = shown_input(path);
    error.where.graph = outcome.graph;
    error.where.node = outcome.node;
    console.error(error);
    ok = false;
  }
  return ok;
}

void deliver_report(Console& console, const OptFlags& flags, const OptReport& report, std::string& report_file) {
  const Timing timing = flags.timing ? Timing::kOn : Timing::kOff;
  if (flags.report == "-") {
    print_opt_report(console.notes(), report, timing);
  } else if (!flags.report.empty()) {
    std::ostringstream text;
    print_opt_report(text, report, timing);
    report_file += text.str();
  }
  if (flags.timing && flags.report != "-") print_passes(console.notes(), report, Timing::kOn);
  if (flags.explain) print_remarks(console.notes(), report.steps);
  if (console.wants_json()) {
    console.result()["files"].push_back(
        opt_report_json(report, timing, flags.explain ? Remarks::kListed : Remarks::kCounted));
  }
}

// One input. Errors go to the console.
void optimize(Console& console, const OptFlags& flags, const OptPlan& plan, size_t index, std::string& report_file) {
  const std::string& path = flags.inputs[index];
  Stopwatch watch;
  const Result<std::string> bytes = read_file(path);
  if (!bytes.ok()) return console.error(bytes.error());
  Result<std::unique_ptr<Module>> loaded = parse_module(*bytes, format_of_bytes(*bytes), shown_input(path));
  if (!loaded.ok()) return console.error(loaded.error());
  Module& module = **loaded;
  OptReport report{shown_input(path), plan.outputs[index], plan.pipeline.text(), {}, {}, {}, {}, {}, {}};
  report.times.load = watch.lap();
  if (!is_valid_input(console, module, path)) return;
  report.lowered = lower_control_deps(module);
  report.times.verify = watch.lap();
  const bool wants_report = !flags.report.empty() || console.wants_json();
  if (wants_report) report.before = module_stats(module);

  RunOptions options;
  options.verify = !flags.no_verify;
  options.stop_after = flags.stop_after;
  options.observer = [&](size_t step_index, const PipelineStep& step, const StepReport& done, const Module& now) {
    print_graph_after(console, flags, step_index, step, done, now);
  };
  Result<RunReport> run = run_with_reproducer(module, plan.pipeline, options, *bytes);
  if (!run.ok()) {
    Error error = std::move(run).error();
    if (error.where.file.empty()) error.where.file = shown_input(path);
    return console.error(error);
  }
  report.steps = std::move(run->steps);
  if (flags.strict_tags && !check_tags(console, tag_outcomes(module), path)) return;
  if (wants_report) {
    report.after = module_stats(module);
    report.verdicts = count_verdicts(tag_outcomes(module));
  }
  watch.lap();
  if (flags.raise_control_deps) raise_control_deps(module);
  if (!save_product(console, module, plan.outputs[index], plan.format)) return;
  report.times.write = watch.lap();
  deliver_report(console, flags, report, report_file);
}

void run_opt(Console& console, const OptFlags& flags) {
  console.result()["files"] = nlohmann::ordered_json::array();
  const Result<OptPlan> plan = make_plan(console, flags);
  if (!plan.ok()) return console.error(plan.error());
  std::string report_file;
  for_each_input(console, flags.inputs, [&](size_t i) { optimize(console, flags, *plan, i, report_file); });
  if (flags.report.empty() || flags.report == "-") return;
  const Status written = write_file(flags.report, report_file);
  if (!written.ok()) console.error(written.error());
}

}  // namespace

CommandBody declare_opt(CLI::App& app) {
  const std::shared_ptr<OptFlags> flags = std::make_shared<OptFlags>();
  app.add_option("IN", flags->inputs, "graph files; '-' is standard input")->type_name("IN")->required();
  app.add_option("-o,--output", flags->output,
                 "where the graph goes: a file, a folder with '/' at its end, or '-' (default) for standard output")
      ->type_name("OUT");
  app.add_option("--passes", flags->passes,
                 "the pipeline, as in 'cse,sac{policy=per-op},remat,dce' (default: '" +
                     std::string(default_pipeline_text()) + "')")
      ->type_name("PIPELINE");
  app.add_option("--format", flags->format, "form of the output: pb, fxg or json (default: by extension; fxg for '-')")
      ->type_name("FORMAT");
  app.add_flag("--report{-}", flags->report,
               "compare before and after: nodes, calls, ideal peak, passes; to standard error, or to FILE")
      ->type_name("FILE");
  app.add_option("--print-after", flags->print_after, "print the graph to standard error after this pass; repeatable")
      ->type_name("PASS")
      ->allow_extra_args(false);
  app.add_flag("--print-after-change", flags->print_after_change,
               "print the graph to standard error after each pass that changed it");
  app.add_option("--stop-after", flags->stop_after, "run only the first N passes: bisects a pipeline")->type_name("N");
  app.add_flag("--timing", flags->timing, "print the seconds each pass took, and include them in reports");
  app.add_flag("--no-verify", flags->no_verify, "leave out the verifier after each pass, to measure passes alone");
  app.add_flag("--explain", flags->explain, "print the remarks: what passes left alone, and why");
  app.add_flag("--strict-tags", flags->strict_tags,
               "exit with 4, writing nothing, when a tag was dropped or contradicts another");
  app.add_flag("--raise-control-deps", flags->raise_control_deps,
               "write control dependencies as PyTorch's control_deps op (see `fxopt help control-deps`)");
  return [flags](Console& console) { run_opt(console, *flags); };
}

}  // namespace fxopt
