// The order of kernels: blocks of some inputs at a time, all positions but in the last block; then the last positions of all.
#include "compute_cuda/wide/wide_forward.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "compute_cuda/limits.h"
#include "compute_cuda/tiles/pack.h"
#include "compute_cuda/wide/attention.cuh"
#include "compute_cuda/wide/epilogues.cuh"
#include "compute_cuda/wide/last_block.cuh"
#include "compute_cuda/wide/settle.cuh"

namespace deeptail::cuda {

namespace {

// Into how many parts columns are cut so that all multiprocessors are busy to the end, or nearly.
constexpr int kMostWideParts = 16, kFewRounds = 4;
int wide_parts(std::uint32_t n, int n_tiles) {
  const int clusters = device_traits().n_sm / kWideBlocks;
  const int pairs = static_cast<int>((n + kClusterRows - 1) / kClusterRows);
  int best = 1;
  long long least = -1;
  for (int parts = 1; parts <= std::min(n_tiles, kMostWideParts); ++parts) {
    const long long rounds = (static_cast<long long>(pairs) * parts + clusters - 1) / clusters;
    const long long time = rounds * ((n_tiles + parts - 1) / parts);
    if (least < 0 || time < least) least = time, best = parts;
  }
  return best;
}

template <bool kResident, class Epilogue>
void launch_wide_with(const WideProductArgs& args, const Epilogue& epilogue, cudaStream_t stream) {
  constexpr int kBytes = sizeof(WideShared<kResident>);
  const auto kernel = wide_product<kResident, Epilogue>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "shared memory");
  const std::uint32_t items = (args.n + kClusterRows - 1) / kClusterRows * args.parts;
  const auto clusters = std::min<std::uint32_t>(items, device_traits().n_sm / kWideBlocks);
  kernel<<<kWideBlocks * clusters, kWideThreads, kBytes, stream>>>(args, epilogue);
  check(cudaGetLastError(), "starting a product");
}

// parts: 0, or into how many the columns are cut.
template <class Epilogue>
void launch_wide(const __half* a, std::uint32_t n, const WideWeights& w, const Epilogue& epilogue,
                 cudaStream_t stream, int parts = 0) {
  const WideProductArgs args{.a = a,
                             .w = w.w.data(),
                             .bias = w.bias.data(),
                             .n = n,
                             .n_device = nullptr,
                             .depth = w.depth,
                             .n_tiles = w.n_tiles,
                             .parts = parts > 0 ? parts : wide_parts(n, w.n_tiles)};
  if (w.depth <= 8 * kTileDepth)
    launch_wide_with<true>(args, epilogue, stream);
  else
    launch_wide_with<false>(args, epilogue, stream);
}

}  // namespace

struct WideForward::Impl {
  static constexpr std::size_t kPieceRows = 1 << 16;  // of blocks at all positions, about

  Impl(const DenseModel& m, const DenseInputs& inputs, std::size_t batch)
      : w_e_(m.w_e),
        w_pos_(m.w_pos),
        row_token_(inputs.row_token),
        row_position_(inputs.row_position),
        embedding_{w_e_.data(), w_pos_.data(), row_token_.data(), row_position_.data()},
        length_(static_cast<int>(inputs.length())),
        eps_(m.eps),
        query_scale_(1.44269504088896341f / std::sqrt(static_cast<float>(m.d_head))),
        ln_final_w_(m.ln_final_w),
        ln_final_b_(m.ln_final_b),
        unembed_(m.w_u, m.b_u, m.d_model, m.d_vocab, kNoToken),
        batch_(batch),
        piece_(kPieceRows / inputs.length() / kTileRows * kTileRows),
        n_rows_(inputs.row_token.size()),
        table_(n_rows_ * kWideQkv),
        body_(m, m.n_layers > 1 ? piece_ * inputs.length() : 0),
        qkv_(m.n_layers > 2 ? piece_ * inputs.length() * kWideQkv : 0),
        tail_(m, batch),
        // The fewer rows, the more parts: their product is at most this.
        best_(std::max<std::size_t>(kMostWideParts * kFewRounds * kClusterRows * device_traits().n_sm / 2,
                                    wide_rows(batch))),
        second_(best_.size()),
        column_(best_.size()) {
    for (const DenseBlock& b : m.blocks) blocks_.emplace_back(m, b);
    if (m.n_layers > 1) prepare_last(m);
    fill_table();
  }
  void prepare_last(const DenseModel& m) {
    last_ = WideLast(m, m.blocks.back());
    const std::size_t n = wide_rows(piece_);
    y_last_ = DeviceArray<__half>(n * kWideModel);
    q_last_ = DeviceArray<__half>(n * kWideModel);
    u_ = DeviceArray<__half>(n * kWideAverages);
    averages_ = DeviceArray<__half>(n * kWideAverages);
    y_last_.zero(), q_last_.zero(), averages_.zero();
    check(cudaFuncSetAttribute(wide_average, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(wide_average_bytes(length_))),
          "shared memory");
  }

