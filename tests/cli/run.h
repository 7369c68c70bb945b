#pragma once

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/app.h"
#include "tests/catch.h"
#include "tests/core/temp_folder.h"

namespace fxopt {

struct CliResult {
  std::vector<std::string> args;
  int exit = -1;
  std::string out;
  std::string err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
  // The report of the first file, and of its first graph, where --json is given.
  nlohmann::json file() const { return json()["result"]["files"][0]; }
  nlohmann::json graph() const { return file()["graphs"][0]; }
};

// Runs one command line in this process: the arguments `args`, `more` and `rest`.
inline CliResult run_fxopt(std::vector<std::string> args, const std::vector<std::string>& more = {},
                           const std::vector<std::string>& rest = {}) {
  args.insert(args.end(), more.begin(), more.end());
  args.insert(args.end(), rest.begin(), rest.end());
  std::ostringstream out, err;
  const int exit = run_cli(args, {out, err});
  return {std::move(args), exit, out.str(), err.str()};
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Checks that a command ended with this exit code, and that its standard error contains each text.
template <class... Texts>
void check_ended(const CliResult& result, int exit, const Texts&... texts) {
  CAPTURE(result.args, result.err);
  CHECK(result.exit == exit);
  for (const std::string_view text : {std::string_view(texts)...}) {
    CAPTURE(text);
    CHECK(contains(result.err, text));
  }
}

// A graph with two equal nodes of 4 KiB each. One node is redundant.
inline constexpr std::string_view kTwins =
    R"(fxg 0
graph @twins {kind=forward} {
  %x: f32[1024] = placeholder() {input={role=input}}
  %a: f32[1024] = aten.neg.default(%x) {module_path="layers.0.mlp"}
  %b: f32[1024] = aten.neg.default(%x) {module_path="layers.1.mlp"}
  %c: f32[1024] = aten.add.Tensor(%a, %b) {module_path="layers.1.mlp"}
  return (%c,)
}
)";

// A graph that parses, although a node comes before its input.
inline constexpr std::string_view kOutOfOrder =
    R"(fxg 0
graph @broken {
  %x: f32[4] = placeholder()
  %b: f32[4] = aten.neg.default(%a)
  %a: f32[4] = aten.neg.default(%x)
  return (%b,)
}
)";

inline constexpr std::string_view kNoSyntax = "fxg 0\ngraph @g {\n  %x: f32[4] = = placeholder()\n}\n";

// A graph with sizes that depend on a symbol without a hint.
inline constexpr std::string_view kSymbolicGraph =
    R"(fxg 0
symbol {name="s0", kind=backed, min=2, graph="g", node="x"}
graph @g {
  %x: f32[s0] = placeholder()
  %a: f32[s0] = aten.neg.default(%x)
  return (%a,)
}
)";

}  // namespace fxopt
