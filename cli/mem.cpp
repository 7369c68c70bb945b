// fxopt mem: the peaks, what is live there, and limits on them.

#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/advice.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/gates.h"
#include "cli/memory_forms.h"
#include "cli/memory_options.h"
#include "cli/print/json.h"
#include "cli/print/table.h"
#include "cli/products.h"
#include "cli/report/memory/report.h"
#include "cli/report/memory/snapshot.h"
#include "cli/shell.h"
#include "cli/step.h"
#include "core/bytes.h"
#include "core/stopwatch.h"
#include "ir/step/step.h"

namespace fxopt {
namespace {

struct MemFlags {
  std::vector<std::string> inputs;
  std::string graph;
  bool step = false;
  MemoryFlags memory;
  GateFlags gates;
  FormFlags forms;
  std::string snapshot;
};

// "FX1001 cannot open the file", of an error in the envelope.
std::string reason_text(const nlohmann::ordered_json& error) {
  return error.value("code", "") + " " + error.value("message", "");
}

// What reports and baselines call what is measured: the files, or for a step the first one, followed by the names of the
// others: "runs/forward.pb+backward.pb".
std::vector<std::string> named_inputs(const MemFlags& flags) {
  if (!flags.step) return flags.inputs;
  std::string name = flags.inputs.front();
  for (size_t i = 1; i < flags.inputs.size(); ++i) {
    name += "+" + flags.inputs[i].substr(flags.inputs[i].rfind('/') + 1);
  }
  return {name};
}

// What a form calls one input, or the step.
std::string shown(const MemFlags& flags, const std::string& input) {
  return flags.step ? shown_inputs(flags.inputs) : shown_input(input);
}

// One call: several inputs, one set of options, one baseline.
class Mem {
 public:
  Mem(Console& console, const MemFlags& flags, const MemoryPlan& plan, const MemoryGates& gates)
      : console_(console), flags_(flags), plan_(plan), gates_(gates), forms_(flags.forms, flags.memory.top, head()) {}

  void run() {
    console_.result() = head();
    console_.result()["files"] = nlohmann::ordered_json::array();
    for (const std::string& setting : plan_.allocator().not_modelled) {
      console_.warning("not-modelled", {}, "the setting " + setting + " is not modelled: peaks are those without it");
    }
    const std::vector<std::string> inputs = named_inputs(flags_);
    const auto work = [&](size_t i, nlohmann::ordered_json& file) {
      is_name_told_ = false;
      measure_file(inputs[i], file);
    };
    for_each_input(console_, inputs, work, [&](size_t i, size_t first_error) {
      if (!std::exchange(is_measured_, false)) note_failure(inputs[i], first_error);
    });
    if (gates_.updates()) write_baseline();
    if (!flags_.snapshot.empty()) write_snapshot();
    forms_.write(console_);
  }

 private:
  nlohmann::ordered_json head() const {
    return {{"memory_report", 1}, {"options", plan_.json()}, {"gates", gates_.json()}};
  }

  // Of an input without a report.
  void note_failure(const std::string& path, size_t first_error) {
    std::vector<std::string> reasons;
    for (size_t i = first_error; i < console_.num_errors(); ++i) reasons.push_back(reason_text(console_.errors()[i]));
    forms_.add_failure(shown(flags_, path), reasons);
  }

  void measure_file(const std::string& path, nlohmann::ordered_json& file) {
    if (flags_.step) {
      file["files"] = nlohmann::ordered_json::array();
      for (const std::string& part : flags_.inputs) file["files"].push_back(shown_input(part));
      std::optional<ComposedStep> step = import_step(console_, load_parts(console_, flags_.inputs), flags_.inputs);
      if (step.has_value()) measure_graphs(path, *step->module, {step->graph}, step->runs, file);
      return;
    }
    const std::unique_ptr<Module> module = import_input(console_, path);
    if (module == nullptr) return;
    const Result<std::vector<const Graph*>> graphs = select_graphs(*module, flags_.graph, shown_input(path));
    if (!graphs.ok()) return console_.error(graphs.error());
    if (graphs->size() > 1) note_step(path, *module);
    measure_graphs(path, *module, *graphs, {}, file);
  }

  // Of graphs that are measured one by one, where one takes what another gives.
  void note_step(const std::string& path, const Module& module) {
    const Result<Step> step = find_step(module);
    if (!step.ok()) return;
    for (size_t i = 0; i < step->runs.size(); ++i) {
      if (step->count(i, StepInput::Source::kOutput) == 0) continue;
      console_.notes() << printable_line(shown_input(path)) << ": " << step->runs.size()
                       << " runs of its graphs are one step; --step measures it as one\n";
      return;
    }
  }

