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

// The files that hold a memory report in other forms; empty: not wanted.
struct FormFlags {
  std::string markdown, html, trace;

  // The options that were given, each with its file. Error: kUsage for standard output, which has the text.
  Result<std::vector<ExtraProduct>> products() const;
};

// Declares them. `flags` must outlive the parsing.
void declare_form_flags(Options options, FormFlags& flags);

// The reports of one call, gathered for those files.
class MemoryForms {
 public:
  // `head`: what the envelope says of the call as a whole.
  MemoryForms(const FormFlags& flags, size_t top, nlohmann::ordered_json head);

  // True where MemoryView::timelines is needed.
  bool needs_timelines() const { return html_.has_value() || trace_.has_value(); }

  // What limits say of a graph.
  struct Verdict {
    const GraphMemory* baseline = nullptr;
    std::string limits;  // as given; empty: none
    std::vector<Error> broken;
  };
  // `memory`: with all storages that are live at the peaks, where there is a baseline.
  void add(const std::string& file, const GraphMemory& memory, const Verdict& verdict);

  // An input of which no graph was added, and why: "FX1001 cannot open the file". The forms say so before anything
  // else.
  void add_failure(const std::string& file, const std::vector<std::string>& reasons);

  // Errors go to the console. Written whatever happened: an old file would pass for the report of this call.
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
