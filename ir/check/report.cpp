#include "ir/check/report.h"

#include <utility>

#include "core/bytes.h"

namespace fxopt {
namespace {

constexpr size_t kMaxQuoted = 120;  // limit in bytes on a name in a message

std::string_view child_label(ArgKind kind) {
  switch (kind) {
    case ArgKind::kComplex:
      return ".complex";
    case ArgKind::kTuple:
      return ".tuple";
    case ArgKind::kDict:
      return ".dict";
    case ArgKind::kSlice:
      return ".slice";
    case ArgKind::kEnum:
      return ".enum";
    case ArgKind::kOpaque:
      return ".opaque";
    case ArgKind::kSet:
      return ".set";
    default:
      return ".list";
  }
}

std::string at_index(std::string_view label, uint32_t index) {
  return std::string(label) + "[" + std::to_string(index) + "]";
}

}  // namespace

std::string quoted(std::string_view text) {
  return text.size() <= kMaxQuoted ? quote(text) : quote(text.substr(0, kMaxQuoted)) + "...";
}

std::string beyond(std::string_view what, int64_t index, int64_t count, std::string_view items) {
  return std::string(what) + " " + std::to_string(index) + ", but " +
         (count <= 0 ? "there are no " + std::string(items)
                     : "the " + std::string(items) + " are numbered 0 to " + std::to_string(count - 1));
}

void Report::add(ErrorCode code, const Place& place, std::string message, std::string hint) {
  ++total_;
  if (is_full()) return;
  Error error{code, std::move(message), std::move(hint), Where()};
  error.where.field = place.field;
  if (place.graph != nullptr) {
    error.where.graph = module_->text(place.graph->name());
    if (place.node.is_valid()) {
      const Node& node = (*place.graph)[place.node];
      error.where.node = module_->text(node.name);
      error.where.module_path = module_->text(node.module_path);
      if (node.source.is_valid()) {
        const Source& source = module_->source(node.source);
        error.where.source = std::string(module_->text(source.file)) + ":" + std::to_string(source.line);
      }
    }
  }
  errors_.push_back(std::move(error));
}

std::vector<Error> Report::finish() && {
  if (total_ > limit_ && limit_ > 0) {
    const size_t hidden = total_ - limit_ + 1;
    errors_.back() = Error{errors_.back().code, std::to_string(hidden) + " more diagnostics", "", Where()};
  }
  return std::move(errors_);
}

void ArgWalk::start(std::string_view label, ArgRange range, Keys keys) {
  started_ = false;
  stack_.clear();
  stack_.push_back(Frame{range, 0, keys, label});
}

bool ArgWalk::next() {
  if (started_) {
    const Arg& current = arg();
    if (current.has_children()) {
      const Keys keys = current.is(ArgKind::kDict) ? Keys::kEven : Keys::kNone;
      stack_.push_back(Frame{current.range(), 0, keys, child_label(current.kind())});
    }
  }
  started_ = true;
  while (stack_.back().at == stack_.back().range.count) {
    if (stack_.size() == 1) return false;
    stack_.pop_back();
  }
  ++stack_.back().at;
  return true;
}

std::string ArgWalk::path() const {
  std::string path;
  for (const Frame& frame : stack_) {
    const uint32_t index = frame.at - 1;
    if (frame.keys == Keys::kNone) {
      path += at_index(frame.label, index);
      continue;
    }
    const Arg& key = pool_->arg(ArgIndex(frame.range.first + index - index % 2));
    path += key.is(ArgKind::kString) ? std::string(frame.label) + "." + std::string(module_->text(key.as_string()))
                                     : at_index(frame.label, index / 2);
  }
  return path;
}

void ValueWalk::start(std::string_view label, ValueId root) {
  started_ = false;
  stack_.clear();
  stack_.push_back(Frame{root.index(), root.is_valid() ? 1U : 0U, 0, label});
}

bool ValueWalk::next() {
  if (started_) {
    const Value& current = value();
    if (current.kind == ValueKind::kTuple) stack_.push_back(Frame{current.first, current.count, 0, ".tuple"});
    if (current.kind == ValueKind::kList) stack_.push_back(Frame{current.first, current.count, 0, ".list"});
    if (current.kind == ValueKind::kDict) stack_.push_back(Frame{current.first, current.count, 0, ".dict"});
  }
  started_ = true;
  while (stack_.back().at == stack_.back().count) {
    if (stack_.size() == 1) return false;
    stack_.pop_back();
  }
  ++stack_.back().at;
  return true;
}

std::string ValueWalk::path() const {
  std::string path(stack_.front().label);
  for (size_t i = 1; i < stack_.size(); ++i) path += at_index(stack_[i].label, stack_[i].at - 1);
  return path;
}

}  // namespace fxopt
