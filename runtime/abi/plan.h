/* A training step as flat arrays: everything a device needs to run it, independent of any device.
 *
 * C, with stdint.h only, so that a plan can be passed to a plugin built by another compiler. All
 * numbers have 64 bits unless they count things of one graph. The index FX_NONE refers to nothing.
 * The maker of a plan owns everything that it points to; the plan does not change while it is in
 * use.
 */
#ifndef FXOPT_RUNTIME_ABI_PLAN_H
#define FXOPT_RUNTIME_ABI_PLAN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FX_PLAN_VERSION 1u
#define FX_NONE UINT32_MAX

/* A value that is a number or a reference: the kind in the low 8 bits, the rest above. A number
 * that does not fit in 56 bits, and every double, is stored in FxPlan::numbers. */
typedef uint64_t FxWord;
typedef enum FxWordKind {
  FX_WORD_NONE = 0,
  FX_WORD_INT = 1,    /* signed, 56 bits */
  FX_WORD_NUMBER = 2, /* a signed 64-bit number: index into numbers */
  FX_WORD_DOUBLE = 3, /* bits of a double: index into numbers */
  FX_WORD_BOOL = 4,
  FX_WORD_SCALAR = 5, /* index into scalars */
  FX_WORD_TENSOR = 6, /* index into tensors */
  /* index into words: a count (INT), then its words; tuples, slices, dicts (key, value, ...) */
  FX_WORD_LIST = 7,
  FX_WORD_STRING = 8,  /* index into strings */
  FX_WORD_DTYPE = 9,   /* FxDType */
  FX_WORD_DEVICE = 10, /* index into strings: "cuda:0" */
  FX_WORD_LAYOUT = 11,
  FX_WORD_FORMAT = 12, /* memory format */
  FX_WORD_GRAPH = 13,  /* index into graphs */
  FX_WORD_GROUP = 14,  /* index into groups */
  FX_WORD_COMPLEX = 15 /* index into numbers: bits of two doubles */
} FxWordKind;

/* Element types have the numbers of the graph file (schemas/fxgraph.proto, DType). */
typedef uint8_t FxDType;

/* The source of a storage's bytes. */
typedef enum FxSource {
  FX_SOURCE_PLANNED = 0,  /* made by a step; its size is known before the first step */
  FX_SOURCE_LATE = 1,     /* made by a step; its size becomes known while steps run */
  FX_SOURCE_INPUT = 2,    /* the caller's */
  FX_SOURCE_CONSTANT = 3, /* stored in the graph file */
  FX_SOURCE_OUTER = 4     /* an operand of a graph that another graph calls: the caller's storage */
} FxSource;

typedef enum FxStorageFlags {
  FX_STORAGE_WRITTEN = 1,  /* a step writes it after it was made, or it came from outside */
  FX_STORAGE_RETURNED = 2, /* an output uses it: it outlives the last step */
  FX_STORAGE_FOLLOWS = 4   /* its size is set by the call: no size is recorded */
} FxStorageFlags;

/* Memory of tensors. It is allocated before step `first` runs and free once step `last` has run.
 * Storages with one alias_class may be one memory: results of a call of unknown aliasing. */
typedef struct FxStorage {
  FxWord bytes;         /* INT, NUMBER or SCALAR; NONE with FX_STORAGE_FOLLOWS */
  uint32_t first, last; /* steps, both included; FX_NONE in `first`: never allocated */
  uint32_t alias_class; /* the smallest index of its class: its own if it has no aliases */
  uint32_t device;      /* index into strings; FX_NONE: not recorded */
  uint32_t node;        /* the node that makes it: index into nodes */
  uint8_t source;       /* FxSource */
  uint8_t role;         /* FxRole, for memory reports */
  uint8_t flags;        /* FxStorageFlags */
  uint8_t reserved;
} FxStorage;

