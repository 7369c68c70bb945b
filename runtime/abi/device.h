/* A device that a plugin brings: what the program asks of it, and how.
 *
 * C, and nothing but stdint.h and the calls of kernel.h. A plugin is a shared library that exports fxopt_plugin(). The program never
 * unloads it. Every function that can fail returns an FxDeviceStatus, and last_error() says what happened in the calling thread. No
 * function keeps a pointer that it is given, unless it says so.
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
  FX_DEVICE_NO_DRIVER = 1,  /* its library is not there */
  FX_DEVICE_OLD_DRIVER = 2, /* it lacks functions that the plugin calls */
  FX_DEVICE_NONE = 3,       /* no device of this number */
  FX_DEVICE_NO_MEMORY = 4,
  FX_DEVICE_FAILED = 5
} FxDeviceStatus;

typedef struct FxDriverInfo {
  uint32_t size;          /* of this struct, in bytes: the caller's */
  int32_t version;        /* 13000: 13.0 */
  int32_t wanted_version; /* the least that the plugin takes */
  int32_t count;          /* of devices */
  char path[512];         /* of the driver's library */
} FxDriverInfo;

typedef struct FxDeviceInfo {
  uint32_t size;
  int32_t capability; /* 90: 9.0 */
  int32_t processors; /* streaming multiprocessors */
  int32_t reserved;
  int64_t total_bytes, free_bytes;
  int64_t clock_hz, memory_clock_hz, memory_bus_bits;
  int64_t page_bytes; /* of map() */
  char name[128];
} FxDeviceInfo;

/* One phase of a step's call. `body` names a kernel of the table. Data and workspace are memory of the device; views and params are the
 * host's and copied. `error` is not read. */
typedef struct FxLaunch {
  const char* body;
  const FxCall* call;
  uint32_t step;
  uint32_t phase;
} FxLaunch;

/* Step `awaited_by` starts after step `recorded_by`, which is on another stream, has ended. It holds for a step that launches nothing, too:
 * others may wait for it in place of what it waits for. */
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
  double device_seconds; /* by events around the step's launches, the stream being empty before and behind */
  double launch_seconds; /* of the CPU, in the driver's launches */
} FxStepTime;

/* What a run tells. */
typedef struct FxRunResult {
  uint32_t size;
  uint32_t failed_step;  /* the first with an error word; UINT32_MAX: none */
  int64_t error;         /* its error word */
  double device_seconds; /* by events before the first and behind the last launch */
  double launch_seconds; /* of the CPU, until all launches were issued */
} FxRunResult;

typedef struct FxDevice FxDevice;
typedef struct FxProgram FxProgram;

typedef struct FxPlugin {
  uint32_t version; /* FX_DEVICE_VERSION */
  uint32_t size;
  const char* name;             /* "cuda" */
  const char* build;            /* the program's version that it was built with */
  const char* targets;          /* of its kernels: "sm_80 sm_90 sm_100 compute_100" */
  const FxKernelTable* kernels; /* run is null: prepare() and run() launch them */

  const char* (*last_error)(void);
  int32_t (*driver)(FxDriverInfo* info); /* loads the driver; may be called again */
  int32_t (*open)(int32_t ordinal, FxDevice** device);
  void (*close)(FxDevice* device); /* after its programs */
  int32_t (*info)(FxDevice* device, FxDeviceInfo* info);

  /* Memory. Addresses are never 0, and multiples of 256; NO_MEMORY where there is none. write() and read() have ended on return, and begin
   * when all work of the device has ended. */
  int32_t (*allocate)(FxDevice* device, int64_t bytes, uint64_t* address);
  int32_t (*free)(FxDevice* device, uint64_t address);
  int32_t (*reserve)(FxDevice* device, int64_t bytes, uint64_t* address);
  int32_t (*unreserve)(FxDevice* device, uint64_t address, int64_t bytes);
  /* Whole pages of `page_bytes`, a multiple of FxDeviceInfo::page_bytes; each can be unmapped alone. map() does all or nothing. */
  int32_t (*map)(FxDevice* device, uint64_t address, int64_t bytes, int64_t page_bytes);
  int32_t (*unmap)(FxDevice* device, uint64_t address, int64_t bytes);
  int32_t (*write)(FxDevice* device, uint64_t to, const void* from, int64_t bytes);
  int32_t (*read)(FxDevice* device, void* to, uint64_t from, int64_t bytes);

  int32_t (*prepare)(FxDevice* device, const FxProgramSource* source, FxProgram** program);
  void (*drop)(FxProgram* program);
  /* Runs the steps [first, end), and returns when they have ended. With `times`, one for each step of the program, each step runs alone. */
  int32_t (*run)(FxProgram* program, uint32_t first, uint32_t end, FxStepTime* times, FxRunResult* result);
} FxPlugin;

/* Null where the plugin knows no such version. */
const FxPlugin* fxopt_plugin(uint32_t version);

#ifdef __cplusplus
}
#endif
#endif
