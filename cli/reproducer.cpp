#include "cli/reproducer.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "cli/shell.h"
#include "core/bytes.h"
#include "core/check.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/version.h"
#include "ir/io/io.h"
#include "ir/prepare.h"

namespace fxopt {
namespace {

struct Snapshot {
  std::string text;      // the graph
  std::string pipeline;  // the passes to run on the graph
};

Pipeline steps_from(const Pipeline& pipeline, size_t first) {
  Pipeline rest;
  for (size_t i = first; i < pipeline.steps.size(); ++i) rest.steps.push_back(pipeline.steps[i]);
  return rest;
}

// Returns the graph before step `failing` as text. Returns an empty text if the earlier steps
// cannot be run again.
std::string graph_before(std::string_view bytes, const Pipeline& pipeline, size_t failing) {
  const Result<std::unique_ptr<Module>> module = parse_module(bytes, format_of_bytes(bytes), "input");
  if (!module.ok() || !prepare(**module).broken.empty()) return {};
  RunOptions options;
  options.verify = false;
  options.prove = false;
  options.stop_after = failing;
  try {
    if (!run_pipeline(**module, pipeline, options).ok()) return {};
    return print_text(**module);
  } catch (const InternalError&) {
    return {};
  }
}

Snapshot snapshot_before(std::string_view bytes, const Pipeline& pipeline, size_t failing) {
  std::string text = graph_before(bytes, pipeline, failing);
  if (!text.empty()) return {std::move(text), steps_from(pipeline, failing).text()};
  return {graph_before(bytes, pipeline, 0), pipeline.text()};
}

std::string hex(uint64_t value) {
  std::string digits(16, '0');
  for (size_t i = digits.size(); i-- > 0; value >>= 4) digits[i] = "0123456789abcdef"[value & 15];
  return digits;
}

bool is_proof(ErrorCode code) { return code == ErrorCode::kNotEquivalent || code == ErrorCode::kNotProved; }

// True for errors of the verifier and of the prover, which are bugs of a pass.
bool is_mistake(ErrorCode code) {
  return (code >= ErrorCode::kVerifyStructure && code <= ErrorCode::kVerifyReference) || is_proof(code);
}

// Returns the command that reduces a failing graph. `path` must be quoted for a shell.
std::string reduce_command(const std::string& path, const std::string& passes) {
  return "fxopt reduce " + path + " -o reduced.fxg --passes " + shell_quoted(printable_line(passes)) +
         " -- fxopt opt {} -o /dev/null --passes {passes} --no-reproducer";
}

// Returns the part of the error's hint that stays before the reproducer's hint. The hint of the
// prover stays. The hint of the verifier is dropped.
std::string kept_hint(const Error& error) {
  return is_proof(error.code) ? error.hint + "; if you know that the result is right, give --no-prove; " : "";
}

void add_reproducer(Error& error, std::string_view bytes, const Pipeline& pipeline, size_t failing) {
  const std::string mistake = kept_hint(error) + "this is a mistake in fxopt; ";
  const Result<ReproducerFile> file = write_reproducer(bytes, pipeline, failing);
  if (file.ok()) {
    error.hint = mistake + "please report it with the reproducer '" + file->path + "', which can be reduced by `" +
                 reduce_command(shell_quoted(file->path), file->passes) + "`";
  } else {
    error.hint = mistake + "no reproducer could be written (" + file.error().message +
                 "), so please report it with the input file and the command line";
  }
}

}  // namespace

Result<ReproducerFile> write_reproducer(std::string_view input_bytes, const Pipeline& pipeline, size_t failing) {
  const Snapshot snapshot = snapshot_before(input_bytes, pipeline, failing);
  std::string content = "# reproducer of fxopt " + std::string(kVersion) + "\n";
  content += "# run: fxopt opt THIS-FILE --passes " + shell_quoted(printable_line(snapshot.pipeline)) + "\n";
  content += "# make it small: " + reduce_command("THIS-FILE", snapshot.pipeline) + "\n";
  content += snapshot.text;
  const std::string name = "fxopt-reproducer-" + hex(hash_bytes(content)) + ".fxg";
  const char* temporary = std::getenv("TMPDIR");
  const std::array<std::string, 3> folders = {"", temporary == nullptr ? "" : std::string(temporary) + "/", "/tmp/"};
  Status written = ok_status();
  for (const std::string& folder : folders) {
    written = write_file(folder + name, content);
    if (written.ok()) return ReproducerFile{folder + name, snapshot.pipeline};
  }
  return written.error();
}

Result<RunReport> run_with_reproducer(Module& module, const Pipeline& pipeline, const RunOptions& options,
                                      PassContext& context, std::string_view input_bytes, Reproducer reproducer) {
  const auto add_file = [&](Error& error, size_t failing) {
    if (reproducer == Reproducer::kWritten) return add_reproducer(error, input_bytes, pipeline, failing);
    error.hint = kept_hint(error) +
                 "this is a mistake in fxopt; please report it with this file and the command line, which reproduce it";
  };
  size_t done = 0;
  RunOptions counting = options;
  counting.observer = [&](size_t index, const PipelineStep& step, const StepReport& report, const Module& now) {
    done = index + 1;
    if (options.observer) options.observer(index, step, report, now);
  };
  try {
    Result<RunReport> report = run_pipeline(module, pipeline, counting, context);
    if (!report.ok() && is_mistake(report.error().code)) add_file(report.error(), done);
    return report;
  } catch (const InternalError& failure) {
    Error error{ErrorCode::kInternal, failure.what(), "", {}};
    if (done < pipeline.steps.size()) error.message = "in pass " + pipeline.steps[done].text + ": " + error.message;
    add_file(error, done);
    return error;
  }
}

}  // namespace fxopt
