#include <fstream>
#include <iterator>
#include <string>

#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/registry.h"
#include "tests/catch.h"

namespace fxopt {
namespace {

TEST_CASE("the pass table of README.md is the registry", "[cli]") {
  std::ifstream file(std::string(FXOPT_SOURCE_DIR) + "/README.md");
  REQUIRE(file.good());
  const std::string readme((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::string table = "| pass | class | does |\n|---|---|---|\n";
  for (const PassInfo& pass : pass_registry()) {
    table += "| `" + std::string(pass.name) + "` | " + std::string(pass_class_name(pass.pass_class)) + " | " +
             std::string(pass.summary) + " |\n";
  }
  INFO(table);
  CHECK(readme.find(table + "\n") != std::string::npos);
  CHECK(readme.find("`" + std::string(default_pipeline_text()) + "`") != std::string::npos);
}

}  // namespace
}  // namespace fxopt
