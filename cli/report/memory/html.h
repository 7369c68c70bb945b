#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/report/memory/report.h"

namespace fxopt {

// Reports as one self-contained page: it contains style, script, the chart library and the figures,
// and its content security policy forbids loading anything.
//
// The figures are one JSON object in the element "data": `head`, and "reports" in the order they
// were added. Each report has file and graph, the object that memory_json() writes, the schedule,
// and a timeline for each device. Series with a value for each node are encoded as differences, see
// encode_differences().
class HtmlReport {
 public:
  // `head`: fields that apply to every report, such as the options.
  explicit HtmlReport(nlohmann::ordered_json head);
  ~HtmlReport();

  // `memory` with timelines; the page lists `top` of its storages. O(nodes * classes).
  void add(const std::string& file, const GraphMemory& memory, size_t top);
  // An input without a report, and the reasons.
  void add_failure(const std::string& file, const std::vector<std::string>& reasons);
  std::string text() const;

 private:
  std::unique_ptr<nlohmann::ordered_json> data_;
};

// Integers as the differences between neighbours, the first from 0, in base 36 and separated by
// spaces. "~a" represents ten differences of 0 in a row. O(values).
template <class Integer>
std::string encode_differences(const std::vector<Integer>& values);

extern template std::string encode_differences(const std::vector<int64_t>& values);
extern template std::string encode_differences(const std::vector<uint32_t>& values);

}  // namespace fxopt
