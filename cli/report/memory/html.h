#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/report/memory/report.h"

namespace fxopt {

// A self-contained page that shows reports. The page contains its style, its script, the chart
// library and the data of the reports. The content security policy of the page forbids loading
// anything else.
//
// The figures are one JSON object in the element "data". The object begins with the fields of the
// constructor's parameter `head`. The lists "reports" and "failures" follow. Reports and failures
// are in the order in which they were added. Each report holds its file, its graph, the object that
// memory_json() writes, the schedule, and a timeline for each device. A series that has a value for
// each node is encoded by encode_differences().
class HtmlReport {
 public:
  // `head` holds fields that apply to every report, such as the options.
  explicit HtmlReport(nlohmann::ordered_json head);
  ~HtmlReport();

  // Adds a report. `memory` must have timelines. The page lists at most `top` storages of each
  // device. O(nodes * memory classes): see MemoryClass.
  void add(const std::string& file, const GraphMemory& memory, size_t top);
  // Adds an input that could not be measured, with the reasons.
  void add_failure(const std::string& file, const std::vector<std::string>& reasons);
  std::string text() const;

 private:
  std::unique_ptr<nlohmann::ordered_json> data_;
};

// Encodes each integer as the difference from the integer before it. The first integer is the
// difference from 0. The differences are in base 36 and separated by spaces. "~a" represents ten
// differences of 0 in a row. O(values).
template <class Integer>
std::string encode_differences(const std::vector<Integer>& values);

extern template std::string encode_differences(const std::vector<int64_t>& values);
extern template std::string encode_differences(const std::vector<uint32_t>& values);

}  // namespace fxopt
