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

// The default that a schema gives an argument.
struct SchemaDefault {
  enum class Kind : uint8_t {
    kMissing,  // the argument has no default
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,  // in quotes
    kWord,    // an enumerator: contiguous_format
    kInts,    // a list of integers, also the empty list
    kOther,   // any other list
  };
  Kind kind = Kind::kMissing;
  int64_t integer = 0;            // kInt; kBool: 0 or 1
  double real = 0;                // kFloat
  std::vector<int64_t> integers;  // kInts
  std::string text;               // as written; empty: kMissing
};

// One argument or return of an operator's schema.
struct SchemaArg {
  std::string name;  // returns may have none
  std::string type;  // without the alias annotation: "Tensor", "Tensor[]", "SymInt[]?", "Scalar"
  SchemaDefault default_value;
  bool keyword_only = false;
  bool is_write = false;     // the annotation carries '!'
  bool is_wildcard = false;  // the annotation contains '*': may alias anything
  std::string alias_set;     // "a" of Tensor(a!), "a|b" of Tensor(a|b), empty without a named set

  bool is_tensor() const { return type.starts_with("Tensor"); }
  bool is_list() const { return type.find('[') != std::string::npos; }
  bool is_tensor_list() const { return is_tensor() && is_list(); }
  bool has_default() const { return default_value.kind != SchemaDefault::Kind::kMissing; }
  // The `out` of an out variant.
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
  // The position of the first argument called `name`, or -1. O(arguments).
  int16_t find_arg(std::string_view name) const;
};

// Parses the framework's schema syntax. Fails with kSyntax and the column, or with kLimit above 64
// KiB, 255 arguments or 16 levels of brackets. O(length). Two arguments may have the same name, as
// in the framework.
Result<Schema> parse_schema(std::string_view text);

// Effects of running an op beyond computing its outputs from its inputs. A set of bits.
enum class Effect : uint16_t {
  kNone = 0,
  kRandom = 1 << 0,            // draws from a generator
  kMutates = 1 << 1,           // writes an argument, see Op::writes
  kCollective = 1 << 2,        // issued on a process group, in the same order on every rank
  kWaits = 1 << 3,             // waits for a collective or a copy
  kHostSync = 1 << 4,          // makes the host wait for the device
  kBarrier = 1 << 5,           // nothing with effects moves across
  kAsserts = 1 << 6,           // checks a condition and yields nothing
  kOpaque = 1 << 7,            // may have other effects: nothing describes it fully
  kNondeterministic = 1 << 8,  // two runs may differ in the last bits
  kUnknownWrites = 1 << 9,     // may write any argument and return it: no schema, or a silent one
  kChangesMode = 1 << 10,      // changes gradient mode, inference mode or autocast of later calls
};
constexpr Effect operator|(Effect a, Effect b) {
  return static_cast<Effect>(static_cast<uint16_t>(a) | static_cast<uint16_t>(b));
}
// For an op without a description: assume the worst.
constexpr Effect kUndescribed = Effect::kOpaque | Effect::kUnknownWrites;
constexpr bool has_effect(Effect set, Effect bit) {
  return (static_cast<uint16_t>(set) & static_cast<uint16_t>(bit)) != 0;
}
constexpr Effect without(Effect set, Effect bits) {
  return static_cast<Effect>(static_cast<uint16_t>(set) & ~static_cast<uint16_t>(bits));
}
// No effect that would keep a node without users alive or forbid merging: not random, mutating,
// collective, waiting, asserting, a barrier, opaque, mode-changing or writing unknown memory.
constexpr bool is_pure(Effect set) {
  return without(set, Effect::kHostSync | Effect::kNondeterministic) == Effect::kNone;
}

