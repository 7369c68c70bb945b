// fxopt reduce: shrinks a failing graph, and the pipeline with which it fails. A command of the
// user decides whether a smaller graph still fails.

#include "passes/reduce/reduce.h"

#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/process.h"
#include "cli/products.h"
#include "core/bytes.h"
#include "core/file.h"
#include "core/text.h"
#include "ir/io/io.h"

namespace fxopt {
namespace {

constexpr std::string_view kGraphPlace = "{}";
constexpr std::string_view kPassesPlace = "{passes}";
constexpr int kCannotRun = 126;  // exit status of shells for a program that does not start
constexpr int kNotFound = 127;

constexpr std::string_view kFooter =
    R"(COMMAND runs once for each smaller graph. Each {} in COMMAND is replaced by the path of the graph, which
is a text file. If COMMAND has no {}, fxopt adds the path as the last argument. Each {passes} is replaced
by the pipeline. fxopt runs COMMAND without a shell. To use a shell, quote its script:
sh -c 'fxopt opt {} --passes "{passes}" | grep -q mm_1'

A graph is interesting if COMMAND ends in the same way as for IN: with the same exit status, or by the
same signal. With --exit, a graph is interesting if COMMAND ends in the given way. OUT is the smallest
interesting graph that was found. OUT and all graphs given to COMMAND pass the verifier, but they need
not compute the same as IN. With -v, standard error also shows the output of COMMAND.

  fxopt reduce bad.fxg -o small.fxg --passes cse,remat,dce --
      fxopt opt {} -o /dev/null --passes {passes} --no-reproducer)";

struct ReduceFlags {
  FileFlags files;
  std::optional<std::string> passes;
  std::string exit;
  size_t timeout = 60;
  size_t max_runs = SIZE_MAX;
  bool verbose = false;  // show the output of COMMAND
  std::vector<std::string> command;
};

bool mentions(const std::vector<std::string>& words, std::string_view place) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return word.find(place) != std::string::npos; });
}

Status check_flags(const ReduceFlags& flags) {
  const bool wants_passes = mentions(flags.command, kPassesPlace);
  if (wants_passes && !flags.passes.has_value()) {
    return usage_error("COMMAND has {passes}, but no pipeline is given", "give the pipeline with --passes PIPELINE");
  }
  if (!wants_passes && flags.passes.has_value()) {
    return usage_error("--passes gives a pipeline that COMMAND does not use",
                       "write {passes} in COMMAND, or omit --passes");
  }
  const std::string& exit = flags.exit;
  const bool is_status = is_count(exit) && parse_int64(exit).value_or(256) < 256;
  if (exit.empty() || is_status || exit == "nonzero" || exit == "signal" || exit == "timeout") return ok_status();
  return bad_value_error("--exit does not take '" + exit + "'",
                         "give an exit status from 0 to 255, or nonzero, signal or timeout");
}

// Returns the value of --exit in words.
std::string wanted_text(const std::string& exit) {
  return is_count(exit) ? "exit status " + exit : exit == "nonzero" ? "a nonzero exit status" : "a " + exit;
}

bool is_wanted(const std::string& exit, const ProcessEnd& end) {
  if (end.kind == ProcessEnd::Kind::kExited) {
    return exit == "nonzero" ? end.number != 0 : exit == std::to_string(end.number);
  }
  if (end.kind == ProcessEnd::Kind::kSignalled) return exit == "signal";
  return end.kind == ProcessEnd::Kind::kTimedOut && exit == "timeout";
}

// Runs COMMAND for one candidate after another. Candidates are written to a temporary folder.
class Command {
 public:
  Command(const ReduceFlags& flags, const ScratchFolder& folder)
      : flags_(flags), path_(folder.path() + "/candidate.fxg") {}

  // Fails with the errors of write_file() and run_process().
  Result<ProcessEnd> run(const ReduceCase& candidate) {
    if (const Status written = write_file(path_, candidate.graph); !written.ok()) return written.error();
    ++runs_;
    return run_process(words(candidate), std::chrono::seconds(flags_.timeout),
                       flags_.verbose ? ProcessOutput::kToStandardError : ProcessOutput::kDiscarded);
  }
  size_t runs() const { return runs_; }

 private:
  std::vector<std::string> words(const ReduceCase& candidate) const {
    std::vector<std::string> words;
    for (const std::string& word : flags_.command) words.push_back(filled(word, candidate));
    if (!mentions(flags_.command, kGraphPlace)) words.push_back(path_);
    return words;
  }

