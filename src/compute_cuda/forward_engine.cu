// Blocks of some inputs at a time, so that what passes between kernels stays in the cache; then the tail of
// many inputs at once.
#include "compute_cuda/forward_engine.h"

#include <algorithm>
#include <cmath>

#include "compute_cuda/attention.cuh"
#include "compute_cuda/embedding.cuh"

namespace deeptail::cuda {

namespace {

// One block's weights.
struct BlockWeights {
  explicit BlockWeights(const DenseModel& m, const DenseBlock& b)
      : ln1_w(b.ln1_w),
        ln1_b(b.ln1_b),
        ln2_w(b.ln2_w),
        ln2_b(b.ln2_b),
        b_qkv(b.b_qkv),
        b_o(b.b_o),
        b_in(b.b_in),
        b_out(b.b_out),
        w_qkv(b.w_qkv.data(), m.d_model, 3 * m.n_heads * m.d_head),
        w_o(b.w_o.data(), m.n_heads * m.d_head, m.d_model),
        w_in(b.w_in.data(), m.d_model, m.d_mlp),
        w_out(b.w_out.data(), m.d_mlp, m.d_model) {}
  DeviceArray<float> ln1_w, ln1_b, ln2_w, ln2_b, b_qkv, b_o, b_in, b_out;
  PackedWeights w_qkv, w_o, w_in, w_out;
};

// What a number of rows needs on its way through a block.
struct RowSpace {
  RowSpace(const DenseModel& m, std::size_t n)
      : x(n * m.d_model), y(n, m.d_model), z(n, m.n_heads * m.d_head), hidden(n, m.d_mlp) {}
  DeviceArray<float> x;  // [n, d_model]: residuals
  SplitBuffer y, z, hidden;
};

// x[i] = the embedding of row rows[(i + 1) stride - 1]: all rows with stride 1, last positions with the
// length.
__global__ void gather_embedding(Embedding e, std::uint32_t n, int stride, int d, const std::uint32_t* rows,
                                 float* x) {
  const std::uint64_t total = static_cast<std::uint64_t>(n) * d;
  for (std::uint64_t i = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x; i < total;
       i += static_cast<std::uint64_t>(gridDim.x) * blockDim.x) {
    const std::uint64_t row = i / d;
    x[i] = e.at(rows == nullptr ? static_cast<std::uint32_t>(row) : rows[(row + 1) * stride - 1],
                static_cast<int>(i % d), d);
  }
}

// to[i] = from[(i + 1) stride - 1].
__global__ void gather_last(std::uint32_t n, int stride, int d, const float* from, float* to) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n * d) to[i] = from[(static_cast<std::size_t>(i / d) + 1) * stride * d - d + i % d];
}

template <int kHead>
void launch_attention(const AttentionArgs& args, int n_sm, std::size_t most_shared, cudaStream_t stream) {
  const std::size_t bytes = attention_bytes_per_warp<kHead>(args.length);
  const auto warps = static_cast<unsigned>(std::clamp<std::size_t>(most_shared / bytes, 1, 4));
  check(cudaFuncSetAttribute(attention<kHead>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(warps * bytes)),
        "shared memory");
  const auto blocks = (args.n * static_cast<unsigned>(args.n_heads) + warps - 1) / warps;
  attention<kHead>
      <<<std::min(blocks, 64u * static_cast<unsigned>(n_sm)), 32 * warps, warps * bytes, stream>>>(args);
  check(cudaGetLastError(), "starting attention");
}

}  // namespace

void require_forward_sizes(const DenseModel& m, std::size_t length) {
  if (m.d_head != 16 && m.d_head != 32 && m.d_head != 64 && m.d_head != 128)
    throw Failure("heads of " + std::to_string(m.d_head) + ": the device takes heads of 16, 32, 64 or 128");
  if (m.d_model % 8 != 0 || m.d_mlp % 8 != 0)
    throw Failure("d_model and d_mlp must be multiples of 8 for the device");
  if (length > kMostPositions)
    throw Failure("inputs of " + std::to_string(length) + " tokens: the device takes at most " +
                  std::to_string(kMostPositions));
}

