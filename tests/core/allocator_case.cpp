#include "tests/core/allocator_case.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "core/file.h"
#include "core/text.h"

namespace fxopt {

std::vector<CaseLine> case_lines(const std::string& text) {
  std::vector<CaseLine> lines;
  std::istringstream input(text);
  std::string line;
  for (size_t number = 1; std::getline(input, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    CaseLine read{number, {}};
    for (std::string word; words >> word;) read.words.push_back(word);
    if (!read.words.empty()) lines.push_back(std::move(read));
  }
  return lines;
}

int64_t case_size(const std::string& text) {
  static const std::map<std::string, int> kShifts{{"", 0},     {"KiB", 10}, {"MiB", 20},
                                                  {"GiB", 30}, {"TiB", 40}, {"PiB", 50}};
  int64_t sum = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("+-", at + 1), text.size());
    const bool negative = text[at] == '-';
    const std::string term = text.substr(at + (negative || text[at] == '+' ? 1 : 0), end - at);
    const std::string number = term.substr(0, std::min(term.find_first_not_of("0123456789"), term.size()));
    std::string unit = term.substr(number.size());
    while (!unit.empty() && (unit.back() == '+' || unit.back() == '-')) unit.pop_back();
    const std::optional<int64_t> value = parse_int64(number);
    if (!value.has_value() || kShifts.count(unit) == 0) throw std::runtime_error("no size: " + text);
    sum += (negative ? -*value : *value) * (int64_t{1} << kShifts.at(unit));
    at = end;
  }
  return sum;
}

AllocatorConfig case_settings(const std::string& text) {
  Result<AllocatorConfig> config = parse_allocator_config(text);
  if (!config.ok()) throw std::runtime_error(format_error(config.error()));
  return *config;
}

int64_t case_statistic(const AllocatorStatistics& all, const std::string& name) {
  const std::map<std::string, int64_t> counts{{"retries", all.num_alloc_retries},
                                              {"ooms", all.num_ooms},
                                              {"syncs", all.num_sync_all_streams},
                                              {"device_allocs", all.num_device_alloc},
                                              {"device_frees", all.num_device_free},
                                              {"oversize_allocations", all.oversize_allocations.current},
                                              {"oversize_segments", all.oversize_segments.current}};
  if (counts.count(name) != 0) return counts.at(name);
  const std::map<std::string, const StatisticByPool*> by_pool{{"allocations", &all.allocation},
                                                              {"segments", &all.segment},
                                                              {"actives", &all.active},
                                                              {"inactive_splits", &all.inactive_split},
                                                              {"allocated", &all.allocated_bytes},
                                                              {"reserved", &all.reserved_bytes},
                                                              {"active", &all.active_bytes},
                                                              {"inactive_split", &all.inactive_split_bytes},
                                                              {"requested", &all.requested_bytes}};
  std::istringstream parts(name);
  std::string part;
  std::getline(parts, part, '.');
  const StatisticByPool& statistic = *by_pool.at(part);
  PoolKind kind = PoolKind::kAll;
  int64_t Statistic::*member = &Statistic::current;
  while (std::getline(parts, part, '.')) {
    if (part == "small") kind = PoolKind::kSmall;
    if (part == "large") kind = PoolKind::kLarge;
    if (part == "peak") member = &Statistic::peak;
    if (part == "freed") member = &Statistic::freed;
    if (part == "allocated") member = &Statistic::allocated;
  }
  return statistic[static_cast<size_t>(kind)].*member;
}

std::vector<std::pair<std::string, std::string>> allocator_cases() {
  std::vector<std::pair<std::string, std::string>> cases;
  for (const auto& entry : std::filesystem::directory_iterator(FXOPT_SOURCE_DIR "/tests/cases/allocator")) {
    cases.emplace_back(entry.path().filename().string(), read_file(entry.path().string()).value());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::vector<std::optional<uint64_t>> recorded_digests() {
  std::vector<std::optional<uint64_t>> digests;
  for (const CaseLine& line : case_lines(read_file(FXOPT_SOURCE_DIR "/tests/cases/allocator_torch.txt").value())) {
    for (const std::string& word : line.words) {
      digests.push_back(word == "-" ? std::nullopt : std::optional<uint64_t>(std::stoull(word, nullptr, 16)));
    }
  }
  return digests;
}

}  // namespace fxopt
