// Runs every tests/cases/passes/<folder>/*.fxg. A case is
//
//   # One sentence about the subject of the case.
//   # passes: canonicalize,dce  counters: erased=1 identities=2  remarks: returned-alias=1
//   <input in text form>
//   =====
//   <exact output: print_text without uids, version and storages>
//
// Counters are sums over the pipeline. Counters, and remarks by code, must agree. Either may be
// left out if it is empty. `error: FX0411` in their place: the pipeline must be refused with that
// code, the error must name a node, and the case has no output. The word `not-idempotent` behind
// them allows a second run to change the graph. `numerics: reorders-reductions` allows rewrite
// rules to change results that far. Further comment lines are free.
//
// Every case is also verified before and after, printed and parsed back, run a second time, run
// twice from the start, run pass by pass through text, and checked for lost tags and marks.
// FXOPT_BLESS=1 rewrites counts and outputs; review them like code.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/report/tags.h"
#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "passes/pipeline/decisions.h"
#include "passes/pipeline/pipeline.h"
#include "tests/catch.h"
#include "tests/must.h"

namespace fxopt {
namespace {

const std::string kSeparator = "=====\n";

struct Case {
  std::string comments;
  std::string input;
  std::string expected;
  std::string passes;
  std::map<std::string, int64_t> counters, remarks;
  std::string error;  // expected error code; empty: the pipeline must run
  bool idempotent = true;
  Numerics numerics = Numerics::kExact;  // how far claimed rewrite rules may change results
};

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// "a=1 b=2" up to the next "word:".
std::map<std::string, int64_t> parse_counts(std::istringstream& words) {
  std::map<std::string, int64_t> counts;
  for (std::string word; words >> std::ws && words.peek() != EOF;) {
    const std::istringstream::pos_type before = words.tellg();
    words >> word;
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      words.seekg(before);
      break;
    }
    counts[word.substr(0, equals)] = std::stoll(word.substr(equals + 1));
  }
  return counts;
}

Case parse_case(const std::string& text) {
  Case parsed;
  size_t body = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with("#"); body += line.size() + 1) {
    std::istringstream words(line.substr(1));
    std::string word;
    words >> word;
    if (word != "passes:") {
      parsed.comments += line + "\n";
      continue;
    }
    words >> parsed.passes;
    while (words >> word) {
      if (word == "counters:") parsed.counters = parse_counts(words);
      if (word == "remarks:") parsed.remarks = parse_counts(words);
      if (word == "error:") words >> parsed.error;
      if (word == "not-idempotent") parsed.idempotent = false;
      if (word == "numerics:") {
        words >> word;
        const std::optional<Numerics> numerics = parse_enum<Numerics>(word);
        REQUIRE(numerics.has_value());
        parsed.numerics = *numerics;
      }
    }
  }
  REQUIRE_FALSE(parsed.comments.empty());
  REQUIRE_FALSE(parsed.passes.empty());
  const size_t separator = std::min(text.find(kSeparator), text.size());
  parsed.input = text.substr(body, separator - body);
  parsed.expected = text.substr(std::min(separator + kSeparator.size(), text.size()));
  return parsed;
}

std::unique_ptr<Module> parse_input(const std::string& text) { return must(parse_text(text, "case")); }

void check_valid(const Module& module) {
  for (const Error& error : verify(module)) FAIL_CHECK(format_error(error));
}

Result<RunReport> try_run(Module& module, const std::string& passes, Numerics numerics) {
  const Pipeline pipeline = must(parse_pipeline(passes));
  RunOptions options;
  options.numerics = numerics;
  return run_pipeline(module, pipeline, options);
}

RunReport run(Module& module, const std::string& passes, Numerics numerics) {
  return must(try_run(module, passes, numerics));
}

std::string print_case(const Module& module) {
  TextOptions options;
  options.uids = options.version = options.storages = false;
  return print_text(module, options);
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Prints lines of a longest common subsequence plain, and others with - (expected) or + (actual).
std::string diff(const std::string& expected, const std::string& actual) {
  const std::vector<std::string> a = split_lines(expected), b = split_lines(actual);
  std::vector<std::vector<size_t>> common(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string text;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      text += "  " + a[i++] + "\n";
      ++j;
    } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      text += "- " + a[i++] + "\n";
    } else {
      text += "+ " + b[j++] + "\n";
    }
  }
  return text;
}

std::string print_counts(const std::map<std::string, int64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(count);
  return text;
}

struct Counts {
  std::map<std::string, int64_t> counters, remarks;
};