  std::string filled(std::string_view word, const ReduceCase& candidate) const {
    std::string out;
    while (!word.empty()) {
      if (word.starts_with(kGraphPlace)) {
        out += path_;
        word.remove_prefix(kGraphPlace.size());
      } else if (candidate.passes.has_value() && word.starts_with(kPassesPlace)) {
        out += *candidate.passes;
        word.remove_prefix(kPassesPlace.size());
      } else {
        out += word.front();
        word.remove_prefix(1);
      }
    }
    return out;
  }

  const ReduceFlags& flags_;
  std::string path_;
  size_t runs_ = 0;
};

bool is_terminal(const std::ostream& stream) { return &stream == &std::cerr && ::isatty(STDERR_FILENO) == 1; }

// A progress line, which is overwritten in place and shown only on a terminal.
class Progress {
 public:
  Progress(Console& console, bool is_shown) : console_(console), is_shown_(is_shown) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (is_shown_) console_.notes() << "\r\x1b[K" << std::flush;
  }

  void show(size_t run, size_t nodes, std::string_view stage) {
    if (!is_shown_) return;
    console_.notes() << "\r\x1b[Krun " << run << ", " << nodes << " nodes, removing " << stage << std::flush;
  }

 private:
  Console& console_;
  bool is_shown_;
};

class Reduce {
 public:
  Reduce(Console& console, const ReduceFlags& flags, Product product, const ScratchFolder& folder)
      : console_(console), flags_(flags), product_(std::move(product)), command_(flags, folder) {}

  void run() {
    const std::string& path = flags_.files.inputs.front();
    const std::unique_ptr<Module> module = load_input(console_, path);
    if (module == nullptr || !is_valid_input(console_, *module, path)) return;
    nodes_before_ = module->num_nodes();
    best_ = {print_text(*module), flags_.passes};
    if (!console_.is_ok(judge_input())) return;
    if (Interrupts::signal() != 0) return;
    const Result<ReduceReport> report = search();
    if (!report.ok()) return console_.error(report.error());
    if (failure_.has_value()) console_.error(*failure_);
    deliver(*report);
  }

 private:
  // Checks that IN itself is interesting, and records how COMMAND ends for it.
  Status judge_input() {
    const Result<ProcessEnd> end = command_.run(best_);
    if (!end.ok()) return end.error();
    const std::string ended = "COMMAND ends with " + text_of(*end) + " for '" + flags_.files.inputs.front() + "'";
    wanted_ = *end;
    if (!flags_.exit.empty()) {
      if (end->kind == ProcessEnd::Kind::kInterrupted || is_wanted(flags_.exit, *end)) return ok_status();
      return usage_error(ended + ", but --exit expects " + wanted_text(flags_.exit),
                         "-v shows the output of COMMAND; COMMAND receives the graph as text");
    }
    if (end->kind == ProcessEnd::Kind::kTimedOut) {
      return usage_error("COMMAND does not end within " + std::to_string(flags_.timeout) + " s for '" +
                             flags_.files.inputs.front() + "'",
                         "raise --timeout, or give --exit timeout if a timeout is the failure");
    }
    if (end->kind == ProcessEnd::Kind::kExited && end->number == 0) {
      console_.warning("passes-on-input", {},
                       "COMMAND exits with 0 for IN, so a smaller graph is kept only if COMMAND exits with 0; give "
                       "--exit 0 if this is intended");
    }
    const bool is_not_run =
        end->kind == ProcessEnd::Kind::kExited && (end->number == kCannotRun || end->number == kNotFound);
    if (!is_not_run) return ok_status();
    return usage_error(ended + ": a program that it runs cannot be found or started",
                       "check COMMAND with -v, or give --exit " + std::to_string(end->number) + " if this is intended");
  }

  Result<ReduceReport> search() {
    Progress progress(console_, is_terminal(console_.notes()) && !flags_.verbose);
    ReduceOptions options;
    options.observer = [&](std::string_view stage, const ReduceReport& report) {
      progress.show(command_.runs() + 1, report.nodes, stage);
    };
    return reduce_case(
        best_, [this](const ReduceCase& candidate) { return judge(candidate); }, options);
  }

  Interest judge(const ReduceCase& candidate) {
    if (command_.runs() >= flags_.max_runs || Interrupts::signal() != 0) return Interest::kStop;
    const Result<ProcessEnd> end = command_.run(candidate);
    if (!end.ok()) failure_ = end.error();
    if (!end.ok() || end->kind == ProcessEnd::Kind::kInterrupted) return Interest::kStop;
    const bool is_interesting = flags_.exit.empty() ? *end == wanted_ : is_wanted(flags_.exit, *end);
    return is_interesting ? Interest::kInteresting : Interest::kUninteresting;
  }

