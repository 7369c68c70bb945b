#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {

struct ReproducerFile {
  std::string path;
  std::string passes;  // the pipeline that fails on the file
};

// Writes a file that reproduces an internal error. The file holds, as text, the graph before the
// pass with index `failing` in the pipeline. Comments at the top give the version of fxopt and two
// commands: one runs the passes on the graph, the other reduces the graph. The graph is rebuilt
// from the input's bytes only after an error, so a successful run has no extra cost. If the rebuild
// fails, the file holds the input itself with the whole pipeline. The file's name,
// fxopt-reproducer-<hash>.fxg, depends on its content. The file goes to the first of these folders
// that can be written: the current folder, $TMPDIR, /tmp.
Result<ReproducerFile> write_reproducer(std::string_view input_bytes, const Pipeline& pipeline, size_t failing);

enum class Reproducer : uint8_t { kWritten, kNone };

// Calls run_pipeline(), and writes a reproducer if an internal error occurs. The hint of the
// returned error names the reproducer and the command that reduces it. An internal error is an
// InternalError, or a pass whose output fails the verifier or the prover. With Reproducer::kNone,
// no file is written. `input_bytes` are the bytes from which the module was read.
Result<RunReport> run_with_reproducer(Module& module, const Pipeline& pipeline, const RunOptions& options,
                                      PassContext& context, std::string_view input_bytes,
                                      Reproducer reproducer = Reproducer::kWritten);

}  // namespace fxopt