// How outputs relate to the storages of inputs, where the schema alone does not show it. If
// argument 0 and the output are lists, element i of the output relates to element i of the
// argument.
enum class ViewKind : uint8_t {
  kNone,        // outputs own new storages, except for the schema's annotations
  kView,        // the output is a view of argument 0
  kMaybeView,   // a view of argument 0 if strides allow, else a copy: the recorded value decides
  kMultiView,   // every element of the output list is a view of argument 0
  kProjection,  // one element of a tuple or list: operator.getitem
  kIdentity,    // returns argument 0 itself (wait_tensor, in-place ops that return self)
};

// The results of a Python function that may be its arguments, or hold them.
enum class HandsOn : uint8_t {
  kNothing,
  kLists,     // lists: list + list, list * n
  kAnything,  // the largest of a list, one of two by a condition
};

// The room that a result's storage has beyond its own elements: some kernels make a result larger
// first and then shrink it.
enum class Holds : uint8_t {
  kItself,
  // A loss that is reduced in the storage of its terms: if `reduction` is not 0, room for all
  // elements of arguments 0 and 1 broadcast.
  kTerms,
  kColumns,  // as many elements as argument 0 (`col2im`)
  // `unique_consecutive`: as many values as argument 0 has, as many counts as it has slices along
  // `dim`.
  kRuns,
  // `_embedding_bag`: offset2bag has one more element if it has any, bag_size one for each offset.
  kBags,
};

// The kind of work, for cost models, reports and policies.
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

// Sets of ops that PyTorch and torchtitan name: most serve to reproduce their decisions. A set of
// bits.
enum class OpSet : uint16_t {
  kNone = 0,
  kComputeIntensive = 1 << 0,   // the partitioner's compute_intensive_ops, by packet
  kRecomputable = 1 << 1,       // its default recomputable ops
  kPartitionerView = 1 << 2,    // its view_ops
  kPartitionerRandom = 1 << 3,  // its random_ops
  kTitanSave = 1 << 4,          // torchtitan's default save set, by overload
  kPointwiseTag = 1 << 5,       // carries the framework's `pointwise` tag
  kSeeded = 1 << 6,             // carries the framework's `nondeterministic_seeded` tag
  kTitanMatmul = 1 << 7,        // counted by torchtitan's per-op policy
  kNoCpuKernel = 1 << 8,        // an aten op for which PyTorch registers no CPU kernel
  kNoCudaKernel = 1 << 9,       // ... no CUDA kernel
  kDecomposes = 1 << 10,        // torch._decomp.core_aten_decompositions() has an entry
  kOtherLibrary = 1 << 11,      // registered by another library than PyTorch
};
constexpr OpSet operator|(OpSet a, OpSet b) {
  return static_cast<OpSet>(static_cast<uint16_t>(a) | static_cast<uint16_t>(b));
}
constexpr bool has_op_set(OpSet set, OpSet bit) {
  return (static_cast<uint16_t>(set) & static_cast<uint16_t>(bit)) != 0;
}

// The place of an operator in the built-in table: dense, the same in every run of one build.
using OpId = Id<struct OpTag>;

