// Plans as text. A case of tests/cases/plans has a graph and, behind '=====', its plan or the error
// that refuses the graph.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "ir/prepare.h"
#include "runtime/plan/check.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/print.h"
#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/must.h"

namespace fxopt {
namespace {

const std::filesystem::path kCases = std::filesystem::path(FXOPT_SOURCE_DIR) / "tests/cases";

std::vector<std::string> files_below(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const std::filesystem::directory_entry& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".fxg") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The text after the graph: its plan, or "error: FX0803 message".
std::string outcome_of(const std::string& text, const std::string& file) {
  std::unique_ptr<Module> module = must(parse_module("fxg 0\n" + text, Format::kText, file));
  for (const Error& error : prepare(*module).broken) FAIL_CHECK(format_error(error));
  const Result<std::unique_ptr<Plan>> plan = lower_step(*module);
  if (!plan.ok()) return "error: " + code_name(plan.error().code) + " " + plan.error().message + "\n";
  for (const PlanFault& fault : check_plan((*plan)->view())) FAIL_CHECK(fault.message);
  return print_plan((*plan)->view());
}

TEST_CASE("plan cases") {
  const bool blesses = std::getenv("FXOPT_BLESS") != nullptr;
  const std::vector<std::string> files = files_below(kCases / "plans");
  CHECK(files.size() >= 10);
  for (const std::string& file : files) {
    CAPTURE(file);
    const std::string whole = read_text(file);
    const size_t end = whole.find("=====\n");
    const std::string text = whole.substr(0, end);
    const std::string outcome = outcome_of(text, file);
    if (blesses) write_text(file, text + "=====\n" + outcome);
    CHECK((end == std::string::npos ? std::string() : whole.substr(end + 6)) == outcome);
  }
}

// Cases of other families have graphs of every kind. Each is planned without a fault, or refused
// with a reason.
TEST_CASE("plan cases: graphs of all other cases") {
  size_t planned = 0;
  std::map<std::string, size_t> refused;
  for (const char* folder : {"passes", "laws", "proofs", "text"}) {
    for (const std::string& file : files_below(kCases / folder)) {
      const std::string whole = read_text(file);
      std::string text = whole.substr(0, whole.find("====="));
      if (text.find("fxg 0") == std::string::npos) text = "fxg 0\n" + text;
      Result<std::unique_ptr<Module>> module = parse_module(text, Format::kText, file);
      if (!module.ok() || !prepare(**module).broken.empty()) continue;
      CAPTURE(file);
      const Result<std::unique_ptr<Plan>> plan = lower_step(**module);
      if (!plan.ok()) {
        CHECK(plan.error().code != ErrorCode::kInternal);
        ++refused[code_name(plan.error().code) + " " + plan.error().message];
        continue;
      }
      ++planned;
      for (const PlanFault& fault : check_plan((*plan)->view())) {
        FAIL_CHECK(plan_fault_name(fault.kind) << ": " << fault.message);
      }
    }
  }
  for (const auto& [code, count] : refused) UNSCOPED_INFO(code << " refused " << count);
  CHECK(planned > 600);
}

}  // namespace
}  // namespace fxopt
