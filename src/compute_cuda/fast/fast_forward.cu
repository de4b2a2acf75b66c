// The order of kernels: attention of the last position (one layer), or all blocks but the last and its
// attention; the last MLP; unembedding.
#include "compute_cuda/fast/fast_forward.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "compute_cuda/device.cuh"
#include "compute_cuda/fast/blocks.cuh"
#include "compute_cuda/fast/first_layer.cuh"
#include "compute_cuda/fast/last_attention.cuh"
#include "compute_cuda/fast/last_block.cuh"
#include "compute_cuda/fast/tail.cuh"
#include "compute_cuda/limits.h"
#include "compute_cuda/tiles/pack.h"
#include "compute_cuda/wide/wide_forward.h"

namespace deeptail::cuda {

namespace {

DeviceArray<uint4> stream_on_device(const Halves& halves) {
  DeviceArray<uint4> out(halves.size() / 8);
  check(cudaMemcpy(out.data(), halves.data(), halves.size() * 2, cudaMemcpyHostToDevice),
        "copy to the device");
  return out;
}

// W_U transposed, in fp16: [d_vocab, 128].
std::vector<__half> columns_of_unembedding(const DenseModel& m) {
  std::vector<__half> columns(m.d_vocab * kWidth);
  for (std::size_t k = 0; k < kWidth; ++k)
    for (std::size_t id = 0; id < m.d_vocab; ++id)
      columns[id * kWidth + k] = __float2half_rn(m.w_u[k * m.d_vocab + id]);
  return columns;
}

TileOrder tile_order() { return device_traits().hopper ? TileOrder::kWgmma : TileOrder::kMma; }

void allow_shared(const void* kernel, std::size_t bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "shared memory");
}

}  // namespace

// The kernels with what they need.
struct FastForward::Impl {
  Impl(const DenseModel& m, const DenseInputs& inputs, std::size_t batch)
      : w_e_(m.w_e),
        w_pos_(m.w_pos),
        row_token_(inputs.row_token),
        row_position_(inputs.row_position),
        embedding_{w_e_.data(), w_pos_.data(), row_token_.data(), row_position_.data()},
        length_(static_cast<int>(inputs.length())),
        n_layers_(static_cast<int>(m.n_layers)),
        d_mlp_(static_cast<int>(m.d_mlp)),
        eps_(m.eps),
        query_scale_(1.44269504088896341f / std::sqrt(static_cast<float>(m.d_head))),
        ln_final_w_(m.ln_final_w),
        ln_final_b_(m.ln_final_b),
        b_u_(m.b_u),
        w_u_(columns_of_unembedding(m)),
        batch_(batch),
        first_(inputs.row_token.size() * 384),
        y_(batch * kWidth) {
    unembed_chunks_ = stream_on_device(pack_unembedding(m, tile_order()));
    prepare_device();
    fill_first_layer(m.blocks.front(), inputs.row_token.size());
    if (n_layers_ > 1) {
      prepare_deep(m, inputs);
    } else {
      z_ = DeviceArray<__half>(batch * kWidth);
      mlp_chunks_ = stream_on_device(pack_rest(m.blocks.back(), m.d_mlp, tile_order()));
    }
  }