// Everything that passes may ask about an operator. They use its name (Module::find_target) only
// for a fact about that operator alone, such as neg(neg(x)) = x.
struct Op {
  OpId id;                       // invalid: not in the built-in table
  std::string name;              // "aten.mm.default"
  std::optional<Schema> schema;  // none for higher-order ops and Python functions
  Effect effects = Effect::kNone;
  ViewKind view = ViewKind::kNone;
  ComputeClass compute = ComputeClass::kOther;
  OpSet sets = OpSet::kNone;
  // Positions of written arguments: from the schema's annotations, plus those that the schema
  // hides.
  std::vector<uint8_t> writes;
  // True if a position of `writes` is missing from the schema (batch norm's running statistics).
  // These schema errors are counted.
  bool hides_writes = false;
  // True if the output aliases argument 0 although the schema declares no alias (_unsafe_view).
  bool hides_alias = false;
  bool is_multi_output = false;  // yields a tuple or a list
  // Changes sizes, strides or offset of argument 0 in place (`t_`, `resize_`). For an out variant,
  // which resizes an `out` of other sizes, the call decides: see changes_metadata() in
  // ir/alias/effects.h.
  bool changes_metadata = false;
  // Moves argument 0 to another storage: that of argument 1 if it is a tensor (`set_`).
  bool moves_storage = false;
  // A view that returns argument 0 itself if nothing is to be done (`conj` of real numbers).
  bool may_return_argument = false;
  // All outputs share one new storage (`where` of a condition alone).
  bool joins_outputs = false;
  // A view whose place depends on an argument's data (`narrow` from a start in a tensor).
  bool reads_index = false;
  // Writes every element of argument 0, which is not a list, and reads none (`copy_`, `fill_`).
  bool overwrites = false;
  // Writes into a copy of argument 0 with the same strides and offset. The copy's storage is as
  // large as argument 0's, even if argument 0 is a view of a small part.
  bool clones_storage = false;
  bool has_subgraphs = false;  // runs graphs it is given: its effects are those of the subgraphs
  // For each return of the schema, the position of the argument whose storage it shares or may
  // share, or -1: from the annotations and the facts that the schema hides. Empty without a schema.
  std::vector<int16_t> aliases;
  // Positions of the arguments that decide the effects of one call, or -1. Keyword-only arguments
  // count.
  int16_t dropout_arg = -1;   // kRandom holds unless this probability is known to be 0
  int16_t training_arg = -1;  // `writes` happen unless this boolean is known to be false
  int16_t mask_arg = -1;      // a list of index tensors: a boolean one makes the host wait
  // The position of an argument that some calls return, whole, as an element or as a view
  // (`einsum` of one operand), or -1.
  int16_t shared_arg = -1;
  bool shares_only_empty = false;  // only calls in which that argument has no elements
  HandsOn hands_on = HandsOn::kNothing;
  // The kernel chooses the layout of its results, and not always as fake tensors record it: their
  // strides are not facts.
  bool chooses_layout = false;
  Holds holds = Holds::kItself;
  // The position of the operator that it runs, given as an argument (higher-order ops). That
  // operator's effects are added, except kRandom, which this op decides: run_with_rng_state draws
  // from a state it is given.
  int16_t operator_arg = -1;
  // That operator writes copies, which are returned (auto_functionalized).
  bool functionalizes = false;

  bool has(Effect bit) const { return has_effect(effects, bit); }
  bool in(OpSet bit) const { return has_op_set(sets, bit); }
  bool is_pure() const { return fxopt::is_pure(effects); }
  bool is_opaque() const { return has(Effect::kOpaque); }
  bool is_builtin() const { return id.is_valid(); }
};

// The built-in description of `name`, or nullptr. The table covers aten, prims, _c10d_functional,
// the higher-order ops and the Python scalar functions of traces. O(1) expected. A row is parsed on
// first use.
const Op* find_builtin_op(std::string_view name);

// The size of a table by OpId: ids of built-in ops are 0 to num_builtin_ops() - 1. O(1).
size_t num_builtin_ops();

// The id of the built-in op `name`, or invalid. Parses no row. O(1) expected.
OpId find_op_id(std::string_view name);

// The built-in op of a valid id. O(1).
const Op& builtin_op(OpId id);

// All built-in ops, sorted by name.
const std::vector<const Op*>& builtin_ops();

// An op without a description: opaque.
const Op& opaque_op();

// An op described by a schema from a file: effects and aliases from the annotations; `tags` are the
// framework's operator tags. Pure only if `pure` is true, else opaque beyond the writes of its
// schema. An op whose calls the framework keeps in order (`effectful`) is opaque and a barrier
// whatever `pure` is. O(arguments * returns).
Op describe_op(std::string_view name, const Schema& schema, const std::vector<std::string_view>& tags,
               std::optional<bool> pure, std::optional<bool> effectful);

// The names of effects and compute classes, for reports.
std::string_view compute_class_name(ComputeClass value);
std::vector<std::string_view> effect_names(Effect set);

}  // namespace fxopt