  // `runs`: of the step that the graph was composed of.
  void measure_graphs(const std::string& path, Module& module, const std::vector<const Graph*>& graphs,
                      const std::vector<StepRunRow>& runs, nlohmann::ordered_json& file) {
    Result<MemoryView> view = plan_.view(module, path);
    if (!view.ok()) return console_.error(view.error());
    view->others = gates_.needs_all_storages();
    view->measure.timelines = forms_.needs_timelines();
    nlohmann::ordered_json list = nlohmann::ordered_json::array(), all = list;
    if (!flags_.step) print_file_title(console_.product(), flags_.inputs, path);
    for (const Graph* graph : graphs) {
      const Footprint footprint = measure_told(console_, path, *graph, view->measure);
      GraphMemory memory = describe_memory(footprint, *view);
      memory.step = runs;
      if (runs.empty()) add_advice(path, footprint, *view, memory);
      check(path, memory);
      if (!view->measure.memory.ranges.empty()) warn_of_range(path, memory);
      warn_of_memory(console_, path, footprint, *view);
      if (gates_.updates()) all.push_back(memory_json(memory, Storages::kAll));
      print_memory(console_.product(), memory);
      list.push_back(memory_json(memory));
      list.back()["growth"] = compare(path, memory);
      if (!flags_.snapshot.empty() && snapshot_.empty()) {
        snapshot_ = memory_snapshot(footprint, view->measure, flags_.memory.alloc_conf);
      }
      is_measured_ = true;
    }
    file["graphs"] = std::move(list);
    if (gates_.updates()) baseline_.push_back({{"file", path}, {"graphs", std::move(all)}});
  }

  // Where it does not fit, or a budget is broken.
  void add_advice(const std::string& path, const Footprint& footprint, const MemoryView& view,
                  GraphMemory& memory) const {
    std::vector<AdviceGoal> goals;
    for (size_t i = 0; i < memory.devices.size(); ++i) {
      AdviceGoal goal{i, plan_.expandable(), gates_.broken_budgets(memory.devices[i])};
      const std::optional<FitRow>& fit = memory.devices[i].fit;
      if ((fit.has_value() && !fit->fits) || !goal.budgets.empty()) goals.push_back(std::move(goal));
    }
    Stopwatch watch;
    std::vector<std::optional<Advice>> found = advise(footprint, view.measure, view.costs, goals);
    if (!goals.empty()) console_.stage("tried recompute policies for " + shown_input(path), watch.lap());
    for (size_t i = 0; i < goals.size(); ++i) {
      if (found[i].has_value()) found[i]->input = shell_quoted(path);
      memory.devices[goals[i].device].advice = std::move(found[i]);
    }
  }

  // Prints what the limited peaks have become since the baseline.
  nlohmann::ordered_json compare(const std::string& path, const GraphMemory& memory) {
    const std::string other = gates_.other_name(path);
    if (!other.empty() && gates_.baseline_of(path, memory.graph) != nullptr && !is_name_told_) {
      is_name_told_ = true;
      Where where;
      where.file = shown_input(path);
      console_.warning("baseline-other-name", where,
                       "compared with '" + other + "', the only file of the baseline; no file in it has this name");
    }
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const PeakGrowth& growth : gates_.compare(path, memory)) {
      console_.product() << "  since the baseline, on " << growth.device << ", " << metric_name(growth.metric)
                         << " peak: " << growth_text(growth.before.bytes, growth.after.bytes) << '\n';
      list.push_back(growth_json(growth));
    }
    return list;
  }

  void check(const std::string& path, const GraphMemory& memory) {
    const std::vector<Error> broken = gates_.check(path, memory);
    for (const Error& error : broken) console_.error(error);
    forms_.add(shown(flags_, path), memory, {gates_.baseline_of(path, memory.graph), gates_.text(), broken});
  }

  // Limits are checked for the values that peaks are of.
  void warn_of_range(const std::string& path, const GraphMemory& memory) {
    if (!gates_.has_limits()) return;
    for (const DeviceMemory& device : memory.devices) {
      if (!device.ideal_range.has_value() || device.ideal_range->max == device.ideal.bytes) continue;
      Where where;
      where.file = shown_input(path);
      where.graph = memory.graph;
      console_.warning("limits-within-range", where,
                       "limits were checked with " + symbols_text(memory.symbols) +
                           "; over this range the ideal peak is " + range_text(*device.ideal_range));
    }
  }

