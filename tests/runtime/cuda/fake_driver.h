// What tests ask of the fake libcuda.so.1, besides the driver's own functions. C, since it is found by dlsym().
#pragma once

#include <cstdint>

extern "C" {

// Everything as when the library was loaded, with the devices and the memory that are named; what is held is dropped.
void fake_cuda_reset(int32_t devices, int64_t memory_bytes, int32_t driver_version);
// Streams take turns in an order drawn from `seed`, and so do the threads of a block; 0: as the calls came.
void fake_cuda_set_order(uint64_t seed);
// The call of this number, from 1, fails and does nothing; 0: none. Counting begins anew.
void fake_cuda_fail_call(uint64_t number);
uint64_t fake_cuda_num_calls(void);
// The name of the call that failed last; "" where none did.
const char* fake_cuda_failed_call(void);
// What is still held, one line each; "" where nothing is.
const char* fake_cuda_held(void);
// What a card would not have taken, one line each; "".
const char* fake_cuda_faults(void);
}
