#pragma once

#include <cstdint>
#include <map>

#include <cuda_runtime_api.h>

#include "core/allocator/simulated_device.h"

namespace fxopt {

// Sets the device of the fake CUDA runtime. After this call, cudaMalloc and the other functions
// of the fake runtime allocate and free memory of `simulated`.
void use_device(SimulatedDevice& simulated);

// Returns the handle of the stream with this number.
cudaStream_t stream_of(int64_t number);

// Returns the number of CUDA graph captures in progress. If this number is above 0, the fake CUDA
// runtime reports that every stream is being captured.
inline int& captures() {
  static int count = 0;
  return count;
}

// Returns a map from each address that cudaMalloc returned to its number of bytes. cudaFree does
// not remove the address from the map.
inline std::map<uint64_t, int64_t>& allocations() {
  static std::map<uint64_t, int64_t> all;
  return all;
}

}  // namespace fxopt
