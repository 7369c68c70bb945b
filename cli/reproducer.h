#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {

struct ReproducerFile {
  std::string path;
  std::string passes;  // the pipeline that fails on it
};

// Writes a file that reproduces an internal error: the graph before step `failing` of the pipeline,
// as text. Comments at the top give the version and the commands that run and reduce it. The graph
// is rebuilt from the input's bytes by prepare() and the earlier steps, so a successful run has no
// extra cost. If that also fails, the file holds the input itself with the whole pipeline. The name
// depends on the content: fxopt-reproducer-<hash>.fxg in the current folder, else in $TMPDIR, else
// in /tmp.
Result<ReproducerFile> write_reproducer(std::string_view input_bytes, const Pipeline& pipeline, size_t failing);

enum class Reproducer : uint8_t { kWritten, kNone };

// run_pipeline(), but an internal error (an InternalError, or a pass whose output fails the
// verifier) becomes an error whose hint names the reproducer and the command that reduces it.
// `input_bytes`: the bytes from which the module was read.
Result<RunReport> run_with_reproducer(Module& module, const Pipeline& pipeline, const RunOptions& options,
                                      PassContext& context, std::string_view input_bytes,
                                      Reproducer reproducer = Reproducer::kWritten);

}  // namespace fxopt
