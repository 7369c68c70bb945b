#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/report/memory/report.h"

namespace fxopt {

// The context of a report for a pull request, besides the figures of a graph.
struct MarkdownContext {
  std::string file;
  size_t top = 20;                        // number of listed storages that are live at the peak
  const GraphMemory* baseline = nullptr;  // adds the earlier figures, and the storages that grew
  std::string limits;                     // as given: "--budget 70GiB"; empty: none
  // broken limits, or the reasons why they could not be checked
  std::vector<std::string> broken;
  bool is_broken = false;  // a limit is broken, not only unchecked
};

// A section for an input without a report.
std::string failure_markdown(const std::string& file, const std::vector<std::string>& reasons);

// The report as GitHub-flavoured Markdown: peaks, limits, growth; the rest is folded. Names are in
// code spans, from which they cannot escape.
std::string markdown_text(const GraphMemory& memory, const MarkdownContext& context);

}  // namespace fxopt
