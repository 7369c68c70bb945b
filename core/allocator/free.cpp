// Frees a block at once, or after other streams that used the block have finished their work.
#include "core/allocator/caching_allocator.h"
#include "core/check.h"

namespace fxopt {

void CachingAllocator::free(uint64_t address) {
  if (address == 0) return;
  Block* block = block_at(address);
  allocated_.erase(address);
  block->allocated = false;
  subtract(statistics_.allocation, *block->pool, 1);
  subtract(statistics_.allocated_bytes, *block->pool, block->bytes);
  if (block->bytes >= config_.max_split_bytes) statistics_.oversize_allocations.decrease(1);
  tell(AllocatorAction::kFreeRequested, address, block->requested_bytes, block->stream);
  if (block->uses.empty()) {
    free_block(block);
  } else if (captures_ == 0) {
    record_events(block);
  } else {
    deferred_.push_back(block);  // an event recorded now would become part of the capture
  }
}

void CachingAllocator::free_block(Block* block) {
  tell(AllocatorAction::kFreeCompleted, block->address, block->requested_bytes, block->stream);
  const BlockPool& pool = *block->pool;
  subtract(statistics_.active, pool, 1);
  subtract(statistics_.active_bytes, pool, block->bytes);
  subtract(statistics_.requested_bytes, pool, block->requested_bytes);
  block->requested_bytes = 0;
  block->capture_uses.clear();

  Merged merged = merge_neighbours(block);
  cache(merged.block);
  if (config_.expandable_segments) return;
  if (merged.block->is_split()) {
    merged.added_blocks += 1;
    merged.added_bytes += merged.block->bytes;
  }
  count(statistics_.inactive_split, pool, [&](Statistic& s) { s.change(merged.added_blocks); });
  count(statistics_.inactive_split_bytes, pool, [&](Statistic& s) { s.change(merged.added_bytes); });
}

// Merges a mapped block with its free mapped neighbours, or an unmapped block with its unmapped
// neighbours. Removes the neighbours from the sets of their pool. The merged block is in no set.
CachingAllocator::Merged CachingAllocator::merge_neighbours(Block* block) {
  Merged merged{block, 0, 0};
  for (Block* neighbour : {block->previous, block->next}) {
    if (neighbour == nullptr || !neighbour->is_free() || neighbour->mapped != block->mapped) continue;
    merged.added_blocks -= 1;
    merged.added_bytes -= neighbour->bytes;
    if (neighbour->mapped) {
      neighbour->pool->cached.erase(neighbour);
    } else {
      neighbour->pool->unmapped.erase(neighbour);
    }
    Block* low = merged.block->address < neighbour->address ? merged.block : neighbour;
    join_next(low);
    merged.block = low;
  }
  return merged;
}

// Merges `low` and the block after it into `low`, because segments_ points to the lowest block of
// each segment.
void CachingAllocator::join_next(Block* low) {
  Block* high = low->next;
  low->bytes += high->bytes;
  low->next = high->next;
  if (low->next != nullptr) low->next->previous = low;
  arena_.drop(high);
}

void CachingAllocator::cache(Block* block) {
  block->cached_at = block->pool->searches;
  block->pool->cached.insert(block);
}

// ---- events

void CachingAllocator::record_events(Block* block) {
  for (const int64_t stream : block->uses) {
    ++block->pending_events;
    events_[stream].push_back(Pending{device_.record_event(stream), block});
  }
  block->uses.clear();
}

// Records events for blocks that were freed during a capture. If a stream's use of a block was
// recorded during the capture, the use ends with the capture and needs no event.
void CachingAllocator::record_deferred_events() {
  for (Block* block : deferred_) {
    std::erase_if(block->uses, [block](int64_t stream) {
      return std::binary_search(block->capture_uses.begin(), block->capture_uses.end(), stream);
    });
    record_events(block);
    if (block->pending_events == 0) free_block(block);
  }
  deferred_.clear();
}

void CachingAllocator::process_events() {
  record_deferred_events();
  const std::optional<std::vector<int64_t>> finished = device_.take_finished_streams();
  if (finished.has_value()) {
    for (const int64_t stream : *finished) process_events(events_.find(stream));
    return;
  }
  for (auto at = events_.begin(); at != events_.end();) at = process_events(at);
}

CachingAllocator::Events::iterator CachingAllocator::process_events(Events::iterator at) {
  if (at == events_.end()) return at;
  std::deque<Pending>& pending = at->second;
  while (!pending.empty() && device_.is_done(pending.front().event)) {
    event_is_done(pending.front().block);
    pending.pop_front();
  }
  return pending.empty() ? events_.erase(at) : std::next(at);
}

void CachingAllocator::wait_for_events() {
  ++statistics_.num_sync_all_streams;
  record_deferred_events();
  for (auto& [stream, pending] : events_) {
    for (const Pending& one : pending) {
      device_.wait(one.event);
      event_is_done(one.block);
    }
  }
  events_.clear();
}

void CachingAllocator::event_is_done(Block* block) {
  FXOPT_CHECK(block->pending_events > 0, "an event completes twice");
  if (--block->pending_events == 0) free_block(block);
}

}  // namespace fxopt
