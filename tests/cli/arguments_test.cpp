// Command lines that are refused before any file is read. Each rule is tried on every option of
// every command.

#include "cli/arguments.h"

#include <sstream>

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

// An option as --help prints it.
struct Shown {
  std::string name;  // "--passes"
  std::string type;  // "PIPELINE"; empty for a flag
  bool has_optional_value = false;
  bool is_repeatable = false;

  bool takes_value() const { return !type.empty() && !has_optional_value; }
};

std::vector<Shown> shown_options(const std::string& command) {
  std::vector<Shown> options;
  std::istringstream help(run_fxopt({"help", command}).out);
  for (std::string line; std::getline(help, line);) {
    const size_t begin = line.find("--");
    if (!line.starts_with("  -") || line.starts_with("  -h")) continue;
    const size_t end = std::min(line.find("  ", begin), line.size());
    std::string text = line.substr(begin, end - begin);
    Shown option;
    option.is_repeatable = contains(line, "repeatable");
    if (const size_t bracket = text.find("[="); bracket != std::string::npos) {
      option.has_optional_value = true;
      text = text.substr(0, bracket) + " " + text.substr(bracket + 2, text.size() - bracket - 3);
    }
    option.name = text.substr(0, text.find(' '));
    if (option.name != text) option.type = text.substr(option.name.size() + 1);
    options.push_back(option);
  }
  return options;
}

void check_refused(const std::vector<std::string>& line, std::string_view code, std::string_view part) {
  const CliResult result = run_fxopt(line);
  check_ended(result, 2, "error[" + std::string(code) + "]", part);
  CHECK(result.out.empty());
}

// Calls `use` with every option of every command except --help.
template <class Use>
void for_each_option(const Use& use) {
  for (const Command& command : commands()) {
    for (const Shown& option : shown_options(std::string(command.name))) use(std::string(command.name), option);
  }
}

TEST_CASE("cli refuses an empty value of any option") {
  size_t valued = 0;
  for_each_option([&](const std::string& command, const Shown& option) {
    const std::string name = option.name;
    if (option.takes_value()) {
      ++valued;
      check_refused({command, "x", name, ""}, "FX0204", name + " has an empty value");
      check_refused({command, "x", name, " "}, "FX0204", name + " has an empty value");
      check_refused({command, name + "=", "x"}, "FX0204", name + " has an empty value");
      check_refused({command, "x", name}, "FX0204", name + " needs a value");
      check_refused({command, "x", name, "--json=/dev/null"}, "FX0204", "'--json=/dev/null' is an option");
    }
  });
  CHECK(valued >= 15);
  check_refused({"opt", "x", "-o", ""}, "FX0204", "-o, --output has an empty value");
  check_refused({"opt", "x", "--report="}, "FX0204", "--report has an empty value");
  check_refused({"opt", ""}, "FX0204", "the argument IN is empty");
  check_refused({"opt", "x", "--passes=", "-o", "y.pb"}, "FX0204", "--passes has an empty value");
}

TEST_CASE("cli refuses a value of any plain flag, and an option given twice") {
  for_each_option([&](const std::string& command, const Shown& option) {
    const std::string name = option.name;
    if (!option.takes_value() && option.type.empty()) {
      check_refused({command, "x", name + "=false"}, "FX0204", name + " takes no value");
    } else if (option.takes_value() && !option.is_repeatable) {
      check_refused({command, "x", name, "1", name, "1"}, "FX0201", name + " is given twice");
    }
  });
}

TEST_CASE("cli counts are plain decimal numbers") {
  for (const char* text : {"0", "7", "1000000000"}) CHECK(is_count(text));
  for (const char* text : {"", "-1", "+1", "0x2", "010", "1e3", " 1", "1000000001", "99999999999999999999", "two"}) {
    CAPTURE(text);
    CHECK_FALSE(is_count(text));
  }
  size_t counts = 0;
  for_each_option([&](const std::string& command, const Shown& option) {
    if (option.type != "N") return;
    ++counts;
    for (const char* text : {"-1", "0x2", "010", "99999999999999999999", "two"}) {
      check_refused({command, "x", option.name, text}, "FX0204",
                    option.name + " takes a whole number from 0 to 1000000000, not '" + text + "'");
    }
  });
  CHECK(counts == 20);
}

TEST_CASE("cli tells of an unknown option before what else is wrong") {
  check_refused({"-x", "opt"}, "FX0203", "fxopt has no option '-x'");
  check_refused({"verify", "-x.pb"}, "FX0203", "if you mean a file, write ./-x.pb");
  check_refused({"opt", "--bogus"}, "FX0203", "fxopt opt has no option '--bogus'");
  check_refused({"opt", "--stop-after", "two", "--bogus"}, "FX0203", "'--bogus'");
  check_refused({"opt", "x", "-o=y.pb"}, "FX0204", "write -o y.pb");
}

