#include "tests/scaling/shapes.h"

namespace fxopt {
namespace {

std::string number(size_t i) { return std::to_string(i); }

// A graph with the nodes `body` after an input %x on a GPU.
std::string graph(const std::string& body, const std::string& result, const std::string& records = "") {
  return "graph @main {\n" + records + "  %x: f32[64]@cuda:0 = placeholder()\n" + body + "  return (" + result +
         ")\n}\n";
}

std::string call(const std::string& name, const std::string& target, const std::string& args,
                 const std::string& more = "") {
  return "  %" + name + ": f32[64]@cuda:0 = " + target + "(" + args + ")" + more + "\n";
}

std::string plain_subgraph(const std::string& name, const std::string& header = "") {
  return "graph @" + name + header + " {\n  %x: f32[64]@cuda:0 = placeholder()\n" +
         call("y", "aten.neg.default", "%x") + "  return (%y,)\n}\n";
}

// A call that runs a graph, and a getitem of its result.
std::string run(const std::string& i, const std::string& body, const std::string& input) {
  return "  %r" + i + ": (f32[64]@cuda:0,) = higher_order.wrap(" + body + ", %" + input + ")\n" +
         call("c" + i, "operator.getitem", "%r" + i + ", 0");
}

std::string chain(size_t size) {
  std::string body, last = "x";
  for (size_t i = 0; i < size; ++i) {
    body += call("n" + number(i), i % 3 == 0 ? "aten.exp.default" : "aten.neg.default", "%" + last);
    last = "n" + number(i);
  }
  return graph(body, "%" + last + ",");
}

std::string readers_of_one(size_t size) {
  std::string body, list;
  for (size_t i = 0; i < size; ++i) {
    body += call("n" + number(i), "aten.add.Scalar", "%x, " + number(i));
    list += "%n" + number(i) + ", ";
  }
  return graph(body + call("s", "aten.stack.default", "[" + list + "]"), "%s,");
}

std::string views(size_t size) {
  std::string body, last = "x";
  for (size_t i = 0; i < size; ++i) {
    body += call("n" + number(i), i % 2 == 0 ? "aten.alias.default" : "aten.view.default",
                 "%" + last + (i % 2 == 0 ? "" : ", [64]"));
    last = "n" + number(i);
  }
  return graph(body, "%" + last + ",");
}

// Each write follows a read of the same buffer.
std::string writes(size_t size) {
  std::string body = call("b", "aten.clone.default", "%x"), last = "b";
  for (size_t i = 0; i < size; ++i) {
    body += call("r" + number(i), "aten.neg.default", "%b");
    body += call("w" + number(i), "aten.add_.Tensor", "%b, %r" + number(i));
  }
  return graph(body, "%b,");
}

// A forward value before each backward node, so that each backward node is a region.
std::string regions(size_t size) {
  std::string body = call("a", "aten.exp.default", "%x", " {tag=MUST_RECOMPUTE}"), list;
  for (size_t i = 0; i < size; ++i) {
    body += call("f" + number(i), "aten.add.Scalar", "%x, " + number(i));
    body += call("g" + number(i), "aten.mul.Tensor", "%a, %f" + number(i), " {phase=backward}");
    list += "%g" + number(i) + ", ";
  }
  return graph(body, list);
}

std::string ordered(size_t size) {
  std::string body;
  for (size_t i = 0; i < size; ++i) {
    const std::string control = i == 0 ? "" : " {control=[order %n" + number(i - 1) + "]}";
    body += call("n" + number(i), "aten.add.Scalar", "%x, " + number(i), control);
  }
  return graph(body, "%n" + number(size - 1) + ",");
}

// A body that runs `size` graphs, each through its own attribute.
std::string bodies_by_attribute(size_t size) {
  std::string records, body, graphs, last = "x";
  for (size_t i = 0; i < size; ++i) {
    const std::string n = number(i);
    records += "  attribute {path=\"s" + n + "\", graph=\"s" + n + "\"}\n";
    body += "  %s" + n + ": graph(@s" + n + ") = get_attr[\"s" + n + "\"]()\n" + run(n, "%s" + n, last);
    last = "c" + n;
    graphs += plain_subgraph("s" + n, " {kind=subgraph, owner=\"body\"}");
  }
  std::string inner = graph(body, "%" + last + ",", records);
  inner.replace(0, std::string("graph @main {").size(), "graph @body {kind=subgraph, owner=\"main\"} {");
  return graph(run("", "@body", "x"), "%c,") + inner + graphs;
}

std::string bodies_by_name(size_t size) {
  std::string body, graphs, last = "x";
  for (size_t i = 0; i < size; ++i) {
    body += run(number(i), "@s" + number(i), last);
    last = "c" + number(i);
    graphs += plain_subgraph("s" + number(i), " {kind=subgraph, owner=\"main\"}");
  }
  return graph(body, "%" + last + ",") + graphs;
}

std::string separate_graphs(size_t size) {
  std::string graphs = graph(call("y", "aten.neg.default", "%x"), "%y,");
  for (size_t i = 1; i < size; ++i) graphs += plain_subgraph("g" + number(i));
  return graphs;
}

// Each node on its own GPU.
std::string devices(size_t size) {
  std::string body;
  for (size_t i = 0; i < size; ++i) {
    body += "  %n" + number(i) + ": f32[64]@cuda:" + number(i) + " = aten.neg.default(%x)\n";
  }
  return graph(body, "%n0,");
}

}  // namespace

std::string nested_graphs(size_t depth) {
  std::string text = graph(run("", "@g1", "x"), "%c,");
  for (size_t i = 1; i < depth; ++i) {
    const std::string next = "g" + number(i + 1);
    const bool by_attribute = i % 2 == 0;
    text += "graph @g" + number(i) + " {\n";
    if (by_attribute) text += "  attribute {path=\"" + next + "\", graph=\"" + next + "\"}\n";
    text += "  %x: f32[64]@cuda:0 = placeholder()\n";
    if (by_attribute) text += "  %body: graph(@" + next + ") = get_attr[\"" + next + "\"]()\n";
    text += run("", by_attribute ? "%body" : "@" + next, "x") + "  return (%c,)\n}\n";
  }
  return text + plain_subgraph("g" + number(depth));
}

std::string layers_with_collectives(size_t layers) {
  std::string inputs, body, last = "x";
  const auto collect = [&body](const std::string& name, const std::string& sizes, const std::string& call) {
    body += "  %" + name + "_start: f32[" + sizes + "] = _c10d_functional." + call + "\n  %" + name + ": f32[" + sizes +
            "] = _c10d_functional.wait_tensor.default(%" + name + "_start)\n";
  };
  for (size_t i = 0; i < layers; ++i) {
    const std::string n = number(i);
    inputs += "  %p" + n + ": f32[2, 8] = placeholder() {input={role=parameter}}\n";
    collect("a" + n, "4, 8", "all_gather_into_tensor.default(%p" + n + ", 2, \"tp\")");
    collect("b" + n, "8, 8", "all_gather_into_tensor.default(%a" + n + ", 2, \"dp\")");
    body += "  %h" + n + ": f32[4, 8] = aten.mm.default(%" + last + ", %b" + n + ")\n";
    collect("g" + n, "8, 8", "all_gather_into_tensor.default(%h" + n + ", 2, \"tp\")");
    body += "  %s" + n + ": f32[4, 8] = aten.slice.Tensor(%g" + n + ", 0, 0, 4)\n";
    collect("c" + n, "4, 8", "all_gather_into_tensor.default(%p" + n + ", 2, \"tp\")");
    last = "g" + n;
    for (size_t j = 0; j < 21; ++j) {
      const std::string name = "e" + n + "_" + number(j);
      body += "  %" + name + ": f32[8, 8] = aten.exp.default(%" + last + ")\n";
      last = name;
    }
    collect("r" + n, "4, 8", "reduce_scatter_tensor.default(%" + last + ", \"sum\", 2, \"tp\")");
    body += "  %m" + n + ": f32[4, 8] = aten.mul.Tensor(%s" + n + ", %c" + n + ")\n";
    body += "  %z" + n + ": f32[4, 8] = aten.add.Tensor(%m" + n + ", %r" + n + ")\n";
    last = "z" + n;
  }
  return "process_group {uid=\"dp\", ranks=[0, 2], mesh=\"m\", mesh_dims=[\"dp\"]}\n"
         "process_group {uid=\"tp\", ranks=[0, 1], mesh=\"m\", mesh_dims=[\"tp\"]}\n"
         "device_mesh {name=\"m\", device_type=\"cpu\", shape=[2, 2], dim_names=[\"dp\", \"tp\"], ranks=[0, 1, 2, 3], "
         "coordinate=[0, 0], groups=[\"dp\", \"tp\"]}\nrank {rank=0, world_size=4}\ngraph @main {kind=inference} {\n"
         "  %x: f32[4, 8] = placeholder()\n" +
         inputs + body + "  return (%" + last + ",)\n}\n";
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> kShapes = {
      {"a chain", chain, 2000},
      {"many readers of one value", readers_of_one, 2000},
      {"a chain of views", views, 2000},
      {"reads and writes of one buffer", writes, 1000},
      {"backward regions", regions, 2000},
      {"a chain of control dependencies", ordered, 2000},
      {"graphs nested in each other", nested_graphs, 500},
      {"bodies by attribute", bodies_by_attribute, 500},
      {"bodies by name", bodies_by_name, 1000},
      {"separate graphs", separate_graphs, 1000},
      {"devices", devices, 1000},
      {"layers with collectives",
       layers_with_collectives,
       100,
       {"fuse-gathers{gate=none}", "alias-round-trips", "dedup-unshards", "bucket{groups=all,reduce-scatter=200MiB}",
        "bucket{groups=all,form=coalesced,max-growth=-1}", "compute-cap"}},
  };
  return kShapes;
}

}  // namespace fxopt
