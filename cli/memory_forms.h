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

// The output files for a memory report in formats besides text. An empty path means that no file is
// wanted.
struct FormFlags {
  std::string markdown, html, trace;

  // Returns the given options and their files. Fails with kUsage if a file is standard output,
  // because the text report goes to standard output.
  Result<std::vector<ExtraProduct>> products() const;
};

// Declares the options. `flags` must outlive the parsing.
void declare_form_flags(Options options, FormFlags& flags);

// Collects the reports of all inputs for the files of FormFlags.
class MemoryForms {
 public:
  // `head` holds the fields of the --json object that apply to every report, such as the options.
  MemoryForms(const FormFlags& flags, size_t top, nlohmann::ordered_json head);

  // True if a wanted file needs MeasureOptions::timelines.
  bool needs_timelines() const { return html_.has_value() || trace_.has_value(); }

  // The result of checking limits on a graph.
  struct Verdict {
    const GraphMemory* baseline = nullptr;
    std::string limits;  // as the user wrote them; empty if there are no limits
    std::vector<Error> broken;
  };
  // Adds the report of a graph. If `verdict` has a baseline, `memory` must list every storage that
  // is live at the peaks.
  void add(const std::string& file, const GraphMemory& memory, const Verdict& verdict);

  // Adds an input that has no report, with reasons such as "FX1001 cannot open the file". The
  // Markdown file lists failed inputs first.
  void add_failure(const std::string& file, const std::vector<std::string>& reasons);

  // Writes the files, even after errors, so that no old file is mistaken for a new report. Reports
  // errors to the console.
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
