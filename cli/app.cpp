#include "cli/app.h"

#include <new>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/completion.h"
#include "cli/usage.h"
#include "core/check.h"
#include "core/version.h"

namespace fxopt {
namespace {

constexpr std::string_view kComplete = "__complete";  // what the scripts of `fxopt completion` ask
constexpr std::string_view kAbout =
    "Optimizes training-step graphs: loads one, runs passes over it, reports its peak memory, writes it back.";

void print_text(Console& console, const std::string& text) {
  console.result()["text"] = text;
  console.write_product(text);
}

void dispatch(const std::vector<std::string>& args, Console& console) {
  if (!args.empty() && args.front() == kComplete) {
    console.write_product(completions({args.begin() + 1, args.end()}));
    return;
  }
  Application application;
  ParsedLine line = application.line.parse(args);
  const Status json_path = console.check_json_path();
  if (!line.command.empty()) console.set_command(line.command);
  if (!json_path.ok()) return console.error(json_path.error());
  if (line.error.has_value()) return console.error(*line.error);
  if (line.wants_version) return print_text(console, "fxopt " + std::string(kVersion) + "\n");
  if (line.wants_help) return print_text(console, usage_text(application.line, line.command));
  if (line.is_verbose) console.set_verbose();
  console.set_misread(std::move(line.misread));
  for (size_t i = 0; i < commands().size(); ++i) {
    if (commands()[i].name == line.command) return application.bodies[i](console);
  }
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> rows = {
      {"opt", "run a pipeline of passes and write the graph", declare_opt},
      {"mem", "report the peak memory of a graph and what is live at it", declare_mem},
      {"diff", "say what changed between two graphs: peaks, storages, saved values, ops, work", declare_diff},
      {"explain", "say why a value is live, and what recomputing it would change", declare_explain},
      {"tags", "list every save and recompute tag and every mark, with its verdict", declare_tags},
      {"verify", "check the structure of a graph", declare_verify},
      {"ranks", "say whether the collectives of all ranks fit together", declare_ranks},
      {"show", "print a graph, some of its nodes, a summary, or a drawing", declare_show},
      {"convert", "write a graph in another form", declare_convert},
      {"reduce", "make a failing graph small; a command says whether it still fails", declare_reduce},
      {"run", "execute a training step on the CPU or a GPU, or say what that takes", declare_run},
      {"doctor", "say what run finds on this machine: CPU, GPUs, what is missing", declare_doctor},
      {"passes", "list the passes, or describe one", declare_passes},
      {"help", "explain a command, a pass, an error code or a concept", declare_help},
      {"completion", "print a completion script for a shell", declare_completion},
  };
  return rows;
}

Application::Application() : line(std::string(kAbout)) {
  for (const Command& command : commands()) {
    line.add(command.name, command.summary, [&](Options options) { bodies.push_back(command.declare(options)); });
  }
}

int run_cli(const std::vector<std::string>& args, const Output& output) {
  const bool completes = !args.empty() && args.front() == kComplete;  // its words are not flags of this call
  Console console(output, completes ? std::vector<std::string>{args.front()} : args);
  try {
    dispatch(args, console);
  } catch (const std::bad_alloc&) {
    console.error({ErrorCode::kFileTooLarge, "not enough memory for this input", "", {}});
  } catch (const std::exception& failure) {
    console.error({ErrorCode::kInternal,
                   failure.what(),
                   "please report this with the command line and the input file: they reproduce it",
                   {}});
  }
  return console.finish();
}

}  // namespace fxopt
