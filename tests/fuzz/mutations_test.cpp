// Readers on damaged input, in process: nothing crashes, every error is an input error with a
// location, and every module that loads obeys the invariants of well-formed input.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fxgraph.pb.h"

#include "core/file.h"
#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/count.h"
#include "tests/fuzz/laws.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/normal_form.h"
#include "tests/must.h"
#include "tests/property/random_module.h"

namespace fxopt {
namespace {

constexpr uint64_t kJsonEvery = 8;  // JSON is slow: one in so many loaded modules uses it
constexpr int kNumBases = 48;

// FXOPT_MUTATIONS sets the number of binary files for long runs; text and JSON scale with it. The
// number of a mutation determines it.
uint64_t number_of_mutations() { return count_given("FXOPT_MUTATIONS", 10000); }

std::string pb_of(const Module& module) { return must(print_pb(module)); }

// The first random module with about 200 nodes.
std::string large_file() {
  RandomModuleOptions options;
  options.max_nodes = 240;
  for (uint64_t seed = 0;; ++seed) {
    const RandomModule random = random_module(seed, options);
    const size_t nodes = random.module->num_nodes();
    if (nodes >= 195 && nodes <= 205) return pb_of(*random.module);
  }
}

// The mutations' starting files, mostly small.
std::vector<std::string> base_files() {
  std::vector<std::string> files;
  for (uint64_t seed = 0; seed < kNumBases; ++seed) {
    RandomModuleOptions options;
    options.max_nodes = seed % 12 == 0 ? 120 : 20;
    files.push_back(pb_of(*random_module(seed, options).module));
  }
  return files;
}

// Counts refused inputs by error code, and loaded inputs.
class Tally {
 public:
  void refused(const Error& error) { ++refused_[error.code]; }
  void loaded() { ++loaded_; }
  uint64_t num_loaded() const { return loaded_; }

  void print(const char* what) const {
    std::printf("%s: %llu loaded", what, static_cast<unsigned long long>(loaded_));
    for (const auto& [code, count] : refused_) {
      std::printf(", %s %llu", code_name(code).c_str(), static_cast<unsigned long long>(count));
    }
    std::printf("\n");
  }

 private:
  std::map<ErrorCode, uint64_t> refused_;
  uint64_t loaded_ = 0;
};

bool is_bad_input(const Error& error) { return error_info(error.code).exit == ExitCode::kInputRejected; }

// An error of a binary file names the byte, the node or the field, except for a count over the
// whole file.
std::string fault_of(const Error& error) {
  if (!is_bad_input(error)) return "refused as something else than bad input";
  if (error.message.empty() || error.where.file.empty()) return "refused without saying what and where";
  const bool has_place = error.where.has_byte || !error.where.node.empty() || !error.where.field.empty();
  if (!has_place && error.code != ErrorCode::kCountMismatch) return "refused without a place";
  return std::string();
}

// Returns a fault in the way `file` is refused or loaded; empty if there is none.
std::string fault_of_file(const std::string& file, bool with_json, Tally& tally) {
  const Result<std::unique_ptr<Module>> module = parse_pb(file, "mutated.pb");
  if (!module.ok()) {
    tally.refused(module.error());
    const std::string fault = fault_of(module.error());
    return fault.empty() ? fault : fault + ": " + format_error(module.error());
  }
  tally.loaded();
  std::string fault = difference_from(file, **module);
  return fault.empty() ? broken_law(**module, with_json) : fault;
}

TEST_CASE("mutations: a binary file cut short anywhere is refused", "[fuzz]") {
  const std::string file = large_file();
  Tally tally;
  for (size_t size = 0; size < file.size(); ++size) {
    const Result<std::unique_ptr<Module>> module = parse_pb(std::string_view(file).substr(0, size), "short.pb");
    if (module.ok()) FAIL("the first " << size << " bytes load");
    const std::string fault = fault_of(module.error());
    if (!fault.empty()) FAIL("the first " << size << " bytes: " << fault << ": " << format_error(module.error()));
    tally.refused(module.error());
  }
  tally.print("truncations");
  CHECK(file.size() > 10000);
}

TEST_CASE("mutations: a binary file with any bit flipped is refused", "[fuzz]") {
  std::string file = large_file();
  Tally tally;
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    char& byte = file[bit / 8];
    byte = static_cast<char>(static_cast<uint8_t>(byte) ^ (1U << bit % 8));
    const Result<std::unique_ptr<Module>> module = parse_pb(file, "flipped.pb");
    if (module.ok()) FAIL("loads with bit " << bit << " flipped");
    const std::string fault = fault_of(module.error());
    if (!fault.empty()) FAIL("bit " << bit << ": " << fault << ": " << format_error(module.error()));
    tally.refused(module.error());
    byte = static_cast<char>(static_cast<uint8_t>(byte) ^ (1U << bit % 8));
  }
  tally.print("bit flips");
}

TEST_CASE("mutations: changed bytes under a correct hash are refused or load whole", "[fuzz]") {
  const std::vector<std::string> bases = base_files();
  const uint64_t count = number_of_mutations() / 2;
  Tally tally;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    const std::string& base = bases[random.below(bases.size())];
    const std::string file = seal(mutate_bytes(random, module_of(base)));
    const std::string fault = fault_of_file(file, seed % kJsonEvery == 0, tally);
    if (!fault.empty()) FAIL_CHECK("mutation " << seed << " " << fault);
  }
  tally.print("bytes");
}

