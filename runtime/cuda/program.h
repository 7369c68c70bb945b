// Kernel launches that are ready to be issued. The tensor views and numeric arguments of all
// launches are in GPU memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/device.h"

namespace fxopt::cuda {

class Program {
 public:
  Program(Device& device, const FxProgramSource& source);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void run(uint32_t first, uint32_t end, FxStepTime* times, FxRunResult& result);
  Device& device() const { return device_; }

 private:
  struct Launch {
    CUfunction kernel;
    FxCall call;  // its pointers are addresses on the GPU
    int64_t units;
    uint32_t lanes, step, phase;
  };
  void give_back();
  void add_launches(const FxProgramSource& source);
  void add_streams(const FxProgramSource& source);
  CUevent event();
  void issue(const Launch& launch, CUstream stream) const;
  void issue_steps(uint32_t first, uint32_t end, FxRunResult& result);
  void begin_streams();
  void end_streams();
  void time_steps(uint32_t first, uint32_t end, FxStepTime* times, FxRunResult& result);
  double seconds_between(CUevent begin, CUevent end) const;
  void read_errors(FxRunResult& result);

  Device& device_;
  const Driver& driver_;
  std::vector<Launch> launches_;  // sorted by step
  // Index of the first launch of each step. The last entry is the number of launches.
  std::vector<uint32_t> first_launch_;
  // The entry of each step lists the steps of other streams for which the step waits.
  std::vector<std::vector<uint32_t>> waits_;
  // The entry of each step is the event that is recorded after the step. The entry is null if no
  // other stream waits for the step.
  std::vector<CUevent> recorded_;
  std::vector<CUstream> streams_;
  std::vector<uint16_t> stream_of_;  // the stream of each step
  std::vector<CUevent> events_;      // all events of this program
  CUevent begin_ = nullptr, end_ = nullptr, joint_ = nullptr;
  // GPU address of the views and numeric arguments (FxCall::views and params) of all launches. An
  // array with one error word for each launch follows.
  CUdeviceptr tables_ = 0;
  CUdeviceptr errors_ = 0;  // GPU address of the array of error words
  std::vector<int64_t> no_errors_, read_errors_;
};

}  // namespace fxopt::cuda
