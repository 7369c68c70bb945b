/* A training step as flat arrays. A plan has everything that a device needs to run the step, and
 * does not depend on any device.
 *
 * This header is plain C and includes only stdint.h, so a plan can be passed to a plugin built by
 * another compiler. Indices, and counts of entries of one graph, have 32 bits. Sizes, values and
 * the lengths of arrays (FX_SPAN) have 64 bits. The index FX_NONE refers to nothing. The maker of a
 * plan owns all memory that the plan points to. The plan does not change while it is in use.
 */
#ifndef FXOPT_RUNTIME_ABI_PLAN_H
#define FXOPT_RUNTIME_ABI_PLAN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FX_PLAN_VERSION 1u
#define FX_NONE UINT32_MAX

/* One argument, result or size in 64 bits: a number, or a reference to an array of FxPlan. The low
 * 8 bits are the kind, and the upper 56 bits are the payload. Doubles and numbers that do not fit
 * in 56 bits are stored in FxPlan::numbers. An "index into strings" is an index into
 * FxPlan::strings. Indices into other arrays are named in the same way. */
typedef uint64_t FxWord;
typedef enum FxWordKind {
  FX_WORD_NONE = 0,
  FX_WORD_INT = 1,    /* a signed number of 56 bits */
  FX_WORD_NUMBER = 2, /* a signed 64-bit number, as an index into numbers */
  FX_WORD_DOUBLE = 3, /* the bits of a double, as an index into numbers */
  FX_WORD_BOOL = 4,
  FX_WORD_SCALAR = 5, /* index into scalars */
  FX_WORD_TENSOR = 6, /* index into tensors */
  /* A list, as an index into words. The word at the index is a count (INT). The elements follow.
   * Tuples and slices are lists. A dict is a list in which keys and values alternate. */
  FX_WORD_LIST = 7,
  FX_WORD_STRING = 8,  /* index into strings */
  FX_WORD_DTYPE = 9,   /* FxDType */
  FX_WORD_DEVICE = 10, /* index into strings, such as "cuda:0" */
  FX_WORD_LAYOUT = 11,
  FX_WORD_FORMAT = 12, /* memory format */
  FX_WORD_GRAPH = 13,  /* index into graphs */
  FX_WORD_GROUP = 14,  /* index into groups */
  FX_WORD_COMPLEX = 15 /* the bits of two doubles, as an index into numbers */
} FxWordKind;

/* An element type, numbered like DType in schemas/fxgraph.proto. */
typedef uint8_t FxDType;

/* The source of a storage's bytes. */
typedef enum FxSource {
  FX_SOURCE_PLANNED = 0,  /* made by a step of the plan; the size is known before the first step */
  FX_SOURCE_LATE = 1,     /* made by a step of the plan; the size becomes known while steps run */
  FX_SOURCE_INPUT = 2,    /* the caller provides the storage as an input */
  FX_SOURCE_CONSTANT = 3, /* the graph file contains the bytes */
  FX_SOURCE_OUTER = 4     /* in a called graph: the storage belongs to the calling graph */
} FxSource;

typedef enum FxStorageFlags {
  FX_STORAGE_WRITTEN = 1,  /* a step writes to the existing storage in place */
  FX_STORAGE_RETURNED = 2, /* an output uses the storage, so it is kept after the last step */
  FX_STORAGE_FOLLOWS = 4   /* no size is recorded, because only the call determines the size */
} FxStorageFlags;

/* Memory of one or more tensors. The memory is allocated before step `first` runs, and is free
 * after step `last` has run. Storages with the same alias_class may share memory. These storages
 * are results of a call whose aliasing is unknown. */
typedef struct FxStorage {
  FxWord bytes;         /* INT, NUMBER or SCALAR, or NONE if FX_STORAGE_FOLLOWS is set */
  uint32_t first, last; /* first and last step of the lifetime, or FX_NONE if never allocated */
  uint32_t alias_class; /* smallest storage index in the class, which may be this storage's index */
  uint32_t device;      /* index into strings, or FX_NONE if not recorded */
  uint32_t node;        /* the node that makes the storage, as an index into nodes */
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
  /* Sizes, strides and dtype are not recorded, because only the call determines them. */
  FX_TENSOR_UNKNOWN = 4,
  /* Strides are recorded, although the operator may choose other strides. Plans keep the recorded
   * strides. */
  FX_TENSOR_CHOSEN = 8
} FxTensorFlags;

/* A tensor in a storage. Sizes, strides and offset are in elements. A view of a storage is a
 * tensor, not a step. */
typedef struct FxTensor {
  uint32_t storage; /* FX_NONE if the tensor has no memory, as in a layout without strides */
  uint32_t dims;    /* index into words: the first of `rank` sizes, which `rank` strides follow */
  FxWord offset;
  uint32_t node; /* the node whose value this tensor is */
  FxDType dtype;
  uint8_t rank;
  uint8_t flags; /* FxTensorFlags */
  uint8_t reserved;
} FxTensor;

