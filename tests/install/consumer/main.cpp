// consumer IN PIPELINE: runs passes over a graph file and prints the number of nodes left.

#include <cstdio>
#include <memory>

#include "ir/io/io.h"
#include "ir/prepare.h"
#include "passes/pipeline/pipeline.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const fxopt::Result<std::unique_ptr<fxopt::Module>> module = fxopt::load_module(argv[1]);
  const fxopt::Result<fxopt::Pipeline> pipeline = fxopt::parse_pipeline(argv[2]);
  if (!module.ok() || !pipeline.ok() || !fxopt::prepare(**module).broken.empty()) return 3;
  const fxopt::Result<fxopt::RunReport> report = fxopt::run_pipeline(**module, *pipeline);
  if (!report.ok()) {
    std::fprintf(stderr, "%s\n", fxopt::format_error(report.error()).c_str());
    return 4;
  }
  std::printf("%zu nodes\n", (*module)->num_nodes());
}