/* The purpose of a storage. */
typedef enum FxRole {
  FX_ROLE_PARAMETER,
  FX_ROLE_BUFFER,
  FX_ROLE_INPUT,
  FX_ROLE_CONSTANT,
  FX_ROLE_OPTIMIZER_STATE,
  FX_ROLE_GRADIENT,
  FX_ROLE_SAVED,
  FX_ROLE_RECOMPUTED,
  FX_ROLE_COMMUNICATION,
  FX_ROLE_TEMPORARY,
  FX_ROLE_WORKSPACE
} FxRole;

typedef enum FxTensorFlags {
  FX_TENSOR_CONJUGATE = 1,
  FX_TENSOR_NEGATIVE = 2,
  FX_TENSOR_UNKNOWN = 4, /* no record: the call determines sizes, strides and dtype */
  /* strides are recorded, but the operator may choose others: plans keep the record */
  FX_TENSOR_CHOSEN = 8
} FxTensorFlags;

/* Sizes, strides and offset in elements. Views of one storage are tensors, not steps. */
typedef struct FxTensor {
  uint32_t storage; /* FX_NONE: no memory (a layout without strides) */
  uint32_t dims;    /* index into words: `rank` sizes, then `rank` strides */
  FxWord offset;
  uint32_t node; /* the node whose value it is */
  FxDType dtype;
  uint8_t rank;
  uint8_t flags; /* FxTensorFlags */
  uint8_t reserved;
} FxTensor;

typedef enum FxStepKind {
  FX_STEP_KERNEL = 0,     /* computes results from arguments */
  FX_STEP_COLLECTIVE = 1, /* starts an exchange of the group; its buffers are busy until the wait */
  FX_STEP_WAIT = 2,       /* ends the exchange that step `other` started */
  FX_STEP_MESSAGE = 3,    /* starts to send or to receive */
  FX_STEP_CALL = 4,       /* an operator that runs graphs passed to it */
  FX_STEP_SCALAR = 5,     /* computes on the host a value that scalar code cannot express */
  FX_STEP_ASSERT = 6,     /* fails the run if its argument is false */
  FX_STEP_STREAM = 7      /* records or awaits events, changes streams: no work */
} FxStepKind;

typedef enum FxStepFlags {
  FX_STEP_WRITES = 1,     /* in place: `writes` lists the storages */
  FX_STEP_DRAWS = 2,      /* random numbers: `draw` */
  FX_STEP_OPAQUE = 4,     /* the operator has no description */
  FX_STEP_HOST_WAITS = 8, /* its result is read on the host */
  FX_STEP_TRANSFERS = 16  /* its storages are on two or more devices */
} FxStepFlags;

/* One call. Argument words are in schema order, as in the call. Keyword arguments are in
 * `keywords`, as pairs of STRING and value. */
typedef struct FxStep {
  uint32_t op;                     /* index into ops */
  uint32_t node;                   /* index into nodes */
  uint32_t args, num_args;         /* words */
  uint32_t keywords, num_keywords; /* words; num_keywords counts pairs */
  /* words, depth first: TENSOR, SCALAR, a recorded number, or NONE */
  uint32_t results, num_results;
  uint32_t writes, num_writes; /* indices: storages it writes and did not make */
  uint32_t frees, num_frees;   /* indices: storages that end after it */
  uint32_t after, num_after;   /* indices: further steps it must follow, on any stream */
  uint32_t draw;               /* index into draws */
  uint32_t group;              /* index into groups */
  uint32_t sequence;           /* of a COLLECTIVE: its position among those of its group, from 0 */
  uint32_t other;              /* of a wait: the step that started the exchange; FX_NONE: none */
  uint32_t stream;             /* as recorded: index into strings */
  uint8_t kind;                /* FxStepKind */
  uint8_t flags;               /* FxStepFlags */
  uint16_t reserved;
} FxStep;

