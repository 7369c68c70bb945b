// Runs every tests/cases/proofs/*.fxg: comments, `# expect: ANSWER`, the input graph, `=====`, the
// output graph. ANSWER is `proved`, `undecided`, or the first difference, with `at %NODE` if a call
// is new.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/file.h"
#include "ir/check/equivalence/equivalence.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

std::string answer(const Module& before, const Module& after) {
  ProofOptions options;
  options.recorded_apart = true;
  Prover prover(before, options);
  const ModuleProof proof = prover.prove(after);
  if (proof.answer == ProofAnswer::kProved) return "proved";
  if (proof.answer == ProofAnswer::kUndecided) return "undecided";
  std::string out = proof.differences.front().what;
  if (!proof.first_new.is_valid()) return out;
  const Graph& graph = after.graph(after.find_graph(proof.graph));
  return out + " at %" + std::string(graph.name_of(proof.first_new));
}

// The text after "# expect: ".
std::string expected(const std::string& text) {
  const std::string mark = "# expect: ";
  const size_t at = text.find(mark);
  REQUIRE(at != std::string::npos);
  const size_t begin = at + mark.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST_CASE("proof cases", "[equivalence]") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(FXOPT_SOURCE_DIR) / "tests/cases/proofs")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() > 15);
  for (const std::filesystem::path& file : files) {
    INFO(file.filename().string());
    const std::string text = read_file(file.string()).value();
    const std::string separator = "=====\n";
    const size_t border = text.find(separator);
    REQUIRE(border != std::string::npos);
    const std::unique_ptr<Module> before = parse(text.substr(0, border));
    const std::unique_ptr<Module> after = parse(text.substr(border + separator.size()));
    CHECK(answer(*before, *after) == expected(text));
    CHECK(answer(*before, *before) == "proved");
    CHECK(answer(*after, *after) == "proved");
  }
}

}  // namespace
}  // namespace fxopt
