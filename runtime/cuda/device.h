// One GPU: its context, its memory, its kernels.
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
  // Throws DeviceError, like all members: NONE if the ordinal is beyond the number of devices.
  explicit Device(int32_t ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return driver_; }
  // Makes the context current on the calling thread. Every function does so first.
  void enter() const;
  void info(FxDeviceInfo& info) const;

  // Memory that is not freed is released with the device.
  CUdeviceptr allocate(int64_t bytes, const std::string& what = "");
  void free(CUdeviceptr address);
  CUdeviceptr reserve(int64_t bytes);
  void unreserve(CUdeviceptr address, int64_t bytes);
  void map(CUdeviceptr address, int64_t bytes, int64_t page_bytes);
  void unmap(CUdeviceptr address, int64_t bytes);
  // Both wait for all work of the device, and for the copy.
  void write(CUdeviceptr to, const void* from, int64_t bytes) const;
  void read(void* to, CUdeviceptr from, int64_t bytes) const;

  // `symbol`: "fx_add_f32". The code is loaded at the first request, not at the first launch.
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
  std::map<CUdeviceptr, int64_t> reserved_;  // by address: bytes
  // by address: pages
  std::map<CUdeviceptr, std::pair<CUmemGenericAllocationHandle, int64_t>> mapped_;
};

}  // namespace fxopt::cuda
