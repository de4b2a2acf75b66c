// What the forward engine keeps on the device: weights, tables of angles, and room for rows.
#pragma once

#include <cmath>

#include "compute_cuda/exact/twofold_products.h"
#include "compute_cuda/tiles/fragments.cuh"
#include "compute_cuda/tiles/pack.h"

namespace deeptail::cuda {

// One block's weights.
struct DeviceBlock {
  DeviceBlock(const DenseModel& m, const DenseBlock& b)
      : ln1_w(b.ln1_w),
        ln1_b(b.ln1_b),
        ln2_w(b.ln2_w),
        ln2_b(b.ln2_b),
        b_qkv(b.b_qkv),
        b_o(b.b_o),
        b_in(b.b_in),
        b_out(b.b_out),
        q_norm(b.q_norm),
        k_norm(b.k_norm),
        w_qkv(b.w_qkv.data(), m.d_model, m.d_qkv()),
        w_o(b.w_o.data(), m.d_attn(), m.d_model),
        w_in(b.w_in.data(), m.d_model, m.mlp_columns()),
        w_out(b.w_out.data(), m.d_mlp, m.d_model) {
    if (m.arch != Architecture{} || m.d_model != kWidth || m.d_attn() != kWidth || m.d_mlp % 64 != 0 ||
        !rest_is_exact(b))
      return;
    const Halves halves = pack_rest(b, m.d_mlp, device_traits().hopper ? TileOrder::kWgmma : TileOrder::kMma);
    rest = DeviceArray<uint4>(halves.size() / 8);
    check(cudaMemcpy(rest.data(), halves.data(), halves.size() * 2, cudaMemcpyHostToDevice),
          "copy to the device");
  }
  DeviceArray<float> ln1_w, ln1_b, ln2_w, ln2_b, b_qkv, b_o, b_in, b_out, q_norm, k_norm;
  PackedWeights w_qkv, w_o, w_in, w_out;
  DeviceArray<uint4> rest;  // W_O and MLP for twofold_block, where it takes them
};

// What a number of rows needs on its way through a block.
struct RowSpace {
  RowSpace(const DenseModel& m, std::size_t n)
      : x(n * m.d_model), y(n, m.d_model), z(n, m.d_attn()), hidden(n, m.d_mlp) {}
  DeviceArray<float> x;  // [n, d_model]: residuals
  TwofoldBuffer y, z, hidden;
};

// Cosines and sines of the angles by which heads turn at each position, from double, rounded once.
struct Angles {
  Angles(const Architecture& arch, std::size_t length) : half(static_cast<int>(arch.frequencies.size())) {
    std::vector<float> c, s;
    for (std::size_t t = 0; t < length; ++t)
      for (const double frequency : arch.frequencies) {
        c.push_back(static_cast<float>(std::cos(static_cast<double>(t) * frequency)));
        s.push_back(static_cast<float>(std::sin(static_cast<double>(t) * frequency)));
      }
    cosines = DeviceArray<float>(c), sines = DeviceArray<float>(s);
  }
  int half;
  DeviceArray<float> cosines, sines;  // [length, half]
};

}  // namespace deeptail::cuda
