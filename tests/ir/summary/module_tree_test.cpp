// Modules by path, and groups of equal modules.

#include "ir/summary/module_tree.h"

#include "tests/catch.h"

namespace fxopt {
namespace {

void add(ModuleTree& tree, std::string_view path, size_t nodes, uint64_t kind = 1) {
  for (size_t i = 0; i < nodes; ++i) {
    ModuleFigures figures;
    figures.nodes = 1;
    tree.add(tree.place_of(path), figures, kind);
  }
}

// "name x alike: nodes", indented by depth.
std::vector<std::string> lines_of(const ModuleTree& tree, size_t depth) {
  std::vector<std::string> lines;
  for (const ModuleRow& row : tree.rows(depth)) {
    lines.push_back(std::string(row.depth - 1, ' ') + row.name + " x " + std::to_string(row.alike) + ": " +
                    std::to_string(row.figures.nodes));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST_CASE("modules: each with all below it, most nodes first, ties by first appearance") {
  ModuleTree tree;
  add(tree, "b", 1);
  add(tree, "a.x", 1);
  add(tree, "a.y", 2);
  add(tree, "a", 1);
  add(tree, "", 1);
  tree.finish();
  CHECK(lines_of(tree, 1) == Lines{"a x 1: 4", "b x 1: 1", " x 1: 1"});
  CHECK(lines_of(tree, 2) == Lines{"a x 1: 4", " y x 1: 2", " x x 1: 1", "b x 1: 1", " x 1: 1"});
  CHECK(lines_of(tree, 0).empty());
  CHECK(lines_of(tree, 1000000000) == lines_of(tree, 2));
}

TEST_CASE("modules: numbered siblings that hold the same are one row, others are not") {
  ModuleTree tree;
  for (const char* path : {"layers.0.mlp", "layers.1.mlp", "layers.3.mlp", "layers.a.mlp", "layers.b.mlp"}) {
    add(tree, path, 2);
  }
  add(tree, "layers.4.mlp", 2, 2);  // another kind of node
  add(tree, "layers.5.att", 2);     // another name below
  add(tree, "layers.6.mlp", 3);     // one node more
  add(tree, "layers.07.mlp", 2);    // lists do not number like this
  tree.finish();
  CHECK(lines_of(tree, 3) == Lines{"layers x 1: 19", " 0, 1, 3 x 3: 6", "  mlp x 3: 6", " 6 x 1: 3", "  mlp x 1: 3",
                                   " a x 1: 2", "  mlp x 1: 2", " b x 1: 2", "  mlp x 1: 2", " 4 x 1: 2",
                                   "  mlp x 1: 2", " 5 x 1: 2", "  att x 1: 2", " 07 x 1: 2", "  mlp x 1: 2"});
  CHECK(tree.rows(2)[1].siblings == 3);
  CHECK(tree.rows(3)[2].siblings == 1);
  CHECK(tree.rows(3)[2].path == "layers.0.mlp");
}

TEST_CASE("modules: alike within alike") {
  ModuleTree tree;
  for (const char* path : {"l.0.e.0", "l.0.e.1", "l.1.e.0", "l.1.e.1"}) add(tree, path, 1);
  tree.finish();
  CHECK(lines_of(tree, 4) == Lines{"l x 1: 4", " 0, 1 x 2: 4", "  e x 2: 4", "   0, 1 x 4: 4"});
  CHECK(tree.rows(4)[3].siblings == 2);
}

TEST_CASE("modules: the depth that fits") {
  ModuleTree tree;
  add(tree, "a.x.p", 1);
  add(tree, "a.y", 1);
  tree.finish();
  CHECK(tree.fitting_depth(0) == 1);
  CHECK(tree.fitting_depth(2) == 1);
  CHECK(tree.fitting_depth(3) == 2);
  CHECK(tree.fitting_depth(4) == 3);
  CHECK(tree.fitting_depth(100) == 3);
  CHECK(ModuleTree().fitting_depth(3) == 1);
}

}  // namespace
}  // namespace fxopt
