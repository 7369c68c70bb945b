// The part of the CUDA runtime and driver that PyTorch's allocator calls, over a SimulatedDevice:
// the allocator itself runs unchanged on a machine without a GPU. Linked into the program, whose
// symbols come before those of libcudart.

#include "scripts/peers/allocator/fake_cuda.h"

#include <cstring>
#include <cuda.h>
#include <map>
#include <string>

#include <cuda_runtime_api.h>

namespace {

fxopt::SimulatedDevice* device = nullptr;
std::map<cudaEvent_t, uint64_t> events;
std::map<CUmemGenericAllocationHandle, int64_t> pages;  // bytes
uint64_t next_handle = 1;

template <class Pointer>
uint64_t address_of(Pointer pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

}  // namespace

namespace fxopt {

void use_device(SimulatedDevice& simulated) { device = &simulated; }

cudaStream_t stream_of(int64_t number) { return reinterpret_cast<cudaStream_t>(number << 12); }

}  // namespace fxopt

namespace {

int64_t number_of(cudaStream_t stream) { return static_cast<int64_t>(address_of(stream)) >> 12; }

// ---- the driver's functions, handed out by cudaGetDriverEntryPointByVersion

CUresult reserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  *address = device->reserve(static_cast<int64_t>(bytes));
  return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*, unsigned long long) {
  const auto size = static_cast<int64_t>(bytes);
  if (!device->map(0, size, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = next_handle++;
  pages[*handle] = size;
  return CUDA_SUCCESS;
}

CUresult release(CUmemGenericAllocationHandle handle) {
  device->free(0, pages.at(handle));
  pages.erase(handle);
  return CUDA_SUCCESS;
}

CUresult device_get(CUdevice* found, int) {
  *found = 0;
  return CUDA_SUCCESS;
}

CUresult no_attribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult granularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *bytes = size_t{2} << 20;
  return CUDA_SUCCESS;
}

CUresult error_string(CUresult, const char** text) {
  *text = "an error of the fake driver";
  return CUDA_SUCCESS;
}

CUresult nothing() { return CUDA_SUCCESS; }

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned int, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const std::map<std::string, void*> functions{{"cuMemAddressReserve", reinterpret_cast<void*>(reserve)},
                                               {"cuMemCreate", reinterpret_cast<void*>(create)},
                                               {"cuMemRelease", reinterpret_cast<void*>(release)},
                                               {"cuDeviceGet", reinterpret_cast<void*>(device_get)},
                                               {"cuDeviceGetAttribute", reinterpret_cast<void*>(no_attribute)},
                                               {"cuMemGetAllocationGranularity", reinterpret_cast<void*>(granularity)},
                                               {"cuGetErrorString", reinterpret_cast<void*>(error_string)}};
  const auto found = functions.find(name);
  *function = found != functions.end() ? found->second : reinterpret_cast<void*>(nothing);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, size_t bytes) {
  const std::optional<uint64_t> found = device->allocate(static_cast<int64_t>(bytes));
  if (!found.has_value()) return cudaErrorMemoryAllocation;
  *address = reinterpret_cast<void*>(*found);
  fxopt::allocations()[*found] = static_cast<int64_t>(bytes);
  return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
  if (address == nullptr) return cudaSuccess;
  device->free(address_of(address), fxopt::allocations().at(address_of(address)));
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *free_bytes = static_cast<size_t>(device->free_bytes());
  *total_bytes = static_cast<size_t>(device->total_bytes());
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof(*properties));
  properties->totalGlobalMem = static_cast<size_t>(device->total_bytes());
  properties->major = 9;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  *event = reinterpret_cast<cudaEvent_t>(next_handle++);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  events[event] = device->record_event(number_of(stream));
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return device->is_done(events.at(event)) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  device->wait(events.at(event));
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  device->finish(number_of(stream));
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = fxopt::captures() > 0 ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                     size_t* dependencies) {
  *status = fxopt::captures() > 0 ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id != nullptr) *id = 1;
  if (dependencies != nullptr) *dependencies = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* found) {
  *found = 0;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error of the fake runtime"; }
const char* cudaGetErrorName(cudaError_t) { return "fake"; }

}  // extern "C"
