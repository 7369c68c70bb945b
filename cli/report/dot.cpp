#include "cli/report/dot.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cli/print/nodes.h"
#include "cli/print/table.h"
#include "core/bytes.h"
#include "core/text.h"
#include "ir/graph/module.h"

namespace fxopt {
namespace {

constexpr size_t kMaxStubs = 8;         // drawn inputs, or users, of one node that are not selected
constexpr size_t kMaxLabelBytes = 100;  // in one line of a label

struct PhaseColour {
  Phase phase;
  std::string_view fill;
  std::string_view word;
};
constexpr std::array<PhaseColour, 5> kColours = {{{Phase::kUnspecified, "#ffffff", "white"},
                                                  {Phase::kForward, "#dae8fc", "blue"},
                                                  {Phase::kLoss, "#fff2cc", "yellow"},
                                                  {Phase::kBackward, "#f8cecc", "red"},
                                                  {Phase::kOptimizer, "#e1d5e7", "violet"}}};

const PhaseColour& colour_of(Phase phase) {
  for (const PhaseColour& colour : kColours) {
    if (colour.phase == phase) return colour;
  }
  return kColours.front();
}

// Returns `text` as one line of a label: printable, of limited length, with Graphviz markup and
// escapes disabled.
std::string label_line(std::string_view text) {
  const std::string line = printable_line(text);
  std::string out;
  for (size_t i = 0; i < line.size();) {
    const size_t length = std::max<size_t>(utf8_length(std::string_view(line).substr(i)), 1);
    if (i + length > kMaxLabelBytes) return out + "...";
    const std::string_view character = std::string_view(line).substr(i, length);
    if (character == "&") {
      out += "&amp;";
    } else {
      if (character == "\\" || character == "\"") out += '\\';
      out += character;
    }
    i += length;
  }
  return out;
}

std::string quoted_label(const std::vector<std::string>& lines) {
  std::string label = "\"";
  for (size_t i = 0; i < lines.size(); ++i) label += (i == 0 ? "" : "\\n") + label_line(lines[i]);
  return label + "\"";
}

// Orders module paths so that submodules directly follow their module: '.' sorts before all other
// characters.
bool is_before(std::string_view a, std::string_view b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto rank = [](char c) { return c == '.' ? 0 : 1 + static_cast<int>(static_cast<unsigned char>(c)); };
    return rank(x) < rank(y);
  });
}

// One graph's part of the drawing.
class GraphDrawer {
 public:
  GraphDrawer(std::string& out, const Selection& selection, Validity validity, size_t index)
      : out_(out),
        graph_(*selection.graph),
        nodes_(selection.nodes),
        phases_(visible_phases(graph_, validity)),
        prefix_("g" + std::to_string(index)) {
    for (const NodeId node : nodes_) is_in_[node] = true;
  }

  void draw(bool has_frame) {
    indent_ = 1;
    if (has_frame) open("graph", "@" + std::string(graph_.module().text(graph_.name())));
    draw_modules();
    for (const NodeId node : nodes_) draw_inputs(node);
    for (const NodeId node : nodes_) draw_outside_users(node);
    if (has_frame) close();
  }

  // Returns text such as "@main: 12 of 3548 nodes; blue: forward, red: backward".
  std::string title() const {
    std::string text = "@" + std::string(graph_.module().text(graph_.name())) + ": ";
    text += nodes_.size() < graph_.num_nodes() ? std::to_string(nodes_.size()) + " of " : "";
    text += count_text(graph_.num_nodes(), "node");
    std::array<bool, kColours.size()> is_used{};
    for (const NodeId node : nodes_)
      is_used[static_cast<size_t>(&colour_of(phases_.get(node)) - kColours.data())] = true;
    std::string legend;
    for (size_t i = 0; i < kColours.size(); ++i) {
      if (!is_used[i]) continue;
      legend += (legend.empty() ? "; " : ", ") + std::string(kColours[i].word) + ": " +
                std::string(name_of(kColours[i].phase));
    }
    return text + legend;
  }

 private:
  void line(const std::string& text) { out_ += std::string(2 * indent_, ' ') + text + "\n"; }

  void open(std::string_view kind, const std::string& label) {
    line("subgraph " + quoted_label({"cluster_" + prefix_ + "_" + std::to_string(num_clusters_++)}) + " {");
    ++indent_;
    line("label=" + quoted_label({label}) + "; color=\"" + (kind == "graph" ? "#000000" : "#999999") + "\";");
  }

  void close() {
    --indent_;
    line("}");
  }

  std::string id(NodeId node) const { return prefix_ + "n" + std::to_string(node.index()); }

  std::string_view path_of(NodeId node) const { return graph_.module().text(graph_[node].module_path); }

  void draw_modules() {
    std::vector<NodeId> order = nodes_;
    std::stable_sort(order.begin(), order.end(),
                     [this](NodeId a, NodeId b) { return is_before(path_of(a), path_of(b)); });
    std::vector<std::string_view> open_paths;
    for (const NodeId node : order) {
      const std::string_view path = path_of(node);
      while (!open_paths.empty() && !is_within(path, open_paths.back())) {
        open_paths.pop_back();
        close();
      }
      if (!path.empty() && (open_paths.empty() || open_paths.back() != path)) {
        open("module", std::string(path));
        open_paths.push_back(path);
      }
      draw_node(node);
    }
    for (size_t i = 0; i < open_paths.size(); ++i) close();
  }

