#pragma once

#include <cstdint>
#include <string>

#include "cli/report/memory/report.h"

namespace fxopt {

// Memory over the nodes in the trace event format of Chrome, which ui.perfetto.dev and
// chrome://tracing open: docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
// Each graph is a process. Each node is a slice of one microsecond, so that time counts nodes. Each
// device has counters, written at their changes, and an instant at its peak.
class TraceReport {
 public:
  // `memory` with timelines. O(nodes * classes).
  void add(const std::string& file, const GraphMemory& memory);
  // The whole trace: one event a line.
  std::string text() const;

 private:
  void add_metadata(const char* name, uint32_t thread, const std::string& value);
  void add_nodes(const GraphMemory& memory);
  void add_counters(const DeviceMemory& device);
  void add_peak(const DeviceMemory& device);
  void add_event(const std::string& fields);

  uint32_t process_ = 0;
  std::string events_;
};

}  // namespace fxopt
