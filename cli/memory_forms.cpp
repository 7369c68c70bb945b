#include "cli/memory_forms.h"

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/report/memory/markdown.h"

namespace fxopt {

void declare_form_flags(Options options, FormFlags& flags) {
  options
      .add("--markdown", flags.markdown,
           "write the report as Markdown. With --baseline, the report includes the growth since the baseline")
      .type("FILE");
  options
      .add("--html", flags.html,
           "write the report as an HTML page with a timeline. The timelines of several graphs can be overlaid")
      .type("FILE");
  options
      .add("--trace", flags.trace, "write a trace for ui.perfetto.dev, with counters that show the memory at each node")
      .type("FILE");
}

Result<std::vector<ExtraProduct>> FormFlags::products() const {
  std::vector<ExtraProduct> given;
  for (const auto& [flag, path] : {std::pair("--markdown", &markdown), {"--html", &html}, {"--trace", &trace}}) {
    if (path->empty()) continue;
    if (*path == "-") {
      return usage_error(std::string(flag) + " cannot go to standard output, because the text report goes there",
                         "name a file: " + std::string(flag) + " FILE");
    }
    given.push_back({flag, *path});
  }
  return given;
}

MemoryForms::MemoryForms(const FormFlags& flags, size_t top, nlohmann::ordered_json head) : flags_(flags), top_(top) {
  if (!flags.html.empty()) html_.emplace(std::move(head));
  if (!flags.trace.empty()) trace_.emplace();
}

void MemoryForms::add(const std::string& file, const GraphMemory& memory, const Verdict& verdict) {
  if (!flags_.markdown.empty()) {
    MarkdownContext context{file, top_, verdict.baseline, verdict.limits, {}, false};
    for (const Error& error : verdict.broken) {
      context.broken.push_back(error.message);
      context.is_broken =
          context.is_broken || error.code == ErrorCode::kBudgetExceeded || error.code == ErrorCode::kGrowthExceeded;
    }
    markdown_ += markdown_text(memory, context);
  }
  if (html_.has_value()) html_->add(file, memory, top_);
  if (trace_.has_value()) trace_->add(file, memory);
}

void MemoryForms::add_failure(const std::string& file, const std::vector<std::string>& reasons) {
  failures_ += failure_markdown(file, reasons);
  if (html_.has_value()) html_->add_failure(file, reasons);
}

void MemoryForms::write(Console& console) const {
  if (!flags_.markdown.empty()) console.write_output(flags_.markdown, failures_ + markdown_);
  if (html_.has_value()) console.write_output(flags_.html, html_->text());
  if (trace_.has_value()) console.write_output(flags_.trace, trace_->text());
}

}  // namespace fxopt
