#include "cli/print/page.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "cli/print/table.h"
#include "cli/print/wrap.h"
#include "core/scan.h"

namespace fxopt {
namespace {

// Replaces each link "[text](target)" by "text".
std::string without_links(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    const size_t open = line.find('[');
    const size_t middle = open == std::string_view::npos ? open : line.find("](", open);
    const size_t close = middle == std::string_view::npos ? middle : line.find(')', middle);
    if (close == std::string_view::npos) break;
    text += line.substr(0, open);
    text += line.substr(open + 1, middle - open - 1);
    line.remove_prefix(close + 1);
  }
  return text + std::string(line);
}

bool is_list_item(std::string_view line) { return line.substr(0, 2) == "- "; }
bool is_table_row(std::string_view line) { return line.substr(0, 1) == "|"; }

class Page {
 public:
  void add(std::string_view line) {
    if (line.substr(0, 3) == "```") {
      end_block();
      is_code_ = !is_code_;
    } else if (is_code_) {
      out_ << (line.empty() ? "" : "  ") << line << '\n';
    } else if (line.substr(0, 4) == "<!--") {
      end_block();
    } else if (line.empty() || line.front() == '#') {
      end_block();
      const size_t text = line.find_first_not_of("# ");
      out_ << (text == std::string_view::npos ? "" : line.substr(text)) << '\n';
    } else if (is_table_row(line)) {
      rows_.push_back(line);
    } else {
      if (is_list_item(line)) end_block();
      if (!paragraph_.empty()) paragraph_ += ' ';
      paragraph_ += without_links(trim(line));
    }
  }

  std::string finish() {
    end_block();
    return out_.str();
  }

 private:
  void end_block() {
    if (!paragraph_.empty()) out_ << wrap(paragraph_, is_list_item(paragraph_) ? 2 : 0) << '\n';
    paragraph_.clear();
    if (!rows_.empty()) print_table();
    rows_.clear();
  }

  void print_table() {
    std::vector<std::vector<std::string>> cells;
    size_t width = 0;
    for (std::string_view row : rows_) {
      if (row.find_first_not_of("|-: ") == std::string_view::npos) continue;  // the line of dashes
      row.remove_prefix(1);
      std::vector<std::string>& line = cells.emplace_back();
      for (size_t end = row.find('|'); end != std::string_view::npos; end = row.find('|')) {
        line.push_back(without_links(trim(row.substr(0, end))));
        row.remove_prefix(end + 1);
      }
      width = std::max(width, line.size());
    }
    Table table(std::vector<Align>(width, Align::kLeft));
    for (std::vector<std::string>& line : cells) table.add(std::move(line));
    table.print(out_);
  }

  bool is_code_ = false;
  std::string paragraph_;
  std::vector<std::string_view> rows_;
  std::ostringstream out_;
};

}  // namespace

std::string page_text(std::string_view markdown) {
  Page page;
  while (!markdown.empty()) {
    const size_t end = std::min(markdown.find('\n'), markdown.size());
    page.add(markdown.substr(0, end));
    markdown.remove_prefix(std::min(end + 1, markdown.size()));
  }
  return page.finish();
}

}  // namespace fxopt
