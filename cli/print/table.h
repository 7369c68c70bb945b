#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

enum class Align { kLeft, kRight };

// Rows of text in columns, two spaces apart, each as wide as its widest cell. Control characters
// are escaped, since cells come from files.
class Table {
 public:
  explicit Table(std::vector<Align> columns, size_t indent = 2) : columns_(std::move(columns)), indent_(indent) {}

  // At most as many cells as there are columns; missing ones are empty.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  void print(std::ostream& out) const;

 private:
  std::vector<Align> columns_;
  size_t indent_;
  std::vector<std::vector<std::string>> rows_;
};

// "1.50 GiB (1610612736 B)": for people and exact at once.
std::string bytes_text(int64_t bytes);

// "1.50 GiB": for people only.
std::string size_text(int64_t bytes);

// Operations in units of 10^9: "137.439 GFLOP".
std::string gflop_text(int64_t flops);

// "1.38911 ms".
std::string milliseconds_text(double seconds);

// A measured time to three digits: "0.361 ms", "71.3 s", "4210 s".
std::string measured_time_text(double seconds);

// "1 node", "2 nodes".
std::string count_text(size_t count, std::string_view noun);

// "12.3 %" of `part` in `whole`; empty if `whole` is 0.
std::string percent_text(int64_t part, int64_t whole);

// "+12.3 %", "-4.0 %"; "+0.0 %" if `whole` is 0.
std::string signed_percent_text(int64_t part, int64_t whole);

// "+3", "-12", "0".
std::string signed_text(int64_t number);

// Seconds with four digits after the point.
std::string seconds_text(double seconds);

}  // namespace fxopt
