// The functions of the CUDA driver. The functions are looked up at run time, so the plugin is not
// linked with a CUDA library.
#pragma once

#include <cstdint>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdexcept>
#include <string>

#include "runtime/abi/device.h"

namespace fxopt::cuda {

// The status and the message of a failed function of the plugin's interface.
struct DeviceError : std::runtime_error {
  DeviceError(FxDeviceStatus what, const std::string& message) : std::runtime_error(message), status(what) {}
  FxDeviceStatus status;
};

// The oldest driver version that runs code compiled by nvcc 13.
constexpr int32_t kWantedVersion = 13000;

struct Driver {
#define FX_DRIVER(function, version) PFN_##function##_v##version function = nullptr;
#include "runtime/cuda/driver.inc"
  int32_t version = 0;
  std::string path;

  // Throws DeviceError if `result` is an error. `what` names the failed action, such as "allocate
  // 512 bytes".
  void check(CUresult result, const std::string& what) const;
};

// Loads libcuda.so.1 and initializes it at the first call. Throws DeviceError with the status
// NO_DRIVER, OLD_DRIVER, NONE or FAILED.
const Driver& driver();

}  // namespace fxopt::cuda
