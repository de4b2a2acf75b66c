// The kernels, once per instruction set. Highway's headers take longer to read than the kernels do, so these
// are one file to the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/kernels.cpp"
#include "compute/simd.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Highway headers after the line above.
#include "compute/rms_norm-inl.h"
// layernorm calls it, so it comes first.
#include "compute/gates-inl.h"
#include "compute/gathered_rows-inl.h"
#include "compute/gelu-inl.h"
#include "compute/gemm-inl.h"
#include "compute/kept_keys-inl.h"
#include "compute/layernorm-inl.h"
#include "compute/normals-inl.h"
#include "compute/rotary-inl.h"
#include "compute/screen-inl.h"
#include "compute/softmax-inl.h"
