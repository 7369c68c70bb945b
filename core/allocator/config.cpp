// Parses the text of PYTORCH_ALLOC_CONF.
#include "core/allocator/config.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <optional>
#include <utility>

#include "core/text.h"

namespace fxopt {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;
constexpr int64_t kMaxMegabytes = AllocatorConfig::kUnlimited / kMegabyte;
// Above 10 MiB, because smaller requests share a large segment.
constexpr int64_t kMinLargeSegmentMegabytes = 11;

struct Token {
  std::string text;
  size_t column = 0;  // from 1
};

struct Entry {
  Token key;
  std::vector<Token> value;  // one token, or all tokens between brackets
  bool is_list = false;
};

constexpr std::string_view kMarks = ",:[]";

bool is_mark(const Token& token) {
  return token.text.size() == 1 && kMarks.find(token.text[0]) != std::string_view::npos;
}

std::vector<Token> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  bool in_word = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::isspace(static_cast<unsigned char>(text[i])) != 0) continue;
    const bool mark = kMarks.find(text[i]) != std::string_view::npos;
    if (mark || !in_word) tokens.push_back(Token{{}, i + 1});
    tokens.back().text += text[i];
    in_word = !mark;
  }
  return tokens;
}

Error error_at(ErrorCode code, const Token& token, const std::string& message, std::string hint) {
  return Error{code, message + ", at column " + std::to_string(token.column), std::move(hint), {}};
}

Error syntax_error(const std::vector<Token>& tokens, size_t at, const std::string& wanted) {
  const std::string hint =
      "write a list of key:value with commas between them, such as"
      " 'max_split_size_mb:128,expandable_segments:True'";
  if (at < tokens.size()) {
    return error_at(ErrorCode::kAllocatorSyntax, tokens[at],
                    "the allocator settings have '" + tokens[at].text + "' instead of " + wanted, hint);
  }
  return Error{ErrorCode::kAllocatorSyntax, "the allocator settings end before " + wanted, hint, {}};
}

Error bad_value(const Token& key, const Token& value, const std::string& wanted) {
  return error_at(ErrorCode::kAllocatorValue, value,
                  "the allocator setting " + key.text + " has the value '" + value.text + "', which is not " + wanted,
                  "give it " + wanted + ", or leave the key out");
}

Result<std::vector<Entry>> split_entries(const std::vector<Token>& tokens) {
  std::vector<Entry> entries;
  const auto has = [&tokens](size_t at, std::string_view text) {
    return at < tokens.size() && tokens[at].text == text;
  };
  for (size_t at = 0; at < tokens.size(); ++at) {  // a comma at the end is legal
    Entry entry;
    if (is_mark(tokens[at])) return syntax_error(tokens, at, "a key");
    entry.key = tokens[at++];
    if (!has(at, ":")) return syntax_error(tokens, at, "':'");
    ++at;
    if (has(at, "[")) {
      entry.is_list = true;
      for (++at; at < tokens.size() && !has(at, "]"); ++at) entry.value.push_back(tokens[at]);
      if (at == tokens.size()) return syntax_error(tokens, at, "']'");
    } else if (at == tokens.size() || is_mark(tokens[at])) {
      return syntax_error(tokens, at, "the value of " + entry.key.text);
    } else {
      entry.value.push_back(tokens[at]);
    }
    ++at;
    if (at < tokens.size() && !has(at, ",")) return syntax_error(tokens, at, "','");
    entries.push_back(std::move(entry));
  }
  return entries;
}

// ---- values

Result<Token> single(const Entry& entry) {
  if (!entry.is_list) return entry.value[0];
  return error_at(ErrorCode::kAllocatorValue, entry.key, "the setting " + entry.key.text + " does not take a list",
                  "give it a single value");
}

Status read_megabytes(const Entry& entry, int64_t minimum, int64_t& bytes) {
  Result<Token> token = single(entry);
  if (!token.ok()) return std::move(token).error();
  const std::optional<int64_t> value = parse_int64(token->text);
  if (!value.has_value() || *value < minimum) {
    return bad_value(entry.key, *token, "an integer of " + std::to_string(minimum) + " or more (MiB)");
  }
  bytes = std::min(*value, kMaxMegabytes) * kMegabyte;
  return ok_status();
}

