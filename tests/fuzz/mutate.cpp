#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "fxgraph.pb.h"

#include "core/check.h"
#include "ir/io/pb_envelope.h"
#include "ir/io/pb_wire.h"

namespace fxopt {
namespace {

// A range within `size` positions, usually short.
std::pair<size_t, size_t> random_range(Random& random, size_t size) {
  const size_t first = random.below(size);
  const size_t length = 1 + random.below(random.chance(90) ? 8 : size);
  return {first, std::min(length, size - first)};
}

void edit_bytes(Random& random, std::string& bytes) {
  if (bytes.empty()) bytes.push_back(static_cast<char>(random.below(256)));
  const auto [first, length] = random_range(random, bytes.size());
  const uint64_t kind = random.below(7);
  if (kind == 0) bytes[first] = static_cast<char>(static_cast<uint8_t>(bytes[first]) ^ (1U << random.below(8)));
  if (kind == 1) bytes[first] = static_cast<char>(random.below(256));
  if (kind == 2)
    bytes[first] = static_cast<char>(static_cast<uint8_t>(bytes[first]) + (random.chance(50) ? 1U : 0xFFU));
  if (kind == 3) bytes.erase(first, length);
  if (kind == 4) bytes.insert(first, bytes.substr(first, length));
  if (kind == 5) bytes.insert(random.below(bytes.size()), bytes.substr(first, length));
  if (kind == 6) {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(first), length, random.chance(50) ? '\xff' : '\0');
  }
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

// A word, a string, or one character.
size_t token_length(std::string_view text) {
  if (text.front() == '"') {
    for (size_t i = 1; i < text.size(); ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == '"') {
        return i + 1;
      }
    }
    return text.size();
  }
  const size_t end = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_word) - text.begin());
  return std::max<size_t>(end, 1);
}

std::vector<std::string> split_tokens(std::string_view text) {
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const size_t length = token_length(text);
    tokens.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return tokens;
}

void edit_tokens(Random& random, std::vector<std::string>& tokens) {
  if (tokens.empty()) return;
  const size_t at = random.below(tokens.size());
  const size_t other = random.below(tokens.size());
  const uint64_t kind = random.below(6);
  if (kind == 0) tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at));
  if (kind == 1) tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(at), std::string(tokens[at]));
  if (kind == 2) std::swap(tokens[at], tokens[other]);
  if (kind == 3) std::swap(tokens[at], tokens[std::min(at + 1 + random.below(4), tokens.size() - 1)]);
  if (kind == 4) tokens[at] = std::string(tokens[other]);
  if (kind == 5) edit_bytes(random, tokens[at]);
}

}  // namespace

std::string_view module_of(std::string_view file) {
  WireReader reader(file);
  while (const WireField* field = reader.next()) {
    if (field->number == schema::File::kModuleFieldNumber && field->type == WireType::kBytes) return field->payload;
  }
  return file;
}

std::string seal(std::string_view module) {
  PbCounts counts;
  WireReader reader(module);
  while (const WireField* field = reader.next()) {
    if (field->type != WireType::kBytes) continue;
    counts.strings += field->number == schema::Module::kStringsFieldNumber ? 1U : 0U;
    counts.storages += field->number == schema::Module::kStoragesFieldNumber ? 1U : 0U;
    if (field->number != schema::Module::kGraphsFieldNumber) continue;
    ++counts.graphs;
    WireReader nodes(field->payload);
    while (const WireField* node = nodes.next()) {
      counts.nodes += node->number == schema::Graph::kNodesFieldNumber && node->type == WireType::kBytes ? 1U : 0U;
    }
  }
  Result<std::string> file = write_envelope(counts, {std::string(module)});
  FXOPT_CHECK(file.ok(), "a module of a mutation is too large");
  return std::move(*file);
}

std::string mutate_bytes(Random& random, std::string_view bytes) {
  std::string result(bytes);
  do {
    edit_bytes(random, result);
  } while (random.chance(40));
  return result;
}

std::string mutate_tokens(Random& random, std::string_view text) {
  std::vector<std::string> tokens = split_tokens(text);
  do {
    edit_tokens(random, tokens);
  } while (random.chance(30));
  std::string result;
  result.reserve(text.size());
  for (const std::string& token : tokens) result += token;
  return result;
}

}  // namespace fxopt
