#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace fxopt {

class Console;

// What a subcommand does once its options are parsed. Everything it has to say goes through the console.
using CommandBody = std::function<void(Console&)>;

// One row per subcommand: feeds --help, `fxopt help`, completion and the tests.
struct Command {
  std::string_view name;
  std::string_view summary;
  // Declares the options on `app` and returns the body that reads them. Called once for each parse.
  CommandBody (*declare)(CLI::App& app);
};

// In the order help lists them.
const std::vector<Command>& commands();

// One file each, named like the function's ending.
CommandBody declare_opt(CLI::App& app);
CommandBody declare_mem(CLI::App& app);
CommandBody declare_diff(CLI::App& app);
CommandBody declare_explain(CLI::App& app);
CommandBody declare_tags(CLI::App& app);
CommandBody declare_verify(CLI::App& app);
CommandBody declare_ranks(CLI::App& app);
CommandBody declare_show(CLI::App& app);
CommandBody declare_convert(CLI::App& app);
CommandBody declare_reduce(CLI::App& app);
CommandBody declare_run(CLI::App& app);
CommandBody declare_doctor(CLI::App& app);
CommandBody declare_passes(CLI::App& app);
CommandBody declare_help(CLI::App& app);
CommandBody declare_completion(CLI::App& app);

}  // namespace fxopt
