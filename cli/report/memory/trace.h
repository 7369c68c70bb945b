#pragma once

#include <cstdint>
#include <string>

#include "cli/report/memory/report.h"

namespace fxopt {

// The memory at each node, in the trace event format of Chrome. ui.perfetto.dev and
// chrome://tracing can open this format. The format is described at
// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
//
// Each graph is a process. Each node is a slice of one microsecond, so time counts nodes. Each
// device has counters and an instant event at its peak. A counter is written when it changes.
class TraceReport {
 public:
  // Adds a graph. `memory` must have timelines. O(nodes * memory classes): see
  // MemoryClass.
  void add(const std::string& file, const GraphMemory& memory);
  // Returns the whole trace, with one event per line.
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
