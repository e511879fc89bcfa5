/* The number of OpenMP threads, in a build with OpenMP and in one without. */

#ifndef SPMRL_BENCH_CHART_OPENMP_H
#define SPMRL_BENCH_CHART_OPENMP_H

#ifdef _OPENMP
#include <omp.h>
#endif

/* Threads of a parallel region that asks for no number, 0 without OpenMP. */
static int openmp_team(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 0;
#endif
}

#endif
