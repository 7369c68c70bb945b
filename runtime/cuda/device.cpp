#include "runtime/cuda/device.h"

#include "runtime/cuda/fatbin.h"

namespace fxopt::cuda {
namespace {

std::string bytes_text(int64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

Device::Device(int32_t ordinal) : driver_(cuda::driver()) {
  int count = 0;
  driver_.check(driver_.cuDeviceGetCount(&count), "count the GPUs");
  if (ordinal < 0 || ordinal >= count) {
    throw DeviceError(FX_DEVICE_NONE, "GPU " + std::to_string(ordinal) + " does not exist: the driver numbers its " +
                                          std::to_string(count) + " GPUs from 0");
  }
  driver_.check(driver_.cuDeviceGet(&device_, ordinal), "open GPU " + std::to_string(ordinal));
  driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "retain the GPU's context");
  try {
    enter();
    driver_.check(driver_.cuStreamCreate(&copies_, CU_STREAM_NON_BLOCKING), "make a stream");
    driver_.check(driver_.cuLibraryLoadData(&library_, kFatbin, nullptr, nullptr, 0, nullptr, nullptr, 0),
                  "load the kernels");
  } catch (...) {
    if (copies_ != nullptr) driver_.cuStreamDestroy(copies_);
    driver_.cuDevicePrimaryCtxRelease(device_);
    throw;
  }
}

Device::~Device() {
  driver_.cuCtxSetCurrent(context_);
  for (const auto& [address, page] : mapped_) {
    driver_.cuMemUnmap(address, static_cast<size_t>(page.second));
    driver_.cuMemRelease(page.first);
  }
  for (const auto& [address, bytes] : reserved_) driver_.cuMemAddressFree(address, static_cast<size_t>(bytes));
  for (const CUdeviceptr address : allocated_) driver_.cuMemFree(address);
  driver_.cuLibraryUnload(library_);
  driver_.cuStreamDestroy(copies_);
  driver_.cuDevicePrimaryCtxRelease(device_);
}

void Device::enter() const { driver_.check(driver_.cuCtxSetCurrent(context_), "enter the GPU's context"); }

int Device::attribute(CUdevice_attribute which) const {
  int value = 0;
  driver_.check(driver_.cuDeviceGetAttribute(&value, which, device_), "query an attribute of the GPU");
  return value;
}

void Device::info(FxDeviceInfo& info) const {
  driver_.check(driver_.cuDeviceGetName(info.name, static_cast<int>(sizeof info.name), device_),
                "query the GPU's name");
  size_t free = 0, total = 0;
  driver_.check(driver_.cuMemGetInfo(&free, &total), "query free memory");
  info.free_bytes = static_cast<int64_t>(free);
  info.total_bytes = static_cast<int64_t>(total);
  info.capability = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                    attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.clock_hz = int64_t{1000} * attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  info.memory_clock_hz = int64_t{1000} * attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  info.memory_bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  const CUmemAllocationProp of = properties();
  size_t page = 0;
  driver_.check(driver_.cuMemGetAllocationGranularity(&page, &of, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                "query the page size");
  info.page_bytes = static_cast<int64_t>(page);
}

CUdeviceptr Device::allocate(int64_t bytes, const std::string& what) {
  CUdeviceptr address = 0;
  driver_.check(driver_.cuMemAlloc(&address, static_cast<size_t>(bytes)),
                "allocate " + bytes_text(bytes) + (what.empty() ? "" : " " + what));
  allocated_.insert(address);
  return address;
}

void Device::free(CUdeviceptr address) {
  driver_.check(driver_.cuMemFree(address), "free memory");
  allocated_.erase(address);
}

CUmemAllocationProp Device::properties() const {
  CUmemAllocationProp of{};
  of.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  of.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  of.location.id = device_;
  return of;
}

CUdeviceptr Device::reserve(int64_t bytes) {
  CUdeviceptr address = 0;
  driver_.check(driver_.cuMemAddressReserve(&address, static_cast<size_t>(bytes), 0, 0, 0),
                "reserve addresses for " + bytes_text(bytes));
  reserved_[address] = bytes;
  return address;
}

void Device::unreserve(CUdeviceptr address, int64_t bytes) {
  driver_.check(driver_.cuMemAddressFree(address, static_cast<size_t>(bytes)), "release addresses");
  reserved_.erase(address);
}

void Device::map(CUdeviceptr address, int64_t bytes, int64_t page_bytes) {
  if (page_bytes <= 0 || bytes % page_bytes != 0) throw DeviceError(FX_DEVICE_FAILED, "cannot map parts of a page");
  for (int64_t done = 0; done < bytes; done += page_bytes) {
    try {
      map_page(address + static_cast<CUdeviceptr>(done), page_bytes);
    } catch (const DeviceError&) {
      unmap(address, done);
      throw;
    }
  }
}

void Device::map_page(CUdeviceptr address, int64_t bytes) {
  const CUmemAllocationProp of = properties();
  CUmemGenericAllocationHandle memory = 0;
  const auto size = static_cast<size_t>(bytes);
  driver_.check(driver_.cuMemCreate(&memory, size, &of, 0), "allocate " + bytes_text(bytes));
  CUmemAccessDesc access{};
  access.location = of.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUresult result = driver_.cuMemMap(address, size, 0, memory, 0);
  if (result == CUDA_SUCCESS) {
    result = driver_.cuMemSetAccess(address, size, &access, 1);
    if (result != CUDA_SUCCESS) driver_.cuMemUnmap(address, size);
  }
  if (result != CUDA_SUCCESS) driver_.cuMemRelease(memory);
  driver_.check(result, "map " + bytes_text(bytes));
  mapped_[address] = {memory, bytes};
}

// The range may cover several ranges that were mapped separately.
void Device::unmap(CUdeviceptr address, int64_t bytes) {
  const CUdeviceptr end = address + static_cast<CUdeviceptr>(bytes);
  while (address < end) {
    const auto page = mapped_.find(address);
    if (page == mapped_.end() || address + static_cast<CUdeviceptr>(page->second.second) > end)
      throw DeviceError(FX_DEVICE_FAILED, "cannot unmap memory that is not mapped as whole pages");
    driver_.check(driver_.cuMemUnmap(address, static_cast<size_t>(page->second.second)), "unmap memory");
    driver_.check(driver_.cuMemRelease(page->second.first), "release memory");
    address += static_cast<CUdeviceptr>(page->second.second);
    mapped_.erase(page);
  }
}

// Waits for a copy. A failed wait is retried once, because the caller may free the host memory as
// soon as this function returns or throws.
void Device::end_copy(const char* what) const {
  const CUresult result = driver_.cuStreamSynchronize(copies_);
  if (result != CUDA_SUCCESS) driver_.cuStreamSynchronize(copies_);
  driver_.check(result, what);
}

void Device::write(CUdeviceptr to, const void* from, int64_t bytes) const {
  if (bytes == 0) return;
  driver_.check(driver_.cuCtxSynchronize(), "wait for the GPU");
  driver_.check(driver_.cuMemcpyHtoDAsync(to, from, static_cast<size_t>(bytes), copies_), "copy to the GPU");
  end_copy("wait for a copy to the GPU");
}

void Device::read(void* to, CUdeviceptr from, int64_t bytes) const {
  if (bytes == 0) return;
  driver_.check(driver_.cuCtxSynchronize(), "wait for the GPU");
  driver_.check(driver_.cuMemcpyDtoHAsync(to, from, static_cast<size_t>(bytes), copies_), "copy from the GPU");
  end_copy("wait for a copy from the GPU");
}

CUfunction Device::kernel(const std::string& symbol) {
  CUfunction& function = kernels_[symbol];
  if (function != nullptr) return function;
  CUkernel kernel = nullptr;
  driver_.check(driver_.cuLibraryGetKernel(&kernel, library_, symbol.c_str()), "find the kernel " + symbol);
  driver_.check(driver_.cuKernelGetFunction(&function, kernel), "load the kernel " + symbol);
  return function;
}

}  // namespace fxopt::cuda
