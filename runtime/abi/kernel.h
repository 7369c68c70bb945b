/* One call of an operator's body, in numbers: what a kernel of any device is given.
 *
 * C, and nothing but stdint.h: the tables of kernels are compiled for several instruction sets and by several compilers, and a
 * plugin hands its own over. All that a call points to is memory that the kernel's device can read; nobody keeps it.
 */
#ifndef FXOPT_RUNTIME_ABI_KERNEL_H
#define FXOPT_RUNTIME_ABI_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FX_KERNEL_VERSION 1u
#define FX_MAX_RANK 8 /* of a view, after dimensions that lie together are joined */

typedef enum FxNumberKind { FX_NUMBER_INT = 0, FX_NUMBER_REAL = 1, FX_NUMBER_BOOL = 2 } FxNumberKind;

typedef struct FxNumber {
  double real;
  int64_t integer; /* of INT and BOOL */
  uint32_t kind;   /* FxNumberKind */
  uint32_t reserved;
} FxNumber;

/* Elements in memory, or one number that stands for all of them. Sizes and strides in elements, outermost first. */
typedef struct FxView {
  void* data; /* of the first element; null: `number`, or no elements */
  int64_t size[FX_MAX_RANK];
  int64_t stride[FX_MAX_RANK];
  FxNumber number;
  uint8_t dtype; /* FxDType */
  uint8_t rank;
  uint8_t is_number;
  uint8_t reserved[5];
} FxView;

/* What bodies compute in. */
typedef enum FxCompute { FX_COMPUTE_FLOAT = 0, FX_COMPUTE_DOUBLE = 1, FX_COMPUTE_INT64 = 2 } FxCompute;

typedef enum FxErrorCode {
  FX_ERROR_NONE = 0,
  FX_ERROR_INDEX = 1,   /* an index beyond its dimension: the element is that of the operand with the indices */
  FX_ERROR_DIVISION = 2 /* by zero, of integers: an element of the result */
} FxErrorCode;

/* An error of a call is one word, which may be read later: FX_NO_ERROR, or the element times 256 plus the code, so that the smallest
 * element wins, whatever ran first. */
#define FX_NO_ERROR INT64_MAX

/* The numbers of a draw: element i has those of counter (i / 4, slot) under `seed`, word i % 4. */
typedef struct FxDrawState {
  uint64_t seed, slot;
} FxDrawState;

typedef struct FxCall {
  const FxView* views; /* results, then operands: a table, which may be long (`cat`) */
  uint32_t num_results, num_operands;
  const FxNumber* params; /* what the body says */
  uint32_t num_params;
  uint32_t compute; /* FxCompute */
  void* workspace;
  FxDrawState draw;
  int64_t* error;
} FxCall;

/* A body. Its work is cut into units, whose number depends on sizes alone; a unit computes the same bits whoever runs it, so that
 * threads and grids may split units as they like. Phase p + 1 begins when all units of phase p have ended. */
typedef struct FxKernel {
  const char* name; /* KernelRow::body */
  uint32_t phases;
  uint32_t computes; /* bits by FxCompute: 1 << FX_COMPUTE_FLOAT, ... A call of another type has no kernel */
  int64_t (*units)(const FxCall* call, uint32_t phase);
  int64_t (*workspace)(const FxCall* call); /* bytes; pointers of the call are not read. Null: none */
  void (*run)(const FxCall* call, uint32_t phase, int64_t first, int64_t end);
  uint32_t (*lanes)(const FxCall* call, uint32_t phase); /* that share a unit, on a device with lanes; null: one */
} FxKernel;

typedef struct FxKernelTable {
  uint32_t version; /* FX_KERNEL_VERSION */
  uint32_t num_kernels;
  const char* isa;
  const FxKernel* kernels; /* by name */
} FxKernelTable;

#ifdef __cplusplus
}
#endif
#endif
