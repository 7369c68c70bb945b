// fxopt run: executes a training step, or only plans it.

#include <memory>
#include <optional>
#include <utility>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/products.h"
#include "cli/run_plan.h"
#include "cli/run_step.h"
#include "cli/step.h"
#include "cli/symbols.h"
#include "core/stopwatch.h"
#include "runtime/plan/check.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/plan.h"

namespace fxopt {
namespace {

struct RunFlags {
  std::vector<std::string> inputs;
  std::vector<std::string> symbols;
  bool dry_run = false;
  bool print_plan = false;
  uint32_t streams = 1;
  RunStepFlags step;
};

class Run {
 public:
  Run(Console& console, const RunFlags& flags) : console_(console), flags_(flags) {}

  void run() {
    if (!console_.is_ok(check_inputs(flags_.inputs))) return;
    Result<std::vector<SymbolSetting>> settings = parse_symbol_settings(flags_.symbols);
    if (!settings.ok()) return console_.error(settings.error());
    std::unique_ptr<Module> module = load_parts(console_, flags_.inputs);
    if (module == nullptr || !prepare_input(console_, *module, shown_inputs(flags_.inputs)).has_value()) return;
    Result<BoundSymbols> symbols = bind_symbols(*settings, *module, shown_inputs(flags_.inputs));
    if (!symbols.ok()) return console_.error(symbols.error());
    values_ = symbols->values;
    module_ = module.get();
    Stopwatch watch;
    std::vector<std::string> added_gradients;
    const Result<std::unique_ptr<Plan>> plan = lower_step(*module, &added_gradients);
    if (!plan.ok()) return fail(plan.error());
    console_.stage("planned " + shown_inputs(flags_.inputs), watch.lap());
    const FxPlan& view = (*plan)->view();
    if (report_faults(console_, check_plan(view), shown_inputs(flags_.inputs))) return;
    console_.stage("checked the plan", watch.lap());
    const ScalarValues::SymbolOf symbol = [this](std::string_view name) { return value_of(name); };
    const std::string shown = shown_inputs(flags_.inputs);
    if (flags_.dry_run || flags_.print_plan)
      return report_plan(console_, view, {shown, flags_.streams, flags_.print_plan, symbol});
    if (!added_gradients.empty()) {
      return fail({ErrorCode::kUnsupportedGraph,
                   "the gradient %" + added_gradients.front() +
                       " is added to the gradient of an earlier run of the graph, which `fxopt run` does not support",
                   "run one micro-batch; `fxopt mem --step` and --dry-run accept the whole step",
                   {}});
    }
    if (!report_missing(console_, view, shown))
      run_step(console_, *module_, view, flags_.step, shown, symbol,
               [this](const SymbolValues& values) { return check_guards(values); });
  }

 private:
  void fail(Error error) {
    if (error.where.file.empty()) error.where.file = shown_inputs(flags_.inputs);
    console_.error(error);
  }

  // Fails if a guard of the file is false for the symbols' values. A guard that cannot be evaluated
  // is skipped.
  Status check_guards(const SymbolValues& known) const {
    for (const Assertion& guard : module_->assertions) {
      const std::optional<int64_t> holds = module_->exprs.evaluate(guard.condition.id, known);
      if (!holds.has_value() || *holds != 0) continue;
      return Error{ErrorCode::kBadInput,
                   "the guard " + module_->exprs.to_string(guard.condition.id) + " does not hold for these inputs",
                   "the graph was traced for other inputs: " + std::string(module_->text(guard.message)),
                   {}};
    }
    return ok_status();
  }

