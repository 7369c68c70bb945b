#include <set>
#include <string>
#include <vector>

#include "core/allocator/caching_allocator.h"
#include "core/check.h"
#include "tests/catch.h"
#include "tests/core/allocator_case.h"
#include "tests/units.h"

namespace fxopt {
namespace {

std::string error_of(const std::string& text) {
  const Result<AllocatorConfig> config = parse_allocator_config(text);
  if (config.ok()) return "none";
  return code_name(config.error().code) + " " + config.error().message + "; " + config.error().hint;
}

}  // namespace

TEST_CASE("allocator cases") {
  const auto cases = allocator_cases();
  REQUIRE(cases.size() > 25);
  for (const auto& [name, text] : cases) {
    INFO(name);
    CHECK(text.substr(0, 2) == "# ");
    CHECK(CaseRunner<CachingAllocator>().run(text) == std::string());
  }
}

TEST_CASE("allocator settings: the framework's text is read as it is") {
  const AllocatorConfig config = *parse_allocator_config(
      " max_split_size_mb : 128,large_segment_size_mb:32, garbage_collection_threshold:0.6,"
      "roundup_power2_divisions:[256:1,512:2,1024:4,>:8],expandable_segments:True,pinned_use_background_threads:True,"
      "pinned_num_register_threads:8,backend:native,per_process_memory_fraction:0.5,");
  CHECK(config.max_split_bytes == 128 * kMiB);
  CHECK(config.large_segment_bytes == 32 * kMiB);
  CHECK(config.max_non_split_rounding_bytes == 32 * kMiB);
  CHECK(config.garbage_collection_threshold == 0.6);
  CHECK(config.memory_fraction == 0.5);
  CHECK(config.expandable_segments);
  CHECK(config.pinned_num_register_threads == 8);
  CHECK(config.not_modelled.empty());
  const std::array<int64_t, 16> divisions{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8};
  CHECK(config.roundup_power2_divisions == divisions);
  CHECK(parse_allocator_config("max_split_size_mb:99999999999999")->max_split_bytes > 8'000'000 * kMiB * kMiB);
  CHECK(parse_allocator_config("max_split_size_mb:30,max_split_size_mb:40")->max_split_bytes == 40 * kMiB);
  CHECK(parse_allocator_config("backend:cudaMallocAsync,graph_capture_record_stream_reuse:True")->not_modelled ==
        std::vector<std::string>{"backend:cudaMallocAsync", "graph_capture_record_stream_reuse:True"});
}

TEST_CASE("allocator settings: what the framework refuses is refused with the place and a way out") {
  CHECK(error_of("max_split_size:128") ==
        "FX0211 the allocator has no setting 'max_split_size', at column 1; did you mean 'max_split_size_mb'?");
  CHECK(error_of("max_split_size_mb:19") ==
        "FX0212 the allocator setting max_split_size_mb has the value '19', which is not an integer of 20 or more "
        "(MiB), at column 19; give it an integer of 20 or more (MiB), or leave the key out");
  CHECK(error_of("expandable_segments:true").find("which is not True or False, at column 21") != std::string::npos);
  CHECK(error_of("max_split_size_mb=128").substr(0, 45) == "FX0210 the allocator settings end before ':';");
  CHECK(error_of("roundup_power2_divisions:[256:1").substr(0, 45) == "FX0210 the allocator settings end before ']';");
  for (const char* text : {":", "a", "a:", "a:]", "a:1 b:2:", ",a:1", "a::1", "a:[1],,"}) {
    INFO(text);
    CHECK(error_of(text).substr(0, 6) == "FX0210");
  }
  for (const char* text :
       {"large_segment_size_mb:10", "max_split_size_mb:20x", "max_split_size_mb:[20]", "max_non_split_rounding_mb:19",
        "garbage_collection_threshold:0", "garbage_collection_threshold:1", "garbage_collection_threshold:nan",
        "per_process_memory_fraction:1.01", "roundup_power2_divisions:3", "roundup_power2_divisions:0",
        "roundup_power2_divisions:[256:3]", "roundup_power2_divisions:[255:4]", "roundup_power2_divisions:[256]",
        "roundup_power2_divisions:[256:4,]", "roundup_power2_divisions:[256:4 512:4]", "backend:jemalloc",
        "pinned_num_register_threads:256", "pinned_free_catch_all:1",
        "large_segment_size_mb:32,max_split_size_mb:31"}) {
    INFO(text);
    CHECK(error_of(text).substr(0, 6) == "FX0212");
  }
  CHECK(error_of("large_segment_size_mb:11,max_split_size_mb:11") == "none");
  CHECK(error_of("roundup_power2_divisions:[]") == "none");
  CHECK(error_of("") == "none");
}

TEST_CASE("allocator: segments are tiled by their blocks, and the history leads to them") {
  for (const bool expandable : {false, true}) {
    SimulatedDevice device(400 * kMiB);
    AllocatorConfig config;
    config.expandable_segments = expandable;
    CachingAllocator allocator(device, config);
    std::vector<AllocatorEvent> events;
    allocator.observe([&events](const AllocatorEvent& event) { events.push_back(event); });
    const uint64_t a = *allocator.allocate(3 * kMiB, 5);
    const uint64_t b = *allocator.allocate(30 * kMiB, 5);
    const uint64_t c = *allocator.allocate(100, 5);
    allocator.record_stream(a, 6);
    allocator.free(a);
    allocator.free(b);
    CHECK_FALSE(allocator.allocate(500 * kMiB, 5).has_value());
    allocator.free(c);

    int64_t reserved = 0;
    uint64_t end = 0;
    for (const SegmentInfo& segment : allocator.snapshot()) {
      CHECK(segment.address >= end);
      CHECK(segment.expandable == expandable);
      CHECK(segment.stream == 5);
      end = segment.address;
      for (const BlockInfo& block : segment.blocks) {
        CHECK(block.address == end);
        CHECK(block.state == BlockState::kFree);
        end += static_cast<uint64_t>(block.bytes);
      }
      CHECK(end == segment.address + static_cast<uint64_t>(segment.bytes));
      reserved += segment.bytes;
    }
    CHECK(reserved == 2 * kMiB);
    const auto total = [&events](AllocatorAction action) {
      int64_t sum = 0;
      for (const AllocatorEvent& event : events) sum += event.action == action ? event.bytes : 0;
      return sum;
    };
    CHECK(total(AllocatorAction::kAllocate) == 33 * kMiB + 100);
    CHECK(total(AllocatorAction::kFreeRequested) == 33 * kMiB + 100);
    CHECK(total(AllocatorAction::kFreeCompleted) == 33 * kMiB + 100);
    CHECK(total(AllocatorAction::kOutOfMemory) == 500 * kMiB);
    CHECK(total(AllocatorAction::kSegmentAllocate) - total(AllocatorAction::kSegmentFree) ==
          (expandable ? 0 : 2 * kMiB));
    CHECK(total(AllocatorAction::kSegmentMap) - total(AllocatorAction::kSegmentUnmap) == (expandable ? 2 * kMiB : 0));
  }
}

TEST_CASE("allocator: mistakes of the caller are caught") {
  SimulatedDevice device(400 * kMiB);
  CachingAllocator allocator(device, {});
  const uint64_t a = *allocator.allocate(100, 0);
  CHECK(allocator.block_bytes(a) == 512);
  CHECK_THROWS_AS(allocator.free(a + 1), InternalError);
  allocator.free(a);
  CHECK_THROWS_AS(allocator.free(a), InternalError);
  CHECK_THROWS_AS(allocator.record_stream(a, 1), InternalError);
  CHECK_THROWS_AS(allocator.allocate(-1, 0), InternalError);
  CHECK_THROWS_AS(allocator.end_pool({1, 0}), InternalError);
  CHECK_THROWS_AS(allocator.release_pool({1, 0}), InternalError);
  AllocatorConfig config;
  config.max_split_bytes = kMiB;
  CHECK_THROWS_AS(CachingAllocator(device, config), InternalError);
}

}  // namespace fxopt
