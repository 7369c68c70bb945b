#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ir/graph/module.h"

// PyTorch uses a higher-order op to express that a node runs after other nodes. The op hides the
// node in a subgraph:
//
//   graph @main {
//     ...
//     %subgraph_mm = get_attr["subgraph_mm"]()
//     %mm = higher_order.control_deps((%wait,), %subgraph_mm, %x, %w)
//     ...
//   }
//   graph @main.subgraph_mm {
//     %arg_0 = placeholder()
//     %arg_1 = placeholder()
//     %mm_default = aten.mm.default(%arg_0, %arg_1)
//     %output = output(%mm_default)
//   }
//
// The lowered form is:
//
//   %mm = aten.mm.default(%x, %w) {control=[order %wait]}
//
// The functions below change every graph of a module. The module must satisfy all invariants
// (ir/check/verify.h).

namespace fxopt {

struct ControlDepsResult {
  size_t done = 0;  // number of lowered calls, or number of wrapped nodes
  // Number of nodes left unchanged. For lower_control_deps(), these are the control_deps calls that
  // could not be lowered. For raise_control_deps(), these are nodes that have control dependencies
  // but are not calls.
  size_t left = 0;
  bool operator==(const ControlDepsResult&) const = default;
};

// Lowers each control_deps call whose body (the subgraph) contains exactly one call. The inner call
// replaces the control_deps call and gets order dependencies. The get_attr, the attribute and the
// body are removed. A call is lowered only if raise_control_deps() would restore exactly the same
// graphs. The comparison includes the names, arguments, values and metadata of all nodes, including
// the body's nodes. Only the uids of the body's nodes are lost. All remaining control_deps calls
// stay unchanged. An example is a stream synchronisation: its body contains no call, because the
// body returns its inputs unchanged. O(nodes + edges + text of the bodies).
ControlDepsResult lower_control_deps(Module& module);

// Wraps each call that has control dependencies in a control_deps call. The kinds of the control
// dependencies (ControlKind) are lost, because control_deps can express only one kind. A wrapper
// keeps the name, uid and value of the call. The nodes in the wrapper's subgraph get the names that
// PyTorch would give them. O(nodes + edges of the wrapped calls).
ControlDepsResult raise_control_deps(Module& module);

// Returns the name that torch.fx gives a call of `target` in an empty graph: "mm_default" for
// "aten.mm.default", "getitem" for "operator.getitem". `is_operator` is true if the target is an
// operator overload in the framework's registry, with a name of the form library.name.overload.
std::string fx_name(std::string_view target, bool is_operator);

}  // namespace fxopt