struct ForwardEngine::Impl {
  // Inputs whose blocks are done at a time, and whose tails are.
  static constexpr std::uint32_t kPiece = 1024, kTail = 1 << 16;

  Impl(const DenseModel& m, const DenseInputs& inputs)
      : length(static_cast<int>(inputs.length())),
        d(static_cast<int>(m.d_model)),
        d_attn(static_cast<int>(m.n_heads * m.d_head)),
        d_head(static_cast<int>(m.d_head)),
        n_heads(static_cast<int>(m.n_heads)),
        eps(m.eps),
        query_scale(1.44269504088896341f / std::sqrt(static_cast<float>(m.d_head))),
        n_rows(inputs.row_token.size()),
        w_e(m.w_e),
        w_pos(m.w_pos),
        ln_final_w(m.ln_final_w),
        ln_final_b(m.ln_final_b),
        row_token(inputs.row_token),
        row_position(inputs.row_position),
        table(n_rows * 3 * static_cast<std::size_t>(d_attn)),
        unembedding(m.w_u.data(), m.b_u.data(), m.d_model, m.d_vocab, kTail),
        body(m, m.n_layers > 1 ? kPiece * inputs.length() : 0),
        qkv(m.n_layers > 1 ? kPiece * inputs.length() * 3 * static_cast<std::size_t>(d_attn) : 0),
        tail(m, kTail) {
    for (const DenseBlock& b : m.blocks) blocks.emplace_back(m, b);
    int device = 0, shared = 0;
    check(cudaGetDevice(&device), "device");
    check(cudaDeviceGetAttribute(&n_sm, cudaDevAttrMultiProcessorCount, device), "device");
    check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "device");
    most_shared = static_cast<std::size_t>(shared);
    fill_table();
  }

  Embedding embedding() const { return {w_e.data(), w_pos.data(), row_token.data(), row_position.data()}; }

  // Queries, keys and values of the first layer for every (position, token) pair.
  void fill_table() {
    for (std::size_t first = 0; first < n_rows; first += kTail) {
      const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(kTail, n_rows - first));
      Embedding e = embedding();
      e.row_token += first, e.row_position += first;
      gather_embedding<<<4096, 256>>>(e, n, 1, d, nullptr, tail.x.data());
      project(blocks.front(), tail, n, table.data() + first * 3 * static_cast<std::size_t>(d_attn), nullptr);
    }
    check(cudaDeviceSynchronize(), "first layer");
  }

  void project(const BlockWeights& b, const RowSpace& space, std::uint32_t n, float* out,
               cudaStream_t stream) const {
    layernorm_rows(space.x.data(), n, d, {b.ln1_w.data(), b.ln1_b.data(), eps}, space.y.view(), stream);
    product_to_floats({.a = space.y.view(), .n = n, .w = b.w_qkv.view(), .bias = b.b_qkv.data()}, out,
                      3 * d_attn, stream);
  }

  void attend(const AttentionArgs& args, cudaStream_t stream) const {
    switch (d_head) {
      case 16:
        return launch_attention<16>(args, n_sm, most_shared, stream);
      case 32:
        return launch_attention<32>(args, n_sm, most_shared, stream);
      case 64:
        return launch_attention<64>(args, n_sm, most_shared, stream);
      default:
        return launch_attention<128>(args, n_sm, most_shared, stream);
    }
  }

  // From z and the residual before the block to the residual after it.
  void finish_block(const BlockWeights& b, const RowSpace& s, std::uint32_t n, cudaStream_t stream) const {
    product_added({.a = s.z.view(), .n = n, .w = b.w_o.view(), .bias = b.b_o.data()}, s.x.data(), d, stream);
    layernorm_rows(s.x.data(), n, d, {b.ln2_w.data(), b.ln2_b.data(), eps}, s.y.view(), stream);
    product_to_split({.a = s.y.view(), .n = n, .w = b.w_in.view(), .bias = b.b_in.data()}, Activation::kGelu,
                     s.hidden.view(), stream);
    product_added({.a = s.hidden.view(), .n = n, .w = b.w_out.view(), .bias = b.b_out.data()}, s.x.data(), d,
                  stream);
  }

  AttentionArgs attention_args(std::uint32_t n, const std::uint32_t* rows, bool first_layer) const {
    return {.n = n,
            .length = length,
            .n_heads = n_heads,
            .qkv = first_layer ? table.data() : qkv.data(),
            .index = first_layer ? rows : nullptr,
            .query_scale = query_scale,
            .last_only = false,
            .z = body.z.view(),
            .first_z = 0};
  }

  // Attention of the last block at the last position, and the residual there, of inputs [0, n) of a piece
  // into rows [first, first + n) of the tail.
  void run_blocks(std::uint32_t n, const std::uint32_t* rows, std::uint32_t first,
                  cudaStream_t stream) const {
    const std::size_t n_layers = blocks.size();
    float* x_last = tail.x.data() + static_cast<std::size_t>(first) * d;
    const auto n_body = static_cast<std::uint32_t>(n * length);
    if (n_layers == 1) gather_embedding<<<2048, 256, 0, stream>>>(embedding(), n, length, d, rows, x_last);
    if (n_layers > 1)
      gather_embedding<<<2048, 256, 0, stream>>>(embedding(), n_body, 1, d, rows, body.x.data());
    for (std::size_t layer = 0; layer < n_layers; ++layer) {
      if (layer > 0) project(blocks[layer], body, n_body, qkv.data(), stream);
      AttentionArgs args = attention_args(n, rows, layer == 0);
      if (layer + 1 < n_layers) {
        attend(args, stream);
        finish_block(blocks[layer], body, n_body, stream);
        continue;
      }
      args.last_only = true;
      args.z = tail.z.view();
      args.first_z = first;
      attend(args, stream);
      if (layer > 0)
        gather_last<<<(n * static_cast<unsigned>(d) + 255) / 256, 256, 0, stream>>>(n, length, d,
                                                                                    body.x.data(), x_last);
    }
  }

  void margins(std::uint32_t n, const std::uint32_t* rows, const std::uint32_t* target, float* margin,
               std::uint32_t* other, cudaStream_t stream) const {
    // With one layer nothing is kept per position: all at once.
    const std::uint32_t piece = blocks.size() > 1 ? kPiece : n;
    for (std::uint32_t done = 0; done < n; done += piece)
      run_blocks(std::min(piece, n - done), rows + static_cast<std::size_t>(done) * length, done, stream);
    finish_block(blocks.back(), tail, n, stream);
    layernorm_rows(tail.x.data(), n, d, {ln_final_w.data(), ln_final_b.data(), eps}, tail.y.view(), stream);
    unembedding.margins(tail.y.view(), n, target, margin, other, stream);
    check(cudaGetLastError(), "starting the kernels");
  }

  int length, d, d_attn, d_head, n_heads, n_sm = 0;
  float eps, query_scale;
  std::size_t n_rows, most_shared = 0;
  std::vector<BlockWeights> blocks;
  DeviceArray<float> w_e, w_pos, ln_final_w, ln_final_b;
  DeviceArray<std::uint32_t> row_token, row_position;
  DeviceArray<float> table;  // [rows, 3 d_attn]
  Unembedding unembedding;
  RowSpace body;           // of every position of a piece; empty with one layer
  DeviceArray<float> qkv;  // likewise
  RowSpace tail;           // of last positions
};

ForwardEngine::ForwardEngine(const DenseModel& model, const DenseInputs& inputs) {
  require_forward_sizes(model, inputs.length());
  impl_ = std::make_unique<Impl>(model, inputs);
}
ForwardEngine::~ForwardEngine() = default;
ForwardEngine::ForwardEngine(ForwardEngine&&) noexcept = default;

void ForwardEngine::margins(std::uint32_t n, const std::uint32_t* rows, const std::uint32_t* target,
                            float* margin, std::uint32_t* other, cudaStream_t stream) const {
  for (std::uint32_t done = 0; done < n; done += Impl::kTail)
    impl_->margins(std::min(Impl::kTail, n - done), rows + static_cast<std::size_t>(done) * impl_->length,
                   target + done, margin + done, other + done, stream);
}

}  // namespace deeptail::cuda
