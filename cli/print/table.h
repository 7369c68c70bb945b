#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

enum class Align { kLeft, kRight };

// Limits tables on this stream to lines of `width` characters. Cells of wide text columns lose
// their middle ("layers..norm"), down to 18 characters. If the table is still too wide, its
// rightmost columns are left out, and a line below the table counts them. With 0, the default,
// every cell is printed whole.
void set_table_width(std::ostream& out, size_t width);

// A table of text. Columns are two spaces apart, and each column is as wide as its widest cell.
// Cells come from files, so control characters are escaped.
class Table {
 public:
  explicit Table(std::vector<Align> columns, size_t indent = 2) : columns_(std::move(columns)), indent_(indent) {}

  // Adds a row. `cells` must not have more cells than the table has columns. Missing cells are
  // empty.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  void print(std::ostream& out) const;

 private:
  std::vector<size_t> widths_within(size_t width) const;

  std::vector<Align> columns_;
  size_t indent_;
  std::vector<std::vector<std::string>> rows_;
};

// Returns the number as printf() prints it. `format` has one conversion, of a double.
std::string formatted(const char* format, double number);

// Returns a size in a readable unit and in bytes: "1.50 GiB (1610612736 B)".
std::string bytes_text(int64_t bytes);

// Returns a size in a readable unit, without the exact bytes: "1.50 GiB".
std::string size_text(int64_t bytes);

// Returns a number of operations in units of 10^9: "137.439 GFLOP".
std::string gflop_text(int64_t flops);

// Returns a time in milliseconds, such as "1.38911 ms".
std::string milliseconds_text(double seconds);

// Returns a measured time with three digits: "0.361 ms", "71.3 s", "4210 s".
std::string measured_time_text(double seconds);

// Returns `part` as a share of `whole`: "12.3 %". Returns an empty text if `whole` is 0.
std::string percent_text(int64_t part, int64_t whole);

// Returns `part` as a signed share of `whole`: "+12.3 %", "-4.0 %". Returns "+0.0 %" if `whole` is
// 0.
std::string signed_percent_text(int64_t part, int64_t whole);

// Returns a number with its sign, such as "+3", "-12" or "0".
std::string signed_text(int64_t number);

// Returns seconds with four digits after the decimal point.
std::string seconds_text(double seconds);

}  // namespace fxopt