  std::optional<int64_t> value_of(std::string_view name) const {
    const StringId id = module_->strings.find(name);
    const auto found = id.is_valid() ? values_.find(id) : values_.end();
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

  Console& console_;
  const RunFlags& flags_;
  SymbolValues values_;
  const Module* module_ = nullptr;
};

// Checks --streams. --dry-run and --print-plan use at most two streams, the second for collectives.
// A GPU runs independent nodes on up to 8 streams.
Status check_streams(const RunFlags& flags) {
  const bool is_plan = flags.dry_run || flags.print_plan;
  const uint32_t most = is_plan ? 2 : flags.step.target.device == "cpu" ? 1 : 8;
  if (flags.streams >= 1 && flags.streams <= most) return ok_status();
  return bad_value_error("--streams takes " + std::string(most == 1 ? "1 on the CPU" : "1 to " + std::to_string(most)) +
                             ", not " + std::to_string(flags.streams),
                         is_plan ? "2 puts collectives on a second stream" : "");
}

// Fails if an output file would overwrite a file that the run reads, or another output.
Status check_files(Console& console, const RunFlags& flags) {
  const RunStepFlags& step = flags.step;
  std::vector<std::string> read = flags.inputs;
  read.insert(read.end(), step.inputs.begin(), step.inputs.end());
  for (const std::string& path : {step.state, step.draws, step.expect}) {
    if (!path.empty()) read.push_back(path);
  }
  for (const std::string& given : step.input) {
    const std::string file = given.substr(given.find('=') + 1);
    read.push_back(file.ends_with(".npy") ? file : file.substr(0, file.rfind(':')));
  }
  return check_extra_products(
      console, read,
      {{"--output", step.output}, {"--save-draws", step.save_draws}, {"--write-measurement", step.write_measurement}});
}

// If only a plan is requested, refuses the options that only a run can use.
Status check_plan_flags(const RunFlags& flags, const std::vector<Option>& of_runs) {
  if (!flags.dry_run && !flags.print_plan) return ok_status();
  const std::string plan = flags.dry_run ? "--dry-run" : "--print-plan";
  for (const Option& option : of_runs) {
    if (!option.is_given()) continue;
    const bool is_device = option.name() == "--device";
    return bad_value_error(option.name() + " needs a run, but " + plan + " runs nothing",
                           is_device ? "a plan is the same for all devices" : "leave out " + plan);
  }
  return ok_status();
}

// The functions below declare the options of a run, and return them.
std::vector<Option> declare_values(Options& options, RunStepFlags& step) {
  return {
      options
          .add("--inputs", step.inputs, "file with input tensors (repeatable), named like the inputs or the parameters")
          .type("F.safetensors")
          .one_each(),
      options.add("--input", step.input, "value of one input (repeatable): FILE.npy, FILE.safetensors:KEY, or a number")
          .type("NAME=VALUE")
          .one_each(),
      options
          .add("--state", step.state,
               "file with parameters and buffers, each under its name in the model. fxopt never writes to this file")
          .type("F.safetensors"),
      options.add("--fill", step.fill, "values of inputs that are not given: random, ramp, zeros or ones").type("HOW"),
      options.add("--seed", step.seed, "seed of random operators such as dropout, and of --fill random (default: 0)")
          .type("N"),
      options
          .add("--draws", step.draws,
               "read the mask of each dropout node from this file instead of drawing a random mask")
          .type("F.safetensors"),
      options
          .add("--save-draws", step.save_draws,
               "write the random mask of each dropout node to this file. --draws can read the file")
          .type("F.safetensors"),
      options
          .add("--output", step.output,
               "write the outputs of the graph, and the results of the nodes of --save, to this file")
          .type("F.safetensors"),
      options.add("--save", step.save, "node whose results are also written to --output (repeatable)")
          .type("NODE")
          .one_each(),
      options
          .add("--expect", step.expect,
               "compare the outputs with the tensors of the same names in this file. If they differ, exit with 4")
          .type("F.safetensors"),
      options
          .add("--tolerance", step.tolerance,
               "with --expect, the allowed difference, in one of four forms: `bitwise`; the pair `RTOL,ATOL`; `ulp:N`; "
               "or `auto` (default). auto also runs the step in float64, and measures how far each output is from its "
               "float64 result. The expected output may differ from the float64 result by about 4 times this distance")
          .type("T"),
  };
}

std::vector<Option> declare_target(Options& options, RunTargetFlags& target) {
  return {
      options.add("--threads", target.threads, "number of CPU threads (default: one per processor)").type("N"),
      options
          .add("--memory", target.memory,
               "memory for the tensors that the step creates. `arena` (default): one block, in which fxopt plans the "
               "offset of each storage. `allocator`: fxopt's version of PyTorch's caching allocator. `blocks`: the "
               "system allocator, only on a CPU")
          .type("HOW"),
      options
          .add("--alloc-conf", target.alloc_conf,
               "with --memory allocator: settings of the caching allocator, in the syntax of PYTORCH_ALLOC_CONF")
          .type("TEXT"),
      options
          .add("--device", target.device,
               "device that runs the step: cpu (default), or cuda[:N]. A GPU needs the plugin libfxopt_cuda.so")
          .type("DEVICE"),
      options
          .add("--plugin", target.plugin,
               "plugin file with the GPU kernels (default: libfxopt_cuda.so in a folder of $FXOPT_PLUGIN_PATH, or in "
               "the folder of fxopt)")
          .type("FILE"),
      options
          .add("--debug", target.debug,
               "memory: to find wrong memory accesses, put guard bytes around storages and NaNs into free memory")
          .type("WHAT"),
      options
          .add("--isa", target.isa,
               "instruction set of the CPU kernels: base, avx2 or avx512 (default: $FXOPT_ISA, or the widest that the "
               "CPU has). Results are bitwise equal for all three")
          .type("ISA"),
  };
}

std::vector<Option> declare_times(Options& options, RunStepFlags& step) {
  return {
      options
          .add("--repeat", step.repeat,
               "number of timed runs (default: 1). All runs start from the same inputs, and their outputs must have "
               "the same bits")
          .type("N"),
      options
          .add("--warmup", step.warmup,
               "number of runs before the timed runs (default: 0, or 1 with --per-node or --write-measurement)")
          .type("N"),
      options.flag("--per-node", step.per_node,
                   "add runs that execute one node at a time, and print the time of each node"),
      options.add("--top", step.top, "with --per-node: print at most N rows of each table (default: 10)").type("N"),
      options
          .add("--profile", step.profile,
               "with --per-node: device profile, such as h100. The tables then also show the time that the profile "
               "predicts for each node")
          .type("NAME"),
      options
          .add("--write-measurement", step.write_measurement,
               "measure the time of each node and write the times to this file. The commands mem and diff read such a "
               "file with --measurement")
          .type("F.json"),
  };
}

std::vector<Option> declare_step(Options& options, RunStepFlags& step) {
  std::vector<Option> all = declare_values(options, step);
  for (const std::vector<Option>& more : {declare_times(options, step), declare_target(options, step.target)}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace

CommandBody declare_run(Options options) {
  const std::shared_ptr<RunFlags> flags = std::make_shared<RunFlags>();
  options.add("IN", flags->inputs, "graph files that form one step; '-' is standard input").type("IN").required();
  options.flag(
      "--dry-run", flags->dry_run,
      "plan the execution, but do not run the step. Print the memory that the step needs, and the operators that "
      "fxopt cannot execute. If there are such operators, exit with 8");
  options.flag("--print-plan", flags->print_plan,
               "print the planned calls and the memory offset of each storage, but do not run the step");
  options
      .add("--streams", flags->streams,
           "number of streams (default: 1). A run on a GPU can use up to 8. --dry-run and --print-plan accept up to 2, "
           "and plan the collectives for the second stream")
      .type("N");
  options
      .add("--symbol", flags->symbols,
           "value of a symbolic size (repeatable): a number, min or max (default: the hint in the file)")
      .type("NAME=VALUE")
      .one_each();
  const std::vector<Option> of_runs = declare_step(options, flags->step);
  return [flags, of_runs](Console& console) {
    flags->step.target.streams = flags->streams;
    if (!console.is_ok(check_step_flags(flags->step))) return;
    if (!console.is_ok(check_plan_flags(*flags, of_runs))) return;
    if (!console.is_ok(check_streams(*flags))) return;
    if (!console.is_ok(check_files(console, *flags))) return;
    Run(console, *flags).run();
  };
}

}  // namespace fxopt
