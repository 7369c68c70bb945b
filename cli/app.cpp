#include "cli/app.h"

#include <algorithm>
#include <new>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/files.h"
#include "cli/report/usage.h"
#include "core/check.h"
#include "core/version.h"

namespace fxopt {
namespace {

constexpr std::string_view kAbout =
    "Optimizes training-step graphs: loads one, runs passes over it, reports its peak memory, writes it back.";

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const Command& command : commands()) names.push_back(command.name);
  return names;
}

// Every "--name" and "-n" an app takes.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

const CLI::App& chosen(const CLI::App& app) {
  const std::vector<const CLI::App*> selected =
      app.get_subcommands([](const CLI::App* candidate) { return candidate->parsed(); });
  return selected.empty() ? app : *selected.front();
}

Error unexpected_argument(const CLI::App& app, const std::string& argument) {
  const CLI::App& command = chosen(app);
  const bool is_root = &command == &app;
  const std::string help =
      is_root ? "`fxopt help` lists the commands" : "`fxopt help " + command.get_name() + "` lists what it takes";
  if (argument.size() > 1 && argument.front() == '-') {
    const std::string name = argument.substr(0, argument.find('='));
    const std::vector<std::string> names = option_names(command);
    return {ErrorCode::kUnknownOption,
            "fxopt" + (is_root ? std::string() : " " + command.get_name()) + " has no option '" + name + "'",
            suggestion(name, {names.begin(), names.end()}, help),
            {}};
  }
  if (is_root) {
    return {
        ErrorCode::kUsage, "there is no command '" + argument + "'", suggestion(argument, command_names(), help), {}};
  }
  return {ErrorCode::kUsage, "unexpected argument '" + argument + "'", help, {}};
}

Error usage_error(const CLI::App& app, const CLI::ParseError& failure) {
  if (dynamic_cast<const CLI::ExtrasError*>(&failure) != nullptr) {
    const std::vector<std::string> extras = app.remaining(true);
    if (!extras.empty()) return unexpected_argument(app, extras.front());
  }
  const CLI::App& command = chosen(app);
  const bool is_value = dynamic_cast<const CLI::ConversionError*>(&failure) != nullptr ||
                        dynamic_cast<const CLI::ValidationError*>(&failure) != nullptr;
  const std::string topic = &command == &app ? "" : " " + command.get_name();
  return {is_value ? ErrorCode::kBadOptionValue : ErrorCode::kUsage,
          failure.what(),
          "`fxopt help" + topic + "` lists what it takes",
          {}};
}

// A word that is no command, before CLI11 takes it for anything else.
const std::string* unknown_command(const std::vector<std::string>& args) {
  const std::vector<std::string_view> names = command_names();
  for (const std::string& arg : args) {
    if (arg.starts_with('-')) continue;
    return std::find(names.begin(), names.end(), arg) == names.end() ? &arg : nullptr;
  }
  return nullptr;
}

void print_text(Console& console, const std::string& text) {
  console.result()["text"] = text;
  console.write_product(text);
}

void dispatch(const std::vector<std::string>& args, Console& console) {
  const Application application;
  CLI::App& app = *application.app;
  if (const std::string* word = unknown_command(args)) return console.error(unexpected_argument(app, *word));
  try {
    std::vector<std::string> reversed(args.rbegin(), args.rend());  // what CLI11 asks for
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return print_text(console, usage_text(chosen(app)));
  } catch (const CLI::CallForVersion&) {
    return print_text(console, "fxopt " + std::string(kVersion) + "\n");
  } catch (const CLI::ParseError& failure) {
    if (&chosen(app) != &app) console.set_command(chosen(app).get_name());
    return console.error(usage_error(app, failure));
  }
  for (size_t i = 0; i < commands().size(); ++i) {
    if (!app.got_subcommand(std::string(commands()[i].name))) continue;
    console.set_command(commands()[i].name);
    return application.bodies[i](console);
  }
  console.error({ErrorCode::kUsage, "a command is missing", "`fxopt help` lists the commands", {}});
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> rows = {
      {"opt", "run a pipeline of passes and write the graph", declare_opt},
      {"mem", "report the peak memory of a graph and what is live at it", declare_mem},
      {"verify", "check the structure of a graph", declare_verify},
      {"show", "print a graph, some of its nodes, or a summary", declare_show},
      {"convert", "write a graph in another form", declare_convert},
      {"passes", "list the passes, or describe one", declare_passes},
      {"help", "explain a command, a pass, an error code or a concept", declare_help},
      {"completion", "print a completion script for a shell", declare_completion},
  };
  return rows;
}

Application::Application() : app(std::make_unique<CLI::App>(std::string(kAbout), "fxopt")) {
  app->set_help_flag("-h,--help", "print this and exit");
  app->set_version_flag("--version", std::string(kVersion), "print the version and exit");
  app->require_subcommand(0, 1);  // so that a later argument named like a command is an argument
  const std::string json_help = "print one JSON object with the outcome, also on failure";
  for (const Command& command : commands()) {
    CLI::App& sub = *app->add_subcommand(std::string(command.name), std::string(command.summary));
    bodies.push_back(command.declare(sub));
    // Read by Console, which must know it before parsing; declared here for help and so that it is not unknown.
    sub.add_flag("--json{-}", json_help)->type_name("FILE");
  }
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
