/* FxCall is one call of an operator, described only by numbers and pointers. It is the argument of
 * a kernel on every device.
 *
 * This header is plain C and includes only stdint.h. Kernel tables are compiled for several
 * instruction sets and by several compilers, and a plugin passes its own table. All pointers of a
 * call refer to memory that the kernel's device can read. A kernel keeps no pointer after the call.
 */
#ifndef FXOPT_RUNTIME_ABI_KERNEL_H
#define FXOPT_RUNTIME_ABI_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FX_KERNEL_VERSION 1u
#define FX_MAX_RANK 8 /* largest rank of a view, after contiguous dimensions are joined */

typedef enum FxNumberKind { FX_NUMBER_INT = 0, FX_NUMBER_REAL = 1, FX_NUMBER_BOOL = 2 } FxNumberKind;

typedef struct FxNumber {
  double real;
  int64_t integer; /* the value if `kind` is INT or BOOL */
  uint32_t kind;   /* FxNumberKind */
  uint32_t reserved;
} FxNumber;

/* A strided array in memory, or one number that is the value of every element. Sizes and strides
 * are in elements. The outermost dimension is first. */
typedef struct FxView {
  /* The first element. Null if the view is a number, has no elements, or is a result that the call
   * does not request. */
  void* data;
  int64_t size[FX_MAX_RANK];
  int64_t stride[FX_MAX_RANK];
  FxNumber number;
  uint8_t dtype; /* FxDType */
  uint8_t rank;
  uint8_t is_number;
  uint8_t reserved[5];
} FxView;

/* The type in which a kernel computes. */
typedef enum FxCompute { FX_COMPUTE_FLOAT = 0, FX_COMPUTE_DOUBLE = 1, FX_COMPUTE_INT64 = 2 } FxCompute;

typedef enum FxErrorCode {
  FX_ERROR_NONE = 0,
  /* An index is beyond its dimension. The reported position is that of the index in its operand. */
  FX_ERROR_INDEX = 1,
  FX_ERROR_DIVISION = 2 /* integer division by zero; the position is that of the result's element */
} FxErrorCode;

/* The error of a call is one 64-bit word. The word is FX_NO_ERROR, or 256 times the position of an
 * element, plus the error code. If several units of work fail, the smallest word is kept. The
 * reported element therefore does not depend on the order of units. */
#define FX_NO_ERROR INT64_MAX

/* Selects the random numbers of a call. Element i uses output word i % 4 of Philox 4x32-10 for
 * counter (i / 4, slot) and key `seed`. */
typedef struct FxDrawState {
  uint64_t seed, slot;
} FxDrawState;

typedef struct FxCall {
  const FxView* views; /* all results, then all operands, which may be many (`cat`) */
  uint32_t num_results, num_operands;
  const FxNumber* params; /* numbers; the kernel's source documents their meaning */
  uint32_t num_params;
  uint32_t compute; /* FxCompute */
  void* workspace;
  FxDrawState draw;
  int64_t* error;
} FxCall;

/* A kernel. Its work is divided into units, and the number of units depends only on sizes. A unit
 * computes the same bits on every thread, so threads and grids may distribute units in any way. A
 * kernel may have several phases. Phase p + 1 starts when all units of phase p have ended. */
typedef struct FxKernel {
  const char* name; /* KernelRow::body */
  uint32_t phases;
  /* The supported types, with bit 1 << FX_COMPUTE_FLOAT for float, and so on. A call that computes
   * in another type has no kernel. */
  uint32_t computes;
  int64_t (*units)(const FxCall* call, uint32_t phase);
  /* Returns the bytes of workspace that the call needs. It reads views and params, but no data. A
   * null function means that the kernel needs no workspace. */
  int64_t (*workspace)(const FxCall* call);
  void (*run)(const FxCall* call, uint32_t phase, int64_t first, int64_t end);
  /* Returns the number of lanes that share a unit. On a GPU, lanes are the threads of a block. A
   * null function means one lane. */
  uint32_t (*lanes)(const FxCall* call, uint32_t phase);
} FxKernel;

typedef struct FxKernelTable {
  uint32_t version; /* FX_KERNEL_VERSION */
  uint32_t num_kernels;
  const char* isa;
  const FxKernel* kernels; /* sorted by name */
} FxKernelTable;

#ifdef __cplusplus
}
#endif
#endif