typedef enum FxScalarSource {
  FX_SCALAR_DIM = 0,   /* of an input's tensor: size, stride or offset */
  FX_SCALAR_INPUT = 1, /* given as an input */
  FX_SCALAR_CODE = 2,  /* computed from other scalars */
  FX_SCALAR_STEP = 3,  /* a result of a step, or a size known only after the step */
  FX_SCALAR_OUTER = 4, /* of a graph that another graph calls: the caller's scalar of this name */
  FX_SCALAR_RANK = 5   /* the rank, or a coordinate of it; hint: that of the traced rank */
} FxScalarSource;

typedef enum FxScalarType { FX_SCALAR_INT = 0, FX_SCALAR_FLOAT = 1, FX_SCALAR_BOOL = 2 } FxScalarType;

/* A number unknown when the plan is made. Scalars are in an order in which they can be computed. */
typedef struct FxScalar {
  uint32_t code, num_code; /* CODE: indices into code */
  /* DIM: the input's tensor, and 0 to rank - 1: size, rank to 2 rank - 1: stride, then: offset */
  uint32_t tensor, dim;
  uint32_t ready;         /* the number of steps after which it is known; 0: before the first */
  uint32_t name;          /* the symbol's name, index into strings; FX_NONE: none */
  int64_t min, max, hint; /* of a symbol; hint: INT64_MIN if it has none */
  uint8_t source;         /* FxScalarSource */
  uint8_t type;           /* FxScalarType */
  uint16_t reserved;
  uint32_t reserved2;
} FxScalar;

/* Scalar code is postfix: a word pushes a number, an operator takes its operands from the stack,
 * the last on top. Integers behave as in Python but have 64 bits: overflow is an error, division
 * rounds down, the modulo has the sign of the divisor. */
typedef enum FxCodeOp {
  FX_CODE_PUSH,
  FX_CODE_ADD,
  FX_CODE_SUB,
  FX_CODE_MUL,
  FX_CODE_FLOORDIV,
  FX_CODE_MOD,
  FX_CODE_TRUEDIV,
  FX_CODE_POW,
  FX_CODE_NEG,
  FX_CODE_ABS,
  FX_CODE_MIN,
  FX_CODE_MAX,
  FX_CODE_EQ,
  FX_CODE_NE,
  FX_CODE_LE,
  FX_CODE_GE,
  FX_CODE_LT,
  FX_CODE_GT,
  FX_CODE_AND,
  FX_CODE_OR,
  FX_CODE_NOT,
  FX_CODE_WHERE, /* condition, then, else */
  FX_CODE_CEILDIV,
  FX_CODE_INDEXING,  /* ModularIndexing: (a // b) % c */
  FX_CODE_POW2FLOOR, /* the largest power of 2 that is at most the operand */
  FX_NUM_CODE_OPS
} FxCodeOp;

typedef struct FxCode {
  FxWord push; /* PUSH: INT, NUMBER, DOUBLE, BOOL or SCALAR */
  uint32_t op; /* FxCodeOp */
  uint32_t reserved;
} FxCode;

typedef struct FxInput {
  uint32_t name; /* index into strings */
  uint32_t node;
  FxWord value;  /* TENSOR, SCALAR or NONE: neither */
  uint32_t role; /* InputRole of the graph file */
  /* the step before which it must exist: 0, or later for inputs that arrive between runs */
  uint32_t first;
  uint32_t fqn; /* the model's name of a parameter or buffer, index into strings; FX_NONE: none */
  uint32_t reserved;
} FxInput;

typedef struct FxOutput {
  uint32_t name;     /* index into strings; FX_NONE: not recorded */
  uint32_t role;     /* OutputRole of the graph file */
  FxWord value;      /* any kind */
  uint32_t is_input; /* index into inputs if the output is that input itself; else FX_NONE */
  uint32_t reserved;
} FxOutput;

/* The numbers of a random call: element i of the draw has the numbers (slot, i), whatever else
 * runs. The slot is the recorded one, else the place where the draw was first recorded. */
