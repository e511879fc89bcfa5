/* What _tensors.pyx and the kernels that use it have in common. */

#ifndef SPMRL_BENCH_TENSORS_H
#define SPMRL_BENCH_TENSORS_H

#include <stddef.h>
#include <stdint.h>

#define NO_SIZE PTRDIFF_MIN

#endif
