#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/allocator/config.h"
#include "ir/analysis/memory.h"
#include "ir/graph/module.h"

namespace fxopt {

// A named part of the bytes that are live at a peak.
struct MemoryShare {
  std::string name;
  int64_t bytes = 0;
  size_t storages = 0;
};

// One storage that is live at a peak.
struct StorageRow {
  std::string node;  // that makes it
  std::string module_path;
  std::string type;  // "bf16[2, 2048]" of its first tensor
  std::string phase;
  std::string kind;  // memory class
  int64_t bytes = 0;
  bool known = true;
  std::string first;  // nodes between which it is live, both included
  std::string last;
};

// A peak of the caching allocator.
struct AllocatorPeakRow {
  int64_t bytes = 0;
  std::string node;  // empty: the inputs alone reach it
};

// One way to run the caching allocator over a device's storages.
struct AllocatorRow {
  std::string segments;  // "classic", "expandable"
  AllocatorPeakRow requested, allocated, active, reserved;
  std::string out_of_memory;  // the node whose allocation failed; empty when all fits
  int64_t failed_bytes = 0;
};

// The peaks of one device: the ideal one in detail, those of the caching allocator beside it.
struct DeviceMemory {
  std::string device;  // empty: tensors without a recorded device
  int64_t bytes = 0;
  int64_t input_bytes = 0;
  size_t live = 0;  // storages at the peak
  std::string node;
  uint32_t position = 0;
  std::string module_path;
  std::string source;                 // "model.py:123"
  std::vector<MemoryShare> by_class;  // largest first, ties by schedule position
  std::vector<MemoryShare> by_module;
  std::vector<StorageRow> top;
  std::vector<AllocatorRow> allocator;  // of a CUDA device
};

struct GraphMemory {
  std::string graph;
  size_t nodes = 0;
  std::vector<DeviceMemory> devices;       // largest peak first
  bool roles_derived = false;              // the file gives placeholders no roles
  size_t unknown = 0;                      // storages without a known size: every peak is then a lower bound
  std::vector<std::string> unknown_nodes;  // that make them

  int64_t peak_bytes() const { return devices.empty() ? 0 : devices.front().bytes; }
};

struct MemoryView {
  MemoryOptions options;
  size_t top = 20;                      // storages listed
  size_t module_depth = 2;              // components of a module path that make a group
  AllocatorConfig allocator;            // PYTORCH_ALLOC_CONF; run with classic and with expandable segments
  std::optional<int64_t> device_bytes;  // what the device has for the allocator
};

// O(nodes + edges + storages log storages).
GraphMemory describe_memory(const Graph& graph, const MemoryView& view);

void print_memory(std::ostream& out, const GraphMemory& memory);
nlohmann::ordered_json memory_json(const GraphMemory& memory);

}  // namespace fxopt
