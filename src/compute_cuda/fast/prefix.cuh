// The first positions of an input, where they take few values together (the beginning of text, fixed words):
// for each such prefix keys and values of every layer but the last, whose normalised rows are kept instead,
// as tables.
#pragma once

#include "compute_cuda/device.cuh"
#include "compute_cuda/fast/first_layer.cuh"
#include "compute_cuda/tiles/embedding.cuh"
#include "compute_cuda/tiles/fragments.cuh"

namespace deeptail::cuda {

inline constexpr int kPrefixPositions = 8;  // at most; one tile of keys
inline constexpr int kPrefixValues = 32;    // where the values of a head lie, after its keys
inline constexpr int kPrefixHead = 64;      // uint4 of a head

struct Prefix {
  int n_positions = 0;
  std::uint32_t n_prefixes = 0;
  std::uint32_t first_row[kPrefixPositions] = {}, stride[kPrefixPositions] = {};
  const uint4* table = nullptr;  // [layer][prefix][head][keys, values][lane]: B tiles, each lane's own
  const __half* last = nullptr;  // [prefix][8][128]: rows of the last block, stored columns (pack.h)

  // Of the input that begins with these rows.
  __device__ std::uint32_t number(const std::uint32_t* input) const {
    std::uint32_t sum = 0;
#pragma unroll
    for (int p = 0; p < kPrefixPositions; ++p)
      if (p < n_positions) sum += (input[p] - first_row[p]) * stride[p];
    return sum;
  }
  __device__ const uint4* keys(int layer, std::uint32_t prefix, int head) const {
    return table + ((static_cast<std::size_t>(layer) * n_prefixes + prefix) * kHeads + head) * kPrefixHead;
  }
};

// One block's weights on the device, as in DenseBlock.
struct PlainBlock {
  const float *ln1_w, *ln1_b, *ln2_w, *ln2_b, *w_qkv, *b_qkv, *w_o, *b_o, *w_in, *b_in, *w_out, *b_out;
};

struct PrefixLayerArgs {
  Prefix prefix;
  PlainBlock block;
  int layer, n_layers, d_mlp;
  float eps;
  float* x;  // [prefixes, 8, 128]: residuals before the block, then after it
  uint4* table;
  __half* last;
};

// Where the residuals of the prefixes begin. Positions beyond the prefix repeat its last one; nobody sees
// them.
__global__ void prefix_embedding(Prefix prefix, Embedding e, float* x) {
  for (int p = 0; p < kPrefixPositions; ++p) {
    const int q = min(p, prefix.n_positions - 1);
    const std::uint32_t size = (q == 0 ? prefix.n_prefixes : prefix.stride[q - 1]) / prefix.stride[q];
    const std::uint32_t row = prefix.first_row[q] + blockIdx.x / prefix.stride[q] % size;
    x[(static_cast<std::size_t>(blockIdx.x) * kPrefixPositions + p) * kWidth + threadIdx.x] =
        e.at(row, static_cast<int>(threadIdx.x), kWidth);
  }
}

// A prefix, by one thread block with a thread per column: the plain forward pass in fp32.
class PrefixLayer {
 public:
  using Rows = float[kPrefixPositions][kWidth];
  struct Shared {
    Rows y, q, k, v;
    float scratch[4];
  };
  __device__ PrefixLayer(const PrefixLayerArgs& args, Shared& shared) : args_(args), s_(shared) {}

  __device__ void run() {
    float* x = args_.x + static_cast<std::size_t>(blockIdx.x) * kPrefixPositions * kWidth + c_;
    const PlainBlock& b = args_.block;
    for (int p = 0; p < kPrefixPositions; ++p) now_[p] = x[p * kWidth];
    normalise_rows(b.ln1_w, b.ln1_b);
    if (args_.layer + 1 == args_.n_layers) return write_rows();
    project(b, 0, s_.q);
    project(b, 1, s_.k);
    project(b, 2, s_.v);
    __syncthreads();
    write_tiles();
    attend_plainly();
    add_product(b.w_o);
    for (int p = 0; p < kPrefixPositions; ++p) now_[p] += b.b_o[c_];
    normalise_rows(b.ln2_w, b.ln2_b);
    add_mlp(b);
    for (int p = 0; p < kPrefixPositions; ++p) x[p * kWidth] = now_[p] + b.b_out[c_];
  }

