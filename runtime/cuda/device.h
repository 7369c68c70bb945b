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
  // Throws DeviceError, as all of it: NONE where there are not so many devices.
  explicit Device(int32_t ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return driver_; }
  // Makes the context the calling thread's. Every function does it first.
  void enter() const;
  void info(FxDeviceInfo& info) const;

  // What nobody gives back goes back with the device.
  CUdeviceptr allocate(int64_t bytes, const std::string& what = "");
  void free(CUdeviceptr address);
  CUdeviceptr reserve(int64_t bytes);
  void unreserve(CUdeviceptr address, int64_t bytes);
  void map(CUdeviceptr address, int64_t bytes, int64_t page_bytes);
  void unmap(CUdeviceptr address, int64_t bytes);
  // Both wait for all work of the device, and for the copy.
  void write(CUdeviceptr to, const void* from, int64_t bytes) const;
  void read(void* to, CUdeviceptr from, int64_t bytes) const;

  // "fx_add_f32". Its code is loaded when first asked for, not when first launched.
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
  std::map<CUdeviceptr, int64_t> reserved_;                                         // bytes by address
  std::map<CUdeviceptr, std::pair<CUmemGenericAllocationHandle, int64_t>> mapped_;  // pages by address
};

}  // namespace fxopt::cuda
