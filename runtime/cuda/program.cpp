#include "runtime/cuda/program.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/cuda/table.h"

namespace fxopt::cuda {
namespace {

constexpr int64_t kMostBlocks = INT32_MAX;
constexpr const char* kSuffixes[] = {"_f32", "_f64", "_i64"};  // by FxCompute

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Bytes of tables, each aligned to 16.
class Image {
 public:
  template <class T>
  size_t add(const T* from, size_t count) {
    const size_t at = (bytes_.size() + 15) / 16 * 16;
    bytes_.resize(at + count * sizeof(T));
    if (count > 0) std::memcpy(bytes_.data() + at, from, count * sizeof(T));
    return at;
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  std::vector<char> bytes_;
};

}  // namespace

Program::Program(Device& device, const FxProgramSource& source) : device_(device), driver_(device.driver()) {
  try {
    add_streams(source);
    add_launches(source);
  } catch (...) {
    give_back();
    throw;
  }
}

Program::~Program() {
  driver_.cuCtxSynchronize();
  give_back();
}

void Program::give_back() {
  for (const CUevent event : events_) driver_.cuEventDestroy(event);
  for (const CUstream stream : streams_) driver_.cuStreamDestroy(stream);
  try {
    if (tables_ != 0) device_.free(tables_);
  } catch (const DeviceError&) {
    // The memory is freed when the device is closed.
  }
}

CUevent Program::event() {
  CUevent made = nullptr;
  driver_.check(driver_.cuEventCreate(&made, CU_EVENT_DEFAULT), "make an event");
  events_.push_back(made);
  return made;
}

void Program::add_streams(const FxProgramSource& source) {
  for (uint32_t i = 0; i < std::max(source.num_streams, 1u); ++i) {
    CUstream stream = nullptr;
    driver_.check(driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "make a stream");
    streams_.push_back(stream);
  }
  stream_of_.assign(source.streams, source.streams + source.num_steps);
  begin_ = event();
  end_ = event();
  joint_ = event();
  waits_.resize(source.num_steps);
  recorded_.resize(source.num_steps, nullptr);
  for (uint64_t i = 0; i < source.num_waits; ++i) {
    const FxWait& wait = source.waits[i];
    waits_[wait.awaited_by].push_back(wait.recorded_by);
    if (recorded_[wait.recorded_by] == nullptr) recorded_[wait.recorded_by] = event();
  }
}

void Program::add_launches(const FxProgramSource& source) {
  Image image;
  std::vector<std::pair<size_t, size_t>> tables;  // offsets of views and numbers, by launch
  first_launch_.assign(source.num_steps + 1, 0);
  for (uint32_t i = 0; i < source.num_launches; ++i) {
    const FxLaunch& launch = source.launches[i];
    const FxKernel* kernel = find_kernel(launch.body);
    if (kernel == nullptr) throw DeviceError(FX_DEVICE_FAILED, std::string("there is no kernel ") + launch.body);
    const FxCall& call = *launch.call;
    Launch made{device_.kernel("fx_" + std::string(launch.body) + kSuffixes[call.compute]),
                call,
                kernel->units(&call, launch.phase),
                kernel->lanes(&call, launch.phase),
                launch.step,
                launch.phase};
    const bool is_same = i > 0 && source.launches[i - 1].call == launch.call;
    if (is_same) {
      tables.push_back(tables.back());
    } else {
      const size_t views = image.add(call.views, call.num_results + call.num_operands);
      tables.emplace_back(views, image.add(call.params, call.num_params));
    }
    launches_.push_back(made);
    ++first_launch_[launch.step + 1];
  }
  for (uint32_t s = 0; s < source.num_steps; ++s) first_launch_[s + 1] += first_launch_[s];
  no_errors_.assign(launches_.size(), FX_NO_ERROR);
  read_errors_ = no_errors_;
  const size_t errors = image.add(no_errors_.data(), no_errors_.size());
  if (image.bytes().empty()) return;
  tables_ = device_.allocate(static_cast<int64_t>(image.bytes().size()), "for the tables of the step's calls");
  errors_ = tables_ + errors;
  device_.write(tables_, image.bytes().data(), static_cast<int64_t>(image.bytes().size()));
  for (size_t i = 0; i < launches_.size(); ++i) {
    FxCall& call = launches_[i].call;
    call.views = reinterpret_cast<const FxView*>(tables_ + tables[i].first);
    call.params = reinterpret_cast<const FxNumber*>(tables_ + tables[i].second);
    call.error = reinterpret_cast<int64_t*>(errors_ + i * sizeof(int64_t));
  }
}

void Program::issue(const Launch& launch, CUstream stream) const {
  FxCall call = launch.call;
  uint32_t phase = launch.phase;
  for (int64_t first = 0; first < launch.units; first += kMostBlocks) {
    void* arguments[] = {&call, &phase, &first};
    const auto blocks = static_cast<unsigned>(std::min(kMostBlocks, launch.units - first));
    driver_.check(
        driver_.cuLaunchKernel(launch.kernel, blocks, 1, 1, launch.lanes, 1, 1, 0, stream, arguments, nullptr),
        "launch a kernel of step " + std::to_string(launch.step));
  }
}

// Lets all other streams wait for the earlier work of the first stream.
void Program::begin_streams() {
  driver_.check(driver_.cuEventRecord(begin_, streams_[0]), "record an event");
  for (size_t i = 1; i < streams_.size(); ++i)
    driver_.check(driver_.cuStreamWaitEvent(streams_[i], begin_, CU_EVENT_WAIT_DEFAULT), "wait for an event");
}

void Program::end_streams() {
  for (size_t i = 1; i < streams_.size(); ++i) {
    driver_.check(driver_.cuEventRecord(joint_, streams_[i]), "record an event");
    driver_.check(driver_.cuStreamWaitEvent(streams_[0], joint_, CU_EVENT_WAIT_DEFAULT), "wait for an event");
  }
  driver_.check(driver_.cuEventRecord(end_, streams_[0]), "record an event");
}

void Program::issue_steps(uint32_t first, uint32_t end, FxRunResult& result) {
  begin_streams();
  const double start = now();
  for (uint32_t step = first; step < end; ++step) {
    const uint32_t begin = first_launch_[step], stop = first_launch_[step + 1];
    const CUstream stream = streams_[stream_of_[step]];
    for (const uint32_t before : waits_[step]) {
      if (before >= first && before < step)
        driver_.check(driver_.cuStreamWaitEvent(stream, recorded_[before], CU_EVENT_WAIT_DEFAULT), "wait for an event");
    }
    for (uint32_t i = begin; i < stop; ++i) issue(launches_[i], stream);
    if (recorded_[step] != nullptr) driver_.check(driver_.cuEventRecord(recorded_[step], stream), "record an event");
  }
  result.launch_seconds = now() - start;
  end_streams();
  driver_.check(driver_.cuStreamSynchronize(streams_[0]), "wait for the step");
  result.device_seconds = seconds_between(begin_, end_);
}

double Program::seconds_between(CUevent begin, CUevent end) const {
  float milliseconds = 0;
  driver_.check(driver_.cuEventElapsedTime(&milliseconds, begin, end), "read a time");
  return static_cast<double>(milliseconds) * 1e-3;
}

void Program::time_steps(uint32_t first, uint32_t end, FxStepTime* times, FxRunResult& result) {
  for (uint32_t step = first; step < end; ++step) {
    times[step] = {0, 0};
    if (first_launch_[step] == first_launch_[step + 1]) continue;
    driver_.check(driver_.cuEventRecord(begin_, streams_[0]), "record an event");
    const double start = now();
    for (uint32_t i = first_launch_[step]; i < first_launch_[step + 1]; ++i) issue(launches_[i], streams_[0]);
    times[step].launch_seconds = now() - start;
    driver_.check(driver_.cuEventRecord(end_, streams_[0]), "record an event");
    driver_.check(driver_.cuStreamSynchronize(streams_[0]), "wait for step " + std::to_string(step));
    times[step].device_seconds = seconds_between(begin_, end_);
    result.device_seconds += times[step].device_seconds;
    result.launch_seconds += times[step].launch_seconds;
  }
}

void Program::read_errors(FxRunResult& result) {
  device_.read(read_errors_.data(), errors_, static_cast<int64_t>(read_errors_.size() * sizeof(int64_t)));
  for (size_t i = 0; i < read_errors_.size(); ++i) {
    if (read_errors_[i] == FX_NO_ERROR) continue;
    result.failed_step = launches_[i].step;
    result.error = read_errors_[i];
    device_.write(errors_, no_errors_.data(), static_cast<int64_t>(no_errors_.size() * sizeof(int64_t)));
    return;
  }
}

void Program::run(uint32_t first, uint32_t end, FxStepTime* times, FxRunResult& result) {
  result.failed_step = UINT32_MAX;
  result.error = FX_NO_ERROR;
  result.device_seconds = result.launch_seconds = 0;
  if (times != nullptr) {
    time_steps(first, end, times, result);
  } else {
    issue_steps(first, end, result);
  }
  if (!read_errors_.empty()) read_errors(result);
}

}  // namespace fxopt::cuda
