#include "cli/print/table.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "core/bytes.h"
#include "core/check.h"
#include "core/text.h"

namespace fxopt {
namespace {

// Counts characters, not bytes, because names may be UTF-8.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

constexpr size_t kLeastColumn = 18;  // a column of text is not cut below this width

long& table_width(std::ostream& out) {
  static const int slot = std::ios_base::xalloc();
  return out.iword(slot);
}

// Returns the number of bytes in the first `count` characters.
size_t bytes_of_head(const std::string& text, size_t count) {
  size_t end = 0;
  while (end < text.size() && (count > 0 || (text[end] & 0xc0) == 0x80)) count -= (text[end++] & 0xc0) != 0x80;
  return end;
}

// If `text` is wider than `width`, replaces its middle by "..".
std::string cut_middle(const std::string& text, size_t width) {
  const size_t whole = width_of(text);
  if (whole <= width) return text;
  const size_t head = (width - 2) / 2, tail = width - 2 - head;
  return text.substr(0, bytes_of_head(text, head)) + ".." + text.substr(bytes_of_head(text, whole - tail));
}

}  // namespace

void set_table_width(std::ostream& out, size_t width) { table_width(out) = static_cast<long>(width); }

void Table::add(std::vector<std::string> cells) {
  FXOPT_CHECK(cells.size() <= columns_.size(), "a table row with too many cells");
  for (std::string& cell : cells) cell = printable_line(cell);
  rows_.push_back(std::move(cells));
}

// Returns the widths of the table's columns on a terminal with `width` characters per line. 0 means
// no limit. Text columns are cut first, down to kLeastColumn. If the table is still too wide, its
// rightmost columns are left out.
std::vector<size_t> Table::widths_within(size_t width) const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  if (width == 0) return widths;
  const auto is_text = [this](size_t column) { return columns_[column] == Align::kLeft; };
  const auto least = [&](size_t column) {
    return is_text(column) ? std::min(widths[column], kLeastColumn) : widths[column];
  };
  size_t whole = indent_ + least(0), shown = 1;
  while (shown < widths.size() && whole + 2 + least(shown) <= width) whole += 2 + least(shown++);
  widths.resize(shown);
  whole = indent_ + 2 * (shown - 1);
  for (const size_t each : widths) whole += each;
  for (; whole > width; --whole) {
    size_t widest = shown;
    for (size_t i = 0; i < shown; ++i) {
      if (is_text(i) && widths[i] > kLeastColumn && (widest == shown || widths[i] > widths[widest])) widest = i;
    }
    if (widest == shown) break;
    --widths[widest];
  }
  return widths;
}

void Table::print(std::ostream& out) const {
  const std::vector<size_t> widths = widths_within(static_cast<size_t>(table_width(out)));
  for (const std::vector<std::string>& row : rows_) {
    std::string line(indent_, ' ');
    for (size_t i = 0; i < std::min(row.size(), widths.size()); ++i) {
      const std::string cell = cut_middle(row[i], widths[i]);
      const std::string padding(widths[i] - width_of(cell), ' ');
      if (i > 0) line += "  ";
      line += columns_[i] == Align::kRight ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
  if (widths.size() == columns_.size() || rows_.empty()) return;
  out << std::string(indent_, ' ') << '(' << count_text(columns_.size() - widths.size(), "more column")
      << ": the terminal is too narrow)\n";
}

std::string size_text(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

std::string bytes_text(int64_t bytes) {
  const std::string short_form = size_text(bytes);
  return bytes < 1024 ? short_form : short_form + " (" + std::to_string(bytes) + " B)";
}

std::string formatted(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

std::string gflop_text(int64_t flops) { return formatted("%.6g GFLOP", static_cast<double>(flops) / 1e9); }

std::string milliseconds_text(double seconds) { return formatted("%.6g ms", seconds * 1e3); }

std::string measured_time_text(double seconds) {
  const bool is_short = seconds < 1;
  const double number = is_short ? seconds * 1e3 : seconds;
  return formatted(number < 999.5 ? "%.3g" : "%.0f", number) + (is_short ? " ms" : " s");
}

std::string percent_text(int64_t part, int64_t whole) {
  if (whole == 0) return {};
  return formatted("%.1f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string signed_percent_text(int64_t part, int64_t whole) {
  return whole == 0 ? "+0.0 %" : (part < 0 ? "" : "+") + percent_text(part, whole);
}

std::string signed_text(int64_t number) { return (number > 0 ? "+" : "") + std::to_string(number); }

std::string seconds_text(double seconds) { return formatted("%.4f s", seconds); }

}  // namespace fxopt