  // Returns text such as "aten.mm.default", "parameter layers.0.w1.weight" or "output".
  std::string what_text(NodeId node) const {
    if (graph_[node].kind != NodeKind::kPlaceholder) {
      const std::string_view target = target_text(graph_, node);
      return std::string(target.empty() ? name_of(graph_[node].kind) : target);
    }
    const NodeExtra* extra = graph_.extra(node);
    const bool has_role = extra != nullptr && extra->input.has_value() && extra->input->role != InputRole::kUnspecified;
    if (!has_role) return "placeholder";
    const std::string_view fqn = graph_.module().text(extra->input->fqn);
    return enum_text(extra->input->role) + (fqn.empty() ? "" : " " + std::string(fqn));
  }

  void draw_node(NodeId node) {
    const Op& op = graph_.op(node);
    const bool is_call = graph_[node].is_call();
    std::vector<std::string> lines{"%" + std::string(graph_.name_of(node)), what_text(node)};
    if (graph_.value(node).kind != ValueKind::kAbsent) lines.push_back(value_text(graph_, graph_.value(node)));
    std::string style = is_call && op.compute == ComputeClass::kView ? "filled,rounded" : "filled";
    std::string more;
    if (is_call && op.has(Effect::kCollective)) more = ", penwidth=3";
    if (!is_call) more = ", shape=ellipse";
    line(id(node) + " [label=" + quoted_label(lines) + ", style=\"" + style + "\", fillcolor=\"" +
         std::string(colour_of(phases_.get(node)).fill) + "\"" + more + "];");
  }

  // Draws a node that is not selected, unless it is drawn already.
  void draw_outside(NodeId node) {
    if (is_drawn_.get(node)) return;
    is_drawn_[node] = true;
    line(id(node) + " [label=" + quoted_label({"%" + std::string(graph_.name_of(node)), what_text(node)}) +
         ", style=dashed, color=\"#777777\"];");
  }

  void draw_rest(NodeId node, size_t count, bool is_input) {
    const std::string rest = id(node) + (is_input ? "i" : "u");
    line(rest + " [label=" + quoted_label({count_text(count, is_input ? "more input" : "more user")}) +
         ", style=dashed, color=\"#777777\"];");
    line(is_input ? rest + " -> " + id(node) + " [style=dotted];" : id(node) + " -> " + rest + " [style=dotted];");
  }

  // Draws an edge from an input. Returns false if the input is not selected and kMaxStubs such
  // inputs are drawn already.
  bool draw_edge(NodeId input, NodeId node, const std::string& attributes, size_t& outside) {
    if (!is_in_.get(input)) {
      if (outside++ >= kMaxStubs) return false;
      draw_outside(input);
    }
    line(id(input) + " -> " + id(node) + attributes + ";");
    return true;
  }

  void draw_inputs(NodeId node) {
    size_t outside = 0;
    for (const NodeId input : graph_.inputs(node)) draw_edge(input, node, "", outside);
    if (const NodeExtra* extra = graph_.extra(node); extra != nullptr) {
      for (const ControlDep& dep : extra->control) {
        const std::string label = " [style=dashed, label=" + quoted_label({std::string(name_of(dep.kind))}) + "]";
        draw_edge(dep.node, node, label, outside);
      }
    }
    if (outside > kMaxStubs) draw_rest(node, outside - kMaxStubs, true);
  }

  void draw_outside_users(NodeId node) {
    size_t outside = 0;
    for (const NodeId user : graph_.users(node)) {
      if (is_in_.get(user) || outside++ >= kMaxStubs) continue;
      draw_outside(user);
      line(id(node) + " -> " + id(user) + ";");
    }
    if (outside > kMaxStubs) draw_rest(node, outside - kMaxStubs, false);
  }

  std::string& out_;
  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  IdMap<NodeId, Phase> phases_;
  std::string prefix_;
  IdMap<NodeId, bool> is_in_, is_drawn_;
  size_t num_clusters_ = 0;
  size_t indent_ = 1;
};

}  // namespace

std::string dot_text(const std::vector<Selection>& selections, Validity validity) {
  std::string body;
  std::vector<std::string> titles;
  for (size_t i = 0; i < selections.size(); ++i) {
    GraphDrawer drawer(body, selections[i], validity, i);
    if (titles.size() < kMaxStubs) titles.push_back(drawer.title());
    drawer.draw(selections.size() > 1);
  }
  if (selections.size() > titles.size()) {
    titles.push_back("and " + count_text(selections.size() - titles.size(), "more graph"));
  }
  return "digraph fxopt {\n  graph [labelloc=t, fontname=\"Helvetica\", label=" + quoted_label(titles) +
         "];\n  node [shape=box, fontname=\"Helvetica\", fontsize=10];\n  edge [color=\"#555555\", fontsize=9];\n" +
         body + "}\n";
}

}  // namespace fxopt