Status read_bool(const Entry& entry, bool& flag) {
  Result<Token> token = single(entry);
  if (!token.ok()) return std::move(token).error();
  if (token->text != "True" && token->text != "False") return bad_value(entry.key, *token, "True or False");
  flag = token->text == "True";
  return ok_status();
}

// Reads a number from 0 to 1. If `open` is true, 0 and 1 are illegal.
Status read_share(const Entry& entry, bool open, double& share) {
  Result<Token> token = single(entry);
  if (!token.ok()) return std::move(token).error();
  const std::optional<double> value = parse_double(token->text);
  const bool legal = value.has_value() && (open ? *value > 0 && *value < 1 : *value >= 0 && *value <= 1);
  if (!legal) {
    return bad_value(entry.key, *token, open ? "a number above 0 and below 1" : "a number from 0 to 1");
  }
  share = *value;
  return ok_status();
}

std::optional<int64_t> parse_power_of_two(const std::string& text) {
  const std::optional<int64_t> value = parse_int64(text);
  return value.has_value() && *value > 0 && std::has_single_bit(static_cast<uint64_t>(*value)) ? value : std::nullopt;
}

// Reads a list such as [64:8,256:4,>:2]. Each entry consists of a size in MiB and a number of
// divisions. The first entry also applies to all smaller sizes. The entry '>' applies to all sizes
// above the entry before it. For other sizes without an entry, rounding to divisions is off.
Status read_division_list(const Entry& entry, std::array<int64_t, AllocatorConfig::kNumDivisions>& divisions) {
  bool first = true;
  size_t last = 0;
  const std::vector<Token>& value = entry.value;
  for (size_t at = 0; at < value.size(); at += 4) {
    const bool complete = at + 2 < value.size() && value[at + 1].text == ":" &&
                          (at + 3 == value.size() || (value[at + 3].text == "," && at + 4 < value.size()));
    if (!complete) return bad_value(entry.key, value[at], "a list such as [64:8,256:4,>:2]");
    const std::optional<int64_t> steps = value[at + 2].text == "0" ? 0 : parse_power_of_two(value[at + 2].text);
    if (!steps.has_value()) return bad_value(entry.key, value[at + 2], "a power of two or 0");
    if (value[at].text == ">") {
      std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(last) + 1, divisions.end(), *steps);
      continue;
    }
    const std::optional<int64_t> boundary = parse_power_of_two(value[at].text);
    if (!boundary.has_value()) return bad_value(entry.key, value[at], "a power of two or '>'");
    last = std::min(static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(*boundary))), divisions.size() - 1);
    if (first) std::fill(divisions.begin(), divisions.begin() + static_cast<std::ptrdiff_t>(last), *steps);
    first = false;
    divisions[last] = *steps;
  }
  return ok_status();
}

Status read_divisions(const Entry& entry, AllocatorConfig& config) {
  if (entry.is_list) return read_division_list(entry, config.roundup_power2_divisions);
  const std::optional<int64_t> steps = parse_power_of_two(entry.value[0].text);
  if (!steps.has_value()) return bad_value(entry.key, entry.value[0], "a power of two");
  config.roundup_power2_divisions.fill(*steps);
  return ok_status();
}

// ---- keys

Status read_backend(const Entry& entry, AllocatorConfig& config) {
  Result<Token> token = single(entry);
  if (!token.ok()) return std::move(token).error();
  if (token->text != "native" && token->text != "cudaMallocAsync" && token->text != "hipMallocAsync") {
    return bad_value(entry.key, *token, "native or cudaMallocAsync");
  }
  if (token->text != "native") config.not_modelled.push_back(entry.key.text + ":" + token->text);
  return ok_status();
}

Status read_not_modelled(const Entry& entry, AllocatorConfig& config) {
  bool flag = false;
  Status read = read_bool(entry, flag);
  if (read.ok() && flag) config.not_modelled.push_back(entry.key.text + ":True");
  return read;
}

Status read_host_flag(const Entry& entry, AllocatorConfig&) {
  bool ignored = false;
  return read_bool(entry, ignored);
}

Status read_host_size(const Entry& entry, AllocatorConfig&) {
  int64_t ignored = 0;
  return read_megabytes(entry, 1, ignored);
}

