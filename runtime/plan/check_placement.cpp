#include <algorithm>
#include <map>

#include "runtime/plan/check_structure.h"

namespace fxopt {
namespace plan_check {
namespace {

constexpr uint32_t kMaxStreams = 64;

// Vector clocks. The clock of a stream A has an entry for each stream B: the last step of B that is
// known to end before the next step of A. The clock of a step is stored only if another step awaits
// an event of the step.
class Clocks {
 public:
  Clocks(const FxPlacement& placement, size_t num_steps) : placement_(placement), num_streams_(placement.stream_count) {
    now_.assign(size_t{num_streams_} * num_streams_, 0);
    waits_.assign(num_steps, 0);
    for (uint64_t i = 0; i < placement.num_events; ++i) ++waits_[placement.events[i].recorded_by];
    saved_.assign(num_steps, FX_NONE);
  }

  // Advances to `step`. Steps must be passed in order, because events are sorted by the step that
  // awaits them.
  void begin(uint32_t step) {
    stream_ = placement_.streams[step];
    uint32_t* clock = &now_[size_t{stream_} * num_streams_];
    for (; event_ < placement_.num_events && placement_.events[event_].awaited_by == step; ++event_) {
      const uint32_t recorder = placement_.events[event_].recorded_by;
      const uint32_t* other = &room_[size_t{saved_[recorder]} * num_streams_];
      for (uint32_t i = 0; i < num_streams_; ++i) clock[i] = std::max(clock[i], other[i]);
      if (--waits_[recorder] == 0) free_.push_back(saved_[recorder]);
    }
    clock[stream_] = step + 1;
    if (waits_[step] == 0) return;
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(room_.size() / num_streams_));
      room_.resize(room_.size() + num_streams_);
    }
    saved_[step] = free_.back();
    free_.pop_back();
    std::copy(clock, clock + num_streams_, &room_[size_t{saved_[step]} * num_streams_]);
  }

  // Returns true if the current step is known to run after `step`. `step` must not be later.
  bool is_behind(uint32_t step) const { return now_[size_t{stream_} * num_streams_ + placement_.streams[step]] > step; }

 private:
  const FxPlacement& placement_;
  const uint32_t num_streams_;
  uint32_t stream_ = 0;
  uint64_t event_ = 0;
  std::vector<uint32_t> now_;    // by stream, then by stream: the last step that has run, plus 1
  std::vector<uint32_t> waits_;  // by step: number of steps that await its event
  std::vector<uint32_t> saved_;  // by step: its clock in room_
  std::vector<uint32_t> room_, free_;
};

// For each key and stream, stores the step of the last call of set().
class LastOnStream {
 public:
  explicit LastOnStream(size_t keys) : heads_(keys, FX_NONE) {}

  void set(size_t key, uint32_t stream, uint32_t step) {
    for (uint32_t i = heads_[key]; i != FX_NONE; i = entries_[i].next) {
      if (entries_[i].stream != stream) continue;
      entries_[i].step = step;
      return;
    }
    entries_.push_back({stream, step, heads_[key]});
    heads_[key] = static_cast<uint32_t>(entries_.size() - 1);
  }
  void clear(size_t key) { heads_[key] = FX_NONE; }

  // Calls see(step) for the stored step of each stream.
  template <class See>
  void for_each(size_t key, const See& see) const {
    for (uint32_t i = heads_[key]; i != FX_NONE; i = entries_[i].next) see(entries_[i].step);
  }

 private:
  struct Entry {
    uint32_t stream;
    uint32_t step;
    uint32_t next;
  };
  std::vector<uint32_t> heads_;
  std::vector<Entry> entries_;
};

class PlacementRules {
 public:
  PlacementRules(const FxPlan& plan, const FxPlacement& placement, const PlanFacts& facts, FaultList& faults)
      : plan_(plan),
        placement_(placement),
        facts_(facts),
        faults_(faults),
        num_steps_(static_cast<uint32_t>(plan.num_steps)),
        num_storages_(static_cast<uint32_t>(plan.num_storages)),
        readers_(plan.num_storages),
        users_(plan.num_storages + plan.num_steps) {}

  void check() {
    if (!check_header()) return;
    check_streams();
    check_events();
    check_blocks();
    if (faults_.size() > 0) return;
    find_shared_bytes();
    check_order();
  }