  void deliver(const ReduceReport& report) {
    Result<std::unique_ptr<Module>> smallest = parse_text(best_.graph, "case");
    FXOPT_CHECK(smallest.ok(), "a graph that was printed does not parse");
    if (!save_product(console_, **smallest, product_)) return;
    const std::string stopped = report.is_complete          ? ""
                                : Interrupts::signal() != 0 ? "interrupted"
                                : failure_.has_value()      ? "error"
                                                            : "max-runs";
    std::ostream& notes = console_.notes();
    notes << "reduced " << nodes_before_ << " nodes to " << report.nodes << " in " << command_.runs()
          << " runs; for the reduced graph, COMMAND ends with "
          << (flags_.exit.empty() ? text_of(wanted_) : wanted_text(flags_.exit));
    if (!stopped.empty()) notes << "; stopped early (" << stopped << "); a longer run may remove more";
    notes << '\n';
    if (best_.passes.has_value()) notes << "passes: " << printable_line(*best_.passes) << '\n';
    nlohmann::ordered_json& result = console_.result();
    result["output"] = product_.path;
    result["interesting"] = flags_.exit.empty() ? text_of(wanted_) : wanted_text(flags_.exit);
    result["nodes_before"] = nodes_before_;
    result["nodes"] = report.nodes;
    result["passes"] = best_.passes.has_value() ? nlohmann::ordered_json(*best_.passes) : nullptr;
    result["runs"] = command_.runs();
    result["repeated"] = report.repeated;
    result["invalid"] = report.invalid;
    result["stopped"] = stopped.empty() ? nullptr : nlohmann::ordered_json(stopped);
  }

  Console& console_;
  const ReduceFlags& flags_;
  Product product_;
  Command command_;
  ReduceCase best_;
  ProcessEnd wanted_;  // how COMMAND ended for IN
  std::optional<Error> failure_;
  size_t nodes_before_ = 0;
};

void run_reduce(Console& console, const ReduceFlags& flags) {
  console.result() = {{"file", shown_input(flags.files.inputs.front())}, {"command", flags.command}};
  Status checked = check_flags(flags);
  if (!checked.ok()) return console.error(checked.error());
  if (flags.passes.has_value()) {
    const Result<Pipeline> pipeline = parse_pipeline(*flags.passes);
    if (!pipeline.ok()) return console.error(pipeline.error());
  }
  const Result<std::vector<Product>> products = plan_products(console, flags.files);
  if (!products.ok()) return console.error(products.error());
  const Result<ScratchFolder> folder = ScratchFolder::make();
  if (!folder.ok()) return console.error(folder.error());
  Reduce(console, flags, products->front(), *folder).run();
}

}  // namespace

CommandBody declare_reduce(Options options) {
  const std::shared_ptr<ReduceFlags> flags = std::make_shared<ReduceFlags>();
  flags->files.inputs.resize(1);
  options.add("IN", flags->files.inputs.front(), "a graph file; '-' is standard input").type("IN").required();
  options.add("COMMAND", flags->command, "a command after '--' whose exit status decides whether a graph still fails")
      .type("COMMAND")
      .required();
  options
      .add("-o,--output", flags->files.output,
           "output file: protobuf if its name ends in .pb, JSON if it ends in .json, text otherwise")
      .type("OUT");
  options
      .add("--passes", flags->passes,
           "pipeline to shorten together with the graph. {passes} in COMMAND is replaced by the shortened pipeline")
      .type("PIPELINE");
  options
      .add("--exit", flags->exit,
           "exit status of COMMAND on a graph that still fails, such as 1. The words nonzero, signal and timeout are "
           "also possible. By default, the exit status is the one that COMMAND has for IN")
      .type("STATUS");
  options.add("--timeout", flags->timeout, "stop each run of COMMAND after N seconds (default: 60). 0 sets no limit")
      .type("N");
  options
      .add("--max-runs", flags->max_runs,
           "stop after N runs of COMMAND, and write the smallest failing graph that was found")
      .type("N");
  options.footer(std::string(kFooter));
  return [flags](Console& console) {
    flags->verbose = console.is_verbose();
    int signal = 0;
    {
      const Interrupts interrupts;
      run_reduce(console, *flags);
      signal = Interrupts::signal();
    }
    if (signal != 0) std::raise(signal);  // the caller sees that the signal ended this process
  };
}

}  // namespace fxopt