  void prepare_deep(const DenseModel& m, const DenseInputs& inputs) {
    const DenseBlock& last = m.blocks.back();
    block_chunks_ = stream_on_device(pack_blocks(m, tile_order()));
    query_chunks_ = stream_on_device(pack_last_queries(last, tile_order()));
    mlp_chunks_ = stream_on_device(pack_last_rest(last, m.d_mlp, tile_order()));
    ln_last_w_ = DeviceArray<float>(last.ln1_w);
    ln_last_b_ = DeviceArray<float>(last.ln1_b);
    prefixes_.emplace(m, inputs, 16 * warps_);
    prefixes_->fill(m, embedding_);
    last_rows_ = DeviceArray<__half>(batch_ * own() * kWidth);
    u_ = DeviceArray<__half>(batch_ * kHeads * kWidth);
    averages_ = DeviceArray<__half>(batch_ * kHeads * kWidth);
    x_last_ = DeviceArray<float>(batch_ * kWidth);
    choose_average_blocks();
  }
  int average_tiles() const { return std::max(2, (length_ + 15) / 16); }
  static auto average_kernel(int tiles) {
    return tiles == 2 ? last_average<2> : tiles == 3 ? last_average<3> : last_average<4>;
  }
  // As many thread blocks as the device runs at a time.
  void choose_average_blocks() {
    const int tiles = average_tiles();
    allow_shared(reinterpret_cast<const void*>(average_kernel(tiles)), average_shared(tiles));
    int at_once = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, average_kernel(tiles), 32 * kAverageWarps,
                                                        average_shared(tiles)),
          "thread blocks at once");
    average_blocks_ = std::max(1, at_once) * n_sm_;
  }
  // Rows of an input that have no prefix.
  std::size_t own() const { return static_cast<std::size_t>(length_ - prefixes_->view().n_positions); }

  void run_blocks(std::uint32_t n, const std::uint32_t* rows, cudaStream_t stream) const {
    if (n_layers_ == 1) {
      const auto kernel = length_ <= 32 ? last_attention<32> : last_attention<64>;
      kernel<<<n_sm_ * 8, 256, 0, stream>>>(n, length_, rows, first_.data(), z_.data());
      return;
    }
    run_deep_blocks(n, rows, stream);
    run_last_attention(n, rows, stream);
  }

  void run_deep_blocks(std::uint32_t n, const std::uint32_t* rows, cudaStream_t stream) const {
    const BlocksArgs args{.n = n,
                          .length = length_,
                          .n_layers = n_layers_,
                          .d_mlp = d_mlp_,
                          .eps = eps_,
                          .query_scale = query_scale_,
                          .embedding = embedding_,
                          .rows = rows,
                          .prefix = prefixes_->view(),
                          .first = first_.data(),
                          .chunks = block_chunks_.data(),
                          .n_chunks = static_cast<int>(block_chunks_.size() / kChunkVectors),
                          .ln_w = ln_last_w_.data(),
                          .ln_b = ln_last_b_.data(),
                          .y = last_rows_.data(),
                          .x_last = x_last_.data()};
    if (warps_ == 12) blocks<12><<<n_sm_, 384, sizeof(BlocksShared<12>), stream>>>(args);
    if (warps_ == 8) blocks<8><<<n_sm_, 256, sizeof(BlocksShared<8>), stream>>>(args);
    if (warps_ == 4) blocks<4><<<n_sm_, 128, sizeof(BlocksShared<4>), stream>>>(args);
  }

  void run_last_attention(std::uint32_t n, const std::uint32_t* rows, cudaStream_t stream) const {
    const LastQueriesArgs queries{.n = n,
                                  .own = static_cast<int>(own()),
                                  .query_scale = query_scale_,
                                  .y = last_rows_.data(),
                                  .chunks = query_chunks_.data(),
                                  .n_chunks = static_cast<int>(query_chunks_.size() / kChunkVectors),
                                  .u = u_.data()};
    last_queries<<<n_sm_, 32 * kQueryWarps, sizeof(QueryStream::Shared), stream>>>(queries);
    const LastAverageArgs average{.n = n,
                                  .length = length_,
                                  .rows = rows,
                                  .prefix = prefixes_->view(),
                                  .y = last_rows_.data(),
                                  .u = u_.data(),
                                  .averages = averages_.data()};
    const int tiles = average_tiles();
    const auto kernel = average_kernel(tiles);
    kernel<<<average_blocks_, 32 * kAverageWarps, average_shared(tiles), stream>>>(average);
  }

  // The normalised residuals at the last position: y_.
  void run_last_mlp(std::uint32_t n, const std::uint32_t* rows, cudaStream_t stream) const {
    const LastMlpArgs args{.n = n,
                           .length = length_,
                           .d_mlp = d_mlp_,
                           .eps = eps_,
                           .z = z_.data(),
                           .averages = averages_.data(),
                           .x_last = x_last_.data(),
                           .embedding = embedding_,
                           .rows = rows,
                           .ln_final_w = ln_final_w_.data(),
                           .ln_final_b = ln_final_b_.data(),
                           .chunks = mlp_chunks_.data(),
                           .n_chunks = static_cast<int>(mlp_chunks_.size() / kChunkVectors),
                           .out = y_.data()};
    const auto kernel = n_layers_ > 1 ? last_mlp<true> : last_mlp<false>;
    kernel<<<n_sm_, 32 * kMlpWarps, sizeof(MlpStream::Shared), stream>>>(args);
  }

  void say(std::uint32_t n, const std::uint32_t* rows, const NearTies& near, const Verdicts& verdicts,
           cudaStream_t stream) const {
    run_last_mlp(n, rows, stream);
    run_unembed(n, CountSaid{near, verdicts}, stream);
  }

  void margins(std::uint32_t n, const std::uint32_t* rows, const std::uint32_t* target, float* margin,
               cudaStream_t stream) const {
    for (std::size_t done = 0; done < n; done += batch_) {
      const auto now = static_cast<std::uint32_t>(std::min<std::size_t>(batch_, n - done));
      const std::uint32_t* now_rows = rows + done * static_cast<std::size_t>(length_);
      run_blocks(now, now_rows, stream);
      run_last_mlp(now, now_rows, stream);
      run_unembed(now, StoreMargin{target + done, w_u_.data(), b_u_.data(), margin + done}, stream);
    }
    check(cudaGetLastError(), "starting the kernels");
  }

  // Of the rows of y_.
  template <class Wanted>
  void run_unembed(std::uint32_t n, const Wanted& wanted, cudaStream_t stream) const {
    const UnembedArgs<Wanted> args{.n = n,
                                   .y = y_.data(),
                                   .chunks = unembed_chunks_.data(),
                                   .n_chunks = static_cast<int>(unembed_chunks_.size() / kChunkVectors),
                                   .wanted = wanted};
    unembed<Wanted><<<2 * n_sm_, 32 * kUnembedWarps, sizeof(UnembedStream::Shared), stream>>>(args);
  }

  void prepare_device() {
    n_sm_ = device_traits().n_sm;
    const std::size_t most = device_traits().most_shared;
    warps_ = sizeof(BlocksShared<12>) <= most ? 12 : sizeof(BlocksShared<8>) <= most ? 8 : 4;
    if (warps_ == 12) allow_shared(reinterpret_cast<const void*>(blocks<12>), sizeof(BlocksShared<12>));
    if (warps_ == 8) allow_shared(reinterpret_cast<const void*>(blocks<8>), sizeof(BlocksShared<8>));
    if (warps_ == 4) allow_shared(reinterpret_cast<const void*>(blocks<4>), sizeof(BlocksShared<4>));
    allow_shared(reinterpret_cast<const void*>(last_queries), sizeof(QueryStream::Shared));
    allow_shared(reinterpret_cast<const void*>(last_mlp<false>), sizeof(MlpStream::Shared));
    allow_shared(reinterpret_cast<const void*>(last_mlp<true>), sizeof(MlpStream::Shared));
    allow_shared(reinterpret_cast<const void*>(unembed<CountSaid>), sizeof(UnembedStream::Shared));
    allow_shared(reinterpret_cast<const void*>(unembed<StoreMargin>), sizeof(UnembedStream::Shared));
  }

  void fill_first_layer(const DenseBlock& block, std::size_t n_rows) {
    const DeviceArray<float> ln_w(block.ln1_w), ln_b(block.ln1_b), w(block.w_qkv), b(block.b_qkv);
    first_layer_rows<<<static_cast<unsigned>(n_rows), 128>>>(embedding_, ln_w.data(), ln_b.data(), eps_,
                                                             w.data(), b.data(), query_scale_, first_.data());
    check(cudaDeviceSynchronize(), "first layer");
  }

  DeviceArray<float> w_e_, w_pos_;
  DeviceArray<std::uint32_t> row_token_, row_position_;
  Embedding embedding_;
  int length_, n_layers_, d_mlp_, n_sm_ = 0, warps_ = 12, average_blocks_ = 0;
  float eps_, query_scale_;
  DeviceArray<float> ln_final_w_, ln_final_b_, b_u_;
  DeviceArray<__half> w_u_;  // [d_vocab, 128]
  std::size_t batch_;
  DeviceArray<__half> first_;  // [rows, 384]
  DeviceArray<__half> z_, y_;  // [batch, 128]; z for one layer
  DeviceArray<uint4> mlp_chunks_, unembed_chunks_;
  // For more than one layer:
  std::optional<PrefixTable> prefixes_;
  DeviceArray<uint4> block_chunks_, query_chunks_;
  DeviceArray<float> ln_last_w_, ln_last_b_;
  DeviceArray<__half> last_rows_;     // [batch, own rows, 128]
  DeviceArray<__half> u_, averages_;  // [batch, heads, 128]
  DeviceArray<float> x_last_;         // [batch, 128]
};

