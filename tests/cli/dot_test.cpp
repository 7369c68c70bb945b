// fxopt show --dot: Graphviz text.

#include <cstdlib>
#include <set>

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

// Parses the text by the rules of DOT. A quoted string ends at the next quotation mark without a
// backslash before it, braces balance, and every edge joins nodes that are declared somewhere.
struct Drawing {
  std::set<std::string> nodes;
  std::set<std::string> ends;
  size_t edges = 0;

  explicit Drawing(const std::string& text) {
    std::string bare;  // the text outside of strings
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '"') {
        bare += text[i];
        continue;
      }
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        CHECK(static_cast<unsigned char>(text[i]) >= 0x20);
        i += text[i] == '\\' ? 1 : 0;
      }
      CHECK(i < text.size());
    }
    CHECK(bare.starts_with("digraph fxopt {\n"));
    CHECK(std::count(bare.begin(), bare.end(), '{') == std::count(bare.begin(), bare.end(), '}'));
    std::istringstream lines(bare);
    for (std::string line; std::getline(lines, line);)
      read(line.substr(std::min(line.find_first_not_of(' '), line.size())));
    for (const std::string& end : ends) CHECK(nodes.contains(end));
  }

 private:
  void read(const std::string& line) {
    if (!line.starts_with("g") || line.starts_with("graph")) return;
    const size_t arrow = line.find(" -> ");
    if (arrow == std::string::npos) {
      CHECK(nodes.insert(line.substr(0, line.find(' '))).second);  // declared once
      return;
    }
    ++edges;
    ends.insert(line.substr(0, arrow));
    const size_t to = arrow + 4;
    ends.insert(line.substr(to, line.find_first_of(" ;", to) - to));
  }
};

bool has_graphviz() { return std::system("dot -V >/dev/null 2>&1") == 0; }

// Graphviz accepts the text without a complaint. Warns instead if Graphviz is not installed.
void check_with_graphviz(const std::string& text) {
  if (!has_graphviz()) {
    WARN("Graphviz's dot is not installed: drawings are not given to it");
    return;
  }
  const TempFolder folder;
  write_text(folder / "in.dot", text);
  const std::string command =
      "dot -Tsvg '" + (folder / "in.dot") + "' > '" + (folder / "out.svg") + "' 2> '" + (folder / "err") + "'";
  CHECK(std::system(command.c_str()) == 0);
  CHECK(read_text(folder / "err").empty());
  CHECK(contains(read_text(folder / "out.svg"), "</svg>"));
}

std::string draw(const std::string& text, const std::vector<std::string>& more) {
  const TempFolder folder;
  write_text(folder / "g.fxg", text);
  const CliResult result = run_fxopt({"show", folder / "g.fxg", "--dot"}, more);
  CAPTURE(result.err);
  CHECK(result.exit == 0);
  return result.out;
}

TEST_CASE("cli show --dot: a part with its clusters, colours and what lies around it") {
  const std::string text = draw(std::string(kTwins), {"--module", "layers"});
  CHECK(text == R"(digraph fxopt {
  graph [labelloc=t, fontname="Helvetica", label="@twins: 3 of 5 nodes; blue: forward"];
  node [shape=box, fontname="Helvetica", fontsize=10];
  edge [color="#555555", fontsize=9];
  subgraph "cluster_g0_0" {
    label="layers.0.mlp"; color="#999999";
    g0n1 [label="%a\naten.neg.default\nf32[1024]", style="filled", fillcolor="#dae8fc"];
  }
  subgraph "cluster_g0_1" {
    label="layers.1.mlp"; color="#999999";
    g0n2 [label="%b\naten.neg.default\nf32[1024]", style="filled", fillcolor="#dae8fc"];
    g0n3 [label="%c\naten.add.Tensor\nf32[1024]", style="filled", fillcolor="#dae8fc"];
  }
  g0n0 [label="%x\ninput", style=dashed, color="#777777"];
  g0n0 -> g0n1;
  g0n0 -> g0n2;
  g0n1 -> g0n3;
  g0n2 -> g0n3;
  g0n4 [label="%output\noutput", style=dashed, color="#777777"];
  g0n3 -> g0n4;
}
)");
  CHECK(Drawing(text).edges == 5);
  check_with_graphviz(text);
}

