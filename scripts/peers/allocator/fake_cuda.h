#pragma once

#include <cstdint>
#include <map>

#include <cuda_runtime_api.h>

#include "core/allocator/simulated_device.h"

namespace fxopt {

// The device whose memory the fake CUDA runtime hands out.
void use_device(SimulatedDevice& simulated);

// Returns the handle of the stream with this number.
cudaStream_t stream_of(int64_t number);

// If this number is above 0, every stream is being captured.
inline int& captures() {
  static int count = 0;
  return count;
}

// The number of bytes at each address that cudaMalloc returned.
inline std::map<uint64_t, int64_t>& allocations() {
  static std::map<uint64_t, int64_t> all;
  return all;
}

}  // namespace fxopt
