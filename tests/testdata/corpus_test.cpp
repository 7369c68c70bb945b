// Invariants of every real graph: round trips through the forms, no verifier error, only known
// operators.

#include <memory>
#include <string>
#include <string_view>

#include "ir/alias/storages.h"
#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/parse.h"
#include "tests/parts.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

std::string printed(const Module& module, Format format) { return must(print_module(module, format)); }

void survive_every_form(uint64_t part, uint64_t parts) {
  const std::vector<std::string> files = testdata_files();
  REQUIRE(files.size() >= 73);
  for (size_t i = part; i < files.size(); i += parts) {
    const std::string& file = files[i];
    INFO(file);
    const std::unique_ptr<Module> module = load_testdata(file);
    const std::string pb = printed(*module, Format::kPb);
    CHECK((printed(*module, Format::kPb) == pb));
    for (const Format format : {Format::kPb, Format::kText, Format::kJson}) {
      const std::string bytes = printed(*module, format);
      const std::unique_ptr<Module> again = parse(bytes, format);
      CHECK((printed(*again, Format::kPb) == pb));
      CHECK((printed(*again, format) == bytes));
    }
  }
}

FXOPT_TEST_IN_PARTS(survive_every_form, "testdata: every graph survives every form unchanged", "[testdata]");

TEST_CASE("testdata: every graph is well formed", "[testdata]") {
  for (const std::string& file : testdata_files()) {
    INFO(file);
    for (const Error& error : verify(*load_testdata(file))) FAIL_CHECK(format_error(error));
  }
}

TEST_CASE("testdata: no operator of the framework is opaque", "[testdata]") {
  for (const std::string& file : testdata_files()) {
    const std::unique_ptr<Module> module = load_testdata(file);
    for (const GraphId id : module->graphs()) {
      const Graph& graph = module->graph(id);
      for (const NodeId node : graph.nodes()) {
        if (!graph[node].is_call() || !graph.op(node).is_opaque()) continue;
        const std::string_view target = module->text(module->target(graph[node].target).name);
        const bool known_space =
            target.starts_with("aten.") || target.starts_with("prims.") || target.starts_with("_c10d_functional.");
        INFO(file << ": " << target);
        CHECK_FALSE(known_space);
      }
    }
  }
}

}  // namespace
}  // namespace fxopt
