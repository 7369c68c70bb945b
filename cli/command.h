#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace fxopt {

class Console;
class Options;

// The action of a subcommand, which runs after its options are parsed. The action writes all output
// through the console.
using CommandBody = std::function<void(Console&)>;

// A subcommand. --help, `fxopt help`, completion and the tests read the list of commands().
struct Command {
  std::string_view name;
  std::string_view summary;
  // Declares the options and returns the action that reads their values. Each parse calls this
  // function once.
  CommandBody (*declare)(Options options);
};

// Returns all commands, in the order in which help lists them.
const std::vector<Command>& commands();

// Each function has its own file: declare_opt() is in opt.cpp.
CommandBody declare_opt(Options options);
CommandBody declare_mem(Options options);
CommandBody declare_diff(Options options);
CommandBody declare_explain(Options options);
CommandBody declare_tags(Options options);
CommandBody declare_verify(Options options);
CommandBody declare_ranks(Options options);
CommandBody declare_show(Options options);
CommandBody declare_convert(Options options);
CommandBody declare_reduce(Options options);
CommandBody declare_run(Options options);
CommandBody declare_doctor(Options options);
CommandBody declare_passes(Options options);
CommandBody declare_help(Options options);
CommandBody declare_completion(Options options);

}  // namespace fxopt
