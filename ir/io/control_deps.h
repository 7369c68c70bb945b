#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ir/graph/module.h"

// PyTorch says "this node after those" by a higher-order op that hides the node in a body of its own:
//
//   %subgraph_mm = get_attr["subgraph_mm"]()                                 %mm = aten.mm.default(%x, %w)
//   %mm = higher_order.control_deps((%wait,), %subgraph_mm, %x, %w)    <=>         {control=[order %wait]}
//   graph @main.subgraph_mm: placeholders arg_0, arg_1;
//     %mm_default = aten.mm.default(%arg_0, %arg_1); output
//
// Both directions work on every graph of a module that has no broken invariant (ir/check/verify.h).

namespace fxopt {

struct ControlDepsResult {
  size_t done = 0;  // calls lowered, or nodes wrapped
  size_t left = 0;  // calls with another body than the one above, or control dependencies on what is not a call
  bool operator==(const ControlDepsResult&) const = default;
};

// Turns each control_deps call whose body says nothing but its one call into that call, with order dependencies; the
// get_attr, the attribute and the body go. Only what raise_control_deps() gives back exactly is lowered: names,
// arguments, values and metadata, that of the body's nodes included (uids are not: those of the body are lost). Other
// bodies stay as they are, such as those of stream synchronisation, which hand values through.
// O(nodes + edges + text of the bodies).
ControlDepsResult lower_control_deps(Module& module);

// Wraps each call that has control dependencies, of whatever kind: the op knows only one. Wrappers keep name, uid and
// value; bodies are named as PyTorch names them. O(nodes + edges of the wrapped calls).
ControlDepsResult raise_control_deps(Module& module);

// The name torch.fx gives a call of `target` in an empty graph: "mm_default" of "aten.mm.default", "getitem" of
// "operator.getitem". `is_operator`: the target is an overload of the framework's registry, named
// library.name.overload.
std::string fx_name(std::string_view target, bool is_operator);

}  // namespace fxopt
