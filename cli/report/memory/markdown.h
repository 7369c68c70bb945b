#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/report/memory/report.h"

namespace fxopt {

// What a report for a pull request says besides the figures of a graph.
struct MarkdownContext {
  std::string file;
  size_t top = 20;                        // storages listed, of all that are live at the peak
  const GraphMemory* baseline = nullptr;  // adds what it was before, and the storages that grew
  std::string limits;                     // as given: "--budget 70GiB"; empty: none
  std::vector<std::string> broken;        // what broke them, or why they could not be checked
  bool is_broken = false;                 // one of them is broken, not only unchecked
};

// A section for an input that has no report.
std::string failure_markdown(const std::string& file, const std::vector<std::string>& reasons);

// The report as GitHub-flavoured Markdown: peaks, limits, what grew; the rest folded. Names stand in code spans, which
// they cannot leave.
std::string markdown_text(const GraphMemory& memory, const MarkdownContext& context);

}  // namespace fxopt
