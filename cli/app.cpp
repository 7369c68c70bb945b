#include "cli/app.h"

#include <new>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/option_values.h"
#include "cli/report/usage.h"
#include "core/check.h"
#include "core/version.h"

namespace fxopt {
namespace {

constexpr std::string_view kAbout =
    "Optimizes training-step graphs: loads one, runs passes over it, reports its peak memory, writes it back.";

void print_text(Console& console, const std::string& text) {
  console.result()["text"] = text;
  console.write_product(text);
}

void dispatch(const std::vector<std::string>& args, Console& console) {
  const Application application;
  ParsedLine line = parse_line(*application.app, args);
  const Status json_path = console.check_json_path();
  if (line.app != application.app.get()) console.set_command(line.app->get_name());
  if (!json_path.ok()) return console.error(json_path.error());
  if (line.error.has_value()) return console.error(*line.error);
  if (line.wants_version) return print_text(console, "fxopt " + std::string(kVersion) + "\n");
  if (line.wants_help) return print_text(console, usage_text(*line.app));
  if (line.app->count("--verbose") > 0) console.set_verbose();
  console.set_misread(std::move(line.misread));
  for (size_t i = 0; i < commands().size(); ++i) {
    if (commands()[i].name == line.app->get_name()) return application.bodies[i](console);
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

Application::Application() : app(std::make_unique<CLI::App>(std::string(kAbout), "fxopt")) {
  app->set_help_flag("-h,--help", "print this and exit");
  app->set_version_flag("--version", std::string(kVersion), "print the version and exit");
  const std::string json_help = "print one JSON object with the outcome, also on failure";
  const std::string verbose_help = "say on standard error what is done, with sizes and seconds";
  for (const Command& command : commands()) {
    CLI::App& sub = *app->add_subcommand(std::string(command.name), std::string(command.summary));
    bodies.push_back(command.declare(sub));
    // Read by Console, which must know it before parsing; declared here for help and so that it is not unknown.
    sub.add_flag("--json{-}", json_help)->type_name("FILE");
    sub.add_flag("-v,--verbose", verbose_help);
    check_values(sub);
    sub.disabled();  // see parse_line()
  }
  app->prefix_command();
  check_values(*app);
}
Application::Application(Application&&) noexcept = default;
Application& Application::operator=(Application&&) noexcept = default;
Application::~Application() = default;

int run_cli(const std::vector<std::string>& args, const Output& output) {
  Console console(output, args);
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