  // Queries, keys and values of the first layer for every (position, token) pair.
  void fill_table() {
    for (std::size_t first = 0; first < n_rows_; first += batch_) {
      const auto n = static_cast<std::uint32_t>(std::min(batch_, n_rows_ - first));
      Embedding e = embedding_;
      e.row_token += first, e.row_position += first;
      wide_embedding<<<(n + 7) / 8, 256>>>(e, n, 1, nullptr, tail_.x.data());
      norm(blocks_.front().ln1_w, blocks_.front().ln1_b, tail_, n, nullptr);
      project(blocks_.front(), tail_, n, table_.data() + first * kWideQkv, nullptr);
    }
    check(cudaDeviceSynchronize(), "first layer");
  }

  // y = the layer norm of x.
  template <class T>
  void norm(const DeviceArray<float>& w, const DeviceArray<float>& b, const WideSpace<T>& s, std::uint32_t n,
            cudaStream_t stream) const {
    wide_norm<<<(n + 31) / 32, 128, 0, stream>>>(s.x.data(), n, {w.data(), b.data(), eps_}, s.y.data());
  }
  template <class T>
  void project(const WideBlock& b, const WideSpace<T>& s, std::uint32_t n, __half* out,
               cudaStream_t stream) const {
    launch_wide(s.y.data(), n, b.qkv, StoreWideRows{{n}, out, kWideQkv, kWideModel, query_scale_}, stream);
  }
  // From z and the residual before a block to the residual after it. rows: of the first block, whose residuals begin with their
  // embeddings; otherwise null.
  template <class T>
  void finish_block(const WideBlock& b, const WideSpace<T>& s, std::uint32_t n, const std::uint32_t* rows,
                    cudaStream_t stream) const {
    if constexpr (std::is_same_v<T, __half>) {
      if (rows != nullptr)
        launch_wide(s.z.data(), n, b.o, AddToEmbedding{{n}, embedding_, rows, s.x.data()}, stream);
    }
    if (rows == nullptr) add(s.z, b.o, s, n, stream);
    norm(b.ln2_w, b.ln2_b, s, n, stream);
    launch_wide(s.y.data(), n, b.in, StoreWideGelu{{n}, s.hidden.data(), b.out.depth}, stream);
    add(s.hidden, b.out, s, n, stream);
  }
  template <class T>
  void add(const DeviceArray<__half>& a, const WideWeights& w, const WideSpace<T>& s, std::uint32_t n,
           cudaStream_t stream) const {
    if constexpr (std::is_same_v<T, __half>)
      launch_wide(a.data(), n, w, AddWideTiles{{n}, s.x.data()}, stream);
    else
      launch_wide(a.data(), n, w, AddWideRows{{n}, s.x.data(), kWideModel}, stream);
  }

  // The residuals at the last position before the last block, and its attention there, of all n inputs.
  void run_blocks(std::uint32_t n, const std::uint32_t* rows, cudaStream_t stream) const {
    if (blocks_.size() == 1) {
      wide_embedding<<<(n + 7) / 8, 256, 0, stream>>>(embedding_, n, length_, rows, tail_.x.data());
      return attend_last({n, length_, rows, table_.data(), tail_.z.data()}, stream);
    }
    for (std::uint32_t done = 0; done < n; done += static_cast<std::uint32_t>(piece_))
      run_piece(std::min(n - done, static_cast<std::uint32_t>(piece_)),
                rows + static_cast<std::size_t>(done) * length_, done, stream);
  }
  void attend_last(const WideAttentionArgs& args, cudaStream_t stream) const {
    const auto kernel = length_ <= 32 ? wide_last_attention<32> : wide_last_attention<64>;
    kernel<<<std::min<unsigned>((2 * args.n + 7) / 8, 8 * device_traits().n_sm), 256, 0, stream>>>(args);
  }

  // Inputs [first, first + n) of the tail; first is a multiple of 128.
  void run_piece(std::uint32_t n, const std::uint32_t* rows, std::uint32_t first, cudaStream_t stream) const {
    const std::uint32_t n_body = n * static_cast<std::uint32_t>(length_);
    for (std::size_t layer = 0; layer + 1 < blocks_.size(); ++layer) {
      if (layer > 0) project(blocks_[layer], body_, n_body, qkv_.data(), stream);
      const WideAttentionArgs args{n, length_, layer == 0 ? rows : nullptr,
                                   layer == 0 ? table_.data() : qkv_.data(), body_.z.data()};
      wide_attention<<<std::min<unsigned>(2 * n, 16 * device_traits().n_sm), 32 * kWideAttentionWarps, 0,
                       stream>>>(args);
      finish_block(blocks_[layer], body_, n_body, layer == 0 ? rows : nullptr, stream);
      norm(blocks_[layer + 1].ln1_w, blocks_[layer + 1].ln1_b, body_, n_body, stream);
    }
    run_last_attention(n, first, stream);
  }