  // Not written when an input failed: a baseline without it would let anything pass.
  void write_baseline() {
    if (console_.num_errors() > 0) {
      console_.notes() << "baseline not written because an input failed: " << printable_line(gates_.baseline_path())
                       << '\n';
      return;
    }
    std::string replaced;
    const Result<nlohmann::ordered_json> document = gates_.document(plan_, baseline_, replaced);
    if (!document.ok()) return console_.error(document.error());
    if (!replaced.empty()) {
      console_.warning("baseline-replaced", {}, "nothing of the earlier baseline is kept: " + replaced);
    }
    const Status status = console_.write_output(gates_.baseline_path(), json_text(*document));
    if (!status.ok()) return console_.error(status.error());
    console_.notes() << "baseline written: " << printable_line(gates_.baseline_path()) << '\n';
  }

  // Of the first graph with a CUDA device.
  void write_snapshot() {
    if (console_.num_errors() > 0 && snapshot_.empty()) return;
    if (snapshot_.empty()) {
      return console_.error({ErrorCode::kUnsupportedGraph,
                             "there is nothing for a snapshot: no tensor is on a CUDA device",
                             "the snapshot is of the caching allocator, which serves CUDA devices",
                             {}});
    }
    const Status status = console_.write_output(flags_.snapshot, snapshot_);
    if (!status.ok()) console_.error(status.error());
  }

  Console& console_;
  const MemFlags& flags_;
  const MemoryPlan& plan_;
  const MemoryGates& gates_;
  MemoryForms forms_;
  nlohmann::ordered_json baseline_ = nlohmann::ordered_json::array();
  std::string snapshot_;
  bool is_measured_ = false;   // the input at hand has a report
  bool is_name_told_ = false;  // that it is compared with a file of another name
};

Status check_snapshot(const MemFlags& flags) {
  if (flags.inputs.size() > 1 && !flags.step) {
    return Error{ErrorCode::kUsage,
                 "several inputs for one snapshot in '" + flags.snapshot + "'",
                 "a snapshot is of one step: make each in a call of its own",
                 {}};
  }
  if (flags.snapshot == "-") {
    return Error{ErrorCode::kUsage, "a snapshot cannot go to standard output", "name a file: --snapshot FILE", {}};
  }
  return ok_status();
}

// No file is written over one that the call reads, or over another one.
Status check_products(Console& console, const MemFlags& flags) {
  Result<std::vector<ExtraProduct>> products = flags.forms.products();
  if (!products.ok()) return products.error();
  std::vector<std::string> inputs = flags.inputs;
  if (flags.gates.update_baseline) {
    products->push_back({"--baseline", flags.gates.baseline});
  } else if (!flags.gates.baseline.empty()) {
    inputs.push_back(flags.gates.baseline);
  }
  if (!flags.snapshot.empty()) {
    const Status snapshot = check_snapshot(flags);
    if (!snapshot.ok()) return snapshot;
    products->push_back({"--snapshot", flags.snapshot});
  }
  return check_extra_products(console, inputs, *products);
}

// Makes the gates and runs. Errors: those of MemoryPlan::make() and MemoryGates::make().
Status measure_all(Console& console, const MemFlags& flags) {
  const Result<MemoryPlan> plan = MemoryPlan::make(flags.memory);
  if (!plan.ok()) return plan.error();
  GateFlags gate_flags = flags.gates;
  gate_flags.inputs = named_inputs(flags);
  gate_flags.is_shown = !flags.forms.markdown.empty();
  const Result<MemoryGates> gates = MemoryGates::make(gate_flags, *plan);
  if (!gates.ok()) return gates.error();
  Mem(console, flags, *plan, *gates).run();
  return ok_status();
}

void run_mem(Console& console, const MemFlags& flags) {
  const Status inputs = check_inputs(flags.inputs);
  if (!inputs.ok()) return console.error(inputs.error());
  const Status products = check_products(console, flags);
  if (!products.ok()) return console.error(products.error());
  const Status done = measure_all(console, flags);
  if (done.ok()) return;
  console.error(done.error());
  MemoryForms forms(flags.forms, flags.memory.top, nlohmann::ordered_json::object());
  for (const std::string& input : named_inputs(flags)) {
    forms.add_failure(shown(flags, input), {reason_text(console.errors().back())});
  }
  forms.write(console);
}

}  // namespace

CommandBody declare_mem(Options options) {
  const std::shared_ptr<MemFlags> flags = std::make_shared<MemFlags>();
  options.add("IN", flags->inputs, "graph files; '-' is standard input").type("IN").required();
  const Option graph =
      options.add("--graph", flags->graph, "measure only this graph (default: every graph except subgraphs)")
          .type("NAME");
  options.flag("--step", flags->step, kStepHelp).excludes(graph);
  declare_memory_flags(options, flags->memory);
  declare_gate_flags(options, flags->gates);
  declare_form_flags(options, flags->forms);
  options.add("--snapshot", flags->snapshot, "write the step as a memory snapshot of PyTorch, for its memory_viz")
      .type("FILE");
  return [flags](Console& console) { run_mem(console, *flags); };
}

}  // namespace fxopt
