#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/allocator/device.h"
#include "core/result.h"
#include "runtime/abi/device.h"

namespace fxopt {

// Returns the paths at which a plugin may be, in order. The working directory is never searched. If
// `given` is not empty, it is the only path. Otherwise, the paths are in these folders:
// - the folders of $FXOPT_PLUGIN_PATH, separated by ':'
// - the folder of the program
// - ../lib/fxopt, relative to the folder of the program
std::vector<std::string> plugin_paths(const std::string& name, const std::string& given);

// The library of an opened plugin. It stays loaded until the program ends.
struct Plugin {
  const FxPlugin* calls = nullptr;
  std::string path;
};

// Opens libfxopt_NAME.so. If `given` is not empty, it is the only path that is tried. Fails with
// kDeviceFailed in these cases:
// - No file is found.
// - The file is not a plugin.
// - The version or build of the plugin differs from that of the program.
Result<Plugin> open_plugin(const std::string& name, const std::string& given);

// Converts a failed call of a plugin to an error of the program. `status` must not be FX_DEVICE_OK.
Error device_error(const Plugin& plugin, int32_t status);

// An opened device of a plugin, with the interface that the caching allocator uses. Memory is freed
// only after all work of the device has ended.
class PluginDevice final : public AllocatorDevice {
 public:
  // Fails with kDeviceFailed if the driver is missing or too old, or if the device does not exist.
  // Fails with kOutOfMemory if memory runs out.
  static Result<std::unique_ptr<PluginDevice>> open(const Plugin& plugin, int32_t ordinal);
  ~PluginDevice() override;
  PluginDevice(const PluginDevice&) = delete;
  PluginDevice& operator=(const PluginDevice&) = delete;

  const Plugin& plugin() const { return plugin_; }
  const FxPlugin& calls() const { return *plugin_.calls; }
  FxDevice* handle() const { return handle_; }
  int32_t ordinal() const { return ordinal_; }
  // Returns the state of the device at the time when it was opened.
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
  // The addresses of a program are fixed before it runs, so the allocator never waits for work on a
  // stream.
  uint64_t record_event(int64_t) override { return 1; }
  bool is_done(uint64_t) override { return true; }
  void wait(uint64_t) override {}

 private:
  PluginDevice(const Plugin& plugin, FxDevice* handle, int32_t ordinal)
      : plugin_(plugin), handle_(handle), ordinal_(ordinal) {}

  void check(int32_t status) const;  // throws DeviceFailure

  Plugin plugin_;
  FxDevice* handle_;
  int32_t ordinal_;
  FxDeviceInfo info_{};
};

// PluginDevice throws this error if a device fails for any reason except lack of memory. The
// caching allocator has no other way to pass errors to its caller.
struct DeviceFailure {
  Error error;
};

}  // namespace fxopt
