#include "cli/app.h"

#include <new>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/completion.h"
#include "cli/topics.h"
#include "cli/usage.h"
#include "core/check.h"
#include "core/text.h"
#include "core/version.h"

namespace fxopt {
namespace {

// the command that the scripts of `fxopt completion` run
constexpr std::string_view kComplete = "__complete";
constexpr std::string_view kAbout = "Optimizes the graphs of PyTorch training steps, and reports their peak memory.";

void print_text(Console& console, const std::string& text) {
  console.result()["text"] = text;
  console.write_product(text);
}

// `text` is the value of --werror, or empty if it is not given. Fails with kBadOptionValue.
Status set_werror(Console& console, const std::string& text) {
  if (text.empty()) return ok_status();
  std::vector<std::string> codes;
  const std::string_view listed = text == "all" ? std::string_view() : std::string_view(text);
  for (const std::string_view code : split_list(listed)) {
    if (find_warning(code) == nullptr) {
      std::vector<std::string_view> names;
      for (const WarningText& row : warning_table()) names.push_back(row.code);
      return bad_value_error("--werror: no warning has the code '" + std::string(code) + "'",
                             suggestion(code, names, "`fxopt help warnings` lists the codes"));
    }
    codes.emplace_back(code);
  }
  console.set_werror(std::move(codes));
  return ok_status();
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
  if (!console.is_ok(set_werror(console, line.werror))) return;
  console.set_misread(std::move(line.misread));
  for (size_t i = 0; i < commands().size(); ++i) {
    if (commands()[i].name == line.command) return application.bodies[i](console);
  }
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> rows = {
      {"opt", "run a pipeline of passes and write the graph", declare_opt},
      {"mem", "report the peak memory of a graph, and the storages that are live at the peak", declare_mem},
      {"diff", "compare the peaks, storages, saved activations, operators and costs of two graphs", declare_diff},
      {"explain", "explain why a value is live, and the effect of recomputing it", declare_explain},
      {"tags", "list the save and recompute tags and the `ap_must_save` marks of nodes, with the outcome of each",
       declare_tags},
      {"verify", "check the structure of a graph, or prove that two graphs compute the same", declare_verify},
      {"ranks", "check that the collectives of all ranks match", declare_ranks},
      {"show", "print a graph, some of its nodes, a summary, or a drawing", declare_show},
      {"convert", "convert a graph to another file format", declare_convert},
      {"reduce", "find a smaller graph for which a given command still fails", declare_reduce},
      {"run", "execute a training step on the CPU or a GPU, or only plan the execution", declare_run},
      {"doctor", "list the devices that `fxopt run` can use on this machine, and the missing drivers and plugins",
       declare_doctor},
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
  // The words after __complete belong to the line to complete.
  const bool completes = !args.empty() && args.front() == kComplete;
  Console console(output, completes ? std::vector<std::string>{args.front()} : args);
  try {
    dispatch(args, console);
  } catch (const std::bad_alloc&) {
    console.error({ErrorCode::kFileTooLarge, "not enough memory for this input", "", {}});
  } catch (const std::exception& failure) {
    console.error({ErrorCode::kInternal,
                   failure.what(),
                   "please report this error with the command line and the input file, which reproduce it",
                   {}});
  }
  return console.finish();
}

}  // namespace fxopt