 private:
  // Two blocks that use the same bytes one after the other. An owner of a block is the index of a
  // storage, or num_storages_ plus the step of a workspace.
  struct Pair {
    uint32_t begin;  // the first step that uses the later block
    uint32_t earlier, later;
  };
  struct Alive {
    uint32_t first, last;
  };

  void add(PlanFaultKind kind, Subject subject, const std::string& message, Subject other = {}) {
    faults_.add(kind, subject, message, other);
  }

  bool check_header() {
    if (placement_.version != FX_PLAN_VERSION || placement_.size != sizeof(FxPlacement)) {
      add(PlanFaultKind::kBadVersion, {},
          "the placement has version " + std::to_string(placement_.version) + " with " +
              std::to_string(placement_.size) + " bytes; this checker expects version " +
              std::to_string(FX_PLAN_VERSION) + " with " + std::to_string(sizeof(FxPlacement)));
      return false;
    }
    check_count(placement_.blocks, placement_.num_blocks, num_storages_, "blocks", "storages");
    check_count(placement_.streams, placement_.num_streams, num_steps_, "streams", "steps");
    check_count(placement_.workspaces, placement_.num_workspaces, num_steps_, "workspaces", "steps");
    check_count(placement_.kernels, placement_.num_kernels, num_steps_, "kernels", "steps");
    if (plan_.num_storages + plan_.num_steps >= FX_NONE) {
      add(PlanFaultKind::kBadArray, {}, "too many storages and steps for indices of 32 bits");
    }
    if (placement_.num_events >= FX_NONE || (placement_.events == nullptr && placement_.num_events > 0)) {
      add(PlanFaultKind::kBadArray, {},
          std::to_string(placement_.num_events) + " events, which are too many or at a null pointer");
    }
    if (placement_.device != FX_NONE && placement_.device >= plan_.num_strings) {
      add(PlanFaultKind::kBadIndex, {},
          "device is " + std::to_string(placement_.device) + ", but there are " + std::to_string(plan_.num_strings) +
              " strings");
    }
    if (placement_.stream_count > kMaxStreams || (placement_.stream_count == 0 && num_steps_ > 0)) {
      add(PlanFaultKind::kStream, {}, std::to_string(placement_.stream_count) + " streams; 1 to 64 are legal");
    }
    if (placement_.arena_bytes < 0 || placement_.lower_bound < 0 || placement_.lower_bound > placement_.arena_bytes) {
      add(PlanFaultKind::kLowerBound, {},
          "the arena has " + std::to_string(placement_.arena_bytes) + " bytes, but the lower bound is " +
              std::to_string(placement_.lower_bound));
    }
    return faults_.size() == 0;
  }

  void check_count(const void* data, uint64_t count, uint64_t expected, const char* name, const char* of) {
    if (count != expected) {
      add(PlanFaultKind::kPlacementSize, {},
          std::to_string(count) + " " + name + " for " + std::to_string(expected) + " " + of);
    } else if (data == nullptr && count > 0) {
      add(PlanFaultKind::kBadArray, {}, std::to_string(count) + " " + name + " at a null pointer");
    }
  }

  void check_streams() {
    for (uint32_t i = 0; i < num_steps_ && !faults_.full(); ++i) {
      if (placement_.streams[i] < placement_.stream_count) continue;
      add(PlanFaultKind::kStream, step_at(i),
          "runs on stream " + std::to_string(placement_.streams[i]) + ", but the stream count is " +
              std::to_string(placement_.stream_count));
    }
  }

  void check_events() {
    for (uint64_t i = 0; i < placement_.num_events && !faults_.full(); ++i) {
      const FxEvent& event = placement_.events[i];
      const Subject subject{Part::kEvent, i};
      if (event.recorded_by >= num_steps_ || event.awaited_by >= num_steps_) {
        add(PlanFaultKind::kEvent, subject, "refers to a step that does not exist");
      } else if (event.recorded_by >= event.awaited_by) {
        add(PlanFaultKind::kEvent, subject,
            named("step", event.awaited_by) + " awaits it, but step " + std::to_string(event.recorded_by) +
                ", which records it, is not earlier",
            step_at(event.awaited_by));
      } else if (placement_.streams[event.recorded_by] == placement_.streams[event.awaited_by]) {
        add(PlanFaultKind::kEvent, subject, "orders two steps of the same stream", step_at(event.awaited_by));
      } else if (i > 0 && event.awaited_by < placement_.events[i - 1].awaited_by) {
        add(PlanFaultKind::kEvent, subject, "is not sorted by the step that awaits it", step_at(event.awaited_by));
      }
    }
  }