/* The kind of a step. A step is one call of an operator that does work. An exchange is a collective
 * or a message from its start to its wait. */
typedef enum FxStepKind {
  FX_STEP_KERNEL = 0,     /* computes results from arguments */
  FX_STEP_COLLECTIVE = 1, /* starts a collective, whose buffers are in use until the wait */
  FX_STEP_WAIT = 2,       /* ends the exchange that step `other` started */
  FX_STEP_MESSAGE = 3,    /* starts a send or a receive */
  FX_STEP_CALL = 4,       /* calls an operator that runs the graphs passed to it */
  FX_STEP_SCALAR = 5,     /* computes on the host a number that FxCode cannot express */
  FX_STEP_ASSERT = 6,     /* fails the run if its argument is false */
  FX_STEP_STREAM = 7      /* records events, awaits events or changes streams, without other work */
} FxStepKind;

typedef enum FxStepFlags {
  FX_STEP_WRITES = 1,     /* writes in place to the storages in `writes` */
  FX_STEP_DRAWS = 2,      /* draws random numbers, as described by `draw` */
  FX_STEP_OPAQUE = 4,     /* fxopt has no description of the operator */
  FX_STEP_HOST_WAITS = 8, /* the host waits for the step's result */
  FX_STEP_TRANSFERS = 16  /* the step's storages are on two or more devices */
} FxStepFlags;

/* One call of an operator. Positional arguments are words in the order of the operator's schema.
 * Keyword arguments are pairs of a STRING and a value in `keywords`. */
typedef struct FxStep {
  uint32_t op;                     /* index into ops */
  uint32_t node;                   /* index into nodes */
  uint32_t args, num_args;         /* index of the first word, and number of words */
  uint32_t keywords, num_keywords; /* index of the first word, and number of pairs */
  /* Index of the first word, and number of results. Nested results are listed in depth-first order.
   * A result is TENSOR, SCALAR, a recorded number, or NONE. */
  uint32_t results, num_results;
  /* range of indices: storages that the step writes but does not make */
  uint32_t writes, num_writes;
  uint32_t frees, num_frees; /* range of indices: storages freed after the step */
  /* range of indices: earlier steps that must end before the step starts */
  uint32_t after, num_after;
  uint32_t draw;  /* index into draws */
  uint32_t group; /* index into groups */
  /* for COLLECTIVE, its position among the collectives of its group, from 0 */
  uint32_t sequence;
  uint32_t other;  /* for WAIT, the step that started the exchange, or FX_NONE */
  uint32_t stream; /* the recorded stream, as an index into strings */
  uint8_t kind;    /* FxStepKind */
  uint8_t flags;   /* FxStepFlags */
  uint16_t reserved;
} FxStep;

typedef enum FxScalarSource {
  FX_SCALAR_DIM = 0,   /* size, stride or offset of an input tensor */
  FX_SCALAR_INPUT = 1, /* an input that is a number */
  FX_SCALAR_CODE = 2,  /* computed from other scalars */
  FX_SCALAR_STEP = 3,  /* a result of a step, or a size known only after the step */
  /* in a called graph: the calling graph's scalar of the same name */
  FX_SCALAR_OUTER = 4,
  FX_SCALAR_RANK = 5 /* the rank or its mesh coordinate; `hint` is the value for the traced rank */
} FxScalarSource;

typedef enum FxScalarType { FX_SCALAR_INT = 0, FX_SCALAR_FLOAT = 1, FX_SCALAR_BOOL = 2 } FxScalarType;

/* A number that is unknown when the plan is made. Each scalar is listed after the scalars that its
 * code uses. */
typedef struct FxScalar {
  uint32_t code, num_code; /* for CODE, a range of FxPlan::code */
  /* For DIM, the input tensor, and a position among its sizes, strides and offset. The first `rank`
   * positions are sizes, the next `rank` positions are strides, and the last one is the offset. */
  uint32_t tensor, dim;
  uint32_t ready;         /* the value is known after this number of steps, which may be 0 */
  uint32_t name;          /* the symbol's name, as an index into strings, or FX_NONE */
  int64_t min, max, hint; /* range and hint of a symbol; a missing hint is INT64_MIN */
  uint8_t source;         /* FxScalarSource */
  uint8_t type;           /* FxScalarType */
  uint16_t reserved;
  uint32_t reserved2;
} FxScalar;

/* Scalar code is in postfix order. PUSH pushes a number onto a stack. An operator takes its
 * operands from the stack, with the last operand on top. Integers behave as in Python, but have 64
 * bits, and overflow is an error. Division rounds down. The modulo has the sign of the divisor. */
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
  FX_CODE_WHERE, /* operands: condition, value if true, value if false */
  FX_CODE_CEILDIV,
  FX_CODE_INDEXING,  /* operands: a, b, c; the result is floor(a / b) % c (ModularIndexing) */
  FX_CODE_POW2FLOOR, /* the largest power of 2 that is at most the operand */
  FX_NUM_CODE_OPS
} FxCodeOp;

