// The kernels of kernels.cu, compiled by nvcc for all targets.
#pragma once

namespace fxopt::cuda {

extern "C" const unsigned char fxopt_cuda_fatbin[];
inline const unsigned char* const kFatbin = fxopt_cuda_fatbin;

}  // namespace fxopt::cuda
