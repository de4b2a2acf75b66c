// Blocks of some inputs at a time, so that what passes between kernels stays in the cache; then the tail of
// many inputs at once.
#include "compute_cuda/forward_engine.h"

#include <algorithm>
#include <cmath>

#include "compute_cuda/exact/attention.cuh"
#include "compute_cuda/exact/engine_memory.cuh"
#include "compute_cuda/exact/gather.cuh"
#include "compute_cuda/exact/head_steps.cuh"
#include "compute_cuda/exact/twofold_block.cuh"

namespace deeptail::cuda {

namespace {

template <int kHead>
void launch_attention(const AttentionArgs& args, cudaStream_t stream) {
  const DeviceTraits& device = device_traits();
  const std::size_t bytes = attention_bytes_per_warp<kHead>(args.length);
  const auto warps = static_cast<unsigned>(std::clamp<std::size_t>(device.most_shared / bytes, 1, 4));
  check(cudaFuncSetAttribute(attention<kHead>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(warps * bytes)),
        "shared memory");
  const auto blocks = (args.n.n * static_cast<unsigned>(args.n_heads) + warps - 1) / warps;
  // Fewer where there may be nothing to do: they come and go.
  const unsigned most = (args.n.on_device != nullptr ? 16u : 64u) * static_cast<unsigned>(device.n_sm);
  attention<kHead><<<std::min(blocks, most), 32 * warps, warps * bytes, stream>>>(args);
  check(cudaGetLastError(), "starting attention");
}

}  // namespace

void require_forward_sizes(const DenseModel& m, std::size_t length) {
  if (m.d_head > kMostHeadValues)
    throw Failure("heads of " + std::to_string(m.d_head) + " values: the device takes heads of up to " +
                  std::to_string(kMostHeadValues));
  if (m.d_model % kModelMultiple != 0)
    throw Failure("d_model " + std::to_string(m.d_model) + ": the device takes multiples of " +
                  std::to_string(kModelMultiple));
  if (length > kMostPositions)
    throw Failure("inputs of " + std::to_string(length) + " tokens: the device takes at most " +
                  std::to_string(kMostPositions));
}

struct ForwardEngine::Impl {
  // Inputs whose blocks are done at a time, at most, and whose tails are.
  static constexpr std::uint32_t kPiece = 1024, kTail = 1 << 16;
  // Hidden numbers of a piece, if it has more than kFewestInPiece inputs: what passes between kernels in wide
  // models should not fill the memory.
  static constexpr std::size_t kHiddenNumbers = std::size_t{1} << 27;
  static constexpr std::uint32_t kFewestInPiece = 64;
  // Positions of a piece whose count is on the device: larger, since kernels are started for every piece that
  // there could be, and most find nothing to do.
  static constexpr std::uint32_t kUnknownPositions = 1 << 18;

  Impl(const DenseModel& m, const DenseInputs& inputs, bool counts_on_device)
      : piece(piece_for(m, inputs.length())),
        unknown_piece(
            counts_on_device
                ? std::clamp(kUnknownPositions / static_cast<std::uint32_t>(inputs.length()), piece, kTail)
                : piece),
        length(static_cast<int>(inputs.length())),
        d(static_cast<int>(m.d_model)),
        d_qkv(static_cast<int>(m.d_qkv())),
        d_head(static_cast<int>(m.d_head)),
        head_values(static_cast<int>(m.head_values)),
        n_heads(static_cast<int>(m.n_heads)),
        n_kv_heads(static_cast<int>(m.n_kv_heads())),
        d_mlp(static_cast<int>(m.d_mlp)),
        eps(m.eps),
        arch(m.arch),
        scale(m.scale),
        angles(m.arch, inputs.length()),
        n_rows(inputs.row_token.size()),
        w_e(m.w_e),
        w_pos(m.w_pos),
        ln_final_w(m.ln_final_w),
        ln_final_b(m.ln_final_b),
        row_token(inputs.row_token),
        row_position(inputs.row_position),
        table(n_rows * m.d_qkv()),
        unembedding(m.w_u.data(), m.b_u.data(), m.d_model, m.d_vocab, kTail),
        body(m, m.n_layers > 1 ? unknown_piece * inputs.length() : 0),
        qkv(m.n_layers > 1 ? unknown_piece * inputs.length() * m.d_qkv() : 0),
        tail(m, kTail),
        counts(1 + 2 * (kTail / piece)) {
    for (const DenseBlock& b : m.blocks) blocks.emplace_back(m, b);
    check(cudaFuncSetAttribute(twofold_block, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(sizeof(TwofoldBlockStream::Shared))),
          "shared memory");
    fill_table();
  }

  static std::uint32_t piece_for(const DenseModel& m, std::size_t length) {
    const std::size_t fit = kHiddenNumbers / (length * std::max(m.d_mlp, m.d_model));
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(fit, kFewestInPiece, kPiece));
  }

  Embedding embedding() const { return {w_e.data(), w_pos.data(), row_token.data(), row_position.data()}; }

