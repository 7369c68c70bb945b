#include "runtime/cuda/fatbin.h"

// FXOPT_CUDA_FATBIN: the path of nvcc's output file.
asm(".section .rodata\n"
    ".balign 64\n"
    ".globl fxopt_cuda_fatbin\n"
    ".hidden fxopt_cuda_fatbin\n"
    "fxopt_cuda_fatbin:\n"
    ".incbin \"" FXOPT_CUDA_FATBIN
    "\"\n"
    ".byte 0\n"
    ".previous\n");