  bool is_here(const FxStorage& storage) const { return is_same_device(plan_, storage.device, placement_.device); }

  void check_blocks() {
    std::map<uint32_t, bool> devices;  // by string
    for (uint32_t i = 0; i < num_storages_ && !faults_.full(); ++i) {
      const FxStorage& storage = plan_.storages[i];
      const auto [device, is_new] = devices.try_emplace(storage.device, false);
      if (is_new) device->second = is_here(storage);
      check_block(i, device->second);
    }
    for (uint32_t i = 0; i < num_steps_ && !faults_.full(); ++i) {
      const FxBlock& block = placement_.workspaces[i];
      if (block.kind != FX_BLOCK_ARENA && block.kind != FX_BLOCK_NONE) {
        add(PlanFaultKind::kBlock, step_at(i), "its workspace is of kind " + std::to_string(block.kind));
      }
      check_range(step_at(i), "its workspace", block);
    }
  }

  // Checks a storage's block. ARENA is legal for planned storages, LATE for late storages, and
  // GIVEN for the caller's storages. LATE is also legal for planned storages that are returned or
  // whose size depends on inputs. NONE is legal for storages without bytes or on another device.
  void check_block(uint32_t index, bool is_here) {
    const FxStorage& storage = plan_.storages[index];
    const FxBlock& block = placement_.blocks[index];
    const std::optional<int64_t> bytes = word_number(plan_, storage.bytes);
    const bool is_empty = storage.first == FX_NONE || bytes == int64_t{0};
    bool is_legal = false;
    if (!is_here) {
      is_legal = block.kind == FX_BLOCK_NONE;
    } else if (!is_made(storage)) {
      is_legal = block.kind == FX_BLOCK_GIVEN;
    } else if (storage.source == FX_SOURCE_LATE) {
      is_legal = block.kind == FX_BLOCK_LATE || (is_empty && block.kind == FX_BLOCK_NONE);
    } else {
      const bool may_be_late = (storage.flags & FX_STORAGE_RETURNED) != 0 || !bytes.has_value();
      is_legal = block.kind == FX_BLOCK_ARENA || (may_be_late && block.kind == FX_BLOCK_LATE) ||
                 (is_empty && block.kind == FX_BLOCK_NONE);
    }
    if (!is_legal) {
      add(PlanFaultKind::kBlock, storage_at(index),
          "source " + std::to_string(storage.source) + (is_here ? "" : " of another device") + " has a block of kind " +
              std::to_string(block.kind));
      return;
    }
    check_range(storage_at(index), "its block", block);
    if (block.kind == FX_BLOCK_ARENA && storage.first != FX_NONE && bytes.has_value() && block.bytes < *bytes) {
      add(PlanFaultKind::kBlockSmall, storage_at(index),
          "has " + std::to_string(*bytes) + " bytes, but its block has " + std::to_string(block.bytes));
    }
  }

  void check_range(Subject subject, const std::string& name, const FxBlock& block) {
    if (block.kind != FX_BLOCK_ARENA) return;
    if (block.offset >= 0 && block.bytes >= 0 && block.bytes <= placement_.arena_bytes &&
        block.offset <= placement_.arena_bytes - block.bytes) {
      return;
    }
    add(PlanFaultKind::kBlock, subject,
        name + " has " + std::to_string(block.bytes) + " bytes from offset " + std::to_string(block.offset) +
            ", but the arena has " + std::to_string(placement_.arena_bytes));
  }

  bool is_storage(uint32_t owner) const { return owner < num_storages_; }
  Subject subject_of(uint32_t owner) const {
    return is_storage(owner) ? storage_at(owner) : step_at(owner - num_storages_);
  }
  std::string text(uint32_t owner) const {
    return is_storage(owner) ? named("storage", owner) : named("the workspace of step", owner - num_storages_);
  }
  const FxBlock& block_of(uint32_t owner) const {
    return is_storage(owner) ? placement_.blocks[owner] : placement_.workspaces[owner - num_storages_];
  }
  // A workspace is in use until the exchange that its step starts has ended.
  Alive alive(uint32_t owner) const {
    if (is_storage(owner)) return {plan_.storages[owner].first, plan_.storages[owner].last};
    const uint32_t step = owner - num_storages_;
    if (!is_exchange(plan_.steps[step])) return {step, step};
    return {step, facts_.last_wait[step] == FX_NONE ? num_steps_ - 1 : facts_.last_wait[step]};
  }

