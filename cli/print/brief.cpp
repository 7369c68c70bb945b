#include "cli/print/brief.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "cli/print/nodes.h"
#include "cli/print/table.h"
#include "core/bytes.h"
#include "core/text.h"
#include "ir/io/io.h"

namespace fxopt {
namespace {

constexpr size_t kLeastRemark = 24;  // least width of the part in braces beside a long call

std::string cut_to(std::string text, size_t width) {
  constexpr std::string_view kCut = "...";
  if (text.size() <= width) return text;
  return text.substr(0, width - kCut.size()) + std::string(kCut);
}

// Returns text such as "forward, PREFER_RECOMPUTE, layers.0.feed_forward, model.py:134".
std::string remark_of(const Graph& graph, NodeId node) {
  const Node& record = graph[node];
  std::vector<std::string> parts;
  if (record.phase != Phase::kUnspecified) parts.push_back(enum_text(record.phase));
  if (record.tag != Tag::kNone) parts.push_back(enum_text(record.tag));
  if (record.module_path.is_valid()) parts.emplace_back(graph.module().text(record.module_path));
  if (std::string source = source_text(graph, node); !source.empty()) {
    const size_t folder = source.rfind('/');
    parts.push_back(folder == std::string::npos ? source : source.substr(folder + 1));
  }
  parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
  return printable_line(join(parts, ", "));
}

std::string left_side(const Graph& graph, NodeId node) {
  const Node& record = graph[node];
  const std::string call = print_call(graph, node);
  if (record.kind == NodeKind::kOutput) return call;
  const Value& value = graph.value(node);
  const bool has_type = value.kind != ValueKind::kAbsent && value.kind != ValueKind::kUnknown;
  return "%" + printable_line(graph.name_of(node)) + (has_type ? ": " + value_text(graph, value) : "") + " = " + call;
}

// Prints the lines of print_records_text(), each cut to `width`.
void print_records(std::ostream& out, const Module& module, size_t width) {
  const std::string text = print_records_text(module);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out << cut_to(text.substr(begin, end - begin), width) << '\n';
    begin = end + 1;
  }
}

}  // namespace

std::string brief_node(const Graph& graph, NodeId node, size_t width) {
  const std::string left = left_side(graph, node), remark = remark_of(graph, node);
  if (remark.empty() || width < 2 * kLeastRemark) return cut_to(left, width);
  const size_t kept = std::min(remark.size(), std::max(kLeastRemark, width - std::min(width, left.size() + 4)));
  return cut_to(left, width - kept - 4) + "  {" + cut_to(remark, kept) + "}";
}

void print_brief(std::ostream& out, const Graph& graph, size_t width) {
  out << "graph @" << printable_line(graph.module().text(graph.name())) << ", " << enum_text(graph.kind) << ", "
      << count_text(graph.num_nodes(), "node") << '\n';
  for (const NodeId node : graph.nodes()) out << "  " << brief_node(graph, node, width - 2) << '\n';
}

void print_brief(std::ostream& out, const Module& module, size_t width) {
  for (const GraphId id : module.graphs()) print_brief(out, module.graph(id), width);
  print_records(out, module, width);
  std::string rest;
  for (const auto& [count, noun] :
       std::initializer_list<std::pair<size_t, const char*>>{{module.num_storages(), "storage"},
                                                             {module.op_schemas.size(), "operator schema"},
                                                             {module.constants.size(), "constant"},
                                                             {module.rng_slots.size(), "random slot"},
                                                             {module.assertions.size(), "assertion"},
                                                             {module.erased.size(), "erased node"}}) {
    if (count > 0) rest += (rest.empty() ? "" : ", ") + count_text(count, noun);
  }
  if (!rest.empty()) out << "not printed: " << rest << " (fxopt show --full)\n";
}

}  // namespace fxopt
