#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/report/memory/report.h"

namespace fxopt {

// The parts of a report for a pull request that are not figures of a graph.
struct MarkdownContext {
  std::string file;
  size_t top = 20;                        // number of listed storages that are live at the peak
  const GraphMemory* baseline = nullptr;  // adds earlier figures and the storages that grew
  std::string limits;                     // as given: "--budget 70GiB"; empty if there are none
  // The broken limits, or the reasons why limits could not be checked.
  std::vector<std::string> broken;
  bool is_broken = false;  // a limit is broken; false if limits were only not checked
};

// Returns a section for an input that has no report.
std::string failure_markdown(const std::string& file, const std::vector<std::string>& reasons);

// Returns the report as GitHub-flavoured Markdown. It shows peaks, limits and growth, and folds the
// rest. Names are in code spans, and no name can end its code span.
std::string markdown_text(const GraphMemory& memory, const MarkdownContext& context);

}  // namespace fxopt
