// A libcuda.so.1 that runs the emulated kernels. It has the functions that the plugin calls, and is
// as strict as a GPU.
//
// Calls queue work, which runs once the host waits. Then streams take turns in a drawn order, and
// copies read and write host memory. Device memory is inaccessible otherwise. No address is used
// twice.

#include "tests/runtime/cuda/fake_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "tests/runtime/cuda/emulated_kernels.h"
#include "tests/runtime/cuda/emulation.h"

namespace fxopt {
namespace {

constexpr uint64_t kAddresses = uint64_t{1} << 40;  // reserved address space
constexpr uint64_t kPage = uint64_t{2} << 20;
// Releases the memory and leaves its addresses inaccessible.
void forget(uint64_t address, uint64_t bytes) {
  void* memory = reinterpret_cast<void*>(address);
  if (mmap(memory, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != memory)
    std::abort();
}

constexpr unsigned kMostThreads = 1024, kMostShared = 48 << 10;

struct Stream;

struct Event {
  uint64_t recorded = 0, done = 0;  // how often it was recorded, and how many of these were reached
  double time = 0;
};

struct Work {
  std::function<void()> run;
  Event* waits = nullptr;  // starts once `records` records of this event are done
  uint64_t records = 0;
};

struct Stream {
  std::deque<Work> queue;
};

struct Range {
  uint64_t bytes = 0;
  bool is_reserved = false;  // address space for pages
};

struct Kernel {
  const EmulatedKernel* emulated;
};

class Fake {
 public:
  std::mutex mutex;
  int32_t devices = 1, version = 13000;
  int64_t memory = int64_t{8} << 30, taken = 0;
  uint64_t order = 0, fail_at = 0, calls = 0;
  std::string failed, faults, held;
  bool is_initialized = false;
  int contexts = 0;
  std::map<uint64_t, Range> ranges;            // memory and reserved addresses, by first address
  std::map<uint64_t, uint64_t> pages;          // mapped pages: address, bytes
  std::map<uint64_t, uint64_t> handles;        // from cuMemCreate: handle, bytes
  std::map<uint64_t, uint64_t> mapped_handle;  // mapped pages: address, handle
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Kernel*> kernels;
  int libraries = 0;
  uint64_t next_handle = 1;
  double clock = 0;
  std::mt19937_64 random;
  CUresult sticky = CUDA_SUCCESS;

  uint64_t take_addresses(uint64_t bytes) {
    if (base_ == 0) {
      void* all = mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (all == MAP_FAILED) std::abort();
      base_ = next_ = (reinterpret_cast<uint64_t>(all) + kPage - 1) / kPage * kPage;
    }
    const uint64_t address = next_;
    if (bytes > base_ + kAddresses - next_) std::abort();
    next_ += (bytes + kPage - 1) / kPage * kPage + kPage;  // and an unused page between
    return address;
  }

  void fault(const std::string& text) { faults += text + "\n"; }

  // True if the call must fail.
  bool enter(const char* name) {
    if (++calls != fail_at) return false;
    failed = name;
    return true;
  }

  bool holds(const void* pointer, uint64_t bytes) const {
    const auto address = reinterpret_cast<uint64_t>(pointer);
    const auto inside = [&](const auto& all, const auto& size) {
      auto found = all.upper_bound(address);
      if (found == all.begin()) return false;
      --found;
      return address + bytes <= found->first + size(found->second);
    };
    return inside(ranges, [](const Range& range) { return range.is_reserved ? 0 : range.bytes; }) ||
           in_pages(address, bytes);
  }

  // Adjacent pages form one range.
  bool in_pages(uint64_t address, uint64_t bytes) const {
    uint64_t at = address;
    while (at < address + bytes || (bytes == 0 && at == address)) {
      auto found = pages.upper_bound(at);
      if (found == pages.begin()) return false;
      --found;
      if (at >= found->first + found->second) return false;
      at = found->first + found->second;
      if (bytes == 0) return true;
    }
    return true;
  }

  // Drops everything that a test has left behind.
  void drop_all() {
    for (Stream* stream : streams) delete stream;
    for (Event* event : events) delete event;
    for (Kernel* kernel : kernels) delete kernel;
    streams.clear();
    events.clear();
    kernels.clear();
    for (const auto& [address, range] : ranges) {
      if (!range.is_reserved) forget(address, range.bytes);
    }
    for (const auto& [address, bytes] : pages) forget(address, bytes);
    ranges.clear();
    pages.clear();
    handles.clear();
    mapped_handle.clear();
    libraries = contexts = 0;
    taken = 0;
    next_ = base_;
  }

  void protect(int how) {
    for (const auto& [address, range] : ranges) {
      if (!range.is_reserved) mprotect(reinterpret_cast<void*>(address), range.bytes, how);
    }
    for (const auto& [address, bytes] : pages) mprotect(reinterpret_cast<void*>(address), bytes, how);
  }

  // Runs queued work until `stream` (null: every stream) is empty.
  void drain(Stream* stream) {
    if (streams.empty()) return;
    protect(PROT_READ | PROT_WRITE);
    for (;;) {
      std::vector<Stream*> ready;
      for (Stream* each : streams) {
        if (!each->queue.empty() && is_ready(each->queue.front())) ready.push_back(each);
      }
      const bool is_done = stream != nullptr ? stream->queue.empty() : all_empty();
      if (is_done || ready.empty()) {
        if (!is_done) fault("streams wait for events that nobody records");
        break;
      }
      Stream* next = order == 0 ? ready.front() : ready[random() % ready.size()];
      const Work work = std::move(next->queue.front());
      next->queue.pop_front();
      clock += 1e-3;
      if (work.run) work.run();
    }
    protect(PROT_NONE);
  }
  static bool is_ready(const Work& work) { return work.waits == nullptr || work.waits->done >= work.records; }
  bool all_empty() const {
    return std::all_of(streams.begin(), streams.end(), [](const Stream* each) { return each->queue.empty(); });
  }

 private:
  uint64_t base_ = 0, next_ = 0;
};

Fake& fake() {
  static Fake all;
  return all;
}

thread_local bool has_context = false;

// True if the last byte of the view, at its largest offset, is in device memory.
bool is_view_inside(const Fake& all, const FxView& view) {
  if (view.data == nullptr || view.is_number != 0) return true;
  static constexpr uint64_t kBytes[] = {0, 1, 1, 2, 4, 8, 2, 4, 8, 0, 0, 0, 1, 2};
  const uint64_t size = view.dtype < std::size(kBytes) ? kBytes[view.dtype] : 0;
  int64_t last = 0;
  for (int d = 0; d < view.rank; ++d) {
    if (view.size[d] == 0) return true;
    last += (view.size[d] - 1) * view.stride[d];
  }
  return all.holds(view.data, (static_cast<uint64_t>(last) + 1) * size);
}

void check_call(Fake& all, const std::string& name, const FxCall& call) {
  const uint64_t views = call.num_results + call.num_operands;
  if (!all.holds(call.views, views * sizeof(FxView)))
    return all.fault(name + ": its views are not the device's memory");
  if (call.num_params > 0 && !all.holds(call.params, call.num_params * sizeof(FxNumber)))
    return all.fault(name + ": its numbers are not the device's memory");
  if (!all.holds(call.error, sizeof(int64_t))) return all.fault(name + ": its error word is not the device's memory");
  if (call.workspace != nullptr && !all.holds(call.workspace, 1))
    return all.fault(name + ": its workspace is not the device's memory");
  for (uint64_t i = 0; i < views; ++i) {
    if (!is_view_inside(all, call.views[i]))
      all.fault(name + ": view " + std::to_string(i) + " leaves the device's memory");
  }
}

void run_kernel(Fake& all, const Kernel& kernel, const dim3& grid, const dim3& block, FxCall call, uint32_t phase,
                int64_t first) {
  const std::string name(kernel.emulated->symbol);
  const std::string before = all.faults;
  check_call(all, name, call);
  if (all.faults != before) {
    all.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    return;
  }
  try {
    emulation::launch({grid, block, all.order}, [&] { kernel.emulated->kernel(call, phase, first); });
  } catch (const std::exception& error) {
    all.fault(name + ": " + error.what());
    all.sticky = CUDA_ERROR_LAUNCH_FAILED;
  }
}

}  // namespace
}  // namespace fxopt

using namespace fxopt;

#define FX_ENTER(name)                             \
  Fake& all = fake();                              \
  const std::lock_guard lock(all.mutex);           \
  if (all.enter(#name)) return CUDA_ERROR_UNKNOWN; \
  if (!all.is_initialized) return CUDA_ERROR_NOT_INITIALIZED
#define FX_IN_CONTEXT(name)                            \
  FX_ENTER(name);                                      \
  if (!has_context) return CUDA_ERROR_INVALID_CONTEXT; \
  if (all.sticky != CUDA_SUCCESS) return all.sticky

extern "C" {

CUresult cuInit(unsigned) {
  Fake& all = fake();
  const std::lock_guard lock(all.mutex);
  if (all.enter("cuInit")) return CUDA_ERROR_UNKNOWN;
  if (all.devices == 0) return CUDA_ERROR_NO_DEVICE;
  all.is_initialized = true;
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  Fake& all = fake();
  if (all.enter("cuDriverGetVersion")) return CUDA_ERROR_UNKNOWN;
  *version = all.version;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  static const std::map<CUresult, const char*> names = {{CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
                                                        {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                        {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                                                        {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
                                                        {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                        {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
                                                        {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
                                                        {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"}};
  const auto found = names.find(error);
  if (found == names.end()) return CUDA_ERROR_INVALID_VALUE;
  *name = found->second;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "as the fake driver was told";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  FX_ENTER(cuDeviceGetCount);
  *count = all.devices;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FX_ENTER(cuDeviceGet);
  if (ordinal < 0 || ordinal >= all.devices) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  FX_ENTER(cuDeviceGetName);
  std::snprintf(name, static_cast<size_t>(size), "Fake GPU");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  FX_ENTER(cuDeviceGetAttribute);
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
           : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT   ? 132
                                                                 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  FX_ENTER(cuDevicePrimaryCtxRetain);
  ++all.contexts;
  *context = reinterpret_cast<CUcontext>(&all);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  FX_ENTER(cuDevicePrimaryCtxRelease);
  --all.contexts;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  FX_ENTER(cuCtxSetCurrent);
  has_context = context != nullptr;
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
  FX_IN_CONTEXT(cuCtxSynchronize);
  all.drain(nullptr);
  return all.sticky;
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  FX_IN_CONTEXT(cuMemGetInfo);
  *free = static_cast<size_t>(all.memory - all.taken);
  *total = static_cast<size_t>(all.memory);
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  FX_IN_CONTEXT(cuMemAlloc);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (static_cast<int64_t>(bytes) > all.memory - all.taken) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = all.take_addresses(bytes);
  void* memory = reinterpret_cast<void*>(*address);
  mprotect(memory, bytes, PROT_READ | PROT_WRITE);
  std::memset(memory, 0xff, bytes);  // NaNs
  mprotect(memory, bytes, PROT_NONE);
  all.ranges[*address] = {bytes, false};
  all.taken += static_cast<int64_t>(bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  FX_IN_CONTEXT(cuMemFree);
  all.drain(nullptr);
  const auto range = all.ranges.find(address);
  if (range == all.ranges.end() || range->second.is_reserved) return CUDA_ERROR_INVALID_VALUE;
  forget(address, range->second.bytes);
  all.taken -= static_cast<int64_t>(range->second.bytes);
  all.ranges.erase(range);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  FX_IN_CONTEXT(cuMemAddressReserve);
  if (bytes % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  *address = all.take_addresses(bytes);
  all.ranges[*address] = {bytes, true};
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t) {
  FX_IN_CONTEXT(cuMemAddressFree);
  return all.ranges.erase(address) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) {
  FX_IN_CONTEXT(cuMemCreate);
  if (bytes % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  if (static_cast<int64_t>(bytes) > all.memory - all.taken) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = all.next_handle++;
  all.handles[*handle] = bytes;
  all.taken += static_cast<int64_t>(bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  FX_IN_CONTEXT(cuMemRelease);
  const auto found = all.handles.find(handle);
  if (found == all.handles.end()) return CUDA_ERROR_INVALID_VALUE;
  all.taken -= static_cast<int64_t>(found->second);
  all.handles.erase(found);
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle, unsigned long long) {
  FX_IN_CONTEXT(cuMemMap);
  const auto found = all.handles.find(handle);
  if (found == all.handles.end() || found->second != bytes || address % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  all.mapped_handle[address] = handle;
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc*, size_t) {
  FX_IN_CONTEXT(cuMemSetAccess);
  if (all.mapped_handle.count(address) == 0) return CUDA_ERROR_INVALID_VALUE;
  all.pages[address] = bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  FX_IN_CONTEXT(cuMemUnmap);
  all.drain(nullptr);
  const auto found = all.pages.find(address);
  if (found != all.pages.end()) {
    if (found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
    forget(address, found->second);
    all.pages.erase(found);
  }
  return all.mapped_handle.erase(address) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  FX_ENTER(cuMemGetAllocationGranularity);
  *bytes = kPage;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  FX_IN_CONTEXT(cuStreamCreate);
  auto* made = new Stream;
  all.streams.insert(made);
  *stream = reinterpret_cast<CUstream>(made);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  FX_IN_CONTEXT(cuStreamDestroy);
  auto* found = reinterpret_cast<Stream*>(stream);
  if (all.streams.count(found) == 0) return CUDA_ERROR_INVALID_VALUE;
  all.drain(found);
  all.streams.erase(found);
  delete found;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  FX_IN_CONTEXT(cuStreamSynchronize);
  auto* found = reinterpret_cast<Stream*>(stream);
  if (all.streams.count(found) == 0) return CUDA_ERROR_INVALID_VALUE;
  all.drain(found);
  return all.sticky;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  FX_IN_CONTEXT(cuStreamWaitEvent);
  auto* to = reinterpret_cast<Stream*>(stream);
  auto* from = reinterpret_cast<Event*>(event);
  if (all.streams.count(to) == 0 || all.events.count(from) == 0) return CUDA_ERROR_INVALID_VALUE;
  to->queue.push_back({nullptr, from, from->recorded});
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  FX_IN_CONTEXT(cuEventCreate);
  auto* made = new Event;
  all.events.insert(made);
  *event = reinterpret_cast<CUevent>(made);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent event) {
  FX_IN_CONTEXT(cuEventDestroy);
  auto* found = reinterpret_cast<Event*>(event);
  if (all.events.count(found) == 0) return CUDA_ERROR_INVALID_VALUE;
  all.drain(nullptr);
  all.events.erase(found);
  delete found;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  FX_IN_CONTEXT(cuEventRecord);
  auto* what = reinterpret_cast<Event*>(event);
  auto* where = reinterpret_cast<Stream*>(stream);
  if (all.streams.count(where) == 0 || all.events.count(what) == 0) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t count = ++what->recorded;
  where->queue.push_back({[what, count] {
                            what->done = std::max(what->done, count);
                            what->time = fake().clock;
                          },
                          nullptr, 0});
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  FX_IN_CONTEXT(cuEventElapsedTime);
  const auto* first = reinterpret_cast<Event*>(begin);
  const auto* last = reinterpret_cast<Event*>(end);
  if (first->recorded == 0 || last->recorded == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (first->done != first->recorded || last->done != last->recorded) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>((last->time - first->time) * 1e3);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  FX_IN_CONTEXT(cuMemcpyHtoDAsync);
  if (!all.holds(reinterpret_cast<void*>(to), bytes)) return CUDA_ERROR_INVALID_VALUE;
  reinterpret_cast<Stream*>(stream)->queue.push_back(
      {[=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); }, nullptr, 0});
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  FX_IN_CONTEXT(cuMemcpyDtoHAsync);
  if (!all.holds(reinterpret_cast<void*>(from), bytes)) return CUDA_ERROR_INVALID_VALUE;
  reinterpret_cast<Stream*>(stream)->queue.push_back(
      {[=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); }, nullptr, 0});
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*,
                           void**, unsigned) {
  FX_IN_CONTEXT(cuLibraryLoadData);
  uint32_t magic = 0;
  std::memcpy(&magic, code, sizeof magic);
  if (magic != 0xba55ed50) return CUDA_ERROR_INVALID_IMAGE;  // the magic number of a fatbin
  ++all.libraries;
  *library = reinterpret_cast<CUlibrary>(&all);
  return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary) {
  FX_IN_CONTEXT(cuLibraryUnload);
  all.drain(nullptr);
  --all.libraries;
  for (Kernel* kernel : all.kernels) delete kernel;
  all.kernels.clear();
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary, const char* name) {
  FX_IN_CONTEXT(cuLibraryGetKernel);
  const EmulatedKernel* found = find_emulated_kernel(name);
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  auto* made = new Kernel{found};
  all.kernels.insert(made);
  *kernel = reinterpret_cast<CUkernel>(made);
  return CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  FX_IN_CONTEXT(cuKernelGetFunction);
  if (all.kernels.count(reinterpret_cast<Kernel*>(kernel)) == 0) return CUDA_ERROR_INVALID_HANDLE;
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** arguments,
                        void** extra) {
  FX_IN_CONTEXT(cuLaunchKernel);
  auto* kernel = reinterpret_cast<Kernel*>(function);
  auto* where = reinterpret_cast<Stream*>(stream);
  if (all.kernels.count(kernel) == 0 || all.streams.count(where) == 0 || extra != nullptr)
    return CUDA_ERROR_INVALID_HANDLE;
  const unsigned threads = block_x * block_y * block_z;
  if (grid_x == 0 || grid_x > INT32_MAX || grid_y != 1 || grid_z != 1 || threads == 0 || threads > kMostThreads ||
      shared_bytes > kMostShared)
    return CUDA_ERROR_INVALID_VALUE;
  if (threads > kernel->emulated->most_lanes) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  FxCall call;
  uint32_t phase;
  int64_t first;
  std::memcpy(&call, arguments[0], sizeof call);
  std::memcpy(&phase, arguments[1], sizeof phase);
  std::memcpy(&first, arguments[2], sizeof first);
  const dim3 grid{grid_x, 1, 1}, block{block_x, block_y, block_z};
  where->queue.push_back({[=] { run_kernel(fake(), *kernel, grid, block, call, phase, first); }, nullptr, 0});
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t,
                             CUdriverProcAddressQueryResult* status) {
  struct Named {
    const char* name;
    int version;  // the first version with this signature
    void* function;
  };
#define FX_NAMED(name, version, function) \
  { #name, version, reinterpret_cast < void*>(function) }
  static const Named all_functions[] = {FX_NAMED(cuInit, 2000, cuInit),
                                        FX_NAMED(cuDriverGetVersion, 2020, cuDriverGetVersion),
                                        FX_NAMED(cuGetErrorName, 6000, cuGetErrorName),
                                        FX_NAMED(cuGetErrorString, 6000, cuGetErrorString),
                                        FX_NAMED(cuDeviceGetCount, 2000, cuDeviceGetCount),
                                        FX_NAMED(cuDeviceGet, 2000, cuDeviceGet),
                                        FX_NAMED(cuDeviceGetName, 2000, cuDeviceGetName),
                                        FX_NAMED(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute),
                                        FX_NAMED(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain),
                                        FX_NAMED(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2),
                                        FX_NAMED(cuCtxSetCurrent, 4000, cuCtxSetCurrent),
                                        FX_NAMED(cuCtxSynchronize, 2000, cuCtxSynchronize),
                                        FX_NAMED(cuMemGetInfo, 3020, cuMemGetInfo_v2),
                                        FX_NAMED(cuMemAlloc, 3020, cuMemAlloc_v2),
                                        FX_NAMED(cuMemFree, 3020, cuMemFree_v2),
                                        FX_NAMED(cuMemAddressReserve, 10020, cuMemAddressReserve),
                                        FX_NAMED(cuMemAddressFree, 10020, cuMemAddressFree),
                                        FX_NAMED(cuMemCreate, 10020, cuMemCreate),
                                        FX_NAMED(cuMemRelease, 10020, cuMemRelease),
                                        FX_NAMED(cuMemMap, 10020, cuMemMap),
                                        FX_NAMED(cuMemUnmap, 10020, cuMemUnmap),
                                        FX_NAMED(cuMemSetAccess, 10020, cuMemSetAccess),
                                        FX_NAMED(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity),
                                        FX_NAMED(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2),
                                        FX_NAMED(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2),
                                        FX_NAMED(cuStreamCreate, 2000, cuStreamCreate),
                                        FX_NAMED(cuStreamDestroy, 4000, cuStreamDestroy_v2),
                                        FX_NAMED(cuStreamSynchronize, 2000, cuStreamSynchronize),
                                        FX_NAMED(cuStreamWaitEvent, 3020, cuStreamWaitEvent),
                                        FX_NAMED(cuEventCreate, 2000, cuEventCreate),
                                        FX_NAMED(cuEventDestroy, 4000, cuEventDestroy_v2),
                                        FX_NAMED(cuEventRecord, 2000, cuEventRecord),
                                        FX_NAMED(cuEventElapsedTime, 12080, cuEventElapsedTime_v2),
                                        FX_NAMED(cuLibraryLoadData, 12000, cuLibraryLoadData),
                                        FX_NAMED(cuLibraryGetKernel, 12000, cuLibraryGetKernel),
                                        FX_NAMED(cuLibraryUnload, 12000, cuLibraryUnload),
                                        FX_NAMED(cuKernelGetFunction, 12000, cuKernelGetFunction),
                                        FX_NAMED(cuLaunchKernel, 4000, cuLaunchKernel)};
  if (fake().enter("cuGetProcAddress")) return CUDA_ERROR_UNKNOWN;
  for (const Named& each : all_functions) {
    if (std::strcmp(each.name, name) != 0) continue;
    *function = version == each.version ? each.function : nullptr;
    if (status != nullptr)
      *status = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  }
  *function = nullptr;
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_ERROR_NOT_FOUND;
}

void fake_cuda_reset(int32_t devices, int64_t memory_bytes, int32_t driver_version) {
  Fake& all = fake();
  all.drop_all();
  all.devices = devices;
  all.memory = memory_bytes;
  all.version = driver_version;
  all.order = all.fail_at = all.calls = 0;
  all.failed = all.faults = "";
  all.sticky = CUDA_SUCCESS;
}
void fake_cuda_set_order(uint64_t seed) {
  fake().order = seed;
  fake().random.seed(seed);
}
void fake_cuda_fail_call(uint64_t number) {
  fake().fail_at = number;
  fake().calls = 0;
  fake().failed = "";
}
uint64_t fake_cuda_num_calls() { return fake().calls; }
const char* fake_cuda_failed_call() { return fake().failed.c_str(); }
const char* fake_cuda_held() {
  Fake& all = fake();
  all.held.clear();
  const auto add = [&](const char* what, size_t count) {
    if (count > 0) all.held += std::to_string(count) + " " + what + "\n";
  };
  add("memory or addresses", all.ranges.size());
  add("mapped", all.mapped_handle.size());
  add("memory of pages", all.handles.size());
  add("streams", all.streams.size());
  add("events", all.events.size());
  add("libraries", static_cast<size_t>(all.libraries));
  add("contexts", static_cast<size_t>(all.contexts));
  return all.held.c_str();
}
const char* fake_cuda_faults() { return fake().faults.c_str(); }
}

// FXOPT_FAKE_CUDA="DEVICES,BYTES,VERSION" configures the driver for a program, which cannot call
// fake_cuda_reset().
namespace {
const bool is_set = [] {
  const char* text = std::getenv("FXOPT_FAKE_CUDA");
  int devices = 1, version = 13000;
  long long bytes = int64_t{8} << 30;
  if (text != nullptr && std::sscanf(text, "%d,%lld,%d", &devices, &bytes, &version) >= 1)
    fake_cuda_reset(devices, bytes, version);
  return true;
}();
}  // namespace
