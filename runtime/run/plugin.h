#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/allocator/device.h"
#include "core/result.h"
#include "runtime/abi/device.h"

namespace fxopt {

// Returns the search path of a plugin, in order: the given path; the folders of $FXOPT_PLUGIN_PATH
// (separated by ':'), the program's folder, and ../lib/fxopt beside it. Never the working
// directory.
std::vector<std::string> plugin_paths(const std::string& name, const std::string& given);

// An opened library. It stays loaded until the program ends.
struct Plugin {
  const FxPlugin* calls = nullptr;
  std::string path;
};

// Opens libfxopt_NAME.so. `given`: the only path to try, or empty. Fails with kDeviceFailed if
// nothing is found, or the file is not a plugin, or it has another version or build.
Result<Plugin> open_plugin(const std::string& name, const std::string& given);

// Converts a failed plugin call to an error of the program. `status` is not FX_DEVICE_OK.
Error device_error(const Plugin& plugin, int32_t status);

// An open device of a plugin for the caching allocator. All work of the device ends before memory
// is freed.
class PluginDevice final : public AllocatorDevice {
 public:
  // Errors: kDeviceFailed: no driver, one too old, no such device; kOutOfMemory.
  static Result<std::unique_ptr<PluginDevice>> open(const Plugin& plugin, int32_t ordinal);
  ~PluginDevice() override;
  PluginDevice(const PluginDevice&) = delete;
  PluginDevice& operator=(const PluginDevice&) = delete;

  const Plugin& plugin() const { return plugin_; }
  const FxPlugin& calls() const { return *plugin_.calls; }
  FxDevice* handle() const { return handle_; }
  int32_t ordinal() const { return ordinal_; }
  // State at the time when the device was opened.
  const FxDeviceInfo& info() const { return info_; }
  Error error(int32_t status) const { return device_error(plugin_, status); }

  int64_t total_bytes() const override { return info_.total_bytes; }
  Result<int64_t> query_free_bytes() const;
  int64_t free_bytes() const override;  // throws DeviceFailure
  std::optional<uint64_t> allocate(int64_t bytes) override;
  void free(uint64_t address, int64_t bytes) override;
  uint64_t reserve(int64_t bytes) override;
  void unreserve(uint64_t address, int64_t bytes) override;
  bool map(uint64_t address, int64_t bytes, int64_t page_bytes) override;
  void unmap(uint64_t address, int64_t bytes, int64_t page_bytes, int64_t stream) override;
  // Programs are placed before they run: no block waits for a stream.
  uint64_t record_event(int64_t) override { return 1; }
  bool is_done(uint64_t) override { return true; }
  void wait(uint64_t) override {}

 private:
  PluginDevice(const Plugin& plugin, FxDevice* handle, int32_t ordinal)
      : plugin_(plugin), handle_(handle), ordinal_(ordinal) {}

  Plugin plugin_;
  FxDevice* handle_;
  int32_t ordinal_;
  FxDeviceInfo info_{};
};

// Thrown by PluginDevice if a device fails for any reason but memory: the allocator between has no
// other error path.
struct DeviceFailure {
  Error error;
};

}  // namespace fxopt
