// Limits on growth under random edits of real graphs. A regression is stopped, and only its cause
// is named. An edit that changes no byte passes a limit of zero.
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ir/io/io.h"
#include "ir/prepare.h"
#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/count.h"
#include "tests/must.h"
#include "tests/parts.h"
#include "tests/property/graph_edits.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

// FXOPT_GATE_EDITS sets the number of regressions and of neutral edits. The number of an edit
// determines it.
uint64_t number_of_edits() { return count_given("FXOPT_GATE_EDITS", 100); }

// One real graph and its baseline.
struct Subject {
  std::string name;
  std::string path, base;
  bool is_recomputed = false;
};

class Subjects {
 public:
  Subjects() {
    for (const char* name : {"llama1b.pb", "llama1b_twin.pb.zst", "gpt2_flb.pb.zst", "resnet50_flb.pb.zst",
                             "llama8b_flb.pb.zst", "titan_debug.pb.zst"}) {
      add(name, "");
    }
    add("llama1b.pb", "canonicalize,cse,sac{policy=full},remat,dce");
    add("llama8b_flb.pb.zst", "canonicalize,cse,sac{policy=full},remat,dce");
  }

  size_t size() const { return list_.size(); }
  const Subject& operator[](size_t i) const { return list_[i]; }
  std::string edited(const std::string& form) const { return folder_ / ("edited" + form); }

 private:
  void add(const std::string& name, const std::string& passes) {
    const std::string number = std::to_string(list_.size());
    const Subject subject{name + (passes.empty() ? "" : ", recomputed"), folder_ / (number + ".pb"),
                          folder_ / (number + ".json"), !passes.empty()};
    const std::unique_ptr<Module> module = load_testdata(name);
    prepare(*module);  // as in `fxopt mem`
    REQUIRE(save_module(*module, subject.path).ok());
    if (!passes.empty()) {
      const std::string made = folder_ / (number + "_made.pb");
      REQUIRE(run_fxopt({"opt", subject.path, "-o", made, "--passes", passes}).exit == 0);
      std::filesystem::rename(made, subject.path);
    }
    const CliResult result = run_fxopt({"mem", subject.path, "--baseline", subject.base, "--update-baseline"});
    INFO(name << ": " << result.err);
    REQUIRE(result.exit == 0);
    list_.push_back(subject);
  }

  TempFolder folder_;
  std::vector<Subject> list_;
};

std::unique_ptr<Module> load(const Subject& subject) { return must(load_module(subject.path)); }

// Uses a plain write: a crash-safe write would take longer than the rest of the test.
CliResult check(const Subject& subject, const Module& module, const std::string& path, const std::string& limit) {
  write_text(path, must(print_module(module, *format_of_path(path))));
  return run_fxopt({"mem", path, "--baseline", subject.base, "--max-growth", limit});
}

// Cycles through the kinds; takes the next kind if the graph has no place for one.
template <class Kind, size_t kNumKinds, class Apply>
Kind apply_next(uint64_t turn, const Apply& apply) {
  for (size_t i = 0; i < kNumKinds; ++i) {
    const Kind kind = static_cast<Kind>((turn + i) % kNumKinds);
    if (apply(kind)) return kind;
  }
  FAIL("no edit of any kind can be made");
  return Kind{};
}

// True if the cause is named first, followed only by nodes that the edit added.
bool names_only(const std::string& message, const std::string& cause) {
  const std::string first = "grew at the peak: %" + cause + " (";
  if (!contains(message, first)) return false;
  for (size_t at = message.find("; %"); at != std::string::npos; at = message.find("; %", at + 1)) {
    if (!message.substr(at).starts_with("; %edited")) return false;
  }
  return true;
}

// On a graph with recomputed copies, every other edit removes one; other graphs have none.
uint64_t turn_of(uint64_t edit, const Subjects& subjects) {
  const uint64_t round = edit / subjects.size(), place = edit % subjects.size();
  if (subjects[place].is_recomputed && round % 2 == 0) return static_cast<uint64_t>(Regression::kLostCheckpoint);
  return round + place;
}