  // Visits the blocks in the order of their first steps, and tracks the last owner of each byte.
  // Collects the pairs of owners that directly follow each other. If these pairs are ordered, all
  // pairs are ordered.
  void find_shared_bytes() {
    std::vector<uint32_t> owners;
    for (uint32_t owner = 0; owner < num_storages_ + num_steps_; ++owner) {
      const FxBlock& block = block_of(owner);
      if (block.kind == FX_BLOCK_ARENA && block.bytes > 0 && alive(owner).first != FX_NONE) owners.push_back(owner);
    }
    std::sort(owners.begin(), owners.end(), [&](uint32_t a, uint32_t b) {
      const uint32_t first_a = alive(a).first;
      const uint32_t first_b = alive(b).first;
      return first_a != first_b ? first_a < first_b : a < b;
    });
    for (const uint32_t owner : owners) {
      if (faults_.full()) return;
      take(owner);
    }
    std::sort(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) { return a.begin < b.begin; });
  }

  void take(uint32_t owner) {
    struct Piece {
      int64_t begin, end;
      uint32_t owner;
    };
    const int64_t begin = block_of(owner).offset;
    const int64_t end = begin + block_of(owner).bytes;
    auto it = segments_.upper_bound(begin);
    if (it != segments_.begin() && std::prev(it)->second.end > begin) --it;
    uint32_t latest = FX_NONE;
    Piece rest[2];
    size_t num_rest = 0;
    while (it != segments_.end() && it->first < end) {
      const Piece piece{it->first, it->second.end, it->second.owner};
      if (piece.owner != latest) follow(piece.owner, owner);
      latest = piece.owner;
      if (piece.begin < begin) rest[num_rest++] = {piece.begin, begin, piece.owner};
      if (piece.end > end) rest[num_rest++] = {end, piece.end, piece.owner};
      it = segments_.erase(it);
    }
    segments_[begin] = {end, owner};
    for (size_t i = 0; i < num_rest; ++i) segments_[rest[i].begin] = {rest[i].end, rest[i].owner};
  }

  void follow(uint32_t earlier, uint32_t later) {
    if (alive(earlier).last >= alive(later).first) {
      overlap(earlier, later, "");
      return;
    }
    const uint32_t begin = is_storage(later) ? facts_.maker[later] : later - num_storages_;
    if (begin != FX_NONE) pairs_.push_back({begin, earlier, later});
  }

  void overlap(uint32_t earlier, uint32_t later, const std::string& reason) {
    const PlanFaultKind kind =
        is_storage(earlier) && is_storage(later) ? PlanFaultKind::kBlocksOverlap : PlanFaultKind::kWorkspaceOverlap;
    add(kind, subject_of(later), "shares bytes with " + text(earlier) + " while both are in use" + reason,
        subject_of(earlier));
  }

  // Checks that each step runs after its dependencies. Checks that a block is used only after all
  // users of the previous owner of its bytes.
  void check_order() {
    Clocks clocks(placement_, num_steps_);
    written_.assign(num_storages_, FX_NONE);
    last_write_.assign(num_storages_, FX_NONE);
    exchange_.assign(num_storages_, FX_NONE);
    size_t pair = 0;
    for (uint32_t i = 0; i < num_steps_ && !faults_.full(); ++i) {
      clocks.begin(i);
      for (; pair < pairs_.size() && pairs_[pair].begin == i && !faults_.full(); ++pair) {
        users_.for_each(pairs_[pair].earlier, [&](uint32_t user) {
          if (clocks.is_behind(user)) return;
          overlap(pairs_[pair].earlier, pairs_[pair].later,
                  ": step " + std::to_string(i) + " need not run after step " + std::to_string(user));
        });
      }
      check_step(i, clocks);
    }
  }

  void check_step(uint32_t index, const Clocks& clocks) {
    const FxStep& step = plan_.steps[index];
    for (uint32_t i = 0; i < step.num_after && !faults_.full(); ++i) {
      const uint32_t earlier = plan_.indices[step.after + i];
      if (!clocks.is_behind(earlier)) unordered(index, earlier, "which it must follow", {});
    }
    for_each_access(plan_, facts_, index, written_, [&](uint32_t storage, Access access) {
      if (access == Access::kWrite || access == Access::kMake) {
        write(index, storage, clocks);
        if (is_exchange(step)) exchange_[storage] = index;
      } else {
        read(index, storage, clocks);
      }
    });
    users_.set(num_storages_ + index, placement_.streams[index], index);
    if (step.kind == FX_STEP_WAIT && step.other != FX_NONE) check_wait(index, clocks);
  }

