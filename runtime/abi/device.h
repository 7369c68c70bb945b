/* The interface between the program and a plugin that provides a device.
 *
 * This header is plain C and includes only stdint.h and kernel.h. A plugin is a shared library that
 * exports fxopt_plugin(). The program never unloads a plugin. Every function that can fail returns
 * an FxDeviceStatus. After a failure, last_error() returns the error message of the calling thread.
 * A function keeps a pointer argument after the call only if its comment states this.
 */
#ifndef FXOPT_RUNTIME_ABI_DEVICE_H
#define FXOPT_RUNTIME_ABI_DEVICE_H

#include <stdint.h>

#include "runtime/abi/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FX_DEVICE_VERSION 2u

typedef enum FxDeviceStatus {
  FX_DEVICE_OK = 0,
  FX_DEVICE_NO_DRIVER = 1,  /* the driver's library is missing */
  FX_DEVICE_OLD_DRIVER = 2, /* the driver lacks functions that the plugin calls */
  FX_DEVICE_NONE = 3,       /* no device has the requested number */
  FX_DEVICE_NO_MEMORY = 4,
  FX_DEVICE_FAILED = 5
} FxDeviceStatus;

typedef struct FxDriverInfo {
  uint32_t size;          /* size of this struct in bytes, set by the caller */
  int32_t version;        /* for example 13000 for version 13.0 */
  int32_t wanted_version; /* the oldest driver version that the plugin supports */
  int32_t count;          /* number of devices */
  char path[512];         /* path of the driver's library */
} FxDriverInfo;

typedef struct FxDeviceInfo {
  uint32_t size;
  int32_t capability; /* for example 90 for compute capability 9.0 */
  int32_t processors; /* number of streaming multiprocessors */
  int32_t reserved;
  int64_t total_bytes, free_bytes;
  int64_t clock_hz, memory_clock_hz, memory_bus_bits;
  int64_t page_bytes; /* page sizes of map() are multiples of this */
  char name[128];
} FxDeviceInfo;

/* The launch of one phase of a step's kernel (FxKernel::phases). `body` is the name of a kernel in
 * the plugin's table. The data and the workspace of `call` are in device memory. The arrays `views`
 * and `params` are in host memory, and the plugin copies both arrays. The plugin does not read
 * `error`. */
typedef struct FxLaunch {
  const char* body;
  const FxCall* call;
  uint32_t step;
  uint32_t phase;
} FxLaunch;

/* Step `awaited_by` starts after step `recorded_by` of another stream has ended. `recorded_by` may
 * be a step that launches nothing. In that case, the wait covers all earlier work on the stream of
 * this step, and all steps for which this step waits. */
typedef struct FxWait {
  uint32_t recorded_by;
  uint32_t awaited_by;
} FxWait;

typedef struct FxProgramSource {
  uint32_t size;
  uint32_t num_steps;
  uint32_t num_streams;
  uint32_t num_launches;
  const FxLaunch* launches; /* sorted by step, then by phase */
  const uint16_t* streams;  /* stream of each step, from 0 to num_streams - 1 */
  const FxWait* waits;      /* sorted by awaited_by */
  uint64_t num_waits;
} FxProgramSource;

typedef struct FxStepTime {
  /* Time between two events around the step's launches. No other work is on the stream. */
  double device_seconds;
  double launch_seconds; /* CPU time of the driver's launch calls */
} FxStepTime;

/* The result of a run. */
typedef struct FxRunResult {
  uint32_t size;
  uint32_t failed_step;  /* first step that reported an error, or UINT32_MAX if no step failed */
  int64_t error;         /* the error of the failed step, encoded as in FxCall::error */
  double device_seconds; /* time between an event before all launches and an event after them */
  double launch_seconds; /* CPU time of issuing all launches */
} FxRunResult;

typedef struct FxDevice FxDevice;
typedef struct FxProgram FxProgram;

typedef struct FxPlugin {
  uint32_t version; /* FX_DEVICE_VERSION */
  uint32_t size;
  const char* name;             /* "cuda" */
  const char* build;            /* version of fxopt with which the plugin was built */
  const char* targets;          /* GPU targets of the kernels, such as "sm_80 sm_90 compute_100" */
  const FxKernelTable* kernels; /* FxKernel::run is null, because run() below launches kernels */

  const char* (*last_error)(void);
  int32_t (*driver)(FxDriverInfo* info); /* loads the driver, and may be called several times */
  int32_t (*open)(int32_t ordinal, FxDevice** device);
  void (*close)(FxDevice* device); /* call it after all programs of the device were dropped */
  int32_t (*info)(FxDevice* device, FxDeviceInfo* info);

  /* Functions for device memory. Addresses are never 0 and are multiples of 256. A function fails
   * with FX_DEVICE_NO_MEMORY if memory runs out. write() and read() first wait until all work of
   * the device has ended. The copy is complete when they return. */
  int32_t (*allocate)(FxDevice* device, int64_t bytes, uint64_t* address);
  int32_t (*free)(FxDevice* device, uint64_t address);
  int32_t (*reserve)(FxDevice* device, int64_t bytes, uint64_t* address);
  int32_t (*unreserve)(FxDevice* device, uint64_t address, int64_t bytes);
  /* map() and unmap() work on whole pages. A page has `page_bytes` bytes, which is a multiple of
   * FxDeviceInfo::page_bytes. unmap() can unmap a single page. If map() fails, no page is
   * mapped. */
  int32_t (*map)(FxDevice* device, uint64_t address, int64_t bytes, int64_t page_bytes);
  int32_t (*unmap)(FxDevice* device, uint64_t address, int64_t bytes);
  int32_t (*write)(FxDevice* device, uint64_t to, const void* from, int64_t bytes);
  int32_t (*read)(FxDevice* device, void* to, uint64_t from, int64_t bytes);

  int32_t (*prepare)(FxDevice* device, const FxProgramSource* source, FxProgram** program);
  void (*drop)(FxProgram* program);
  /* Runs the steps [first, end) and returns when they have ended. If `times` is not null, each step
   * runs alone and its time is stored. `times` has one entry for each step of the program. */
  int32_t (*run)(FxProgram* program, uint32_t first, uint32_t end, FxStepTime* times, FxRunResult* result);
} FxPlugin;

/* Returns null if the plugin does not support this version. */
const FxPlugin* fxopt_plugin(uint32_t version);

#ifdef __cplusplus
}
#endif
#endif