 private:
  // y = layer norm of the residuals.
  __device__ void normalise_rows(const float* w, const float* b) {
    for (int p = 0; p < kPrefixPositions; ++p) {
      const float centred = now_[p] - block_mean(now_[p], s_.scratch);
      const float variance = block_mean(centred * centred, s_.scratch);
      s_.y[p][c_] = fmaf(centred / sqrtf(variance + args_.eps), w[c_], b[c_]);
    }
    __syncthreads();
  }
  __device__ void project(const PlainBlock& b, int part, Rows& out) {
    const int column = part * kWidth + c_;
    for (int p = 0; p < kPrefixPositions; ++p) {
      float sum = b.b_qkv[column];
      for (int k = 0; k < kWidth; ++k) sum = fmaf(s_.y[p][k], b.w_qkv[k * 3 * kWidth + column], sum);
      out[p][c_] = sum;
    }
  }
  // Thread c stores what lies at place c.
  __device__ void write_rows() const {
    __half* to = args_.last + static_cast<std::size_t>(blockIdx.x) * kPrefixPositions * kWidth + c_;
    const int column = c_ % 32 / 2 * 8 + c_ / 32 * 2 + c_ % 2;
    for (int p = 0; p < kPrefixPositions; ++p) to[p * kWidth] = __float2half_rn(s_.y[p][column]);
  }
  // The lane's part of the keys as the factor of the scores, and of the values as that of the weights.
  __device__ void write_tiles() const {
    const int head = c_ / 32, lane = c_ % 32, g = lane / 4, t = lane % 4;
    std::uint32_t k[4], v[4];
    for (int i = 0; i < 4; ++i) {
      k[i] = pack(s_.k[g][32 * head + 8 * i + 2 * t], s_.k[g][32 * head + 8 * i + 2 * t + 1]);
      v[i] = pack(s_.v[2 * t][32 * head + 8 * i + g], s_.v[2 * t + 1][32 * head + 8 * i + g]);
    }
    uint4* to =
        args_.table +
        ((static_cast<std::size_t>(args_.layer) * args_.prefix.n_prefixes + blockIdx.x) * kHeads + head) *
            kPrefixHead +
        lane;
    to[0] = {k[0], k[1], k[2], k[3]};
    to[kPrefixValues] = {v[0], v[1], v[2], v[3]};
  }
  // y = attention.
  __device__ void attend_plainly() {
    const int first = c_ / 32 * 32;  // of the head
    for (int p = 0; p < kPrefixPositions; ++p) {
      float sum = 0.0f, out = 0.0f, largest = -INFINITY, score[kPrefixPositions];
      for (int j = 0; j <= p; ++j) {
        score[j] = 0.0f;
        for (int i = 0; i < 32; ++i) score[j] = fmaf(s_.q[p][first + i], s_.k[j][first + i], score[j]);
        score[j] *= rsqrtf(32.0f);
        largest = fmaxf(largest, score[j]);
      }
      for (int j = 0; j <= p; ++j) {
        const float weight = expf(score[j] - largest);
        sum += weight;
        out = fmaf(weight, s_.v[j][c_], out);
      }
      s_.y[p][c_] = out / sum;
    }
    __syncthreads();
  }
  // residuals += y w, w: [128, 128].
  __device__ void add_product(const float* w) {
    for (int p = 0; p < kPrefixPositions; ++p)
      for (int k = 0; k < kWidth; ++k) now_[p] = fmaf(s_.y[p][k], w[k * kWidth + c_], now_[p]);
    __syncthreads();
  }
  // 128 hidden units at a time, which take the place of the queries.
  __device__ void add_mlp(const PlainBlock& b) {
    for (int first = 0; first < args_.d_mlp; first += kWidth) {
      const int n = min(kWidth, args_.d_mlp - first);
      for (int p = 0; p < kPrefixPositions && c_ < n; ++p) {
        float sum = b.b_in[first + c_];
        for (int k = 0; k < kWidth; ++k) sum = fmaf(s_.y[p][k], b.w_in[k * args_.d_mlp + first + c_], sum);
        s_.q[p][c_] = sum * normcdff(sum);
      }
      __syncthreads();
      for (int p = 0; p < kPrefixPositions; ++p)
        for (int k = 0; k < n; ++k) now_[p] = fmaf(s_.q[p][k], b.w_out[(first + k) * kWidth + c_], now_[p]);
      __syncthreads();
    }
  }