TEST_CASE("mutations: a changed field is refused or loads as it stands", "[fuzz]") {
  const std::vector<std::string> bases = base_files();
  std::vector<schema::Module> modules(bases.size());
  for (size_t i = 0; i < bases.size(); ++i) REQUIRE(modules[i].ParseFromString(std::string(module_of(bases[i]))));
  const uint64_t count = number_of_mutations() / 2;
  Tally tally;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    schema::Module module = modules[random.below(modules.size())];
    const std::string edit = edit_field(random, module);
    const std::string fault = fault_of_file(seal(module.SerializePartialAsString()), seed % kJsonEvery == 0, tally);
    if (!fault.empty()) FAIL_CHECK("mutation " << seed << ", " << edit << ": " << fault);
  }
  tally.print("fields");
  CHECK(tally.num_loaded() * 5 >= count);
}

// The test above proves nothing if its comparison of messages misses changes.
TEST_CASE("mutations: the comparison of messages sees changed fields", "[fuzz]") {
  const std::vector<std::string> bases = base_files();
  uint64_t changed = 0;
  uint64_t seen = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    const std::string before(module_of(bases[random.below(bases.size())]));
    CHECK(first_difference(before, before).empty());
    schema::Module module;
    REQUIRE(module.ParseFromString(before));
    edit_field(random, module);
    const std::string after = module.SerializePartialAsString();
    changed += after != before ? 1U : 0U;
    seen += after != before && !first_difference(before, after).empty() ? 1U : 0U;
  }
  std::printf("comparison: %llu of %llu changes seen\n", static_cast<unsigned long long>(seen),
              static_cast<unsigned long long>(changed));
  CHECK(changed > 900);
  CHECK(seen * 100 >= changed * 95);
}

// Text and JSON: reads `printed` after changes to its tokens.
void check_tokens(Format format, uint64_t count, const char* what) {
  std::vector<std::string> bases;
  for (const std::string& file : base_files()) {
    bases.push_back(print_module(*parse_pb(file, "base.pb").value(), format).value());
  }
  Tally tally;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    const std::string input = mutate_tokens(random, bases[random.below(bases.size())]);
    const Result<std::unique_ptr<Module>> module = parse_module(input, format, "mutated");
    if (module.ok()) {
      tally.loaded();
      const std::string broken = broken_law(**module, format == Format::kJson);
      if (!broken.empty()) FAIL_CHECK("mutation " << seed << " " << broken);
      continue;
    }
    tally.refused(module.error());
    const Where& where = module.error().where;
    const bool has_place = format == Format::kJson ? !where.file.empty() : where.line > 0 && where.column > 0;
    if (is_bad_input(module.error()) && has_place) continue;
    FAIL_CHECK("mutation " << seed << " is refused with " << format_error(module.error()));
  }
  tally.print(what);
  CHECK(tally.num_loaded() > 0);
  CHECK(tally.num_loaded() < count);
}

TEST_CASE("mutations: changed text is refused with line and column or loads whole", "[fuzz]") {
  check_tokens(Format::kText, number_of_mutations() / 2, "text");
}

// The input graphs of the pass cases.
std::vector<std::string> graphs_of_cases() {
  const std::filesystem::path folder = std::filesystem::path(FXOPT_SOURCE_DIR) / "tests" / "cases" / "passes";
  std::vector<std::string> paths;
  for (const std::filesystem::directory_entry& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> graphs;
  for (const std::string& path : paths) {
    const std::string text = read_file(path).value();
    graphs.push_back(text.substr(0, text.find("=====")));
  }
  return graphs;
}

TEST_CASE("mutations: passes leave changed graphs well formed", "[fuzz]") {
  const std::vector<std::string> graphs = graphs_of_cases();
  const uint64_t count = number_of_mutations() / 2;
  uint64_t well_formed = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    const std::string input = mutate_tokens(random, graphs[random.below(graphs.size())]);
    const Result<std::unique_ptr<Module>> module = parse_text(input, "mutated");
    if (!module.ok()) continue;
    well_formed += verify(**module).empty() ? 1U : 0U;
    const std::string broken = broken_pipeline(**module, seed);
    if (!broken.empty()) FAIL_CHECK("mutation " << seed << " " << broken);
  }
  std::printf("pipelines: %llu of %llu graphs well formed\n", static_cast<unsigned long long>(well_formed),
              static_cast<unsigned long long>(count));
  CHECK(well_formed * 10 >= count);
}

TEST_CASE("mutations: changed JSON is refused or loads whole", "[fuzz]") {
  check_tokens(Format::kJson, number_of_mutations() / 5, "JSON");
}

}  // namespace
}  // namespace fxopt