typedef struct FxCode {
  FxWord push; /* for PUSH, a word of kind INT, NUMBER, DOUBLE, BOOL or SCALAR */
  uint32_t op; /* FxCodeOp */
  uint32_t reserved;
} FxCode;

typedef struct FxInput {
  uint32_t name; /* index into strings */
  uint32_t node;
  FxWord value;  /* TENSOR or SCALAR, or NONE if the input is neither */
  uint32_t role; /* InputRole of the graph file */
  /* The step of the plan before which the input must exist. The number is above 0 if the caller
   * passes the input to a later graph of the training step. */
  uint32_t first;
  /* name of a parameter or buffer in the model, as an index into strings, or FX_NONE */
  uint32_t fqn;
  uint32_t reserved;
} FxInput;

typedef struct FxOutput {
  uint32_t name;     /* index into strings, or FX_NONE if not recorded */
  uint32_t role;     /* OutputRole of the graph file */
  FxWord value;      /* a word of any kind */
  uint32_t is_input; /* index into inputs if the output is an input, else FX_NONE */
  uint32_t reserved;
} FxOutput;

/* Identifies the random numbers that one call draws. The numbers do not depend on other calls. If
 * the file records a seed, the seed and the offset select the numbers. Otherwise `uid` and
 * `invocation` select the numbers. */
typedef struct FxDraw {
  uint64_t uid; /* uid of the call's node; a recomputed copy has the original node's uid */
  /* The microbatch for which the node's graph runs. If no microbatch is recorded, the number of
   * earlier runs of graphs of this kind. 0 in a graph that a step calls. */
  uint32_t invocation;
  uint32_t slot;         /* the recorded RngSlot, as an index into strings, or FX_NONE */
  uint64_t seed, offset; /* the recorded values, or UINT64_MAX if not recorded */
} FxDraw;

typedef struct FxGroup {
  uint32_t name; /* index into strings, or FX_NONE if `choice` selects the group */
  /* range of indices: ranks of the group, empty if the file does not list ranks */
  uint32_t ranks, num_ranks;
  FxWord choice; /* if the group depends on the rank, a SCALAR with the group's index, else NONE */
} FxGroup;

typedef struct FxNode {
  uint64_t uid;
  uint32_t name; /* index into strings, like `module` and `file` */
  uint32_t module;
  uint32_t file;
  int32_t line; /* 0 if not recorded */
} FxNode;

typedef struct FxOp {
  uint32_t name; /* index into strings, such as "aten.mm.default" */
  uint32_t row;  /* index into op_rows(), or FX_NONE if not looked up */
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
  uint32_t size;    /* size of this struct in bytes */
  uint64_t hash;    /* hash of the source graph */
  uint32_t name;    /* the name of the graph, as an index into strings */
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

/* The memory of a block. An FxPlacement has one block for each storage, and one block for the
 * workspace of each step. */
typedef enum FxBlockKind {
  FX_BLOCK_ARENA = 0, /* at an offset in the arena */
  FX_BLOCK_LATE = 1,  /* allocated when its size becomes known */
  FX_BLOCK_GIVEN = 2, /* in memory that the caller provides */
  FX_BLOCK_NONE = 3   /* on another device, or without bytes */
} FxBlockKind;

typedef struct FxBlock {
  int64_t offset; /* for ARENA, the offset in bytes */
  int64_t bytes;  /* for ARENA, the number of reserved bytes */
  uint32_t kind;  /* FxBlockKind */
  uint32_t reserved;
} FxBlock;

/* Step `recorded_by` records an event after its work. Step `awaited_by` of another stream waits for
 * this event. */
typedef struct FxEvent {
  uint32_t recorded_by; /* index of a step */
  uint32_t awaited_by;  /* index of a step of another stream */
} FxEvent;

/* Puts the storages of a plan on one device, and orders the work of the device. */
typedef struct FxPlacement {
  uint32_t version;
  uint32_t size;
  /* index into the plan's strings, or FX_NONE for storages without a recorded device */
  uint32_t device;
  uint32_t stream_count;
  int64_t arena_bytes;
  int64_t lower_bound;          /* largest number of bytes live at once, which every arena needs */
  FX_SPAN(FxBlock, blocks);     /* one for each storage */
  FX_SPAN(uint16_t, streams);   /* one for each step */
  FX_SPAN(FxEvent, events);     /* sorted by awaited_by */
  FX_SPAN(FxBlock, workspaces); /* one for each step, of kind ARENA or NONE */
  FX_SPAN(uint16_t, kernels);   /* one for each step: number of the chosen kernel, or 0 */
} FxPlacement;

#ifdef __cplusplus
}
#endif
#endif
