#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {

struct ReproducerFile {
  std::string path;
  std::string passes;  // the pipeline that fails with it
};

// Writes a file that shows a mistake of ours: the graph as it stood before step `failing` of the pipeline, in text,
// below comments with the version and the commands that repeat it and make it small. The graph is made once more from the
// input's bytes by prepare() and the steps before, which costs a run without a mistake nothing; where that fails too, the
// input itself is taken, with the whole pipeline. The name follows from the content: fxopt-reproducer-<hash>.fxg in the
// current folder, else in $TMPDIR, else in /tmp.
Result<ReproducerFile> write_reproducer(std::string_view input_bytes, const Pipeline& pipeline, size_t failing);

enum class Reproducer : uint8_t { kWritten, kNone };

// run_pipeline(), except that a mistake of ours (an InternalError, or a pass whose output fails the verifier) comes
// back as an error whose hint names the reproducer and the command that makes it small. `input_bytes` is what the
// module was read from.
Result<RunReport> run_with_reproducer(Module& module, const Pipeline& pipeline, const RunOptions& options,
                                      PassContext& context, std::string_view input_bytes,
                                      Reproducer reproducer = Reproducer::kWritten);

}  // namespace fxopt
