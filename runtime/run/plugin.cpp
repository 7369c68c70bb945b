#include "runtime/run/plugin.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/version.h"

namespace fxopt {
namespace {

Error failed(std::string message, std::string hint) {
  return {ErrorCode::kDeviceFailed, std::move(message), std::move(hint), {}};
}

std::string file_name(const std::string& name) { return "libfxopt_" + name + ".so"; }

Result<Plugin> open_file(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return failed("the plugin cannot be opened: " + std::string(why == nullptr ? path : why), "");
  }
  using Query = const FxPlugin* (*)(uint32_t);
  const auto query = reinterpret_cast<Query>(dlsym(library, "fxopt_plugin"));
  if (query == nullptr) return failed(path + " is not a plugin of fxopt: it has no function fxopt_plugin", "");
  const FxPlugin* calls = query(FX_DEVICE_VERSION);
  const std::string hint = "build the program and the plugin from one folder, or give another plugin with --plugin";
  if (calls == nullptr || calls->version != FX_DEVICE_VERSION || calls->size != sizeof(FxPlugin))
    return failed(path + " is a plugin of another version of fxopt", hint);
  if (calls->build != kVersion) {
    return failed(path + " was built with fxopt " + calls->build + ", but this is fxopt " + std::string(kVersion),
                  hint);
  }
  return Plugin{calls, path};
}

}  // namespace

std::vector<std::string> plugin_paths(const std::string& name, const std::string& given) {
  if (!given.empty()) return {given};
  std::vector<std::string> paths;
  if (const char* folders = std::getenv("FXOPT_PLUGIN_PATH")) {
    std::string_view rest = folders;
    while (!rest.empty()) {
      const std::string_view folder = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
      if (!folder.empty()) paths.push_back(std::string(folder) + "/" + file_name(name));
    }
  }
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return paths;
  paths.push_back((program.parent_path() / file_name(name)).string());
  paths.push_back((program.parent_path().parent_path() / "lib" / "fxopt" / file_name(name)).string());
  return paths;
}

Result<Plugin> open_plugin(const std::string& name, const std::string& given) {
  std::string looked;
  for (const std::string& path : plugin_paths(name, given)) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) return open_file(std::filesystem::absolute(path).string());
    looked += (looked.empty() ? "" : ", ") + path;
  }
  return failed(
      "no plugin for " + name + " was found: looked for " + looked,
      "if nvcc is installed, `cmake --build --preset release --target fxopt_cuda` builds the plugin; if the plugin "
      "is in another folder, give --plugin FILE, or set $FXOPT_PLUGIN_PATH to the folder");
}

Error device_error(const Plugin& plugin, int32_t status) {
  const std::string message = plugin.calls->last_error();
  switch (status) {
    case FX_DEVICE_NO_DRIVER:
      return failed("the GPU's driver is missing: " + message, "`fxopt doctor` lists the missing parts");
    case FX_DEVICE_OLD_DRIVER:
      return failed(message, "install a newer GPU driver");
    case FX_DEVICE_NONE:
      return failed(message, "`fxopt doctor` lists the GPUs found; CUDA_VISIBLE_DEVICES or a container may hide GPUs");
    case FX_DEVICE_NO_MEMORY:
      return {ErrorCode::kOutOfMemory, message, "`fxopt mem` reports a step's memory", {}};
    default:
      return failed(message, "");
  }
}

Result<std::unique_ptr<PluginDevice>> PluginDevice::open(const Plugin& plugin, int32_t ordinal) {
  FxDevice* handle = nullptr;
  if (const int32_t status = plugin.calls->open(ordinal, &handle); status != FX_DEVICE_OK)
    return device_error(plugin, status);
  std::unique_ptr<PluginDevice> device(new PluginDevice(plugin, handle, ordinal));
  device->info_.size = sizeof(FxDeviceInfo);
  if (const int32_t status = plugin.calls->info(handle, &device->info_); status != FX_DEVICE_OK)
    return device_error(plugin, status);
  return device;
}

PluginDevice::~PluginDevice() { plugin_.calls->close(handle_); }

Result<int64_t> PluginDevice::query_free_bytes() const {
  FxDeviceInfo now{};
  now.size = sizeof now;
  if (const int32_t status = plugin_.calls->info(handle_, &now); status != FX_DEVICE_OK) return error(status);
  return now.free_bytes;
}

int64_t PluginDevice::free_bytes() const {
  const Result<int64_t> bytes = query_free_bytes();
  if (!bytes.ok()) throw DeviceFailure{bytes.error()};
  return *bytes;
}

void PluginDevice::check(int32_t status) const {
  if (status != FX_DEVICE_OK) throw DeviceFailure{error(status)};
}

std::optional<uint64_t> PluginDevice::allocate(int64_t bytes) {
  uint64_t address = 0;
  const int32_t status = plugin_.calls->allocate(handle_, bytes, &address);
  if (status == FX_DEVICE_NO_MEMORY) return std::nullopt;
  check(status);
  return address;
}

void PluginDevice::free(uint64_t address, int64_t) { check(plugin_.calls->free(handle_, address)); }

uint64_t PluginDevice::reserve(int64_t bytes) {
  uint64_t address = 0;
  check(plugin_.calls->reserve(handle_, bytes, &address));
  return address;
}

void PluginDevice::unreserve(uint64_t address, int64_t bytes) {
  check(plugin_.calls->unreserve(handle_, address, bytes));
}

bool PluginDevice::map(uint64_t address, int64_t bytes, int64_t page_bytes) {
  const int32_t status = plugin_.calls->map(handle_, address, bytes, page_bytes);
  if (status == FX_DEVICE_NO_MEMORY) return false;
  check(status);
  return true;
}

void PluginDevice::unmap(uint64_t address, int64_t bytes, int64_t, int64_t) {
  check(plugin_.calls->unmap(handle_, address, bytes));
}

}  // namespace fxopt