TEST_CASE("cli show --dot: names cannot break out of their strings") {
  const std::string hostile = R"(fxg 0
graph @"g\"];x" {
  %"a\"b\\" : f32[4] = placeholder() {input={role=parameter, fqn="q\"];evil[label=\""}}
  %"<b>&amp;\n\x1b[2J": f32[4] = aten.neg.default(%"a\"b\\") {module_path="m\"}.\\"}
  %"\x00\x7f": f32[4] = aten.neg.default(%"<b>&amp;\n\x1b[2J") {module_path="m\"}"}
  return (%"\x00\x7f",)
}
)";
  const std::string text = draw(hostile, {});
  CHECK(Drawing(text).nodes.size() == 4);
  CHECK_FALSE(contains(text, "\x1b"));
  check_with_graphviz(text);
}

TEST_CASE("cli show --dot: many neighbours become one that counts them") {
  for (const size_t users : {size_t{8}, size_t{9}}) {
    CAPTURE(users);
    std::string text = "fxg 0\ngraph @g {\n  %x: f32[4] = placeholder()\n";
    for (size_t i = 0; i < users; ++i) text += "  %a" + std::to_string(i) + ": f32[4] = aten.neg.default(%x)\n";
    const std::string drawn = draw(text + "  return ()\n}\n", {"--node", "x"});
    const Drawing drawing(drawn);
    CHECK(drawing.nodes.size() == (users == 8 ? 9 : 10));
    CHECK(drawing.edges == (users == 8 ? 8 : 9));
    CHECK(contains(drawn, "\"1 more user\"") == (users == 9));
  }
}

TEST_CASE("cli show --dot: control dependencies, several graphs, broken graphs, nothing") {
  const std::string control = draw(
      "fxg 0\ngraph @g {\n  %x: f32[4] = placeholder()\n  %a: f32[4] = aten.neg.default(%x)\n"
      "  %b: f32[4] = aten.neg.default(%x) {control=[order %a]}\n  return (%b,)\n}\n"
      "graph @h {\n  %x: f32[4] = placeholder()\n  return (%x,)\n}\n",
      {});
  CHECK(contains(control, " [style=dashed, label=\"order\"];\n"));
  CHECK(contains(control, "label=\"@h\"; "));
  CHECK(Drawing(control).nodes.size() == 6);
  check_with_graphviz(control);
  CHECK(Drawing(draw(std::string(kOutOfOrder), {})).nodes.size() > 1);
  CHECK(Drawing(draw(std::string(kTwins), {"--phase", "optimizer"})).nodes.empty());
}

TEST_CASE("cli show --dot: a layer of a real step") {
  const std::string path = std::string(FXOPT_SOURCE_DIR "/testdata/llama1b.pb");
  const CliResult whole = run_fxopt({"show", path, "--dot"});
  CHECK(contains(whole.err, "warning[large-drawing]: 3548 nodes take Graphviz a long time"));
  CHECK(Drawing(whole.out).nodes.size() == 3548);
  const CliResult layer = run_fxopt({"show", path, "--dot", "--module", "layers.3"});
  CHECK(layer.err.empty());
  CHECK(contains(layer.out, "parameter layers.3.feed_forward.w1.weight"));
  CHECK(Drawing(layer.out).nodes.size() > 201);
  check_with_graphviz(layer.out);
}

TEST_CASE("cli show --dot: where it goes") {
  const TempFolder folder;
  const std::string in = folder.write("twins.fxg", kTwins), out = folder / "twins.dot";
  const std::string text = run_fxopt({"show", in, "--dot"}).out;
  const CliResult filed = run_fxopt({"show", in, "--dot=" + out, "--json"});
  CHECK(filed.exit == 0);
  CHECK(read_text(out) == text);
  CHECK(filed.file()["dot"] == text);
  CHECK(run_fxopt({"show", in, in, "--dot"}).exit == 0);
  CHECK(run_fxopt({"show", in, in, "--dot=" + out}).exit == 2);
  check_ended(run_fxopt({"show", in, "--dot=" + in}), 2, "would overwrite the input");
  CHECK(read_text(in) == kTwins);
  CHECK(run_fxopt({"show", in, "--dot=" + out, "--json=" + out}).exit == 2);
  CHECK(run_fxopt({"show", in, "--dot=" + (folder / "missing/x.dot")}).exit == 10);
}

}  // namespace
}  // namespace fxopt
