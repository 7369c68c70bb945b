#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/id.h"
#include "core/result.h"

namespace fxopt {

// The default value of an argument in a schema.
struct SchemaDefault {
  enum class Kind : uint8_t {
    kMissing,  // the argument has no default
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,  // in quotes
    kWord,    // the name of an enumerator, such as contiguous_format
    kInts,    // a list of integers, or an empty list
    kOther,   // any other list
  };
  Kind kind = Kind::kMissing;
  int64_t integer = 0;            // for kInt, the number; for kBool, 0 or 1
  double real = 0;                // for kFloat, the number
  std::vector<int64_t> integers;  // for kInts, the list
  std::string text;               // the default as the schema writes it; empty for kMissing
};

// One argument or return of an operator's schema.
struct SchemaArg {
  std::string name;  // may be empty for a return
  std::string type;  // without the alias annotation: "Tensor", "Tensor[]", "SymInt[]?", "Scalar"
  SchemaDefault default_value;
  bool keyword_only = false;
  bool is_write = false;     // the annotation contains '!'
  bool is_wildcard = false;  // the annotation contains '*', so the argument may alias anything
  std::string alias_set;     // "a" for Tensor(a!), "a|b" for Tensor(a|b), empty without a named set

  bool is_tensor() const { return type.starts_with("Tensor"); }
  bool is_list() const { return type.find('[') != std::string::npos; }
  bool is_tensor_list() const { return is_tensor() && is_list(); }
  // True for an object of a C++ class that the framework registers, such as packed weights.
  bool is_object() const { return type.starts_with("__torch__."); }
  bool has_default() const { return default_value.kind != SchemaDefault::Kind::kMissing; }
  // True for the `out` of an out variant.
  bool is_out() const { return keyword_only && is_write; }
};

// A parsed schema, such as
// "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)".
struct Schema {
  std::string name;      // "aten::add_"
  std::string overload;  // "Tensor", empty for default
  std::vector<SchemaArg> args;
  std::vector<SchemaArg> returns;
  bool variadic = false;

