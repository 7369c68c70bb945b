#include "tests/fuzz/laws.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "ir/memory/memory.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/registry.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/normal_form.h"

namespace fxopt {
namespace {

constexpr std::string_view kPipelines[] = {
    "infer-phase,canonicalize,cse,remat,dce",
    "infer-phase,sac{policy=full},remat,dce",
    "infer-phase,cse,sac,remat,dce",
    "infer-phase,canonicalize{compat=torch},cse,remat{compat=torch},dce{compat=torch}",
    "infer-phase,canonicalize{rules=\"round-trips,reshapes\"},sac{save-ops=aten.mm.default},"
    "remat{own-subgraphs=true,exclude=loss},dce{assertions=remove}",
    "raise-getitems,dce{random=remove,collectives=remove},cse{across-phases=true,collectives=true}",
};

// The pipelines above, and every pass alone.
std::vector<std::string> all_pipelines() {
  std::vector<std::string> texts(std::begin(kPipelines), std::end(kPipelines));
  for (const PassInfo& pass : pass_registry()) texts.emplace_back(pass.name);
  return texts;
}

std::string_view name_of_form(Format format) {
  return format == Format::kPb ? "the binary form" : format == Format::kText ? "text" : "JSON";
}

std::string broken_form(const Module& module, const std::string& pb, Format format) {
  const std::string form(name_of_form(format));
  const Result<std::string> printed = print_module(module, format);
  if (!printed.ok()) return "does not print as " + form + ": " + format_error(printed.error());
  const Result<std::unique_ptr<Module>> again = parse_module(*printed, format, "printed");
  if (!again.ok()) return "what is printed as " + form + " does not parse: " + format_error(again.error());
  const Result<std::string> saved = print_pb(**again);
  if (!saved.ok()) return "comes back from " + form + " and cannot be saved: " + format_error(saved.error());
  if (*saved == pb) return std::string();
  return "changes through " + form + ": " + first_difference(module_of(pb), module_of(*saved));
}

void analyse(const Module& module) {
  const std::vector<Error> diagnostics = verify(module, SIZE_MAX);
  const bool in_order = std::none_of(diagnostics.begin(), diagnostics.end(),
                                     [](const Error& error) { return error.code == ErrorCode::kVerifyOrder; });
  if (!in_order || module.num_graphs() == 0) return;
  const StorageMap storages(module.main());
  static_cast<void>(analyze_memory(module.main(), storages));
}

}  // namespace

std::string broken_law(const Module& module, bool with_json) {
  const Result<std::string> pb = print_pb(module);
  // Text and JSON carry unknown fields as bytes, which may not be valid fields; only saving finds
  // that.
  if (!pb.ok() && pb.error().code == ErrorCode::kBadValue) return std::string();
  if (!pb.ok()) return "cannot be saved: " + format_error(pb.error());
  for (const Format format : {Format::kPb, Format::kText, Format::kJson}) {
    if (format == Format::kJson && !with_json) continue;
    std::string broken = broken_form(module, *pb, format);
    if (!broken.empty()) return broken;
  }
  analyse(module);
  return std::string();
}

std::string broken_pipeline(Module& module, uint64_t choice) {
  if (module.num_graphs() == 0 || !verify(module).empty()) return std::string();
  static const std::vector<std::string> kAll = all_pipelines();
  const std::string& text = kAll[choice % kAll.size()];
  const Result<Pipeline> pipeline = parse_pipeline(text);
  if (!pipeline.ok()) return format_error(pipeline.error());
  const Result<RunReport> report = run_pipeline(module, *pipeline);
  if (report.ok()) {
    const std::string broken = broken_law(module, false);
    return broken.empty() ? broken : "after " + text + ": " + broken;
  }
  switch (report.error().code) {
    case ErrorCode::kTagConflict:
    case ErrorCode::kTagUnrepeatable:
    case ErrorCode::kPhaseConflict:
    case ErrorCode::kUnsupportedGraph:
    case ErrorCode::kBadStep:  // join, if the graphs do not form one step
      return std::string();
    default:
      return text + ": " + format_error(report.error());
  }
}

std::string difference_from(std::string_view file, const Module& module) {
  const Result<std::string> saved = print_pb(module);
  if (!saved.ok()) return "cannot be saved: " + format_error(saved.error());
  const std::string difference = first_difference(module_of(file), module_of(*saved));
  return difference.empty() ? std::string() : "says something else than its file: " + difference;
}

void require_law(const std::string& broken) {
  if (broken.empty()) return;
  std::fprintf(stderr, "%s\n", broken.c_str());
  std::abort();
}

}  // namespace fxopt
