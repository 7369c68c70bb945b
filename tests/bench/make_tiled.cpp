// fxopt_make_tiled IN OUT MIN_NODES: writes a graph of at least MIN_NODES nodes by repeating a
// layer of IN. The result is read back and verified before it is written.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "core/file.h"
#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "tests/bench/tiling.h"

namespace fxopt {
namespace {

double bytes_per_node(const std::string& pb, uint64_t nodes) {
  return static_cast<double>(pb.size()) / static_cast<double>(nodes);
}

// Builds the graph without writing it; returns its bytes.
Result<std::string> make(const std::string& path, uint64_t min_nodes) {
  Result<std::unique_ptr<Module>> original = load_module(path);
  if (!original.ok()) return std::move(original).error();
  const uint64_t original_nodes = (*original)->main().num_nodes();
  Result<std::string> pb = print_pb(**original);
  if (!pb.ok()) return pb;
  Result<Tiled> tiled = tile(*pb, min_nodes);
  if (!tiled.ok()) return std::move(tiled).error();
  const double before = bytes_per_node(*pb, original_nodes);

  Result<std::unique_ptr<Module>> module = parse_pb(tiled->pb, "tiled.pb");
  if (!module.ok()) return std::move(module).error();
  const std::vector<Error> broken = verify(**module);
  if (!broken.empty()) return broken.front();
  Result<std::string> canonical = print_pb(**module);
  if (!canonical.ok()) return canonical;
  const double after = bytes_per_node(*canonical, tiled->nodes);
  std::cerr << "layer " << tiled->layer << " of " << tiled->layer_nodes << " nodes " << tiled->copies
            << " times more: " << tiled->nodes << " nodes, " << canonical->size() << " bytes, " << after
            << " bytes per node (" << path << ": " << before << ", " << 100.0 * (after / before - 1.0) << " %)\n";
  return canonical;
}

int run(const std::string& from, const std::string& to, const std::string& min_nodes) {
  char* end = nullptr;
  const uint64_t count = std::strtoull(min_nodes.c_str(), &end, 10);
  if (end == min_nodes.c_str() || *end != '\0') {
    std::cerr << "make_tiled: not a number of nodes: '" << min_nodes << "'\n";
    return 2;
  }
  const Result<std::string> bytes = make(from, count);
  Status written = bytes.ok() ? write_file(to, *bytes) : Status(bytes.error());
  if (written.ok()) return 0;
  std::cerr << format_error(written.error()) << "\n";
  return static_cast<int>(error_info(written.error().code).exit);
}

}  // namespace
}  // namespace fxopt

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: fxopt_make_tiled IN OUT MIN_NODES\n";
    return 2;
  }
  return fxopt::run(argv[1], argv[2], argv[3]);
}
