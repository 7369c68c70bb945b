// fxopt mem: reports peaks and the storages that are live at peaks, and checks limits on peaks.

#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/advice.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/gate_check.h"
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

// Returns an error of the envelope as one line: "FX1001 cannot open the file".
std::string reason_text(const nlohmann::ordered_json& error) {
  return error.value("code", "") + " " + error.value("message", "");
}

// Returns the names of the measured files in reports and baselines. A step of several files has one
// name, such as "runs/forward.pb+backward.pb".
std::vector<std::string> named_inputs(const MemFlags& flags) {
  if (!flags.step) return flags.inputs;
  std::string name = flags.inputs.front();
  for (size_t i = 1; i < flags.inputs.size(); ++i) {
    name += "+" + flags.inputs[i].substr(flags.inputs[i].rfind('/') + 1);
  }
  return {name};
}

// Returns the name of one input, or of the step, for messages.
std::string shown(const MemFlags& flags, const std::string& input) {
  return flags.step ? shown_inputs(flags.inputs) : shown_input(input);
}

// Measures all inputs of one command line.
class Mem {
 public:
  Mem(Console& console, const MemFlags& flags, const MemoryPlan& plan, const MemoryGates& gates)
      : console_(console), flags_(flags), plan_(plan), gates_(gates), forms_(flags.forms, flags.memory.top, head()) {}

  void run() {
    console_.result() = head();
    console_.result()["files"] = nlohmann::ordered_json::array();
    for (const std::string& setting : plan_.allocator().not_modelled) {
      console_.warning("not-modelled", {}, "the setting " + setting + " is not modelled: peaks ignore it");
    }
    const std::vector<std::string> inputs = named_inputs(flags_);
    const auto work = [&](size_t i, nlohmann::ordered_json& file) { measure_file(inputs[i], file); };
    for_each_input(console_, inputs, work, [&](size_t i, size_t first_error) {
      if (!std::exchange(is_measured_, false)) note_failure(inputs[i], first_error);
    });
    if (gates_.updates()) check_.write_baseline();
    if (!flags_.snapshot.empty()) write_snapshot();
    forms_.write(console_);
  }

 private:
  nlohmann::ordered_json head() const {
    return {{"memory_report", 1}, {"options", plan_.json()}, {"gates", gates_.json()}};
  }

  // Adds an input that could not be measured to the Markdown and HTML reports.
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
    if (const size_t runs = graphs->size() > 1 ? linked_runs(*module) : 0; runs > 0) {
      console_.notes() << printable_line(shown_input(path)) << ": " << runs
                       << " runs of the graphs form one training step; add --step to measure the whole step\n";
    }
    measure_graphs(path, *module, *graphs, {}, file);
  }

  // If a graph was composed from a step, `runs` are the runs of this step.
  void measure_graphs(const std::string& path, Module& module, const std::vector<const Graph*>& graphs,
                      const std::vector<StepRunRow>& runs, nlohmann::ordered_json& file) {
    Result<MemoryView> view = plan_.view(module, path);
    if (!view.ok()) return console_.error(view.error());
    view->others = gates_.needs_all_storages();
    view->measure.timelines = forms_.needs_timelines();
    nlohmann::ordered_json list = nlohmann::ordered_json::array(), all = list;
    if (!flags_.step) print_file_title(console_.product(), flags_.inputs, path);
    for (const Graph* graph : graphs) {
      const Footprint footprint = measure_logged(console_, path, *graph, view->measure);
      GraphMemory memory = describe_memory(footprint, *view);
      memory.step = runs;
      if (runs.empty()) add_advice(path, footprint, *view, memory);
      check(path, memory, *view);
      warn_of_memory(console_, path, footprint, *view);
      if (gates_.updates()) all.push_back(memory_json(memory, Storages::kAll));
      print_memory(console_.product(), memory);
      list.push_back(memory_json(memory));
      list.back()["growth"] = check_.compare(path, shown_input(path), memory, console_.product());
      if (!flags_.snapshot.empty() && snapshot_.empty()) {
        snapshot_ = memory_snapshot(footprint, view->measure, flags_.memory.alloc_conf);
      }
      is_measured_ = true;
    }
    file["graphs"] = std::move(list);
    if (gates_.updates()) check_.add(path, std::move(all));
  }

  // Adds advice for each device whose memory is too small or whose budget is exceeded.
  void add_advice(const std::string& path, const Footprint& footprint, const MemoryView& view,
                  GraphMemory& memory) const {
    memory.has_advice = true;
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

  void check(const std::string& path, const GraphMemory& memory, const MemoryView& view) {
    const std::vector<Error> broken = check_.check(path, shown_input(path), memory, view);
    forms_.add(shown(flags_, path), memory, {gates_.baseline_of(path, memory.graph), gates_.text(), broken});
  }

  // Writes the snapshot of the first graph with a CUDA device.
  void write_snapshot() {
    if (console_.num_errors() > 0 && snapshot_.empty()) return;
    if (snapshot_.empty()) {
      return console_.error({ErrorCode::kUnsupportedGraph,
                             "no snapshot: no tensor is on a CUDA device",
                             "a snapshot shows the caching allocator, which serves only CUDA devices",
                             {}});
    }
    console_.write_output(flags_.snapshot, snapshot_);
  }

  Console& console_;
  const MemFlags& flags_;
  const MemoryPlan& plan_;
  const MemoryGates& gates_;
  MemoryForms forms_;
  GateCheck check_{console_, plan_, gates_};
  std::string snapshot_;
  bool is_measured_ = false;  // the current input has a report
};

Status check_snapshot(const MemFlags& flags) {
  if (flags.inputs.size() > 1 && !flags.step) {
    return usage_error("several inputs for one snapshot in '" + flags.snapshot + "'",
                       "a snapshot shows one step: call fxopt once for each input");
  }
  if (flags.snapshot == "-") {
    return usage_error("a snapshot cannot go to standard output", "name a file: --snapshot FILE");
  }
  return ok_status();
}

// Fails if an output file would overwrite an input or another output.
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

// Parses the options and measures the inputs. Fails with the errors of MemoryPlan::make() and
// MemoryGates::make().
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
  if (!console.is_ok(check_inputs(flags.inputs))) return;
  if (!console.is_ok(check_products(console, flags))) return;
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
      options.add("--graph", flags->graph, "measure only this graph (default: all graphs that no other graph calls)")
          .type("NAME");
  options.flag("--step", flags->step, kStepHelp).excludes(graph);
  declare_memory_flags(options, flags->memory);
  declare_gate_flags(options, flags->gates);
  declare_form_flags(options, flags->forms);
  options
      .add("--snapshot", flags->snapshot,
           "write the simulated allocations as a PyTorch memory snapshot, for PyTorch's viewer memory_viz")
      .type("FILE");
  return [flags](Console& console) { run_mem(console, *flags); };
}

}  // namespace fxopt
