#include "cli/run_target.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/print/table.h"
#include "cli/take.h"
#include "core/text.h"
#include "runtime/cpu/isa.h"

namespace fxopt {
namespace {

constexpr uint32_t kMostThreads = 4096;

std::optional<StorageMemory> memory_by_name(std::string_view name) {
  if (name == "arena") return StorageMemory::kArena;
  if (name == "allocator") return StorageMemory::kAllocator;
  if (name == "blocks") return StorageMemory::kBlocks;
  return std::nullopt;
}

Result<const FxKernelTable*> chosen_kernels(const RunTargetFlags& flags) {
  const char* named = std::getenv("FXOPT_ISA");
  return cpu_kernels(!flags.isa.empty() ? flags.isa : named != nullptr ? named : "");
}

// Returns the ordinal in "cuda" (0) or "cuda:1" (1). Returns nothing for other names.
std::optional<int32_t> cuda_ordinal(std::string_view device) {
  if (device == "cuda") return 0;
  if (!device.starts_with("cuda:")) return std::nullopt;
  int32_t ordinal = 0;
  const char* end = device.data() + device.size();
  const auto [stop, error] = std::from_chars(device.data() + 5, end, ordinal);
  return error == std::errc() && stop == end && ordinal >= 0 ? std::optional(ordinal) : std::nullopt;
}

template <class Derived>
Result<std::unique_ptr<Program>> as_program(Result<std::unique_ptr<Derived>> program) {
  if (!program.ok()) return program.error();
  return std::unique_ptr<Program>(*std::move(program));
}

// Refuses flags that no GPU supports. Runs before a plugin is opened.
Status check_device_flags(const RunTargetFlags& flags) {
  const auto refuse = [](const std::string& flag, const std::string& why) {
    return Status(Error{ErrorCode::kDeviceFailed, flag + " cannot be used on a GPU: " + why, "leave out " + flag, {}});
  };
  if (flags.threads != 0) return refuse("--threads", "a GPU has threads of its own");
  if (!flags.isa.empty()) return refuse("--isa", "it chooses among the CPU's kernels");
  if (!flags.debug.empty()) return refuse("--debug memory", "guards are written and read by the CPU");
  if (flags.memory == "blocks")
    return refuse("--memory blocks", "a GPU has no system allocator; use --memory allocator");
  if (flags.memory == "allocator" && flags.streams > 1)
    return refuse("--streams with --memory allocator", "the allocator reuses blocks without waiting for other streams");
  return ok_status();
}

}  // namespace

Status check_device_name(const std::string& device) {
  if (device == "cpu" || cuda_ordinal(device).has_value()) return ok_status();
  return bad_value_error("--device takes cpu, cuda or cuda:N, not '" + device + "'");
}

Status check_target_flags(const RunTargetFlags& flags) {
  if (const Status status = check_device_name(flags.device); !status.ok()) return status;
  if (flags.threads > kMostThreads)
    return bad_value_error("--threads takes at most " + std::to_string(kMostThreads) + ", not " +
                           std::to_string(flags.threads));
  if (!memory_by_name(flags.memory).has_value())
    return bad_value_error("--memory takes arena, allocator or blocks, not '" + flags.memory + "'");
  const Result<AllocatorConfig> allocator = parse_allocator_config(flags.alloc_conf);
  if (!allocator.ok()) return allocator.error();
  if (!flags.alloc_conf.empty() && flags.memory != "allocator")
    return bad_value_error("--alloc-conf needs --memory allocator");
  if (!flags.debug.empty() && flags.debug != "memory")
    return bad_value_error("--debug takes memory, not '" + flags.debug + "'");
  if (!flags.debug.empty() && flags.memory != "arena")
    return bad_value_error("--debug memory needs --memory arena, not " + flags.memory);
  if (const Result<const FxKernelTable*> kernels = chosen_kernels(flags); !kernels.ok()) return kernels.error();
  if (flags.device != "cpu") return check_device_flags(flags);
  if (!flags.plugin.empty()) return bad_value_error("--plugin needs --device cuda");
  return ok_status();
}

Result<std::unique_ptr<RunTarget>> RunTarget::open(const RunTargetFlags& flags) {
  std::unique_ptr<RunTarget> target(new RunTarget(flags));
  target->kernels_ = *chosen_kernels(flags);
  const uint32_t processors = std::max(1u, std::thread::hardware_concurrency());
  target->threads_ = std::make_unique<ThreadPool>(flags.threads == 0 ? processors : flags.threads);
  if (const Status status = target->check_subnormals(); !status.ok()) return status.error();
  if (flags.device == "cpu") return target;
  const Result<Plugin> plugin = open_plugin("cuda", flags.plugin);
  if (!plugin.ok()) return plugin.error();
  const Status opened = take(target->device_, PluginDevice::open(*plugin, *cuda_ordinal(flags.device)));
  if (!opened.ok()) return opened.error();
  return target;
}

Status RunTarget::check_subnormals() const {
  if (threads_->keeps_subnormals()) return ok_status();
  return Error{ErrorCode::kInternal,
               "a thread flushes subnormal numbers to zero",
               "a library loaded into this process has disabled subnormal numbers",
               {}};
}

std::string RunTarget::name() const {
  if (!is_device()) return "the CPU";
  return "cuda:" + std::to_string(device_->ordinal()) + " (" + device_->info().name + ")";
}

std::string RunTarget::how() const {
  if (!is_device()) return std::string(kernels_->isa) + ", " + count_text(threads_->size(), "thread");
  return "sm_" + std::to_string(device_->info().capability) + ", " + count_text(flags_.streams, "stream");
}

void RunTarget::set(ExecuteOptions& options) const {
  options.kernels = kernels_;
  options.threads = threads_.get();
  options.memory = *memory_by_name(flags_.memory);
  options.allocator = *parse_allocator_config(flags_.alloc_conf);
  options.debug_memory = flags_.debug == "memory";
}

Result<std::unique_ptr<Program>> RunTarget::prepare(const FxPlan& plan, const ScalarValues& values,
                                                    ExecuteOptions options) {
  set(options);
  if (is_device()) {
    DeviceOptions device_options;
    device_options.streams = flags_.streams;
    events_.clear();
    device_options.observe_allocator = [this](const AllocatorEvent& event) { events_.push_back(event); };
    return as_program(DeviceProgram::prepare(plan, values, options, *device_, device_options));
  }
  return as_program(HostProgram::prepare(plan, values, options));
}

Result<std::unique_ptr<Program>> RunTarget::prepare_on_host(const FxPlan& plan, const ScalarValues& values,
                                                            ExecuteOptions options) const {
  set(options);
  options.memory = StorageMemory::kArena;
  return as_program(HostProgram::prepare(plan, values, options));
}

void RunTarget::add_to(nlohmann::ordered_json& result) const {
  result["device"] = is_device() ? "cuda:" + std::to_string(device_->ordinal()) : "cpu";
  result["isa"] = is_device() ? "sm_" + std::to_string(device_->info().capability) : std::string(kernels_->isa);
  if (!is_device()) {
    result["threads"] = threads_->size();
    return;
  }
  result["device_name"] = device_->info().name;
  result["plugin"] = device_->plugin().path;
  result["streams"] = flags_.streams;
}

}  // namespace fxopt