  // Checks a wait. The results of the exchange are available only after the wait, so the wait is
  // treated as a write to these results.
  void check_wait(uint32_t index, const Clocks& clocks) {
    const uint32_t exchange = plan_.steps[index].other;
    if (!clocks.is_behind(exchange)) unordered(index, exchange, "for which it waits", {});
    for (size_t k = facts_.tensor_begin[index]; k < facts_.tensor_begin[index + 1]; ++k) {
      const uint32_t storage = plan_.tensors[facts_.arg_tensors[k]].storage;
      if (storage != FX_NONE && exchange_[storage] == exchange) {
        exchange_[storage] = FX_NONE;
        write(index, storage, clocks);
      }
    }
    if (facts_.last_wait[exchange] != index) return;
    for_each_access(plan_, facts_, exchange, written_, [&](uint32_t storage, Access) {
      if (exchange_[storage] == exchange) {
        exchange_[storage] = FX_NONE;
        write(index, storage, clocks);
      } else {
        read(index, storage, clocks);
      }
    });
    users_.set(num_storages_ + exchange, placement_.streams[index], index);
  }

  void read(uint32_t step, uint32_t storage, const Clocks& clocks) {
    const uint32_t write = last_write_[storage];
    if (write != FX_NONE && !clocks.is_behind(write)) unordered(step, write, "which writes", storage);
    readers_.set(storage, placement_.streams[step], step);
    users_.set(storage, placement_.streams[step], step);
  }

  void write(uint32_t step, uint32_t storage, const Clocks& clocks) {
    const uint32_t write = last_write_[storage];
    if (write == step) return;
    if (write != FX_NONE && !clocks.is_behind(write)) unordered(step, write, "which writes", storage);
    readers_.for_each(storage, [&](uint32_t reader) {
      if (!clocks.is_behind(reader)) unordered(step, reader, "which reads", storage);
    });
    readers_.clear(storage);
    last_write_[storage] = step;
    users_.set(storage, placement_.streams[step], step);
  }

  void unordered(uint32_t step, uint32_t earlier, const char* relation, std::optional<uint32_t> storage) {
    if (reported_ == std::pair{step, earlier}) return;
    reported_ = {step, earlier};
    const std::string suffix = storage.has_value() ? " " + named("storage", *storage) : std::string();
    add(PlanFaultKind::kUnordered, step_at(step),
        "no event makes it follow " + named("step", earlier) + " of another stream, " + relation + suffix,
        storage.has_value() ? storage_at(*storage) : Subject{});
  }

  const FxPlan& plan_;
  const FxPlacement& placement_;
  const PlanFacts& facts_;
  FaultList& faults_;
  const uint32_t num_steps_;
  const uint32_t num_storages_;
  struct Segment {
    int64_t end = 0;
    uint32_t owner = 0;
  };
  std::map<int64_t, Segment> segments_;  // by first byte in the arena: the last owner so far
  std::vector<Pair> pairs_;
  std::vector<uint32_t> written_;     // scratch space of for_each_access()
  std::vector<uint32_t> last_write_;  // by storage
  std::vector<uint32_t> exchange_;    // by storage: the unfinished exchange that writes it
  // last pair of steps reported as unordered
  std::pair<uint32_t, uint32_t> reported_{FX_NONE, FX_NONE};
  LastOnStream readers_;  // by storage: readers since the last write
  LastOnStream users_;    // by owner
};

}  // namespace
}  // namespace plan_check

std::vector<PlanFault> check_placement(const FxPlan& plan, const FxPlacement& placement) {
  plan_check::FaultList faults;
  plan_check::PlanFacts facts;
  if (!plan_check::check_graphs(plan, plan_check::Level::kAny, faults, facts)) {
    std::vector<PlanFault> found = faults.take();
    found.front().kind = PlanFaultKind::kFaultyPlan;
    found.front().message = "the plan is faulty: " + found.front().message;
    found.resize(1);
    return found;
  }
  plan_check::PlacementRules(plan, placement, facts, faults).check();
  return faults.take();
}

}  // namespace fxopt
