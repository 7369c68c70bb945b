#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/products.h"
#include "cli/report/memory/html.h"
#include "cli/report/memory/report.h"
#include "cli/report/memory/trace.h"
#include "core/error.h"
#include "core/result.h"

namespace fxopt {

class Console;
class Options;

// Files with a memory report in other formats; empty: not wanted.
struct FormFlags {
  std::string markdown, html, trace;

  // The given options, each with its file. Error: kUsage for standard output, where the text report
  // goes.
  Result<std::vector<ExtraProduct>> products() const;
};

// Declares the options. `flags` must outlive the parsing.
void declare_form_flags(Options options, FormFlags& flags);

// Collects the reports of one call for those files.
class MemoryForms {
 public:
  // `head`: the fields of the envelope about the call as a whole.
  MemoryForms(const FormFlags& flags, size_t top, nlohmann::ordered_json head);

  // True if MemoryView::timelines is needed.
  bool needs_timelines() const { return html_.has_value() || trace_.has_value(); }

  // The result of checking limits on a graph.
  struct Verdict {
    const GraphMemory* baseline = nullptr;
    std::string limits;  // as given; empty: none
    std::vector<Error> broken;
  };
  // `memory`: with every storage that is live at the peaks, if there is a baseline.
  void add(const std::string& file, const GraphMemory& memory, const Verdict& verdict);

  // Adds an input without graphs, and the reasons: "FX1001 cannot open the file". The files list
  // failures first.
  void add_failure(const std::string& file, const std::vector<std::string>& reasons);

  // Writes the files, even after errors: an old file would pass for the report of this call. Errors
  // go to the console.
  void write(Console& console) const;

 private:
  const FormFlags& flags_;
  size_t top_;
  std::string failures_;  // in Markdown
  std::string markdown_;
  std::optional<HtmlReport> html_;
  std::optional<TraceReport> trace_;
};

}  // namespace fxopt
