#include "tests/testdata/files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "ir/io/io.h"
#include "ir/prepare.h"
#include "passes/pipeline/pipeline.h"
#include "tests/catch.h"
#include "tests/count.h"
#include "tests/must.h"

namespace fxopt {
namespace {

const std::filesystem::path kRoot = std::filesystem::path(FXOPT_SOURCE_DIR) / "testdata";

uintmax_t largest_file() { return count_given("FXOPT_TESTDATA_BYTES", UINTMAX_MAX); }

}  // namespace

std::vector<std::string> testdata_files() {
  std::vector<std::string> names;
  const uintmax_t most = largest_file();
  for (const std::filesystem::directory_entry& entry : std::filesystem::recursive_directory_iterator(kRoot)) {
    const std::string name = std::filesystem::relative(entry.path(), kRoot).string();
    if (entry.is_regular_file() && format_of_path(name).has_value() && entry.file_size() <= most) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool has_all_testdata() { return largest_file() == UINTMAX_MAX; }

std::unique_ptr<Module> load_testdata(const std::string& name) { return must(load_module((kRoot / name).string())); }

void optimize(Module& module, const std::string& passes) {
  prepare(module);
  if (passes.empty()) return;
  const Pipeline pipeline = parse_pipeline(passes).value();
  PassContext context(module);
  must(run_pipeline(module, pipeline, {}, context));
}

std::unique_ptr<Module> load_optimized(const std::string& name, const std::string& passes) {
  std::unique_ptr<Module> module = load_testdata(name);
  optimize(*module, passes);
  return module;
}

}  // namespace fxopt
