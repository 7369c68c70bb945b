#pragma once

#include <cstdint>
#include <map>

#include <cuda_runtime_api.h>

#include "core/allocator/simulated_device.h"

namespace fxopt {

// The device that the fake CUDA runtime serves from.
void use_device(SimulatedDevice& simulated);

// The handle of stream `number`.
cudaStream_t stream_of(int64_t number);

// While above 0, every stream is being captured.
inline int& captures() {
  static int count = 0;
  return count;
}

// The bytes of each address that cudaMalloc gave.
inline std::map<uint64_t, int64_t>& allocations() {
  static std::map<uint64_t, int64_t> all;
  return all;
}

}  // namespace fxopt
