#include "runtime/cuda/fatbin.h"

// Embeds nvcc's output file. FXOPT_CUDA_FATBIN is the path of this file.
asm(".section .rodata\n"
    ".balign 64\n"
    ".globl fxopt_cuda_fatbin\n"
    ".hidden fxopt_cuda_fatbin\n"
    "fxopt_cuda_fatbin:\n"
    ".incbin \"" FXOPT_CUDA_FATBIN
    "\"\n"
    ".byte 0\n"
    ".previous\n");
