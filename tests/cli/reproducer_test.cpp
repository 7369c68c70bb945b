// Internal errors: the reproducer, its path in the message, and exit code 1.

#include "cli/reproducer.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "core/check.h"
#include "core/file.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

class InFolder {
 public:
  explicit InFolder(const std::string& path) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;
  ~InFolder() {
    std::error_code ignored;
    std::filesystem::current_path(before_, ignored);
  }

 private:
  std::filesystem::path before_;
};

// cse, then `second` in place of dce.
Pipeline cse_then(PassRun<Graph> second) {
  Pipeline pipeline = parse_pipeline("cse,dce").value();
  pipeline.steps[1].bound.run = std::move(second);
  return pipeline;
}

Error run_and_fail(const Pipeline& pipeline, Reproducer reproducer = Reproducer::kWritten) {
  const std::unique_ptr<Module> module = parse_text(kTwins, "twins.fxg").value();
  PassContext context(*module);
  return run_with_reproducer(*module, pipeline, {}, context, kTwins, reproducer).error();
}

// The only file in `folder`.
std::string only_file(const TempFolder& folder) {
  REQUIRE(folder.num_entries() == 1);
  return std::filesystem::directory_iterator(folder / "")->path().string();
}

// kTwins after cse.
std::string merged_text() {
  const std::unique_ptr<Module> module = parse_text(kTwins, "twins.fxg").value();
  REQUIRE(run_pipeline(*module, parse_pipeline("cse").value()).ok());
  return print_text(*module);
}

TEST_CASE("cli reproducer of a pass that fails a check") {
  const TempFolder folder;
  const InFolder here(folder / "");
  const Pipeline pipeline =
      cse_then([](Graph&, PassContext&) -> Result<PassResult> { throw InternalError("the second pass is broken"); });
  const Error error = run_and_fail(pipeline);
  CHECK(error.code == ErrorCode::kInternal);
  CHECK(static_cast<int>(error_info(error.code).exit) == 1);
  CHECK(contains(error.message, "in pass dce: the second pass is broken"));
  const std::string path = only_file(folder);
  const std::string name = std::filesystem::path(path).filename().string();
  CHECK(contains(error.hint, name));
  CHECK(name.starts_with("fxopt-reproducer-"));

  // The file has the graph before the failing pass, the rest of the pipeline, and the version.
  const std::string text = read_text(path);
  CHECK(text.starts_with("# reproducer of fxopt 0.1.0\n"));
  CHECK(contains(text, "--passes 'dce'\n"));
  const std::string judge = " -- fxopt opt {} -o /dev/null --passes {passes} --no-reproducer";
  CHECK(contains(text, "fxopt reduce THIS-FILE -o reduced.fxg --passes 'dce'" + judge + "\n"));
  CHECK(contains(error.hint, "`fxopt reduce '" + name + "' -o reduced.fxg --passes 'dce'" + judge + "`"));
  CHECK(text.ends_with(merged_text()));
  CHECK(run_fxopt({"opt", path, "--passes", "dce"}).exit == 0);  // the real dce succeeds
  run_and_fail(pipeline);
  CHECK(read_text(only_file(folder)) == text);  // same name, same bytes
}

TEST_CASE("cli writes no reproducer when told not to") {
  const TempFolder folder;
  const InFolder here(folder / "");
  const Error error = run_and_fail(
      cse_then([](Graph&, PassContext&) -> Result<PassResult> { throw InternalError("broken"); }), Reproducer::kNone);
  CHECK(error.code == ErrorCode::kInternal);
  CHECK(contains(error.hint, "please report it"));
  CHECK(folder.num_entries() == 0);
}

TEST_CASE("cli reproducer of a pass that breaks an invariant: exit code 4") {
  const TempFolder folder;
  const InFolder here(folder / "");
  const Error error = run_and_fail(cse_then([](Graph& graph, PassContext&) -> Result<PassResult> {
    graph.move_before(graph.prev(graph.output()), graph.first());
    PassResult result;
    result.count("moved");
    return result;
  }));
  CHECK(static_cast<int>(error_info(error.code).exit) == 4);
  CHECK(contains(error.hint, "fxopt-reproducer-"));
  CHECK(read_text(only_file(folder)).ends_with(merged_text()));
}

TEST_CASE("cli reproducer of a pass that hides a change") {
  const TempFolder folder;
  const InFolder here(folder / "");
  const Error error = run_and_fail(cse_then([](Graph& graph, PassContext&) -> Result<PassResult> {
    graph.rename(graph.first(), graph.module().intern("renamed"));
    return PassResult();
  }));
  CHECK(error.code == ErrorCode::kInternal);
  CHECK(folder.num_entries() == 1);
}

TEST_CASE("cli: a mistake of ours in one input does not hide the others") {
  std::ostringstream out, err;
  Console console({out, err}, {"opt", "a", "b", "c"});
  std::vector<size_t> done;
  for_each_input(console, {"a", "b", "c"}, [&done](size_t i, nlohmann::ordered_json& file) {
    file["seen"] = i;
    FXOPT_CHECK(i != 1, "the second is not to our liking");
    done.push_back(i);
  });
  CHECK(done == std::vector<size_t>{0, 2});
  CHECK(console.finish() == 1);
  CHECK(contains(err.str(), "b: error[FX0101]"));
  CHECK(console.result()["files"] == nlohmann::ordered_json::parse(R"json([
    {"file": "a", "ok": true, "seen": 0}, {"file": "b", "ok": false, "seen": 1}, {"file": "c", "ok": true, "seen": 2}])json"));
}

TEST_CASE("cli writes no reproducer for what the user can mend") {
  const TempFolder folder;
  const InFolder here(folder / "");
  const Error error = run_and_fail(cse_then([](Graph&, PassContext&) -> Result<PassResult> {
    return Error{ErrorCode::kTagUnrepeatable, "a tag that cannot be carried out", "", {}};
  }));
  CHECK(error.code == ErrorCode::kTagUnrepeatable);
  CHECK(folder.num_entries() == 0);
}

TEST_CASE("cli reproducer where the steps before fail too: the input and the whole pipeline") {
  const TempFolder folder;
  const InFolder here(folder / "");
  Pipeline pipeline = cse_then([](Graph&, PassContext&) -> Result<PassResult> { throw InternalError("second"); });
  bool is_first_run = true;
  pipeline.steps[0].bound.run = PassRun<Graph>([&is_first_run](Graph&, PassContext&) -> Result<PassResult> {
    if (!is_first_run) throw InternalError("first, on its second run");
    is_first_run = false;
    return PassResult();
  });
  run_and_fail(pipeline);
  const std::string text = read_text(only_file(folder));
  CHECK(contains(text, "--passes 'cse,dce'\n"));
  CHECK(text.ends_with(kTwins));
}

}  // namespace
}  // namespace fxopt