bool FastForward::fits(const DenseModel& m, std::size_t length) {
  static_assert(kFastModel == kWidth && kFastHeads == kHeads);
  if (WideForward::fits(m, length)) return true;
  return has_fast_kernels(m.arch, m.d_model, m.n_heads, m.d_head, m.d_mlp) && length <= kMostFastPositions;
}

FastForward::FastForward(const DenseModel& model, const DenseInputs& inputs, std::size_t max_inputs) {
  if (WideForward::fits(model, inputs.length()))
    wide_ = std::make_unique<WideForward>(model, inputs, max_inputs);
  else
    impl_ = std::make_unique<Impl>(model, inputs, max_inputs);
}
FastForward::~FastForward() = default;
FastForward::FastForward(FastForward&&) noexcept = default;

void FastForward::run_blocks(std::uint32_t n, const std::uint32_t* rows, cudaStream_t stream) const {
  wide_ ? wide_->run_blocks(n, rows, stream) : impl_->run_blocks(n, rows, stream);
}
void FastForward::say(std::uint32_t n, const std::uint32_t* rows, const NearTies& near,
                      const Verdicts& verdicts, cudaStream_t stream) const {
  wide_ ? wide_->say(n, near, verdicts, stream) : impl_->say(n, rows, near, verdicts, stream);
}
void FastForward::margins(std::uint32_t n, const std::uint32_t* rows, const std::uint32_t* target,
                          float* margin, cudaStream_t stream) const {
  wide_ ? wide_->margins(n, rows, target, margin, stream) : impl_->margins(n, rows, target, margin, stream);
}

}  // namespace deeptail::cuda