TEST_CASE("cli --json before the command: one message, whatever follows") {
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"--json", "help", "opt"}, {"--json"}}) {
    const CliResult result = run_fxopt(line);
    check_ended(result, 2, "'--json' is given before the command");
    CHECK(result.json()["exit"] == 2);
  }
}

TEST_CASE("cli messages about arguments are ours") {
  check_refused({"show", "x", "--dot", "--summary"}, "FX0201", "--dot and --summary exclude each other");
  check_refused({"convert", "x", "--raise-control-deps", "--lower-control-deps"}, "FX0201", "exclude each other");
  check_refused({"opt"}, "FX0201", "fxopt opt needs graph files");
  check_refused({"completion"}, "FX0201", "fxopt completion needs bash, fish or zsh");
  check_refused({"completion", "bash", "zsh"}, "FX0201", "unexpected argument 'zsh'");
}

TEST_CASE("cli: what stands behind -- is an argument, and --help answers a line that is not complete") {
  CHECK(run_fxopt({"verify", "--", "--bogus"}).exit == 10);  // no such file
  CHECK(contains(run_fxopt({"verify", "no.pb", "--", "--bogus"}).err, "--bogus: error[FX1001]"));
  CHECK(run_fxopt({"verify", "-5"}).exit == 10);
  CHECK(run_fxopt({"verify", "opt"}).exit == 10);  // a file named 'opt'
  CHECK(run_fxopt({"--help", "opt"}).out == run_fxopt({"help", "opt"}).out);
  CHECK(run_fxopt({"opt", "--passes", "--help"}).exit == 2);
  CHECK(run_fxopt({"opt", "--help"}).exit == 0);
}

TEST_CASE("cli: an option that lacks its value is told of before what else is missing") {
  check_refused({"opt", "--passes"}, "FX0204", "--passes needs a value");
  check_refused({"opt", "-o"}, "FX0204", "-o, --output needs a value");
  check_refused({"opt", "x", "-vo"}, "FX0204", "-o, --output needs a value");
  check_refused({"opt", "--bogus", "-o"}, "FX0203", "has no option '--bogus'");
}

TEST_CASE("cli: hints for slips with commands, pipelines and files") {
  const TempFolder folder;
  const std::string in = folder.write("in.fxg", kTwins), missing = folder / "out.pb";
  const auto error_of = [](const std::vector<std::string>& line) { return run_fxopt(line).err; };
  CHECK(contains(error_of({"optimize"}), "did you mean 'opt'?"));
  CHECK(contains(error_of({"help", "FX9999"}), "`fxopt help codes` the error codes"));
  CHECK(contains(error_of({"opt", in, "--passes", "sac(policy=full)"}), "write options in braces"));
  CHECK(contains(error_of({"opt", in, "--passes", "sacpolicy=full"}), "quote the pipeline"));
  CHECK(contains(error_of({"opt", in, missing}), "if it is the output, write -o " + missing));
  CHECK(contains(error_of({"opt", in, in}), "give -o FOLDER/"));
  CHECK(contains(error_of({"opt", in, std::string(300, 'x')}), "does not exist"));  // too long for a name
  CHECK(contains(error_of({"opt", in, "--stop-after", "3", "--passes", "cse,dce"}), "the pipeline has 2 passes"));
  CHECK(run_fxopt({"opt", in, "--stop-after", "2", "--passes", "cse,dce"}).exit == 0);
  CHECK(contains(error_of({"mem", in, "--steady", "--optimizer", "sgd"}), "adam, momentum or none"));
  CHECK(contains(error_of({"opt", in, "--passes", "sac{policy=none,recompute=neg}"}),
                 "did you mean 'aten.neg.default'?"));
  CHECK(contains(error_of({"opt", in, "--passes", "remat{exclude=layer.0.mlp}"}), "did you mean 'layers.0.mlp'?"));
}

TEST_CASE("cli: all that CLI11 refuses is said in our words") {
  const std::vector<std::string> words = {
      "opt",       "mem",       "show",      "help",         "passes",      "verify",           "no.pb",
      "-o",        "-ono/b.pb", "--output",  "--top",        "--top=3",     "--json=/dev/null", "7",
      "-5",        "--json",    "--report",  "--",           "--node",      "--symbol=s=1",     "%a",
      "-h",        "--timing",  "--summary", "--phase=loss", "--budget=1B", "--max-errors=0",   "cse",
      "--version", "--module",  "--passes",  "--print-after"};
  uint64_t state = 1;
  const auto draw = [&state](size_t count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % count);
  };
  size_t passed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> line{words[draw(6)]};
    for (size_t more = draw(6); more > 0; --more) line.push_back(words[draw(words.size())]);
    const CliResult result = run_fxopt(line);
    CAPTURE(line, result.err);
    CHECK_FALSE(contains(result.err, "is not understood"));  // the fallback for CLI11's own words
    if (result.exit != 2) ++passed;
  }
  CHECK(passed > 300);
}

}  // namespace
}  // namespace fxopt