  // Queries, keys and values of the first layer for every (position, token) pair.
  void fill_table() {
    for (std::size_t first = 0; first < n_rows; first += kTail) {
      const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(kTail, n_rows - first));
      Embedding e = embedding();
      e.row_token += first, e.row_position += first;
      gather_embedding<<<4096, 256>>>(e, {n}, 1, d, nullptr, tail.x.data());
      layernorm_rows(tail.x.data(), n, d, ln1(blocks.front()), tail.y.view(), nullptr);
      project(blocks.front(), tail, {n}, table.data() + first * d_qkv, e.row_position, nullptr);
    }
    check(cudaDeviceSynchronize(), "first layer");
  }

  LayerNorm norm(const DeviceArray<float>& w, const DeviceArray<float>& b) const {
    return {w.data(), b.data(), eps, arch.norm == Architecture::Norm::kRms};
  }
  LayerNorm ln1(const DeviceBlock& b) const { return norm(b.ln1_w, b.ln1_b); }
  // The norm that the residuals after block `layer` go through next.
  LayerNorm norm_after(std::size_t layer) const {
    if (layer + 1 < blocks.size()) return ln1(blocks[layer + 1]);
    return norm(ln_final_w, ln_final_b);
  }

  // Rows of a times weights.
  static Product product(const TwofoldBuffer& a, const RowCount& n, const PackedWeights& w,
                         const DeviceArray<float>& bias) {
    return {.a = a.view(), .n = n.n, .w = w.view(), .bias = bias.data(), .n_device = n.on_device};
  }
  // Queries, keys and values of the rows in y, normed and turned. position: of each row; null: row % length.
  void project(const DeviceBlock& b, const RowSpace& space, const RowCount& n, float* out,
               const std::uint32_t* position, cudaStream_t stream) const {
    product_to_floats(product(space.y, n, b.w_qkv, b.b_qkv), out, d_qkv, stream);
    if (angles.half == 0 && !arch.qk_norm) return;
    launch_head_steps({.n = n,
                       .qkv = out,
                       .stride = d_qkv,
                       .n_heads = n_heads,
                       .n_kv_heads = n_kv_heads,
                       .position = position,
                       .length = length,
                       .cosines = angles.cosines.data(),
                       .sines = angles.sines.data(),
                       .q_norm = b.q_norm.data(),
                       .k_norm = b.k_norm.data(),
                       .step = {.d_head = d_head, .n_values = head_values, .half = angles.half, .eps = eps}},
                      stream);
  }

  void attend(const AttentionArgs& args, cudaStream_t stream) const {
    switch (d_head) {
      case 16:
        return launch_attention<16>(args, stream);
      case 32:
        return launch_attention<32>(args, stream);
      case 64:
        return launch_attention<64>(args, stream);
      default:
        return launch_attention<128>(args, stream);
    }
  }

  // From z and the residual before a block to the residual after it, x, and that after the next norm, y.
  void finish_block(std::size_t layer, const RowSpace& s, const RowCount& n, cudaStream_t stream) const {
    const DeviceBlock& b = blocks[layer];
    const LayerNorm next = norm_after(layer);
    if (b.rest.size() > 0) return finish_fused(b, next, s, n, stream);
    // The MLP of a parallel block sees what attention saw; y is free by then.
    const bool parallel = arch.residual == Architecture::Residual::kParallel;
    const LayerNorm ln2 = norm(b.ln2_w, b.ln2_b);
    if (parallel) layernorm_rows(s.x.data(), n.n, d, ln2, s.y.view(), stream, n.on_device);
    product_added(product(s.z, n, b.w_o, b.b_o), s.x.data(), d, stream);
    if (!parallel) layernorm_rows(s.x.data(), n.n, d, ln2, s.y.view(), stream, n.on_device);
    product_activated(product(s.y, n, b.w_in, b.b_in), arch.mlp, s.hidden.view(), stream);
    product_added(product(s.hidden, n, b.w_out, b.b_out), s.x.data(), d, stream);
    layernorm_rows(s.x.data(), n.n, d, next, s.y.view(), stream, n.on_device);
  }
  void finish_fused(const DeviceBlock& b, const LayerNorm& next, const RowSpace& s, const RowCount& n,
                    cudaStream_t stream) const {
    const TwofoldBlockArgs args{.n = n,
                                .d_mlp = d_mlp,
                                .eps = eps,
                                .z = s.z.view(),
                                .x = s.x.data(),
                                .chunks = b.rest.data(),
                                .n_chunks = static_cast<int>(b.rest.size() / kChunkVectors),
                                .next_w = next.w,
                                .next_b = next.b,
                                .y = s.y.view()};
    const auto tiles = (n.n + kTileRows - 1) / kTileRows;
    twofold_block<<<std::min<std::uint32_t>(tiles, device_traits().n_sm), 32 * kTwofoldBlockWarps,
                    sizeof(TwofoldBlockStream::Shared), stream>>>(args);
    check(cudaGetLastError(), "starting a block");
  }

  AttentionArgs attention_args(const RowCount& n, const std::uint32_t* rows, std::size_t layer) const {
    return {.n = n,
            .length = length,
            .n_heads = n_heads,
            .n_kv_heads = n_kv_heads,
            .qkv = layer == 0 ? table.data() : qkv.data(),
            .index = layer == 0 ? rows : nullptr,
            .query_scale = 1.44269504088896341f * scale[layer],
            .last_only = false,
            .z = body.z.view(),
            .first_z = 0};
  }

  // Attention of the last block at the last position, and the residual there, of inputs [0, n) of a piece
  // into rows [first, first + n) of the tail. n_body: their positions.
  void run_blocks(const RowCount& n, const RowCount& n_body, const std::uint32_t* rows, std::uint32_t first,
                  cudaStream_t stream) const {
    const std::size_t n_layers = blocks.size();
    float* x_last = tail.x.data() + static_cast<std::size_t>(first) * d;
    if (n_layers == 1) gather_embedding<<<2048, 256, 0, stream>>>(embedding(), n, length, d, rows, x_last);
    if (n_layers > 1)
      gather_embedding<<<2048, 256, 0, stream>>>(embedding(), n_body, 1, d, rows, body.x.data());
    for (std::size_t layer = 0; layer < n_layers; ++layer) {
      if (layer > 0) project(blocks[layer], body, n_body, qkv.data(), nullptr, stream);
      AttentionArgs args = attention_args(n, rows, layer);
      if (layer + 1 < n_layers) {
        attend(args, stream);
        finish_block(layer, body, n_body, stream);
        continue;
      }
      args.last_only = true;
      args.z = tail.z.view();
      args.first_z = first;
      attend(args, stream);
      if (layer > 0)
        gather_last<<<(n.n * static_cast<unsigned>(d) + 255) / 256, 256, 0, stream>>>(n, length, d,
                                                                                      body.x.data(), x_last);
    }
  }

  // Inputs [first, first + n) of a call; pointers are to theirs.
  void margins(std::uint32_t first, std::uint32_t n, const std::uint32_t* rows, const std::uint32_t* target,
               float* margin, std::uint32_t* other, cudaStream_t stream,
               const std::uint32_t* n_device) const {
    // With one layer nothing is kept per position: all at once.
    const std::uint32_t at_once = blocks.size() == 1 ? n : n_device == nullptr ? piece : unknown_piece;
    if (n_device != nullptr)
      count_pieces<<<1, 64, 0, stream>>>(n_device, first, n, at_once, length, counts.data());
    const auto count = [&](std::uint32_t most, std::size_t i) {
      return RowCount{most, n_device == nullptr ? nullptr : counts.data() + i};
    };
    std::size_t at = 1;
    for (std::uint32_t done = 0; done < n; done += at_once, at += 2) {
      const std::uint32_t now = std::min(at_once, n - done);
      run_blocks(count(now, at), count(now * static_cast<std::uint32_t>(length), at + 1),
                 rows + static_cast<std::size_t>(done) * length, done, stream);
    }
    finish_block(blocks.size() - 1, tail, count(n, 0), stream);
    unembedding.margins(tail.y.view(), n, target, margin, other, stream, count(n, 0).on_device);
    check(cudaGetLastError(), "starting the kernels");
  }

  std::uint32_t piece, unknown_piece;  // inputs; the latter where counts are on the device
  int length, d, d_qkv, d_head, head_values, n_heads, n_kv_heads, d_mlp;
  float eps;
  Architecture arch;
  std::vector<float> scale;  // [n_layers]
  Angles angles;
  std::size_t n_rows;
  std::vector<DeviceBlock> blocks;
  DeviceArray<float> w_e, w_pos, ln_final_w, ln_final_b;
  DeviceArray<std::uint32_t> row_token, row_position;
  DeviceArray<float> table;  // [rows, d_qkv]
  Unembedding unembedding;
  RowSpace body;                      // of every position of a piece; empty with one layer
  DeviceArray<float> qkv;             // likewise
  RowSpace tail;                      // of last positions
  DeviceArray<std::uint32_t> counts;  // as count_pieces has them
};

ForwardEngine::ForwardEngine(const DenseModel& model, const DenseInputs& inputs, bool counts_on_device) {
  require_forward_sizes(model, inputs.length());
  impl_ = std::make_unique<Impl>(model, inputs, counts_on_device);
}
ForwardEngine::~ForwardEngine() = default;
ForwardEngine::ForwardEngine(ForwardEngine&&) noexcept = default;

void ForwardEngine::margins(std::uint32_t n, const std::uint32_t* rows, const std::uint32_t* target,
                            float* margin, std::uint32_t* other, cudaStream_t stream,
                            const std::uint32_t* n_device) const {
  for (std::uint32_t done = 0; done < n; done += Impl::kTail)
    impl_->margins(done, std::min(Impl::kTail, n - done),
                   rows + static_cast<std::size_t>(done) * impl_->length, target + done, margin + done,
                   other + done, stream, n_device);
}

}  // namespace deeptail::cuda
