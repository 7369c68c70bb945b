// Tables: columns as wide as their cells, or within the width of a terminal.

#include "cli/print/table.h"

#include <sstream>

#include "tests/catch.h"

namespace fxopt {
namespace {

std::string printed(const Table& table, size_t width) {
  std::ostringstream out;
  set_table_width(out, width);
  table.print(out);
  return out.str();
}

TEST_CASE("table: text loses its middle to fit a terminal, then columns at the right are left out") {
  Table table({Align::kRight, Align::kLeft, Align::kLeft});
  table.add({"123456", "%add_1", "layers.0.attention.norm.weight"});
  const std::string whole = "  123456  %add_1  layers.0.attention.norm.weight\n";
  CHECK(printed(table, 0) == whole);
  CHECK(printed(table, whole.size() - 1) == whole);
  CHECK(printed(table, whole.size() - 2) == "  123456  %add_1  layers.0.atte..on.norm.weight\n");
  CHECK(printed(table, 36) == "  123456  %add_1  layers.0..m.weight\n");
  CHECK(printed(table, 35) == "  123456  %add_1\n  (1 more column: the terminal is too narrow)\n");
  CHECK(printed(table, 1) == "  123456\n  (2 more columns: the terminal is too narrow)\n");
}

TEST_CASE("table: a cut counts characters, not bytes") {
  Table table({Align::kLeft});
  const auto repeated = [](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += "\u00e4";
    return text;
  };
  table.add({repeated(40)});
  CHECK(printed(table, 20) == "  " + repeated(8) + ".." + repeated(8) + "\n");
}

}  // namespace
}  // namespace fxopt
