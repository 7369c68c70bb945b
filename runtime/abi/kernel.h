/* One call of an operator's body in numbers: the argument of a kernel on any device.
 *
 * C, with stdint.h only: kernel tables are compiled for several instruction sets and by several
 * compilers, and a plugin passes its own. All pointers of a call refer to memory that the kernel's
 * device can read. No pointer is kept after the call.
 */
#ifndef FXOPT_RUNTIME_ABI_KERNEL_H
#define FXOPT_RUNTIME_ABI_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FX_KERNEL_VERSION 1u
#define FX_MAX_RANK 8 /* rank of a view, after contiguous dimensions are joined */

typedef enum FxNumberKind { FX_NUMBER_INT = 0, FX_NUMBER_REAL = 1, FX_NUMBER_BOOL = 2 } FxNumberKind;

typedef struct FxNumber {
  double real;
  int64_t integer; /* of INT and BOOL */
  uint32_t kind;   /* FxNumberKind */
  uint32_t reserved;
} FxNumber;

/* Elements in memory, or one number that represents every element. Sizes and strides in elements,
 * outermost first. */
typedef struct FxView {
  void* data; /* the first element; null: `number`, or no elements */
  int64_t size[FX_MAX_RANK];
  int64_t stride[FX_MAX_RANK];
  FxNumber number;
  uint8_t dtype; /* FxDType */
  uint8_t rank;
  uint8_t is_number;
  uint8_t reserved[5];
} FxView;

/* The type in which a body computes. */
typedef enum FxCompute { FX_COMPUTE_FLOAT = 0, FX_COMPUTE_DOUBLE = 1, FX_COMPUTE_INT64 = 2 } FxCompute;

typedef enum FxErrorCode {
  FX_ERROR_NONE = 0,
  /* an index beyond its dimension: the element of the operand with the indices */
  FX_ERROR_INDEX = 1,
  FX_ERROR_DIVISION = 2 /* integer division by zero: an element of the result */
} FxErrorCode;

/* An error of a call is one word, which may be read later: FX_NO_ERROR, or the element times 256
 * plus the code. Thus the smallest element wins, in whatever order units ran. */
#define FX_NO_ERROR INT64_MAX

/* The numbers of a draw: element i has word i % 4 of counter (i / 4, slot) under `seed`. */
typedef struct FxDrawState {
  uint64_t seed, slot;
} FxDrawState;

typedef struct FxCall {
  const FxView* views; /* results, then operands: a table, which may be long (`cat`) */
  uint32_t num_results, num_operands;
  const FxNumber* params; /* documented by the body */
  uint32_t num_params;
  uint32_t compute; /* FxCompute */
  void* workspace;
  FxDrawState draw;
  int64_t* error;
} FxCall;

/* A body. Its work is cut into units; their number depends on sizes alone. A unit computes the same
 * bits on every thread, so threads and grids may split units in any way. Phase p + 1 starts when
 * all units of phase p have ended. */
typedef struct FxKernel {
  const char* name; /* KernelRow::body */
  uint32_t phases;
  /* bits by FxCompute: 1 << FX_COMPUTE_FLOAT, ...; a call of another type has no kernel */
  uint32_t computes;
  int64_t (*units)(const FxCall* call, uint32_t phase);
  /* in bytes; does not read pointers of the call. Null: no workspace */
  int64_t (*workspace)(const FxCall* call);
  void (*run)(const FxCall* call, uint32_t phase, int64_t first, int64_t end);
  /* lanes that share a unit, on a device with lanes; null: one */
  uint32_t (*lanes)(const FxCall* call, uint32_t phase);
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
