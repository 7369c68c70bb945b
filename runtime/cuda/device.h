// One GPU with its context, its memory and its kernels.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/cuda/driver.h"

namespace fxopt::cuda {

class Device {
 public:
  // Throws DeviceError on failure, like all members. The status is FX_DEVICE_NONE if no GPU has
  // this ordinal.
  explicit Device(int32_t ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return driver_; }
  // Makes the GPU's context current on the calling thread. Every function of the plugin calls
  // enter() before it uses the device.
  void enter() const;
  void info(FxDeviceInfo& info) const;

  // The destructor frees all memory that is still allocated, reserved or mapped.
  CUdeviceptr allocate(int64_t bytes, const std::string& what = "");
  void free(CUdeviceptr address);
  CUdeviceptr reserve(int64_t bytes);
  void unreserve(CUdeviceptr address, int64_t bytes);
  void map(CUdeviceptr address, int64_t bytes, int64_t page_bytes);
  void unmap(CUdeviceptr address, int64_t bytes);
  // write() and read() first wait for all work of the device. Then they copy, and return when the
  // copy is complete.
  void write(CUdeviceptr to, const void* from, int64_t bytes) const;
  void read(void* to, CUdeviceptr from, int64_t bytes) const;

  // Returns the kernel with a symbol such as "fx_add_f32". The code is loaded at the first request
  // for the kernel, not at its first launch.
  CUfunction kernel(const std::string& symbol);

 private:
  void end_copy(const char* what) const;
  void map_page(CUdeviceptr address, int64_t bytes);
  CUmemAllocationProp properties() const;
  int attribute(CUdevice_attribute which) const;

  const Driver& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream copies_ = nullptr;
  CUlibrary library_ = nullptr;
  std::unordered_map<std::string, CUfunction> kernels_;
  std::set<CUdeviceptr> allocated_;
  std::map<CUdeviceptr, int64_t> reserved_;  // number of bytes, by address
  // Handle and size of each mapped page, by address.
  std::map<CUdeviceptr, std::pair<CUmemGenericAllocationHandle, int64_t>> mapped_;
};

}  // namespace fxopt::cuda
