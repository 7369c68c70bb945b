#include "cli/print/pickle.h"

#include <utility>

#include "core/check.h"

namespace fxopt {
namespace {

// Opcodes of Python's pickletools.
constexpr char kMark = '(';
constexpr char kStop = '.';
constexpr char kEmptyDict = '}';
constexpr char kEmptyList = ']';
constexpr char kSetItems = 'u';
constexpr char kAppends = 'e';
constexpr char kBinInt1 = 'K';
constexpr char kBinInt2 = 'M';
constexpr char kBinInt = 'J';
constexpr char kLong1 = '\x8a';
constexpr char kBinUnicode = 'X';
constexpr char kTuple2 = '\x86';
constexpr char kNewTrue = '\x88';
constexpr char kNewFalse = '\x89';
constexpr char kBinPut = 'q';
constexpr char kLongBinPut = 'r';
constexpr char kBinGet = 'h';
constexpr char kLongBinGet = 'j';

constexpr size_t kMaxBatch = 1000;  // the viewer passes a whole batch to one function call
constexpr size_t kLongBytes = 7;    // enough for 2^53 and its sign

}  // namespace

void PickleWriter::number(uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) put(static_cast<char>((value >> (8 * i)) & 0xff));
}

void PickleWriter::item() {
  if (open_.empty() || !open_.back().is_list) return;
  Open& list = open_.back();
  if (list.items == kMaxBatch) {
    put(kAppends);
    put(kMark);
    list.items = 0;
  }
  ++list.items;
}

void PickleWriter::begin_dict() {
  item();
  put(kEmptyDict);
  put(kMark);
  open_.push_back({false, 0});
}

void PickleWriter::end_dict() {
  FXOPT_CHECK(!open_.empty() && !open_.back().is_list, "no dict is open");
  put(kSetItems);
  open_.pop_back();
}

void PickleWriter::begin_list() {
  item();
  put(kEmptyList);
  put(kMark);
  open_.push_back({true, 0});
}

void PickleWriter::end_list() {
  FXOPT_CHECK(!open_.empty() && open_.back().is_list, "no list is open");
  put(kAppends);
  open_.pop_back();
}

void PickleWriter::integer(int64_t value) {
  item();
  if (value >= 0 && value < 0x100) {
    put(kBinInt1);
    return number(static_cast<uint64_t>(value), 1);
  }
  if (value >= 0 && value < 0x10000) {
    put(kBinInt2);
    return number(static_cast<uint64_t>(value), 2);
  }
  if (value >= INT32_MIN && value <= INT32_MAX) {
    put(kBinInt);
    return number(static_cast<uint64_t>(value), 4);
  }
  put(kLong1);
  put(static_cast<char>(kLongBytes));
  number(static_cast<uint64_t>(value), kLongBytes);
}

void PickleWriter::boolean(bool value) {
  item();
  put(value ? kNewTrue : kNewFalse);
}

void PickleWriter::string(std::string_view text) {
  item();
  const auto found = strings_.find(text);
  if (found != strings_.end()) return recall(found->second);
  put(kBinUnicode);
  number(text.size(), 4);
  bytes_ += text;
  strings_.emplace(std::string(text), slots_);
  remember();
}

void PickleWriter::pair(int64_t a, int64_t b) {
  item();
  open_.push_back({false, 0});  // the pair's elements are not items of a list
  integer(a);
  integer(b);
  open_.pop_back();
  put(kTuple2);
}

void PickleWriter::keep(uint32_t name) {
  kept_.emplace(name, slots_);
  remember();
}

bool PickleWriter::refer(uint32_t name) {
  const auto found = kept_.find(name);
  if (found == kept_.end()) return false;
  item();
  recall(found->second);
  return true;
}

void PickleWriter::remember() {
  const bool is_short = slots_ < 0x100;
  put(is_short ? kBinPut : kLongBinPut);
  number(slots_, is_short ? 1 : 4);
  ++slots_;
}

void PickleWriter::recall(uint32_t slot) {
  const bool is_short = slot < 0x100;
  put(is_short ? kBinGet : kLongBinGet);
  number(slot, is_short ? 1 : 4);
}

std::string PickleWriter::finish() {
  FXOPT_CHECK(open_.empty(), "a dict or list is not ended");
  put(kStop);
  return std::move(bytes_);
}

}  // namespace fxopt
