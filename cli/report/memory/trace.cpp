// Memory reports as trace events. Text is appended event by event: a JSON tree would take ten times
// as much memory.
#include "cli/report/memory/trace.h"

#include <utility>
#include <vector>

#include "cli/print/table.h"
#include "ir/io/json.h"

namespace fxopt {
namespace {

constexpr const char* kNodeThread = "1";

std::string device_name(const DeviceMemory& device) { return device.device.empty() ? "no device" : device.device; }

// Curves of one counter track.
using Curves = std::vector<std::pair<std::string, const std::vector<int64_t>*>>;

Curves class_curves(const DeviceMemory& device) {
  Curves curves;
  for (size_t kind = 0; kind < kNumMemoryClasses; ++kind) {
    if (device.class_at[kind].empty()) continue;
    curves.push_back({json_string(memory_class_name(static_cast<MemoryClass>(kind))), &device.class_at[kind]});
  }
  return curves;
}

Curves metric_curves(const DeviceMemory& device) {
  Curves curves = {{json_string("requested"), &device.requested_at}};
  for (const AllocatorRow& row : device.allocator) {
    curves.push_back({json_string("allocated, " + row.segments), &row.allocated_at});
    curves.push_back({json_string("reserved, " + row.segments), &row.reserved_at});
  }
  return curves;
}

// Returns the values of the curves at a schedule position, as a JSON object. A curve ends where
// memory ran out, and is omitted after its end.
std::string values_at(const Curves& curves, size_t place) {
  std::string values;
  for (const auto& [name, curve] : curves) {
    if (place >= curve->size()) continue;
    values += (values.empty() ? "" : ",") + name + ":" + std::to_string((*curve)[place]);
  }
  return "{" + values + "}";
}

}  // namespace

void TraceReport::add_event(const std::string& fields) {
  events_ += (events_.empty() ? "\n{\"pid\":" : ",\n{\"pid\":") + std::to_string(process_) + "," + fields + "}";
}

void TraceReport::add_metadata(const char* name, uint32_t thread, const std::string& value) {
  add_event("\"tid\":" + std::to_string(thread) + ",\"ph\":\"M\",\"name\":\"" + name +
            "\",\"args\":{\"name\":" + json_string(value) + "}");
}

void TraceReport::add_nodes(const GraphMemory& memory) {
  const ScheduleTable& schedule = memory.schedule;
  std::vector<std::string> texts, devices;
  for (const std::string& text : schedule.texts) texts.push_back(json_string(text));
  for (const DeviceMemory& device : memory.devices) devices.push_back(json_string(device_name(device)));
  for (size_t i = 0; i < schedule.nodes.size(); ++i) {
    std::string live;
    for (size_t d = 0; d < devices.size(); ++d) {
      live += (d == 0 ? "" : ",") + devices[d] + ":" + std::to_string(memory.devices[d].requested_at[i]);
    }
    add_event("\"tid\":" + std::string(kNodeThread) + ",\"ph\":\"X\",\"ts\":" + std::to_string(i) +
              ",\"dur\":1,\"name\":" + json_string(schedule.nodes[i]) + ",\"cat\":" + texts[schedule.phase[i]] +
              ",\"args\":{\"module_path\":" + texts[schedule.module_path[i]] +
              ",\"phase\":" + texts[schedule.phase[i]] + ",\"target\":" + texts[schedule.target[i]] +
              ",\"live_bytes\":{" + live + "}}");
  }
}

void TraceReport::add_counters(const DeviceMemory& device) {
  const std::pair<std::string, Curves> tracks[] = {{" live, by class", class_curves(device)},
                                                   {" memory", metric_curves(device)}};
  for (const auto& [title, curves] : tracks) {
    const std::string name = json_string(device_name(device) + title);
    std::string last;
    for (size_t place = 0; place < device.requested_at.size(); ++place) {
      std::string values = values_at(curves, place);
      if (values == last) continue;
      add_event("\"ph\":\"C\",\"ts\":" + std::to_string(place) + ",\"name\":" + name + ",\"args\":" + values);
      last = std::move(values);
    }
  }
}

void TraceReport::add_peak(const DeviceMemory& device) {
  if (device.node.empty()) return;
  const std::string name = device.model + " peak on " + device_name(device) + ": " + bytes_text(device.bytes);
  add_event("\"tid\":" + std::string(kNodeThread) +
            ",\"ph\":\"i\",\"s\":\"p\",\"ts\":" + std::to_string(device.position) + ",\"name\":" + json_string(name) +
            ",\"args\":{\"node\":" + json_string(device.node) + ",\"bytes\":" + std::to_string(device.bytes) + "}");
}

void TraceReport::add(const std::string& file, const GraphMemory& memory) {
  ++process_;
  add_metadata("process_name", 0, file + ", @" + memory.graph);
  add_metadata("thread_name", 1, "nodes, one microsecond each");
  add_nodes(memory);
  for (const DeviceMemory& device : memory.devices) {
    add_counters(device);
    add_peak(device);
  }
}

std::string TraceReport::text() const { return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" + events_ + "\n]}\n"; }

}  // namespace fxopt