  bool mutates() const;
  // Returns the position of the first argument called `name`, or -1. O(arguments).
  int16_t find_arg(std::string_view name) const;
};

// Parses the framework's schema syntax. Fails with kSyntax if the text is invalid, and reports the
// column. Fails with kLimit above 64 KiB, 255 arguments or 16 levels of brackets. Two arguments may
// have the same name, as in the framework. O(length).
Result<Schema> parse_schema(std::string_view text);

// Effects that an op has when it runs, apart from computing its outputs. Each value is one bit of a
// set.
enum class Effect : uint16_t {
  kNone = 0,
  kRandom = 1 << 0,            // draws from a generator
  kMutates = 1 << 1,           // writes an argument, see Op::writes
  kCollective = 1 << 2,        // is issued on a process group, in the same order on every rank
  kWaits = 1 << 3,             // waits for a collective or a copy
  kHostSync = 1 << 4,          // makes the host wait for the device
  kBarrier = 1 << 5,           // nodes with effects must not move across this op
  kAsserts = 1 << 6,           // checks a condition and returns nothing
  kOpaque = 1 << 7,            // may have other effects, because its description is incomplete
  kNondeterministic = 1 << 8,  // two runs may differ in the last bits
  kUnknownWrites = 1 << 9,     // may write or return any argument, because no schema excludes this
  kChangesMode = 1 << 10,      // changes gradient mode, inference mode or autocast of later calls
};
constexpr Effect operator|(Effect a, Effect b) {
  return static_cast<Effect>(static_cast<uint16_t>(a) | static_cast<uint16_t>(b));
}
// The effects of an op without a description: the worst case.
constexpr Effect kUndescribed = Effect::kOpaque | Effect::kUnknownWrites;
constexpr bool has_effect(Effect set, Effect bit) {
  return (static_cast<uint16_t>(set) & static_cast<uint16_t>(bit)) != 0;
}
constexpr Effect without(Effect set, Effect bits) {
  return static_cast<Effect>(static_cast<uint16_t>(set) & ~static_cast<uint16_t>(bits));
}
// Returns true if an op with the effects `set` is pure. A call of a pure op may be erased if its
// result is unused, and may be merged with an equal call. A pure op can have only two effects:
// kHostSync, and kNondeterministic, which affects only the last bits of a result.
constexpr bool is_pure(Effect set) {
  return without(set, Effect::kHostSync | Effect::kNondeterministic) == Effect::kNone;
}

// The relation of outputs to the storages of inputs, for ops whose schema does not show this
// relation. If argument 0 and the output are lists, element i of the output relates to element i of
// argument 0.
enum class ViewKind : uint8_t {
  kNone,        // outputs own new storages, unless the schema's annotations show an alias
  kView,        // the output is a view of argument 0
  kMaybeView,   // a view of argument 0 if strides allow it, and a copy otherwise
  kMultiView,   // every element of the output list is a view of argument 0
  kProjection,  // one element of a tuple or list (operator.getitem)
  kIdentity,    // returns argument 0 itself (wait_tensor, in-place ops that return self)
};

// States which results of an op may hand on an argument. A result hands on an argument if the
// result is the argument, or if the result contains the argument. Here, the items of a list
// argument also count as arguments.
enum class HandsOn : uint8_t {
  kNothing,  // no result
  kLists,    // only results that are lists or tuples: `list + list`, `list * n`
  // Every result. Examples: `max` of a list returns an item of the list. A new sparse tensor holds
  // the tensors `indices` and `values`. An object with packed weights holds the weights.
  kAnything,
};

// The room that a result's storage has beyond the result's own elements. Some kernels first enlarge
// a result and then shrink the result. The storage then keeps its larger size.
enum class Holds : uint8_t {
  kItself,  // no additional room
  // For losses such as `mse_loss`. The kernel first computes one term for each element, in the
  // result's storage. It then reduces the terms to one number in the same storage. If `reduction`
  // is not 0, the storage has room for all elements of arguments 0 and 1 after broadcasting.
  kTerms,
  kColumns,  // room for as many elements as argument 0 has (`col2im`)
  // For `unique_consecutive`. The values have room for all elements of argument 0. The counts have
  // room for one count for each slice along `dim`. If `dim` is None, the counts have room for one
  // count for each element.
  kRuns,
  // For `_embedding_bag`: offset2bag has room for one more element, unless offset2bag is empty.
  // bag_size has room for one element for each offset.
  kBags,
};

// The kind of work that an op does, for cost models, reports and policies.
enum class ComputeClass : uint8_t {
  kOther,
  kView,
  kPointwise,
  kReduction,
  kContraction,
  kAttention,
  kConvolution,
  kNormalization,
  kGatherScatter,
  kDataMovement,
  kFactory,
  kRandom,
  kScalar,  // on the host
  kSort,
  kCollective,
  kWait,
  kHigherOrder,
  kAssertion,
  kOptimizer,
};

// Sets of ops that PyTorch or torchtitan define. Most sets are used to reproduce decisions of these
// projects. Each value is one bit of a set.
enum class OpSet : uint16_t {
  kNone = 0,
  kComputeIntensive = 1 << 0,   // the partitioner's compute_intensive_ops, all overloads
  kRecomputable = 1 << 1,       // the partitioner's default recomputable ops
  kPartitionerView = 1 << 2,    // the partitioner's view_ops
  kPartitionerRandom = 1 << 3,  // the partitioner's random_ops
  kTitanSave = 1 << 4,          // overloads in torchtitan's default save set
  kPointwiseTag = 1 << 5,       // has the framework's `pointwise` tag
  kSeeded = 1 << 6,             // has the framework's `nondeterministic_seeded` tag
  kTitanMatmul = 1 << 7,        // counted by torchtitan's per-op policy
  kNoCpuKernel = 1 << 8,        // an aten op for which PyTorch registers no CPU kernel
  kNoCudaKernel = 1 << 9,       // an aten op for which PyTorch registers no CUDA kernel
  kDecomposes = 1 << 10,        // torch._decomp.core_aten_decompositions() has an entry
  kOtherLibrary = 1 << 11,      // registered by a library other than PyTorch
};
constexpr OpSet operator|(OpSet a, OpSet b) {
  return static_cast<OpSet>(static_cast<uint16_t>(a) | static_cast<uint16_t>(b));
}
constexpr bool has_op_set(OpSet set, OpSet bit) {
  return (static_cast<uint16_t>(set) & static_cast<uint16_t>(bit)) != 0;
}

// The index of an operator in the built-in table. Indices are dense. They are the same in every run
// of one build.
using OpId = Id<struct OpTag>;

// All facts about an operator that passes may use. Passes use the operator's name
// (Module::find_target) only for a fact about a single operator, such as neg(neg(x)) = x.
struct Op {
  OpId id;                       // invalid if the op is not in the built-in table
  std::string name;              // "aten.mm.default"
  std::optional<Schema> schema;  // absent for higher-order ops and Python functions
  Effect effects = Effect::kNone;
  ViewKind view = ViewKind::kNone;
  ComputeClass compute = ComputeClass::kOther;
  OpSet sets = OpSet::kNone;
  // Positions of the arguments that the op writes, whether or not the schema declares the write.
  std::vector<uint8_t> writes;
  // True if the op writes an argument, but the schema does not declare this write. For example,
  // batch norm writes its running statistics.
  bool hides_writes = false;
  // True if the output aliases argument 0 although the schema declares no alias (_unsafe_view).
  bool hides_alias = false;
  bool is_multi_output = false;  // returns a tuple or a list
  // Changes sizes, strides or offset of argument 0 in place (`t_`, `resize_`). An out variant
  // resizes an `out` whose sizes differ from the result's sizes. Whether a call resizes `out`
  // depends on its arguments, so the flag does not cover out variants. See
  // collect_metadata_changes() in ir/alias/effects.h.
  bool changes_metadata = false;
  // Moves argument 0 to another storage (`set_`). If argument 1 is a tensor, argument 0 gets the
  // storage of argument 1.
  bool moves_storage = false;
  // A view op that returns argument 0 if no change is needed (`conj` of real numbers).
  bool may_return_argument = false;
  // All outputs share one new storage (`where` with only a condition).
  bool joins_outputs = false;
  // A view whose position in memory depends on an argument's data (`narrow` with a tensor as its
  // start).
  bool reads_index = false;
  // Writes every element of argument 0 and does not read any of these elements (`copy_`, `fill_`).
  // Argument 0 is not a list.
  bool overwrites = false;
  // Writes into a copy of argument 0 with the same strides and offset. The copy's storage is as
  // large as the storage of argument 0, even if argument 0 is a view of a small part.
  bool clones_storage = false;
  bool has_subgraphs = false;  // runs subgraphs, and has their effects
  // The position of an argument for each return of the schema. The return shares, or may share, the
  // storage of this argument. The position is -1 if there is no such argument. Includes the aliases
  // that the schema does not declare. Empty without a schema.
  std::vector<int16_t> aliases;
  // The next three fields are positions of arguments that decide the effects of one call. A field
  // is -1 if there is no such argument. Keyword-only arguments have positions as well.

