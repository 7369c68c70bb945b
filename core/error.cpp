#include "core/error.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/bytes.h"
#include "core/check.h"

namespace fxopt {
namespace {

constexpr size_t kCodeDigits = 4;
constexpr size_t kMaxCompared = 256;  // characters; a longer name is not a misspelling
constexpr size_t kMinBeginning = 3;   // minimum length of a name that matches as a prefix

// Returns "file:12:9: " or "file: byte 40: ". Leaves out the parts that are unknown.
std::string format_place(const Where& where) {
  std::string place = printable_line(where.file);
  if (where.line > 0) {
    if (!place.empty()) place += ':';
    place += std::to_string(where.line);
    if (where.column > 0) place += ":" + std::to_string(where.column);
  } else if (where.column > 0 || where.has_byte) {
    if (!place.empty()) place += ": ";
    place += where.has_byte ? "byte " + std::to_string(where.byte) : "column " + std::to_string(where.column);
  }
  return place.empty() ? place : place + ": ";
}

void append_line(std::string& out, std::string_view label, std::string_view text) {
  if (text.empty()) return;
  out += "\n  ";
  out += label;
  out += printable_line(text);
}

void append_block(std::string& out, std::string_view text) {
  const std::string lines = printable_lines(text.substr(0, text.find_last_not_of('\n') + 1));
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    out += "\n  " + lines.substr(begin, end - begin);
    begin = end + 1;
  }
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Returns the number of insertions, deletions, replacements and swaps of neighbours that turn `a`
// into `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_previous, previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) current[j] = std::min(current[j], before_previous[j - 2] + 1);
    }
    before_previous = previous;
    previous.swap(current);
  }
  return previous[b.size()];
}

const ErrorInfo* find_row(uint32_t number) {
  const std::vector<ErrorInfo>& rows = error_table();
  const std::vector<ErrorInfo>::const_iterator row = std::lower_bound(
      rows.begin(), rows.end(), number,
      [](const ErrorInfo& info, uint32_t wanted) { return static_cast<uint32_t>(info.code) < wanted; });
  return row != rows.end() && static_cast<uint32_t>(row->code) == number ? &*row : nullptr;
}

}  // namespace

Error byte_error(ErrorCode code, std::string message, std::string hint, uint64_t byte) {
  Error error{code, std::move(message), std::move(hint), {}};
  error.where.byte = byte;
  error.where.has_byte = true;
  return error;
}

const ErrorInfo& error_info(ErrorCode code) {
  const ErrorInfo* info = find_row(static_cast<uint32_t>(code));
  FXOPT_CHECK(info != nullptr, "the error table has no row for " + code_name(code));
  return *info;
}

std::string code_name(ErrorCode code) {
  std::string digits = std::to_string(static_cast<uint32_t>(code));
  digits.insert(0, digits.size() < kCodeDigits ? kCodeDigits - digits.size() : 0, '0');
  return "FX" + digits;
}

const ErrorInfo* find_error_info(std::string_view name) {
  if (name.size() >= 2 && (name[0] == 'F' || name[0] == 'f') && (name[1] == 'X' || name[1] == 'x'))
    name.remove_prefix(2);
  if (name.empty() || name.size() > kCodeDigits) return nullptr;
  uint32_t number = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return nullptr;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  return find_row(number);
}

std::string format_error(const Error& error) {
  const Where& where = error.where;
  std::string out = format_place(where) + "error[" + code_name(error.code) + "]: " + printable_lines(error.message);
  append_line(out, "graph: ", where.graph.empty() ? "" : "@" + where.graph);
  const std::string field = where.field.empty() ? "" : where.node.empty() ? where.field : ", " + where.field;
  append_line(out, where.node.empty() ? "field: " : "node: ", (where.node.empty() ? "" : "%" + where.node) + field);
  append_line(out, "module: ", where.module_path);
  append_line(out, "source: ", where.source);
  append_block(out, where.excerpt);
  if (!error.hint.empty()) out += "\n  hint: " + printable_lines(error.hint);
  return out;
}

std::string_view closest_name(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.size() < 2 || name.size() > kMaxCompared) return {};
  const std::string wanted = lower_case(name);
  std::string_view closest, longer, shorter;
  size_t nearest = SIZE_MAX;
  for (const std::string_view candidate : candidates) {
    const bool is_longer = longer.empty() && candidate.size() > name.size() && name.size() >= kMinBeginning;
    if (is_longer && lower_case(candidate.substr(0, name.size())) == wanted) longer = candidate;
    const bool is_shorter = candidate.size() >= kMinBeginning && candidate.size() > shorter.size();
    if (is_shorter && wanted.starts_with(lower_case(candidate))) shorter = candidate;
    // The difference in length is a lower bound of the distance.
    const size_t length = std::max(name.size(), candidate.size());
    const size_t limit = (length + 3) / 4;
    if (length - std::min(name.size(), candidate.size()) > std::min(limit, nearest)) continue;
    const size_t distance = edit_distance(wanted, lower_case(candidate));
    if (distance > limit || distance >= nearest) continue;
    closest = candidate;
    nearest = distance;
  }
  if (nearest != SIZE_MAX) return closest;
  return longer.empty() ? shorter : longer;
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates,
                       std::string_view otherwise) {
  const std::string_view near = closest_name(name, candidates);
  return near.empty() ? std::string(otherwise) : "did you mean '" + std::string(near) + "'?";
}

}  // namespace fxopt
