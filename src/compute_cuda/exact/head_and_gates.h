// The activation functions and head steps of the forward engine, as plain functions of numbers: the CPU's tests
// call what the kernels call.
#pragma once

#include <cmath>

#include "core/host_device.h"

namespace deeptail::cuda {

// 1 / (1 + exp(-x)); exp overflows to infinity where it is 0.
DEEPTAIL_HOST_DEVICE inline float logistic_fp32(float x) { return 1.0f / (1.0f + expf(-x)); }

// silu(gate) * value.
DEEPTAIL_HOST_DEVICE inline float swiglu_fp32(float gate, float value) {
  return gate * logistic_fp32(gate) * value;
}

// The tanh form of GELU: x/2 (1 + tanh w) = x s(2 w), w = sqrt(2/pi) (x + 0.044715 x^3).
DEEPTAIL_HOST_DEVICE inline float gelu_tanh_fp32(float x) {
  return x * logistic_fp32(1.59576912f * x * fmaf(0.044715f * x, x, 1.0f));
}

// What happens to a head of a query or key before attention: its norm, then the turn by its position. `lanes`
// threads share a head, each with a number `lane`; their squares are added up in between.
struct HeadStep {
  int d_head, n_values;          // width, and how many are the model's: the others are 0
  int half;                      // values i and i + half turn together, i < half; 0: no turn
  const float *cosines, *sines;  // [half], at this position
  const float* norm;             // [d_head], or null: none
  float eps;

  DEEPTAIL_HOST_DEVICE float squares(const float* head, int lane, int lanes) const {
    float sum = 0.0f;
    for (int i = lane; i < n_values; i += lanes) sum = fmaf(head[i], head[i], sum);
    return sum;
  }
  // sum: of all squares; read where there is a norm.
  DEEPTAIL_HOST_DEVICE void finish(float* head, float sum, int lane, int lanes) const {
    const float scale = norm != nullptr ? 1.0f / sqrtf(sum / static_cast<float>(n_values) + eps) : 1.0f;
    const auto normed = [&](int i) { return norm != nullptr ? head[i] * scale * norm[i] : head[i]; };
    for (int i = lane; i < half; i += lanes) {
      const float a = normed(i), b = normed(i + half), c = cosines[i], s = sines[i];
      head[i] = fmaf(-b, s, a * c);
      head[i + half] = fmaf(a, s, b * c);
    }
    if (norm == nullptr) return;
    for (int i = 2 * half + lane; i < n_values; i += lanes) head[i] = normed(i);
  }
};

}  // namespace deeptail::cuda
