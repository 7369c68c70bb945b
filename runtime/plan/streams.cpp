#include "runtime/plan/streams.h"

#include <algorithm>
#include <map>
#include <vector>

#include "runtime/plan/walk.h"

namespace fxopt {
namespace {

// A vector clock: for each stream, the last step that is known to have ended, plus 1. 0 means no
// step.
using Clock = std::vector<uint32_t>;

class Spreader {
 public:
  Spreader(const FxPlan& plan, uint32_t streams, PlanPlacement& placement)
      : plan_(plan),
        placement_(placement),
        users_(plan.num_storages + plan.num_steps, Clock(streams, 0)),
        writers_(plan.num_storages, 0),
        clocks_(streams, Clock(streams, 0)),
        clock_behind_(plan.num_steps),
        last_(streams, 0) {}

  void run() {
    placement_.stream_count = static_cast<uint32_t>(last_.size());
    placement_.events.clear();
    for (uint32_t storage = 0; storage < plan_.num_storages; ++storage) {
      if (plan_.storages[storage].first != FX_NONE && placement_.blocks[storage].kind == FX_BLOCK_ARENA)
        made_by_[plan_.storages[storage].first].push_back(storage);
    }
    for (uint32_t step = 0; step < plan_.num_steps; ++step) place_step(step);
  }

 private:
  uint32_t class_of(uint32_t storage) const { return plan_.storages[storage].alias_class; }

  // Returns for each stream the last step that must end before `step` starts, plus one.
  Clock needs_of(uint32_t step) {
    Clock needs(last_.size(), 0);
    const auto need = [&](uint32_t count) {
      if (count == 0) return;
      uint32_t& known = needs[placement_.streams[count - 1]];
      known = std::max(known, count);
    };
    const auto need_all = [&](const Clock& users) {
      for (const uint32_t count : users) need(count);
    };
    const FxStep& row = plan_.steps[step];
    for_each_argument(plan_, row, [&](FxWord word) {
      if_storage(plan_, word, [&](uint32_t storage) { need(writers_[class_of(storage)]); });
    });
    const auto write = [&](uint32_t storage) { need_all(users_[class_of(storage)]); };
    for (uint32_t i = 0; i < row.num_results; ++i) if_storage(plan_, plan_.words[row.results + i], write);
    for (uint32_t i = 0; i < row.num_writes; ++i) write(plan_.indices[row.writes + i]);
    for (uint32_t i = 0; i < row.num_after; ++i) need(plan_.indices[row.after + i] + 1);
    if (row.other != FX_NONE) need(row.other + 1);
    if (const auto made = made_by_.find(step); made != made_by_.end()) {
      for (const uint32_t storage : made->second) take(placement_.blocks[storage], storage, need_all);
    }
    const FxBlock& workspace = placement_.workspaces[step];
    if (workspace.kind == FX_BLOCK_ARENA) take(workspace, static_cast<uint32_t>(plan_.num_storages) + step, need_all);
    return needs;
  }

  // Calls visit(users) with the users of each previous owner of the block's bytes. Then makes
  // `owner` the owner of these bytes.
  template <class Visit>
  void take(const FxBlock& block, uint32_t owner, const Visit& visit) {
    const int64_t begin = block.offset, end = block.offset + block.bytes;
    if (begin >= end) return;
    split(begin);
    split(end);
    const auto first = bytes_.lower_bound(begin), last = bytes_.lower_bound(end);
    for (auto piece = first; piece != last; ++piece) visit(users_[piece->second.owner]);
    bytes_.erase(first, last);
    bytes_[begin] = {end, owner};
  }
  void split(int64_t at) {
    auto piece = bytes_.upper_bound(at);
    if (piece == bytes_.begin()) return;
    --piece;
    if (piece->first == at || piece->second.end <= at) return;
    bytes_[at] = piece->second;
    piece->second.end = at;
  }

  uint16_t stream_for(const Clock& needs) const {
    uint32_t best = 0;
    bool follows = false;
    for (uint32_t s = 0; s < last_.size(); ++s) {
      const bool here = needs[s] > 0 && needs[s] == last_[s];
      if (here && (!follows || last_[s] > last_[best])) {
        best = s;
        follows = true;
      }
      if (!follows && last_[s] < last_[best]) best = s;
    }
    return static_cast<uint16_t>(best);
  }

  void place_step(uint32_t step) {
    const Clock needs = needs_of(step);
    const uint16_t stream = stream_for(needs);
    placement_.streams[step] = stream;
    Clock& clock = clocks_[stream];
    for (uint32_t s = 0; s < last_.size(); ++s) {
      if (s == stream || needs[s] <= clock[s]) continue;
      placement_.events.push_back({needs[s] - 1, step});
      const Clock& behind = clock_behind_[needs[s] - 1];
      for (uint32_t other = 0; other < clock.size(); ++other) clock[other] = std::max(clock[other], behind[other]);
    }
    clock[stream] = last_[stream] = step + 1;
    clock_behind_[step] = clock;
    use(step, stream);
  }

  void use(uint32_t step, uint16_t stream) {
    const FxStep& row = plan_.steps[step];
    const auto mark = [&](uint32_t storage) { users_[storage][stream] = users_[class_of(storage)][stream] = step + 1; };
    for_each_storage(plan_, row, mark);
    // Storages and workspace of an exchange are in use until the wait.
    if (row.kind == FX_STEP_WAIT && row.other != FX_NONE) {
      for_each_storage(plan_, plan_.steps[row.other], mark);
      users_[plan_.num_storages + row.other][stream] = step + 1;
    }
    const auto write = [&](uint32_t storage) { writers_[class_of(storage)] = step + 1; };
    for (uint32_t i = 0; i < row.num_results; ++i) if_storage(plan_, plan_.words[row.results + i], write);
    for (uint32_t i = 0; i < row.num_writes; ++i) write(plan_.indices[row.writes + i]);
    users_[plan_.num_storages + step][stream] = step + 1;
  }

  struct Piece {
    int64_t end;
    uint32_t owner;  // a storage, or num_storages plus the step of a workspace
  };

  const FxPlan& plan_;
  PlanPlacement& placement_;
  // by owner (see Piece): the last step of each stream that uses the bytes, plus one
  std::vector<Clock> users_;
  std::vector<uint32_t> writers_;    // by alias class: the last step that wrote, plus one
  std::vector<Clock> clocks_;        // by stream
  std::vector<Clock> clock_behind_;  // by step: the clock after the step
  std::vector<uint32_t> last_;       // by stream: its last step, plus one
  std::map<int64_t, Piece> bytes_;   // bytes of the arena, by first byte
  std::map<uint32_t, std::vector<uint32_t>> made_by_;
};

}  // namespace

void spread_over_streams(const FxPlan& plan, uint32_t streams, PlanPlacement& placement) {
  Spreader(plan, streams, placement).run();
}

}  // namespace fxopt
