/* What _tensors.pyx and the kernels that use it have in common. */

#ifndef SPMRL_BENCH_TENSORS_H
#define SPMRL_BENCH_TENSORS_H

#include <stddef.h>
#include <stdint.h>

#define NO_SIZE PTRDIFF_MIN

/* So many can be started anywhere; OpenMP ends the program where it cannot. */
#define MOST_THREADS 1024

#endif