typedef struct FxDraw {
  uint64_t uid; /* uid of the node when it was first recorded */
  /* run of its graph; 0 in a graph that steps call, whose caller adds its own draw */
  uint32_t invocation;
  uint32_t slot;         /* recorded: index into strings; else FX_NONE */
  uint64_t seed, offset; /* recorded; UINT64_MAX: not */
} FxDraw;

typedef struct FxGroup {
  uint32_t name;             /* index into strings; FX_NONE if `choice` selects the group */
  uint32_t ranks, num_ranks; /* indices; none if the file does not list them */
  FxWord choice;             /* SCALAR: index of the group, if it depends on the rank; else NONE */
} FxGroup;

typedef struct FxNode {
  uint64_t uid;
  uint32_t name; /* indices into strings */
  uint32_t module;
  uint32_t file;
  int32_t line; /* 0: not recorded */
} FxNode;

typedef struct FxOp {
  uint32_t name; /* index into strings: "aten.mm.default" */
  uint32_t row;  /* row of the operator table; FX_NONE: none */
} FxOp;

typedef struct FxString {
  const char* data;
  uint64_t size;
} FxString;

#define FX_SPAN(Type, Name) \
  const Type* Name;         \
  uint64_t num_##Name

typedef struct FxPlan {
  uint32_t version; /* FX_PLAN_VERSION */
  uint32_t size;    /* of this struct, in bytes */
  uint64_t hash;    /* hash of the source graph */
  uint32_t name;    /* name of the graph: index into strings */
  uint32_t reserved;
  FX_SPAN(FxStep, steps);
  FX_SPAN(FxStorage, storages);
  FX_SPAN(FxTensor, tensors);
  FX_SPAN(FxWord, words);
  FX_SPAN(uint32_t, indices);
  FX_SPAN(int64_t, numbers);
  FX_SPAN(FxScalar, scalars);
  FX_SPAN(FxCode, code);
  FX_SPAN(FxInput, inputs);
  FX_SPAN(FxOutput, outputs);
  FX_SPAN(FxDraw, draws);
  FX_SPAN(FxGroup, groups);
  FX_SPAN(FxOp, ops);
  FX_SPAN(FxNode, nodes);
  FX_SPAN(FxString, strings);
  const struct FxPlan* const* graphs; /* graphs that steps call */
  uint64_t num_graphs;
} FxPlan;

/* The placement of a plan's storages on one device, and the device's order of work. */
typedef enum FxBlockKind {
  FX_BLOCK_ARENA = 0, /* at an offset of the arena */
  FX_BLOCK_LATE = 1,  /* allocated once its size is known */
  FX_BLOCK_GIVEN = 2, /* the caller's memory */
  FX_BLOCK_NONE = 3   /* another device's, or no bytes */
} FxBlockKind;

typedef struct FxBlock {
  int64_t offset; /* ARENA: bytes */
  int64_t bytes;  /* ARENA: reserved bytes */
  uint32_t kind;  /* FxBlockKind */
  uint32_t reserved;
} FxBlock;

/* Step `awaited_by` waits for the event that step `recorded_by` of another stream records after
 * itself. */
typedef struct FxEvent {
  uint32_t recorded_by; /* step */
  uint32_t awaited_by;  /* step, of another stream */
} FxEvent;

typedef struct FxPlacement {
  uint32_t version;
  uint32_t size;
  uint32_t device; /* index into the plan's strings; FX_NONE: the one of tensors without a device */
  uint32_t stream_count;
  int64_t arena_bytes;
  int64_t lower_bound;          /* the most bytes live at once: no arena is smaller */
  FX_SPAN(FxBlock, blocks);     /* one for each storage */
  FX_SPAN(uint16_t, streams);   /* one for each step */
  FX_SPAN(FxEvent, events);     /* by awaited_by */
  FX_SPAN(FxBlock, workspaces); /* one for each step: ARENA or NONE */
  FX_SPAN(uint16_t, kernels);   /* one for each step: the provider's choice; 0: none */
} FxPlacement;

#ifdef __cplusplus
}
#endif
#endif
