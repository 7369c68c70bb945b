#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <memory>
#include <mutex>

namespace fxopt::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

std::string version_text(int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// A driver below the wanted version lacks functions and rejects kernels of this compiler.
[[noreturn]] void too_old(int32_t version) {
  throw DeviceError(FX_DEVICE_OLD_DRIVER, "the driver is for CUDA " + version_text(version) +
                                              ", but this plugin needs a driver for " + version_text(kWantedVersion) +
                                              " or newer");
}

template <class Function>
void find(PFN_cuGetProcAddress_v12000 get, const char* name, int version, Function& function) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  if (get(name, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS) found = nullptr;
  function = reinterpret_cast<Function>(found);
}

std::unique_ptr<Driver> load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    throw DeviceError(FX_DEVICE_NO_DRIVER, why != nullptr ? why : std::string(kLibrary) + " is not found");
  }
  const auto get = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr)
    throw DeviceError(FX_DEVICE_OLD_DRIVER,
                      std::string(kLibrary) + " is older than CUDA 12: it has no cuGetProcAddress_v2");
  auto driver = std::make_unique<Driver>();
  find(get, "cuDriverGetVersion", 2020, driver->cuDriverGetVersion);
  if (driver->cuDriverGetVersion == nullptr || driver->cuDriverGetVersion(&driver->version) != CUDA_SUCCESS)
    throw DeviceError(FX_DEVICE_FAILED, std::string(kLibrary) + " does not report its version");
  if (driver->version < kWantedVersion) too_old(driver->version);
  const char* missing = nullptr;
#define FX_DRIVER(function, version)               \
  find(get, #function, version, driver->function); \
  if (driver->function == nullptr) missing = #function;
#include "runtime/cuda/driver.inc"
  if (missing != nullptr) throw DeviceError(FX_DEVICE_OLD_DRIVER, std::string(kLibrary) + " has no " + missing);
  Dl_info where{};
  if (dladdr(reinterpret_cast<void*>(get), &where) != 0 && where.dli_fname != nullptr) driver->path = where.dli_fname;
  const CUresult result = driver->cuInit(0);
  if (result == CUDA_ERROR_NO_DEVICE) throw DeviceError(FX_DEVICE_NONE, "the driver finds no GPU");
  driver->check(result, "initialize the driver");
  return driver;
}

}  // namespace

void Driver::check(CUresult result, const std::string& what) const {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS) name = nullptr;
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS) text = nullptr;
  const std::string code = name != nullptr ? name : "error " + std::to_string(static_cast<int>(result));
  throw DeviceError(result == CUDA_ERROR_OUT_OF_MEMORY ? FX_DEVICE_NO_MEMORY : FX_DEVICE_FAILED,
                    "cannot " + what + ": " + code + (text != nullptr ? std::string(", ") + text : std::string()));
}

const Driver& driver() {
  static std::mutex mutex;
  static std::unique_ptr<Driver> loaded;
  const std::lock_guard lock(mutex);
  if (loaded == nullptr) loaded = load();
  return *loaded;
}

}  // namespace fxopt::cuda