void print_count(const char* what, uint64_t good, uint64_t all) {
  std::printf("%-18s %llu of %llu\n", what, static_cast<unsigned long long>(good),
              static_cast<unsigned long long>(all));
}

TEST_CASE("gates: a regression of more than 0.1 % is stopped, and its cause alone is named", "[property]") {
  const Subjects subjects;
  std::array<uint64_t, kNumRegressions> made{}, named{};
  for (uint64_t i = 0; i < number_of_edits(); ++i) {
    const Subject& subject = subjects[i % subjects.size()];
    const std::unique_ptr<Module> module = load(subject);
    GraphEditor editor(*module, i);
    std::string cause;
    const Regression kind = apply_next<Regression, kNumRegressions>(turn_of(i, subjects), [&](Regression tried) {
      const std::optional<std::string> edited = editor.apply(tried);
      cause = edited.value_or("");
      return edited.has_value();
    });
    INFO("edit " << i << ", " << regression_name(kind) << ", of " << subject.name << ", cause %" << cause);
    const CliResult result = check(subject, *module, subjects.edited(".pb"), "0.1%");
    const bool is_named = result.exit == 5 && names_only(result.err, cause);
    const bool is_moved =
        kind != Regression::kMovePeak || contains(result.err, "the peak moved from %" + editor.peak_node() + " to %");
    INFO(result.err);
    CHECK((is_named && is_moved));
    ++made[static_cast<size_t>(kind)];
    named[static_cast<size_t>(kind)] += is_named && is_moved ? 1 : 0;
  }
  for (size_t i = 0; i < kNumRegressions; ++i) {
    print_count(regression_name(static_cast<Regression>(i)), named[i], made[i]);
    CHECK(made[i] * 20 >= number_of_edits());
  }
}

void pass_neutral_edits(uint64_t part, uint64_t parts) {
  const Subjects subjects;
  const std::array<std::string, 4> forms = {".pb", ".fxg", ".pb", ".json"};
  std::array<uint64_t, kNumNeutralEdits> made{}, passed{};
  const uint64_t first = number_of_edits() * part / parts, last = number_of_edits() * (part + 1) / parts;
  for (uint64_t i = first; i < last; ++i) {
    const Subject& subject = subjects[i % subjects.size()];
    const std::unique_ptr<Module> module = load(subject);
    GraphEditor editor(*module, i);
    const NeutralEdit kind = apply_next<NeutralEdit, kNumNeutralEdits>(
        i / subjects.size() + i % subjects.size(), [&](NeutralEdit tried) { return editor.apply(tried); });
    const std::string& form = forms[i / subjects.size() % forms.size()];
    INFO("edit " << i << ", " << neutral_edit_name(kind) << ", of " << subject.name << " as " << form);
    const CliResult result = check(subject, *module, subjects.edited(form), "0%");
    INFO(result.err);
    CHECK(result.exit == 0);
    ++made[static_cast<size_t>(kind)];
    passed[static_cast<size_t>(kind)] += result.exit == 0 ? 1 : 0;
  }
  for (size_t i = 0; i < kNumNeutralEdits; ++i) {
    print_count(neutral_edit_name(static_cast<NeutralEdit>(i)), passed[i], made[i]);
    CHECK(made[i] * 20 >= last - first);
  }
}

FXOPT_TEST_IN_PARTS(pass_neutral_edits,
                    "gates: an edit that changes no byte passes a limit of no growth, in every form", "[property]");

TEST_CASE("gates: the name of a symbol does not count") {
  const TempFolder folder;
  const std::unique_ptr<Module> module = load_testdata("exported.pb.zst");
  std::string text = print_text(*module);
  const std::string path = folder.write("step.fxg", text), base = folder / "base.json";
  REQUIRE(run_fxopt({"mem", path, "--baseline", base, "--update-baseline"}).exit == 0);
  REQUIRE(contains(text, "s52"));
  for (size_t at = text.find("s52"); at != std::string::npos; at = text.find("s52", at)) text.replace(at, 3, "s7");
  write_text(path, text);
  CHECK(run_fxopt({"mem", path, "--baseline", base, "--max-growth", "0%"}).exit == 0);
}

}  // namespace
}  // namespace fxopt
