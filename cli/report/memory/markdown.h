#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/report/memory/report.h"

namespace fxopt {

// The parts of a Markdown report that GraphMemory does not contain.
struct MarkdownContext {
  std::string file;
  size_t top = 20;                        // the table of storages that are live at the peak has at most this many
                                          // rows
  const GraphMemory* baseline = nullptr;  // if set, adds earlier figures and grown storages
  std::string limits;                     // as the user wrote them: "--budget 70GiB"; may be empty
  // Messages about broken limits and about limits that could not be checked. Empty if all limits
  // hold.
  std::vector<std::string> broken;
  // True if at least one message of `broken` is about a broken limit.
  bool is_broken = false;
};

// Returns a section for an input that has no report.
std::string failure_markdown(const std::string& file, const std::vector<std::string>& reasons);

// Returns the report as GitHub-flavoured Markdown. It shows peaks, limits and growth, and folds the
// rest. Names are in code spans, and no name can end its code span.
std::string markdown_text(const GraphMemory& memory, const MarkdownContext& context);

}  // namespace fxopt
