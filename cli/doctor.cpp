// fxopt doctor: reports the devices that `fxopt run` can use on this machine, the missing parts,
// and remedies.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/print/table.h"
#include "cli/run_target.h"
#include "core/bytes.h"
#include "core/text.h"
#include "core/version.h"
#include "runtime/cpu/isa.h"
#include "runtime/run/host_memory.h"
#include "runtime/run/plugin.h"

namespace fxopt {
namespace {

constexpr const char* kWithout = "`fxopt run` can therefore use only the CPU";

std::string version_text(int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

struct DoctorFlags {
  std::string plugin;
  std::string device;  // empty: none was requested
};

class Doctor {
 public:
  explicit Doctor(Console& console) : console_(console) {}

  void run(const DoctorFlags& flags) {
    line("fxopt", std::string(kVersion));
    look_at_cpu();
    look_at_gpus(flags.plugin);
    std::string usable;
    for (const std::string& device : usable_) usable += (usable.empty() ? "" : ", ") + device;
    console_.product() << "`fxopt run` can use " << usable << (usable_.size() > 1 ? "" : "; no GPU") << '\n' << lines_;
    console_.result()["usable"] = usable_;
    if (flags.device.empty()) return;
    const std::string wanted = flags.device == "cuda" ? "cuda:0" : flags.device;
    if (std::find(usable_.begin(), usable_.end(), wanted) != usable_.end()) return;
    console_.error(
        {ErrorCode::kDeviceFailed, flags.device + " cannot be used" + (why_.empty() ? "" : ": " + why_), "", {}});
  }

 private:
  void line(const std::string& what, const std::string& found) {
    lines_ += what + std::string(10 - std::min<size_t>(what.size(), 9), ' ') + printable_line(found) + '\n';
  }
  void remedy(const std::string& text) { line("", text); }

  void look_at_cpu() {
    std::string isas;
    for (const std::string_view isa : cpu_isas()) isas += (isas.empty() ? "" : ", ") + std::string(isa);
    const uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
    const int64_t free = free_host_memory().value_or(0);
    line("cpu", "kernels for " + isas + "; " + count_text(threads, "thread") + "; " + size_text(free) + " free");
    console_.result()["cpu"] = {{"isas", cpu_isas()}, {"threads", threads}, {"free_bytes", free}};
  }

  void look_at_gpus(const std::string& plugin_path) {
    nlohmann::ordered_json& result = console_.result()["cuda"];
    result = {{"plugin", nullptr}, {"driver", nullptr}, {"devices", nlohmann::ordered_json::array()}};
    const Result<Plugin> plugin = open_plugin("cuda", plugin_path);
    if (!plugin.ok()) {
      missing(result, "plugin", plugin.error(), !plugin_path.empty() && std::filesystem::exists(plugin_path));
      return remedy(kWithout);
    }
    line("plugin", plugin->path + ": kernels for " + plugin->calls->targets);
    result["plugin"] = {{"path", plugin->path}, {"targets", plugin->calls->targets}};
    FxDriverInfo driver{};
    driver.size = sizeof driver;
    const int32_t status = plugin->calls->driver(&driver);
    if (status != FX_DEVICE_OK && status != FX_DEVICE_NONE) {
      missing(result, "driver", device_error(*plugin, status), status != FX_DEVICE_NO_DRIVER);
      if (status == FX_DEVICE_NO_DRIVER)
        remedy("install NVIDIA's driver for CUDA " + version_text(driver.wanted_version) +
               " or newer; in a container, give the container access to the GPU");
      return remedy(kWithout);
    }
    line("driver", std::string(driver.path) + ", for CUDA " + version_text(driver.version));
    result["driver"] = {{"path", driver.path}, {"version", driver.version}};
    if (status == FX_DEVICE_NONE) {
      missing(result, "GPU", device_error(*plugin, status));
      remedy("check CUDA_VISIBLE_DEVICES, which can hide GPUs; in a container, give the container access to the GPUs");
      return remedy(kWithout);
    }
    why_ = "the driver finds " + count_text(static_cast<size_t>(driver.count), "GPU") + ", numbered from cuda:0";
    for (int32_t i = 0; i < driver.count; ++i) look_at_gpu(*plugin, i, result);
  }

  void look_at_gpu(const Plugin& plugin, int32_t ordinal, nlohmann::ordered_json& result) {
    const Result<std::unique_ptr<PluginDevice>> device = PluginDevice::open(plugin, ordinal);
    const std::string name = "cuda:" + std::to_string(ordinal);
    if (!device.ok()) return missing(result, name, device.error());
    usable_.push_back(name);
    const FxDeviceInfo& info = (*device)->info();
    line(name, std::string(info.name) + ", sm_" + std::to_string(info.capability) + ", " +
                   count_text(static_cast<size_t>(info.processors), "multiprocessor") + ", " +
                   size_text(info.free_bytes) + " of " + size_text(info.total_bytes) + " free");
    result["devices"].push_back({{"name", info.name},
                                 {"capability", info.capability},
                                 {"multiprocessors", info.processors},
                                 {"total_bytes", info.total_bytes},
                                 {"free_bytes", info.free_bytes}});
  }

  // Prints a missing part. A missing part is a finding, not an error of this command.
  void missing(nlohmann::ordered_json& result, const std::string& what, const Error& error, bool is_found = false) {
    line(what, (is_found ? "not usable: " : "not found: ") + error.message);
    if (!error.hint.empty() && error.hint.find("fxopt doctor") == std::string::npos) remedy(error.hint);
    result["missing"] = {{"what", what}, {"why", error.message}};
    why_ = error.message;
  }

  Console& console_;
  std::string lines_;  // printed after the verdict
  std::vector<std::string> usable_{"cpu"};
  std::string why_;  // the reason why a GPU cannot be used
};

}  // namespace

CommandBody declare_doctor(Options options) {
  const std::shared_ptr<DoctorFlags> flags = std::make_shared<DoctorFlags>();
  options
      .add("--plugin", flags->plugin,
           "plugin file with GPU kernels to check (default: the plugin that `fxopt run` finds)")
      .type("FILE");
  options.add("--device", flags->device, "exit with 9 if `fxopt run` cannot use this device: cpu, cuda or cuda:N")
      .type("DEVICE");
  return [flags](Console& console) {
    if (!console.is_ok(flags->device.empty() ? ok_status() : check_device_name(flags->device))) return;
    Doctor(console).run(*flags);
  };
}

}  // namespace fxopt