  void run_last_attention(std::uint32_t n, std::uint32_t first, cudaStream_t stream) const {
    const std::size_t at = static_cast<std::size_t>(first) * kWideModel;
    wide_last<<<(n + 7) / 8, 256, 0, stream>>>(n, length_, body_.x.data(), body_.y.data(),
                                               tail_.x.data() + at, y_last_.data());
    StoreWideTiles query{{n}, q_last_.data(), kWideModel, query_scale_};
    launch_wide(y_last_.data(), n, last_.query, query, stream);
    StoreWideRows key{{n}, u_.data(), kWideAverages, 0, 1.0f};
    launch_wide(q_last_.data(), n, last_.key, key, stream);
    const std::size_t bytes = wide_average_bytes(length_);
    wide_average<<<std::min<unsigned>(n, 4 * device_traits().n_sm), 128, bytes, stream>>>(
        {n, length_, body_.y.data(), u_.data(), averages_.data()});
    StoreWideTiles value{{n}, tail_.z.data() + at, kWideModel, 1.0f};
    launch_wide(averages_.data(), n, last_.value, value, stream);
  }

  // The rest of the last block, and the two largest logits.
  FoundTops find_tops(std::uint32_t n, cudaStream_t stream) const {
    finish_block(blocks_.back(), tail_, n, nullptr, stream);
    norm(ln_final_w_, ln_final_b_, tail_, n, stream);
    const std::size_t stride = wide_rows(n);
    const bool few =
        stride < static_cast<std::size_t>(kFewRounds * kClusterRows * (device_traits().n_sm / 2));
    const int parts = few ? wide_parts(n, unembed_.n_tiles) : 1;
    KeepTopTwo keep{{n}, stride, best_.data(), second_.data(), column_.data(), {}};
    launch_wide(tail_.y.data(), n, unembed_, keep, stream, parts);
    return {parts, stride, best_.data(), second_.data(), column_.data()};
  }

  void say(std::uint32_t n, const NearTies& near, const Verdicts& verdicts, cudaStream_t stream) const {
    count_tops<<<(n + 255) / 256, 256, 0, stream>>>(n, find_tops(n, stream), CountSaid{near, verdicts});
  }

  void margins(std::uint32_t n, const std::uint32_t* rows, const std::uint32_t* target, float* margin,
               cudaStream_t stream) const {
    for (std::size_t done = 0; done < n; done += batch_) {
      const auto now = static_cast<std::uint32_t>(std::min<std::size_t>(batch_, n - done));
      run_blocks(now, rows + done * static_cast<std::size_t>(length_), stream);
      const FoundTops found = find_tops(now, stream);
      margins_of_tops<<<(now + 7) / 8, 256, 0, stream>>>(now, found, tail_.y.data(), unembed_.w.data(),
                                                         unembed_.bias.data(), target + done, margin + done);
    }
    check(cudaGetLastError(), "starting the kernels");
  }

  DeviceArray<float> w_e_, w_pos_;
  DeviceArray<std::uint32_t> row_token_, row_position_;
  Embedding embedding_;
  int length_;
  float eps_, query_scale_;
  DeviceArray<float> ln_final_w_, ln_final_b_;
  WideWeights unembed_;
  std::size_t batch_, piece_, n_rows_;  // inputs, inputs, pairs of position and token
  DeviceArray<__half> table_;           // [n_rows, 1536]
  std::vector<WideBlock> blocks_;
  WideSpace<__half> body_;   // of every position of a piece; empty with one layer
  DeviceArray<__half> qkv_;  // likewise, and with two
  // Of last positions of a piece, with more than one layer.
  WideLast last_;
  DeviceArray<__half> y_last_, q_last_;  // [piece, 512]
  DeviceArray<__half> u_, averages_;     // [piece, heads, 512]
  WideSpace<float> tail_;                // of last positions
  DeviceArray<float> best_, second_;
  DeviceArray<std::uint32_t> column_;
};

bool WideForward::fits(const DenseModel& m, std::size_t length) {
  static_assert(kWideModel == kWideFastModel && kWideHeads == kWideFastHeads);
  return has_wide_kernels(m.arch, m.d_model, m.n_heads, m.d_head, m.d_mlp) && length <= kMostFastPositions &&
         device_traits().hopper;
}

WideForward::WideForward(const DenseModel& model, const DenseInputs& inputs, std::size_t max_inputs)
    : impl_(std::make_unique<Impl>(model, inputs, max_inputs)) {}
WideForward::~WideForward() = default;
WideForward::WideForward(WideForward&&) noexcept = default;

void WideForward::run_blocks(std::uint32_t n, const std::uint32_t* rows, cudaStream_t stream) const {
  impl_->run_blocks(n, rows, stream);
}
void WideForward::say(std::uint32_t n, const NearTies& near, const Verdicts& verdicts,
                      cudaStream_t stream) const {
  impl_->say(n, near, verdicts, stream);
}
void WideForward::margins(std::uint32_t n, const std::uint32_t* rows, const std::uint32_t* target,
                          float* margin, cudaStream_t stream) const {
  impl_->margins(n, rows, target, margin, stream);
}

}  // namespace deeptail::cuda
