#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ir/graph/module.h"

// PyTorch expresses "this node runs after those" by a higher-order op that hides the node in a
// subgraph:
//
//   %subgraph_mm = get_attr["subgraph_mm"]()
//   %mm = higher_order.control_deps((%wait,), %subgraph_mm, %x, %w)
//   graph @main.subgraph_mm: placeholders arg_0, arg_1;
//     %mm_default = aten.mm.default(%arg_0, %arg_1); output
//
// Lowered:
//
//   %mm = aten.mm.default(%x, %w) {control=[order %wait]}
//
// Both directions work on every graph of a module that has no broken invariant (ir/check/verify.h).

namespace fxopt {

struct ControlDepsResult {
  size_t done = 0;  // calls lowered, or nodes wrapped
  // Calls whose body differs from the one above, or non-calls with control dependencies.
  size_t left = 0;
  bool operator==(const ControlDepsResult&) const = default;
};

// Replaces each control_deps call whose body holds only one call by that call, with order
// dependencies. The get_attr, the attribute and the body are removed. A call is lowered only if
// raise_control_deps() would restore it exactly: names, arguments, values and metadata, including
// those of the body's nodes. Uids are the exception: those of the body are lost. Other calls stay
// unchanged, such as stream synchronisation, whose body passes values through.
// O(nodes + edges + text of the bodies).
ControlDepsResult lower_control_deps(Module& module);

// Wraps each call that has control dependencies, of any kind: the op knows only one kind. Wrappers
// keep name, uid and value; bodies get PyTorch's names. O(nodes + edges of the wrapped calls).
ControlDepsResult raise_control_deps(Module& module);

// Returns the name that torch.fx gives a call of `target` in an empty graph: "mm_default" for
// "aten.mm.default", "getitem" for "operator.getitem". `is_operator`: the target is an overload of
// the framework's registry, named library.name.overload.
std::string fx_name(std::string_view target, bool is_operator);

}  // namespace fxopt
