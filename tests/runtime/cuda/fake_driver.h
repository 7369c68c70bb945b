// Controls of the fake libcuda.so.1 for tests, besides the functions of the driver. They have C
// linkage, so that dlsym() finds them.
#pragma once

#include <cstdint>

extern "C" {

// Returns to the state in which the library was loaded, with these devices and this memory, and
// drops everything held.
void fake_cuda_reset(int32_t devices, int64_t memory_bytes, int32_t driver_version);
// Streams, and the threads of a block, take turns in an order drawn from `seed`. 0: in the order of
// the calls.
void fake_cuda_set_order(uint64_t seed);
// The call of this number, counted from 1 and from now on, fails and does nothing. 0: no call
// fails.
void fake_cuda_fail_call(uint64_t number);
uint64_t fake_cuda_num_calls(void);
// The name of the call that failed last, or "".
const char* fake_cuda_failed_call(void);
// The objects still held, one kind a line, or "".
const char* fake_cuda_held(void);
// Calls that a GPU would have rejected, one a line, or "".
const char* fake_cuda_faults(void);
}
