/* What the loops of all kernels ask of the compiler, and how many threads OpenMP has.

   CLONES compiles a function for several instruction sets where the library can choose among them
   when it is loaded. Nothing may reorder the arithmetic: all of them give the same bits. */

#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#include <features.h>
#endif
#if defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

/* Before a loop whose turns touch only values of their own index, even where arrays coincide. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* For the loops of a function with CLONES, to be compiled for each instruction set with it. */
#define INLINED static inline __attribute__((always_inline))

/* Threads of a parallel region that asks for no number, 0 without OpenMP: as many as the variable
   OMP_NUM_THREADS says, else as there are processors, unless the program has set another number, as
   torch.set_num_threads does where both run on the same OpenMP library. */
static inline int openmp_threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 0;
#endif
}
