// fxopt_make_repeated OUT outputs COUNT: writes a step in which one node has COUNT outputs, each
// taken by a getitem. It exposes work per getitem that grows with the outputs before it.
// fxopt_make_repeated OUT collectives COUNT: writes COUNT layers of 36 nodes, 5 of which are
// collectives.
// The graph is verified before it is written.

#include <charconv>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/text.h"
#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "tests/scaling/shapes.h"

namespace fxopt {
namespace {

// `outputs` copies of the pattern, each with its number in place of '#'.
std::vector<std::string> numbered(std::string_view pattern, uint64_t outputs) {
  std::vector<std::string> copies;
  for (uint64_t i = 0; i < outputs; ++i) {
    std::string& copy = copies.emplace_back(pattern);
    for (size_t at = 0; (at = copy.find('#')) != std::string::npos;) copy.replace(at, 1, std::to_string(i));
  }
  return copies;
}

// Inputs, a forward op that creates a storage for each, and a use of each output in forward and in
// backward.
std::string wide_text(uint64_t outputs) {
  const auto lines = [outputs](std::string_view pattern) { return join(numbered(pattern, outputs), ""); };
  const auto list = [outputs](std::string_view pattern) { return join(numbered(pattern, outputs), ", "); };
  const std::string size = std::to_string(8 * outputs);
  return "graph @main {\n" + lines("  %p#: f32[8] = placeholder() {phase=forward}\n") + "  %s: (" + list("f32[8]") +
         ") = aten._foreach_neg.default([" + list("%p#") + "]) {phase=forward}\n" +
         lines("  %g#: f32[8] = operator.getitem(%s, #) {phase=forward}\n") +
         lines("  %m#: f32[8] = aten.exp.default(%g#) {phase=forward}\n") + "  %c: f32[" + size +
         "] = aten.cat.default([" + list("%m#") + "]) {phase=forward}\n" +
         lines("  %b#: f32[8] = aten.mul.Tensor(%m#, %g#) {phase=backward}\n") + "  %d: f32[" + size +
         "] = aten.cat.default([" + list("%b#") + "]) {phase=backward}\n  return (%c, %d)\n}\n";
}

Status write(const std::string& path, const std::string& text) {
  Result<std::unique_ptr<Module>> module = parse_text(text, "repeated.fxg");
  if (!module.ok()) return std::move(module).error();
  const std::vector<Error> broken = verify(**module);
  if (!broken.empty()) return broken.front();
  const Result<std::string> pb = print_pb(**module);
  return pb.ok() ? write_file(path, *pb) : Status(pb.error());
}

int run(const std::string& path, std::string_view what, std::string_view number) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  const bool is_number = error == std::errc() && end == number.data() + number.size() && count > 0;
  if (!is_number || (what != "outputs" && what != "collectives")) {
    std::cerr << "make_repeated: neither 'outputs' nor 'collectives' with a number: '" << what << "' '" << number
              << "'\n";
    return 2;
  }
  const Status written = write(path, what == "outputs" ? wide_text(count) : layers_with_collectives(count));
  if (written.ok()) return 0;
  std::cerr << format_error(written.error()) << "\n";
  return static_cast<int>(error_info(written.error().code).exit);
}

}  // namespace
}  // namespace fxopt

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: fxopt_make_repeated OUT outputs|collectives COUNT\n";
    return 2;
  }
  return fxopt::run(argv[1], argv[2], argv[3]);
}
