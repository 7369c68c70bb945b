// fxopt_bench_allocator [PAIRS]: pairs of allocate and free per second of processor time on a
// simulated device, for sets of live blocks of several sizes, classic and expandable. Prints a
// Markdown table.

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <random>
#include <vector>

#include "core/allocator/caching_allocator.h"
#include "core/allocator/simulated_device.h"

namespace fxopt {
namespace {

// Millions of pairs per second. Each pair replaces a random one of `live` blocks; sizes are 1 B to
// 32 MiB.
double measure(bool expandable, size_t live, int64_t pairs) {
  SimulatedDevice device(int64_t{1} << 45);
  AllocatorConfig config;
  config.expandable_segments = expandable;
  CachingAllocator allocator(device, config);
  std::mt19937_64 random(1);
  std::vector<int64_t> sizes;
  for (int i = 0; i < 64; ++i) sizes.push_back(static_cast<int64_t>(random() >> (39 + random() % 25)) + 1);
  std::vector<uint64_t> blocks;
  for (size_t i = 0; i < live; ++i) blocks.push_back(*allocator.allocate(sizes[random() % sizes.size()], 0));
  const std::clock_t start = std::clock();
  for (int64_t i = 0; i < pairs; ++i) {
    uint64_t& block = blocks[random() % blocks.size()];
    allocator.free(block);
    block = *allocator.allocate(sizes[random() % sizes.size()], 0);
  }
  const double seconds = static_cast<double>(std::clock() - start) / static_cast<double>(CLOCKS_PER_SEC);
  return static_cast<double>(pairs) / seconds / 1e6;
}

void run(int64_t pairs) {
  std::cout << "| live blocks | classic | expandable |\n|---:|---:|---:|\n";
  for (const size_t live : {size_t{1}, size_t{100}, size_t{10000}, size_t{100000}}) {
    std::cout << "| " << live << " | " << measure(false, live, pairs) << " M/s | " << measure(true, live, pairs)
              << " M/s |\n";
  }
}

}  // namespace
}  // namespace fxopt

int main(int argc, char** argv) {
  const int64_t pairs = argc > 1 ? std::atoll(argv[1]) : 1000000;
  if (argc > 2 || pairs < 1) {
    std::cerr << "usage: fxopt_bench_allocator [PAIRS]\n";
    return 2;
  }
  fxopt::run(pairs);
  return 0;
}