  // Position of a probability. If the probability is known to be 0, the op draws nothing.
  int16_t dropout_arg = -1;
  // Position of a boolean argument. If the argument is known to be false, the op does not write.
  int16_t training_arg = -1;
  // Position of a list of index tensors. If a tensor in the list is boolean, the host waits for the
  // device.
  int16_t mask_arg = -1;
  // The position of an argument that some calls return, or -1. A call may return the whole
  // argument, an element of the argument, or a view of the argument (`einsum` of one operand).
  int16_t shared_arg = -1;
  // True if a call returns the argument at `shared_arg` only when that argument has no elements.
  bool shares_only_empty = false;
  HandsOn hands_on = HandsOn::kNothing;
  // The kernel chooses the layout of its results. Fake tensors do not always record this layout, so
  // the recorded strides are unreliable.
  bool chooses_layout = false;
  Holds holds = Holds::kItself;
  // The position of the argument that is the operator to run (higher-order ops), or -1. The effects
  // of that operator are added, except kRandom. The description of the higher-order op decides
  // kRandom. For example, run_with_rng_state does not have kRandom, because it draws from a state
  // that is one of its arguments.
  int16_t operator_arg = -1;
  // This op runs another operator on copies of the arguments that the operator writes, and returns
  // these copies (auto_functionalized).
  bool functionalizes = false;

  // Whether a result may be a tensor or may hold tensors. True without a schema. O(returns).
  bool yields_tensor() const;
  // Whether a graph must contain a wait for the operator's result. True for functional collectives,
  // whose names begin with `_c10d_functional` or `c10d_functional`. False for all other ops. An
  // example of the other ops is a `c10d` collective: later work on the stream may use its result
  // without a wait.
  bool leaves_wait_to_graph() const;
  bool has(Effect bit) const { return has_effect(effects, bit); }
  bool in(OpSet bit) const { return has_op_set(sets, bit); }
  bool is_pure() const { return fxopt::is_pure(effects); }
  bool is_opaque() const { return has(Effect::kOpaque); }
  bool is_builtin() const { return id.is_valid(); }
};

// Returns the built-in description of `name`, or nullptr. The table covers ops of aten, prims,
// _c10d_functional and other libraries, and higher-order ops. It also covers Python functions that
// traced graphs call on scalars, such as operator.add. The table's entry for an op is parsed on
// first use. O(1) expected.
const Op* find_builtin_op(std::string_view name);

// Returns the number of built-in ops. Their ids are 0 to num_builtin_ops() - 1. O(1).
size_t num_builtin_ops();

// Returns the id of the built-in op `name`, or an invalid id. Unlike find_builtin_op(), does not
// parse the op's entry in the built-in table. O(1) expected.
OpId find_op_id(std::string_view name);

// Returns the built-in op with this id, which must be valid. O(1).
const Op& builtin_op(OpId id);

// Returns all built-in ops, sorted by name.
const std::vector<const Op*>& builtin_ops();

// Returns the op that represents any op without a description. The returned op has the effects
// kUndescribed.
const Op& opaque_op();

// Returns an op that a file describes by a schema. Effects and aliases come from the schema's
// annotations. `tags` are the framework's operator tags. The op is pure only if `pure` is true.
// Otherwise, the op is opaque: it may have effects that are not in its schema. If `effectful` is
// true, the framework keeps the op's calls in order. Then the op has the effects kOpaque and
// kBarrier, whether `pure` is true or false. O(arguments * returns).
Op describe_op(std::string_view name, const Schema& schema, const std::vector<std::string_view>& tags,
               std::optional<bool> pure, std::optional<bool> effectful);

// The names of compute classes and effects, for reports.
std::string_view compute_class_name(ComputeClass value);
std::vector<std::string_view> effect_names(Effect set);

}  // namespace fxopt