Status read_threads(const Entry& entry, AllocatorConfig& config) {
  constexpr int64_t kMaxThreads = 128;
  Result<Token> token = single(entry);
  if (!token.ok()) return std::move(token).error();
  const std::optional<int64_t> value = parse_power_of_two(token->text);
  if (!value.has_value() || *value > kMaxThreads) return bad_value(entry.key, *token, "a power of two up to 128");
  config.pinned_num_register_threads = *value;
  return ok_status();
}

template <bool AllocatorConfig::*flag>
Status read_flag(const Entry& entry, AllocatorConfig& config) {
  return read_bool(entry, config.*flag);
}

template <int64_t AllocatorConfig::*bytes>
Status read_split_limit(const Entry& entry, AllocatorConfig& config) {
  return read_megabytes(entry, config.large_segment_bytes / kMegabyte, config.*bytes);
}

Status read_nothing(const Entry&, AllocatorConfig&) { return ok_status(); }

struct Key {
  std::string_view name;
  Status (*read)(const Entry&, AllocatorConfig&);
};

constexpr std::string_view kLargeSegmentKey = "large_segment_size_mb";

const Key kKeys[] = {
    {kLargeSegmentKey, read_nothing},  // parse_allocator_config() reads this key first
    {"max_split_size_mb", read_split_limit<&AllocatorConfig::max_split_bytes>},
    {"max_non_split_rounding_mb", read_split_limit<&AllocatorConfig::max_non_split_rounding_bytes>},
    {"garbage_collection_threshold",
     [](const Entry& entry, AllocatorConfig& config) {
       return read_share(entry, true, config.garbage_collection_threshold);
     }},
    {"per_process_memory_fraction",
     [](const Entry& entry, AllocatorConfig& config) { return read_share(entry, false, config.memory_fraction); }},
    {"roundup_power2_divisions", read_divisions},
    {"expandable_segments", read_flag<&AllocatorConfig::expandable_segments>},
    {"backend", read_backend},
    {"graph_capture_record_stream_reuse", read_not_modelled},
    {"throw_on_cudamalloc_oom", read_not_modelled},
    // reserves addresses only
    {"expandable_segments_reserve", read_nothing},
    {"release_lock_on_cudamalloc", read_flag<&AllocatorConfig::release_lock_on_malloc>},
    {"release_lock_on_hipmalloc", read_flag<&AllocatorConfig::release_lock_on_malloc>},
    {"pinned_use_cuda_host_register", read_flag<&AllocatorConfig::pinned_use_host_register>},
    {"pinned_use_hip_host_register", read_flag<&AllocatorConfig::pinned_use_host_register>},
    {"pinned_num_register_threads", read_threads},
    {"pinned_use_background_threads", read_host_flag},
    {"pinned_free_catch_all", read_host_flag},
    {"pinned_reserve_segment_size_mb", read_host_size},
    {"pinned_max_round_threshold_mb", read_host_size},
    {"pinned_max_cached_size_mb", read_host_size},
};

Error unknown_key(const Token& key) {
  std::vector<std::string_view> names;
  for (const Key& known : kKeys) names.push_back(known.name);
  return error_at(ErrorCode::kAllocatorKey, key, "the allocator has no setting '" + key.text + "'",
                  suggestion(key.text, names, "leave it out"));
}

}  // namespace

Result<AllocatorConfig> parse_allocator_config(std::string_view text) {
  Result<std::vector<Entry>> entries = split_entries(tokenize(text));
  if (!entries.ok()) return std::move(entries).error();
  AllocatorConfig config;
  // This key is read first, because it is the lower limit of other sizes.
  for (const Entry& entry : *entries) {
    if (entry.key.text != kLargeSegmentKey) continue;
    Status read = read_megabytes(entry, kMinLargeSegmentMegabytes, config.large_segment_bytes);
    if (!read.ok()) return std::move(read).error();
  }
  config.max_non_split_rounding_bytes = config.large_segment_bytes;
  for (const Entry& entry : *entries) {
    const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                   [&](const Key& known) { return known.name == entry.key.text; });
    if (key == std::end(kKeys)) return unknown_key(entry.key);
    Status read = key->read(entry, config);
    if (!read.ok()) return std::move(read).error();
  }
  return config;
}

}  // namespace fxopt
