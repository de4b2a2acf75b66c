// Functions of plain numbers that run on the CPU and, compiled by nvcc, on a device as well. Headers that use
// this hold no types with memory of their own, so that device code may include them.
#pragma once

#ifdef __CUDACC__
#define DEEPTAIL_HOST_DEVICE __host__ __device__
#else
#define DEEPTAIL_HOST_DEVICE
#endif
