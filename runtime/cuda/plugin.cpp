// The functions of the plugin's interface. They convert exceptions to statuses.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "core/version.h"
#include "runtime/abi/device.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/program.h"
#include "runtime/cuda/table.h"

struct FxDevice {
  fxopt::cuda::Device device;
};
struct FxProgram {
  fxopt::cuda::Program program;
};

namespace fxopt::cuda {
namespace {

thread_local char last_error_text[1024];

void set_last_error(const char* text) { std::snprintf(last_error_text, sizeof last_error_text, "%s", text); }

template <class Call>
int32_t guarded(const Call& call) {
  try {
    call();
    return FX_DEVICE_OK;
  } catch (const DeviceError& error) {
    set_last_error(error.what());
    return error.status;
  } catch (const std::bad_alloc&) {
    set_last_error("the host is out of memory");
  } catch (const std::exception& error) {
    set_last_error(error.what());
  }
  return FX_DEVICE_FAILED;
}
template <class Call>
int32_t inside(FxDevice* device, const Call& call) {
  return guarded([&] {
    device->device.enter();
    call(device->device);
  });
}

const char* last_error() { return last_error_text; }

// A struct of the caller must have the size that this plugin expects.
template <class Struct>
void check_size(const Struct* of_caller) {
  if (of_caller->size != sizeof(Struct))
    throw DeviceError(FX_DEVICE_FAILED, "the program and its plugin have different versions");
}

int32_t driver_info(FxDriverInfo* info) {
  info->wanted_version = kWantedVersion;
  return guarded([&] {
    check_size(info);
    const Driver& loaded = driver();
    info->version = loaded.version;
    std::snprintf(info->path, sizeof info->path, "%s", loaded.path.c_str());
    loaded.check(loaded.cuDeviceGetCount(&info->count), "count the GPUs");
  });
}

int32_t open(int32_t ordinal, FxDevice** device) {
  return guarded([&] { *device = new FxDevice{Device(ordinal)}; });
}
void close(FxDevice* device) { delete device; }

int32_t info(FxDevice* device, FxDeviceInfo* info) {
  return inside(device, [&](Device& here) {
    check_size(info);
    here.info(*info);
  });
}
int32_t allocate(FxDevice* device, int64_t bytes, uint64_t* address) {
  return inside(device, [&](Device& here) { *address = here.allocate(bytes); });
}
int32_t free_memory(FxDevice* device, uint64_t address) {
  return inside(device, [&](Device& here) { here.free(address); });
}
int32_t reserve(FxDevice* device, int64_t bytes, uint64_t* address) {
  return inside(device, [&](Device& here) { *address = here.reserve(bytes); });
}
int32_t unreserve(FxDevice* device, uint64_t address, int64_t bytes) {
  return inside(device, [&](Device& here) { here.unreserve(address, bytes); });
}
int32_t map(FxDevice* device, uint64_t address, int64_t bytes, int64_t page_bytes) {
  return inside(device, [&](Device& here) { here.map(address, bytes, page_bytes); });
}
int32_t unmap(FxDevice* device, uint64_t address, int64_t bytes) {
  return inside(device, [&](Device& here) { here.unmap(address, bytes); });
}
int32_t write(FxDevice* device, uint64_t to, const void* from, int64_t bytes) {
  return inside(device, [&](Device& here) { here.write(to, from, bytes); });
}
int32_t read(FxDevice* device, void* to, uint64_t from, int64_t bytes) {
  return inside(device, [&](Device& here) { here.read(to, from, bytes); });
}

int32_t prepare(FxDevice* device, const FxProgramSource* source, FxProgram** program) {
  return inside(device, [&](Device& here) {
    check_size(source);
    *program = new FxProgram{Program(here, *source)};
  });
}
void drop(FxProgram* program) {
  guarded([&] { program->program.device().enter(); });
  delete program;
}
int32_t run(FxProgram* program, uint32_t first, uint32_t end, FxStepTime* times, FxRunResult* result) {
  return guarded([&] {
    check_size(result);
    program->program.device().enter();
    program->program.run(first, end, times, *result);
  });
}

}  // namespace
}  // namespace fxopt::cuda

extern "C" __attribute__((visibility("default"))) const FxPlugin* fxopt_plugin(uint32_t version) {
  using namespace fxopt::cuda;
  static const FxPlugin plugin = {FX_DEVICE_VERSION,
                                  sizeof(FxPlugin),
                                  "cuda",
                                  fxopt::kVersion.data(),
                                  FXOPT_CUDA_TARGETS,
                                  &kernel_table(),
                                  last_error,
                                  driver_info,
                                  open,
                                  close,
                                  info,
                                  allocate,
                                  free_memory,
                                  reserve,
                                  unreserve,
                                  map,
                                  unmap,
                                  write,
                                  read,
                                  prepare,
                                  drop,
                                  run};
  return version == FX_DEVICE_VERSION ? &plugin : nullptr;
}