  const PrefixLayerArgs& args_;
  Shared& s_;
  float now_[kPrefixPositions];  // residuals, column c
  int c_ = static_cast<int>(threadIdx.x);
};

__global__ void __launch_bounds__(kWidth) prefix_layer(const __grid_constant__ PrefixLayerArgs args) {
  __shared__ PrefixLayer::Shared shared;
  PrefixLayer(args, shared).run();
}

// Keys and values of all prefixes of a distribution.
class PrefixTable {
 public:
  // n_rows: of a thread block. As few positions as give room for the most inputs; none where a prefix gives
  // no room for more.
  PrefixTable(const DenseModel& m, const DenseInputs& inputs, int n_rows) : prefix_(choose(inputs, n_rows)) {
    if (prefix_.n_positions == 0) return;
    table_ = DeviceArray<uint4>((m.n_layers - 1) * prefix_.n_prefixes * kHeads * kPrefixHead);
    last_ = DeviceArray<__half>(static_cast<std::size_t>(prefix_.n_prefixes) * kPrefixPositions * kWidth);
    prefix_.table = table_.data();
    prefix_.last = last_.data();
  }
  const Prefix& view() const { return prefix_; }

  void fill(const DenseModel& m, const Embedding& embedding) const {
    if (prefix_.n_positions == 0) return;
    const DeviceArray<float> x(static_cast<std::size_t>(prefix_.n_prefixes) * kPrefixPositions * kWidth);
    prefix_embedding<<<prefix_.n_prefixes, kWidth>>>(prefix_, embedding, x.data());
    for (std::size_t layer = 0; layer < m.n_layers; ++layer) fill_layer(m, layer, x.data());
  }

 private:
  static Prefix choose(const DenseInputs& inputs, int n_rows) {
    constexpr std::uint32_t kMost = 4096;
    const int length = static_cast<int>(inputs.length());
    std::uint32_t n_prefixes = 1;
    Prefix best;
    for (int p = 0; p < kPrefixPositions && length - p - 1 >= 16;
         ++p) {  // a tile has rows of two inputs at most
      n_prefixes *= inputs.first_row[p + 1] - inputs.first_row[p];
      if (n_prefixes > kMost) break;
      if (n_rows / (length - p - 1) > n_rows / (length - best.n_positions))
        best.n_positions = p + 1, best.n_prefixes = n_prefixes;
    }
    std::uint32_t stride = best.n_prefixes;
    for (int p = 0; p < best.n_positions; ++p) {
      stride /= inputs.first_row[p + 1] - inputs.first_row[p];
      best.first_row[p] = inputs.first_row[p], best.stride[p] = stride;
    }
    return best;
  }

  void fill_layer(const DenseModel& m, std::size_t layer, float* x) const {
    const DenseBlock& b = m.blocks[layer];
    const DeviceArray<float> ln1_w(b.ln1_w), ln1_b(b.ln1_b), ln2_w(b.ln2_w), ln2_b(b.ln2_b), w_qkv(b.w_qkv),
        b_qkv(b.b_qkv), w_o(b.w_o), b_o(b.b_o), w_in(b.w_in), b_in(b.b_in), w_out(b.w_out), b_out(b.b_out);
    const PrefixLayerArgs args{
        .prefix = prefix_,
        .block = {ln1_w.data(), ln1_b.data(), ln2_w.data(), ln2_b.data(), w_qkv.data(), b_qkv.data(),
                  w_o.data(), b_o.data(), w_in.data(), b_in.data(), w_out.data(), b_out.data()},
        .layer = static_cast<int>(layer),
        .n_layers = static_cast<int>(m.n_layers),
        .d_mlp = static_cast<int>(m.d_mlp),
        .eps = m.eps,
        .x = x,
        .table = table_.data(),
        .last = last_.data()};
    prefix_layer<<<prefix_.n_prefixes, kWidth>>>(args);
    check(cudaDeviceSynchronize(), "prefixes");  // before the weights go
  }

  Prefix prefix_;
  DeviceArray<uint4> table_;
  DeviceArray<__half> last_;
};

}  // namespace deeptail::cuda
