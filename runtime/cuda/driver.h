// The functions of the CUDA driver, looked up at run time: the plugin links no CUDA library.
#pragma once

#include <cstdint>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdexcept>
#include <string>

#include "runtime/abi/device.h"

namespace fxopt::cuda {

// Status and message that a function of the plugin's interface returns.
struct DeviceError : std::runtime_error {
  DeviceError(FxDeviceStatus what, const std::string& message) : std::runtime_error(message), status(what) {}
  FxDeviceStatus status;
};

constexpr int32_t kWantedVersion = 13000;  // minimum driver that runs code compiled by nvcc 13

struct Driver {
#define FX_DRIVER(function, version) PFN_##function##_v##version function = nullptr;
#include "runtime/cuda/driver.inc"
  int32_t version = 0;
  std::string path;

  // Throws DeviceError unless `result` is success. `what`: "allocate 512 bytes".
  void check(CUresult result, const std::string& what) const;
};

// Loads libcuda.so.1 and initializes it once. Throws DeviceError: NO_DRIVER, OLD_DRIVER, FAILED.
const Driver& driver();

}  // namespace fxopt::cuda
