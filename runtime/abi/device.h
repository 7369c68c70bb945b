/* A device that a plugin provides: its interface to the program.
 *
 * C, with stdint.h and the calls of kernel.h only. A plugin is a shared library that exports
 * fxopt_plugin(). The program never unloads it. Every function that can fail returns an
 * FxDeviceStatus, and last_error() returns the message of the calling thread. No function keeps a
 * pointer argument unless documented.
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
  FX_DEVICE_NONE = 3,       /* no device with this number */
  FX_DEVICE_NO_MEMORY = 4,
  FX_DEVICE_FAILED = 5
} FxDeviceStatus;

typedef struct FxDriverInfo {
  uint32_t size;          /* size of this struct in bytes, set by the caller */
  int32_t version;        /* 13000: 13.0 */
  int32_t wanted_version; /* the oldest version that the plugin supports */
  int32_t count;          /* number of devices */
  char path[512];         /* path of the driver's library */
} FxDriverInfo;

typedef struct FxDeviceInfo {
  uint32_t size;
  int32_t capability; /* 90: 9.0 */
  int32_t processors; /* streaming multiprocessors */
  int32_t reserved;
  int64_t total_bytes, free_bytes;
  int64_t clock_hz, memory_clock_hz, memory_bus_bits;
  int64_t page_bytes; /* granularity of map() */
  char name[128];
} FxDeviceInfo;

/* One phase of a step's call. `body` names a kernel of the table. Data and workspace are device
 * memory; views and params are host memory and are copied. `error` is not read. */
typedef struct FxLaunch {
  const char* body;
  const FxCall* call;
  uint32_t step;
  uint32_t phase;
} FxLaunch;

/* Step `awaited_by` starts after step `recorded_by` of another stream has ended. Steps that launch
 * nothing count too: others may wait for such a step instead of its own dependencies. */
typedef struct FxWait {
  uint32_t recorded_by;
  uint32_t awaited_by;
} FxWait;

typedef struct FxProgramSource {
  uint32_t size;
  uint32_t num_steps;
  uint32_t num_streams;
  uint32_t num_launches;
  const FxLaunch* launches; /* by step, then by phase */
  const uint16_t* streams;  /* by step: from 0, below num_streams */
  const FxWait* waits;      /* by awaited_by */
  uint64_t num_waits;
} FxProgramSource;

typedef struct FxStepTime {
  /* by events around the step's launches; the stream is empty before and after */
  double device_seconds;
  double launch_seconds; /* CPU time in the driver's launches */
} FxStepTime;

/* The result of a run. */
typedef struct FxRunResult {
  uint32_t size;
  uint32_t failed_step;  /* the first step with an error word; UINT32_MAX: none */
  int64_t error;         /* its error word */
  double device_seconds; /* by events before the first and after the last launch */
  double launch_seconds; /* CPU time until all launches were issued */
} FxRunResult;

typedef struct FxDevice FxDevice;
typedef struct FxProgram FxProgram;

typedef struct FxPlugin {
  uint32_t version; /* FX_DEVICE_VERSION */
  uint32_t size;
  const char* name;             /* "cuda" */
  const char* build;            /* version of the program that the plugin was built with */
  const char* targets;          /* targets of its kernels: "sm_80 sm_90 sm_100 compute_100" */
  const FxKernelTable* kernels; /* run is null: prepare() and run() launch them */

  const char* (*last_error)(void);
  int32_t (*driver)(FxDriverInfo* info); /* loads the driver; may be called again */
  int32_t (*open)(int32_t ordinal, FxDevice** device);
  void (*close)(FxDevice* device); /* after its programs were dropped */
  int32_t (*info)(FxDevice* device, FxDeviceInfo* info);

  /* Memory. Addresses are never 0, and are multiples of 256. Fails with NO_MEMORY if memory ran
   * out. write() and read() start when all work of the device has ended, and are complete on
   * return. */
  int32_t (*allocate)(FxDevice* device, int64_t bytes, uint64_t* address);
  int32_t (*free)(FxDevice* device, uint64_t address);
  int32_t (*reserve)(FxDevice* device, int64_t bytes, uint64_t* address);
  int32_t (*unreserve)(FxDevice* device, uint64_t address, int64_t bytes);
  /* Whole pages of `page_bytes`, a multiple of FxDeviceInfo::page_bytes; each page can be unmapped
   * alone. map() maps all or nothing. */
  int32_t (*map)(FxDevice* device, uint64_t address, int64_t bytes, int64_t page_bytes);
  int32_t (*unmap)(FxDevice* device, uint64_t address, int64_t bytes);
  int32_t (*write)(FxDevice* device, uint64_t to, const void* from, int64_t bytes);
  int32_t (*read)(FxDevice* device, void* to, uint64_t from, int64_t bytes);

  int32_t (*prepare)(FxDevice* device, const FxProgramSource* source, FxProgram** program);
  void (*drop)(FxProgram* program);
  /* Runs the steps [first, end), and returns when they have ended. With `times`, one entry for each
   * step of the program, each step runs alone. */
  int32_t (*run)(FxProgram* program, uint32_t first, uint32_t end, FxStepTime* times, FxRunResult* result);
} FxPlugin;

/* Returns null if the plugin does not support this version. */
const FxPlugin* fxopt_plugin(uint32_t version);

#ifdef __cplusplus
}
#endif
#endif
