// The topics of `fxopt help`: the pages of cli/topics, which the build embeds in the program.
#include "cli/topics.h"

#include <algorithm>
#include <span>

#include "cli/print/page.h"
#include "core/check.h"
#include "core/embedded_text.h"
#include "core/sections.h"

namespace fxopt {

std::span<const EmbeddedText> embedded_topics();

namespace {

// The first line of a page is "# NAME: SUMMARY".
Topic read_page(const EmbeddedText& page) {
  const size_t end = page.text.find('\n');
  const size_t colon = page.text.find(": ");
  FXOPT_CHECK(page.text.substr(0, 2) == "# " && colon < end, "a page of cli/topics begins with '# NAME: SUMMARY'");
  const size_t body = page.text.find_first_not_of('\n', end);
  return {page.text.substr(2, colon - 2), page.text.substr(colon + 2, end - colon - 2), page.text.substr(body)};
}

std::vector<WarningText> read_warnings() {
  std::vector<WarningText> rows;
  for (const EmbeddedText& page : embedded_topics()) {
    if (page.name != "warnings.md") continue;
    for (const PageSection& section : page_sections(page.text)) rows.push_back({section.heading, section.whole});
  }
  return rows;
}

}  // namespace

std::string Topic::text() const { return page_text(page); }
std::string WarningText::text() const { return page_text(page); }

const std::vector<WarningText>& warning_table() {
  static const std::vector<WarningText> rows = read_warnings();
  return rows;
}

const WarningText* find_warning(std::string_view code) {
  const std::vector<WarningText>& rows = warning_table();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [code](const WarningText& each) { return each.code == code; });
  return row == rows.end() ? nullptr : &*row;
}

const std::vector<Topic>& topics() {
  static const std::vector<Topic> rows = [] {
    std::vector<Topic> pages;
    for (const EmbeddedText& page : embedded_topics()) pages.push_back(read_page(page));
    return pages;
  }();
  return rows;
}

}  // namespace fxopt
