#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/allocator/config.h"
#include "core/allocator/simulated_device.h"
#include "core/allocator/statistics.h"

namespace fxopt {

// The text of a case in tests/cases/allocator/*.txt. Each line is one statement:
//
//   # comment
//   settings max_split_size_mb:128   as PYTORCH_ALLOC_CONF; each such line starts a new allocator
//   memory 48MiB                     of the device, as with settings; 80 GiB by default
//   a = allocate 10MiB-512 on 1      on stream 0 by default
//   a fails to allocate 40MiB        the same; nothing else may change
//   free a
//   use a on 2                       record_stream
//   finish 2                         all work submitted to stream 2 is done
//   empty cache
//   begin pool 1 on 3, end pool 1, release pool 1
//   begin capture, end capture
//   expect allocated 512 reserved.peak 2MiB
//   expect a at 2MiB                 from the first address; an address range takes 9/8 of memory
//   expect a is b
//
// A size is a sum of numbers. A number may have the unit KiB, MiB, GiB, TiB or PiB. A statistic is
// written as the name in case_statistic(), then .peak, .freed or .allocated, then .small or .large.
struct CaseLine {
  size_t number = 0;
  std::vector<std::string> words;
};

std::vector<CaseLine> case_lines(const std::string& text);
int64_t case_size(const std::string& text);
AllocatorConfig case_settings(const std::string& text);
int64_t case_statistic(const AllocatorStatistics& statistics, const std::string& name);

// Runs a case. Returns a line for each failed expectation. Throws if a line does not have one of
// the forms above.
template <class Allocator>
class CaseRunner {
 public:
  std::string run(const std::string& text) {
    restart();
    for (const CaseLine& line : case_lines(text)) {
      line_ = &line;
      if (!operate(line.words)) throw std::runtime_error("line " + std::to_string(line.number) + " is not understood");
    }
    return failures_;
  }

 private:
  using Words = std::vector<std::string>;

  void restart() {
    device_ = std::make_unique<SimulatedDevice>(memory_);
    allocator_ = std::make_unique<Allocator>(*device_, config_);
    addresses_.clear();
  }

  bool operate(const Words& words) {
    const size_t count = words.size();
    if (words[0] == "expect" && count == 4 && words[2] == "at") return expect_at(words[1], case_size(words[3]));
    if (words[0] == "expect" && count == 4 && words[2] == "is") {
      return expect(words[1] + " is elsewhere", addresses_.at(words[1]) == addresses_.at(words[3]));
    }
    if (words[0] == "expect") return expect_statistics(words);
    if (count >= 4 && words[1] == "=" && words[2] == "allocate") return allocate(words, 3, true);
    if (count >= 5 && words[1] == "fails") return allocate(words, 4, false);
    if (words[0] == "settings" || words[0] == "memory") return set(words);
    if (words[0] == "empty") return allocator_->empty_cache(), true;
    if (words[0] == "finish") return device_->finish(case_size(words.at(1))), true;
    if (words[0] == "free") return allocator_->free(addresses_.at(words.at(1))), true;
    if (words[0] == "use") return allocator_->record_stream(addresses_.at(words.at(1)), case_size(words.at(3))), true;
    return change_pool(words);
  }

  bool set(const Words& words) {
    if (words[0] == "memory") {
      memory_ = case_size(words.at(1));
    } else {
      config_ = case_settings(words.size() > 1 ? words[1] : "");
    }
    restart();
    return true;
  }

  bool allocate(const Words& words, size_t size_at, bool succeeds) {
    const int64_t stream = words.size() > size_at + 2 ? case_size(words[size_at + 2]) : 0;
    const std::optional<uint64_t> address = allocator_->allocate(case_size(words[size_at]), stream);
    expect(words[0] + (succeeds ? " is refused" : " is not refused"), address.has_value() == succeeds);
    addresses_[words[0]] = address.value_or(0);
    return true;
  }

  bool change_pool(const Words& words) {
    if (words.size() == 2 && words[1] == "capture") {
      words[0] == "begin" ? allocator_->begin_capture() : allocator_->end_capture();
      return true;
    }
    if (words.size() < 3 || words[1] != "pool") return false;
    const std::pair<int64_t, int64_t> id{case_size(words[2]), 0};
    if (words[0] == "end") return allocator_->end_pool(id), true;
    if (words[0] == "release") return allocator_->release_pool(id), true;
    if (words[0] != "begin" || words.size() != 5) return false;
    const int64_t only = case_size(words[4]);
    allocator_->begin_pool(id, [only](int64_t stream) { return stream == only; });
    return true;
  }

  bool expect_at(const std::string& name, int64_t offset) {
    const uint64_t address = addresses_.at(name);
    const int64_t found = static_cast<int64_t>(address - SimulatedDevice::kFirstAddress);
    return expect(name + " is at " + std::to_string(found), address != 0 && found == offset);
  }

  bool expect_statistics(const Words& words) {
    for (size_t at = 1; at + 1 < words.size(); at += 2) {
      const int64_t found = case_statistic(allocator_->statistics(), words[at]);
      expect(words[at] + " is " + std::to_string(found) + ", not " + words[at + 1], found == case_size(words[at + 1]));
    }
    return words.size() % 2 == 1;
  }

  bool expect(const std::string& otherwise, bool holds) {
    if (!holds) failures_ += "line " + std::to_string(line_->number) + ": " + otherwise + "\n";
    return true;
  }

  int64_t memory_ = int64_t{80} << 30;
  AllocatorConfig config_;
  std::unique_ptr<SimulatedDevice> device_;
  std::unique_ptr<Allocator> allocator_;
  std::map<std::string, uint64_t> addresses_;
  const CaseLine* line_ = nullptr;
  std::string failures_;
};

// The results of Duel::digest() for PyTorch's own allocator on the traces 0, 1, and so on.
// scripts/peers/allocator recorded these results. An entry is empty if the model disagreed on the
// trace. The file gives the reasons.
std::vector<std::optional<uint64_t>> recorded_digests();

// The cases of tests/cases/allocator, as pairs of file name and text, sorted by name.
std::vector<std::pair<std::string, std::string>> allocator_cases();

}  // namespace fxopt
