// Functions with which tests control the fake libcuda.so.1. The library also has the functions of
// the driver. All functions have C linkage, so that dlsym() finds them.
#pragma once

#include <cstdint>

extern "C" {

// Resets the library to its state after loading, with the given devices and memory. Drops all
// objects that are still held.
void fake_cuda_reset(int32_t devices, int64_t memory_bytes, int32_t driver_version);
// Streams, and the threads of a block, take turns in an order drawn from `seed`. If `seed` is 0,
// streams take turns in the order of the calls.
void fake_cuda_set_order(uint64_t seed);
// The call with this number fails and does nothing. Calls are counted from 1, starting now. If the
// number is 0, no call fails.
void fake_cuda_fail_call(uint64_t number);
uint64_t fake_cuda_num_calls(void);
// Returns the name of the call that failed last, or "".
const char* fake_cuda_failed_call(void);
// Returns the objects that are still held, with one kind on each line, or "".
const char* fake_cuda_held(void);
// Returns the calls that a GPU would have rejected, with one call on each line, or "".
const char* fake_cuda_faults(void);
}
