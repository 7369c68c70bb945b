// The README agrees with the program.

#include <cstdlib>
#include <string>

#include "cli/topics.h"
#include "core/file.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/registry.h"
#include "tests/catch.h"

namespace fxopt {
namespace {

const std::string kReadme = std::string(FXOPT_SOURCE_DIR "/README.md");
const std::string kTableHead = "| pass | class | does |\n|---|---|---|\n";

std::string readme_text() {
  Result<std::string> readme = read_file(kReadme);
  REQUIRE(readme.ok());
  return std::move(*readme);
}

std::string registry_table() {
  std::string table = kTableHead;
  for (const PassInfo& pass : pass_registry()) {
    table += "| `" + std::string(pass.name) + "` | " + std::string(name_of(pass.numerics)) + " | " +
             std::string(pass.summary) + " |\n";
  }
  return table;
}

TEST_CASE("the exit codes of README.md are those of help", "[cli]") {
  for (const Topic& topic : topics()) {
    if (topic.name != "exit-codes") continue;
    const std::string codes = topic.text.substr(0, topic.text.find("\n\n") + 1);
    INFO(codes);
    CHECK(readme_text().find("```\n" + codes + "```\n") != std::string::npos);
  }
}

TEST_CASE("the pass table of README.md is the registry", "[cli]") {
  const std::string readme = readme_text();
  const size_t first = readme.find(kTableHead);
  REQUIRE(first != std::string::npos);
  const size_t end = readme.find("\n\n", first) + 1;
  const std::string table = readme.substr(first, end - first);
  if (std::getenv("FXOPT_BLESS") != nullptr && table != registry_table()) {
    REQUIRE(write_file(kReadme, readme.substr(0, first) + registry_table() + readme.substr(end)).ok());
    return;
  }
  CHECK(table == registry_table());
  CHECK(readme.find("`" + std::string(default_pipeline_text()) + "`") != std::string::npos);
}

}  // namespace
}  // namespace fxopt