Counts count(const RunReport& report) {
  Counts counts;
  for (const StepReport& step : report.steps) {
    for (const auto& [counter, amount] : step.result.counters()) counts.counters[counter] += amount;
    for (const PassRemark& remark : step.result.remarks()) {
      ++counts.remarks[remark.code];
      UNSCOPED_INFO(remark.node_name << ": " << remark.code << ": " << remark.text);
    }
  }
  return counts;
}

void bless(const std::filesystem::path& path, const Case& parsed, const Counts& counts, const std::string& error,
           const std::string& output) {
  std::ofstream file(path, std::ios::binary);
  file << parsed.comments << "# passes: " << parsed.passes;
  if (!counts.counters.empty()) file << "  counters: " << print_counts(counts.counters);
  if (!counts.remarks.empty()) file << "  remarks: " << print_counts(counts.remarks);
  if (!error.empty()) file << "  error: " << error;
  if (!parsed.idempotent) file << "  not-idempotent";
  if (parsed.numerics != Numerics::kExact) file << "  numerics: " << name_of(parsed.numerics);
  file << "\n" << parsed.input;
  if (error.empty()) file << kSeparator << output;
}

// Runs the same passes one at a time. Each reads the text written by the one before.
std::string run_in_pieces(const std::string& input, const Case& parsed) {
  const Pipeline pipeline = parse_pipeline(parsed.passes).value();
  std::string text = input;
  for (const PipelineStep& step : pipeline.steps) {
    const std::unique_ptr<Module> module = parse_input(text);
    run(*module, step.text, parsed.numerics);
    text = print_text(*module);
  }
  return text;
}

// Afterwards every tag and mark is on a node or in the ledger, and reports list it once.
void check_decisions(const Module& before, const Module& after, const std::string& passes) {
  CHECK(broken_decision(find_decisions(before), find_decisions(after)) == "");
  const bool writes = passes.find("sac") != std::string::npos || passes.find("fsdp-gathers") != std::string::npos ||
                      passes.find("mark-saved=true") != std::string::npos;
  const size_t listed = tag_outcomes(before).size(), now = tag_outcomes(after).size();
  CHECK((writes ? now >= listed : now == listed));
}

void check_case(const std::filesystem::path& path) {
  const Case parsed = parse_case(read_text(path));
  const std::unique_ptr<Module> module = parse_input(parsed.input);
  check_valid(*module);
  const bool blessing = std::getenv("FXOPT_BLESS") != nullptr;
  const Result<RunReport> report = try_run(*module, parsed.passes, parsed.numerics);
  if (!report.ok()) {
    INFO(format_error(report.error()));
    const std::string code = code_name(report.error().code);
    if (blessing) return bless(path, parsed, Counts(), code, "");
    CHECK(code == parsed.error);
    CHECK(parsed.expected.empty());
    CHECK_FALSE(report.error().where.node.empty());
    CHECK_FALSE(report.error().hint.empty());
    return;
  }
  CHECK((parsed.error.empty() || blessing));
  check_valid(*module);
  check_decisions(*parse_input(parsed.input), *module, parsed.passes);
  const Counts counts = count(*report);
  const std::string actual = print_case(*module);
  if (blessing) {
    bless(path, parsed, counts, "", actual);
  } else {
    CHECK(print_counts(counts.counters) == print_counts(parsed.counters));
    CHECK(print_counts(counts.remarks) == print_counts(parsed.remarks));
    if (actual != parsed.expected) FAIL_CHECK(diff(parsed.expected, actual));
  }

  const std::string full = print_text(*module);
  CHECK(print_text(*parse_input(full)) == full);
  CHECK(run_in_pieces(parsed.input, parsed) == full);
  const std::unique_ptr<Module> again = parse_input(parsed.input);
  run(*again, parsed.passes, parsed.numerics);
  CHECK(print_text(*again) == full);
  if (!parsed.idempotent) return;
  for (const StepReport& step : run(*module, parsed.passes, parsed.numerics).steps) {
    INFO(step.pass << " in a second run: " << print_counts(step.result.counters()));
    CHECK_FALSE(step.result.changed());
  }
  CHECK(print_text(*module) == full);
}

TEST_CASE("pass cases", "[passes][cases]") {
  const std::filesystem::path root = std::filesystem::path(FXOPT_SOURCE_DIR) / "tests/cases/passes";
  std::vector<std::filesystem::path> paths;
  for (const std::filesystem::directory_entry& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".fxg") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  REQUIRE_FALSE(paths.empty());
  for (const std::filesystem::path& path : paths) {
    DYNAMIC_SECTION(std::filesystem::relative(path, root).string()) { check_case(path); }
  }
}

}  // namespace
}  // namespace fxopt
