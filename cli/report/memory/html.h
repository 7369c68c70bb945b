#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/report/memory/report.h"

namespace fxopt {

// Reports as one page that needs nothing else: style, script, the chart library and the figures stand in it, and its
// content security policy forbids to load anything.
//
// The figures are one JSON object in the element "data": `head`; "reports", in the order they were added, each with
// file and graph, the object that memory_json() writes, the schedule and a timeline for each device. What has a value
// for each node is a text of differences, see encode_differences().
class HtmlReport {
 public:
  // `head`: what is said once, such as the options.
  explicit HtmlReport(nlohmann::ordered_json head);
  ~HtmlReport();

  // `memory` with timelines; the page lists `top` of its storages. O(nodes * classes).
  void add(const std::string& file, const GraphMemory& memory, size_t top);
  // An input that has no report, and why.
  void add_failure(const std::string& file, const std::vector<std::string>& reasons);
  std::string text() const;

 private:
  std::unique_ptr<nlohmann::ordered_json> data_;
};

// Integers as the differences between neighbours, the first from 0, in base 36 with a space between two; "~a" stands
// for ten differences of 0 in a row. O(values).
template <class Integer>
std::string encode_differences(const std::vector<Integer>& values);

extern template std::string encode_differences(const std::vector<int64_t>& values);
extern template std::string encode_differences(const std::vector<uint32_t>& values);

}  // namespace fxopt
