#include "compute_cuda/exact/twofold_products.h"

#include <algorithm>
#include <vector>

#include "compute_cuda/exact/twofold_epilogues.cuh"
#include "compute_cuda/exact/twofold_kernel.cuh"

namespace deeptail::cuda {

namespace {

std::size_t rounded_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// Columns are cut into slices where there are fewer row tiles than multiprocessors.
int slices_for(std::uint32_t n, int n_tiles) {
  const int row_tiles = static_cast<int>((n + kTileRows - 1) / kTileRows);
  return std::clamp(device_traits().n_sm / std::max(row_tiles, 1), 1, n_tiles);
}

template <bool kLow, class Epilogue>
void launch_with(const ProductArgs& args, const Epilogue& epilogue, cudaStream_t stream) {
  const DeviceTraits& device = device_traits();
  const int bytes = device.hopper ? RingSizes<kLow>::kBytes : kOnePieceBytes;
  const auto kernel = twofold_product<kLow, Epilogue>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "shared memory");
  const std::uint32_t items = (args.n + kTileRows - 1) / kTileRows * args.slices;
  kernel<<<std::min<std::uint32_t>(items, RingSizes<kLow>::kBlocks * device.n_sm), kProductThreads, bytes,
           stream>>>(args, epilogue);
  check(cudaGetLastError(), "starting a product");
}

template <class Epilogue>
void launch(const Product& p, const Epilogue& epilogue, int slices, cudaStream_t stream) {
  if (p.n == 0) return;
  const ProductArgs args{.a_high = p.a.high,
                         .a_low = p.a.low,
                         .w_high = p.w.high,
                         .w_low = p.w.low,
                         .n = p.n,
                         .n_device = p.n_device,
                         .depth = p.w.depth,
                         .n_tiles = p.w.n_columns / kTileColumns,
                         .slices = slices};
  if (p.w.low != nullptr)
    launch_with<true>(args, epilogue, stream);
  else
    launch_with<false>(args, epilogue, stream);
}

EpilogueBase base_of(const Product& p) { return {p.bias, p.w.n_valid, 0}; }
int usual_slices(const Product& p) { return slices_for(p.n, p.w.n_columns / kTileColumns); }

// A warp takes eight rows, four lanes each: what it writes is contiguous.
__global__ void __launch_bounds__(256)
    layernorm_kernel(const float* x, std::uint32_t n_most, const std::uint32_t* n_device, int d,
                     LayerNorm norm, TwofoldRows out) {
  const std::uint32_t n = n_device != nullptr ? min(*n_device, n_most) : n_most;
  const int lane = threadIdx.x % 32, t = lane % 4;
  const std::uint32_t warps = gridDim.x * (blockDim.x / 32);
  for (std::uint32_t first = 8 * (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32); first < n;
       first += 8 * warps) {
    const std::uint32_t row = first + lane / 4;
    const float* from = x + static_cast<std::size_t>(min(row, n - 1)) * d + 2 * t;
    float sum = 0.0f, squares = 0.0f;
    for (int k = 0; k < d && !norm.rms; k += 8) {
      const float2 v = load2(from + k);
      sum += v.x + v.y;
    }
    const float mean = norm.rms ? 0.0f : row_sum(sum) / d;
    for (int k = 0; k < d; k += 8) {
      const float2 v = load2(from + k);
      squares = fmaf(v.x - mean, v.x - mean, fmaf(v.y - mean, v.y - mean, squares));
    }
    const float scale = 1.0f / sqrtf(row_sum(squares) / d + norm.eps);
    if (row >= n) continue;
    for (int k = 0; k < d; k += 8) {
      const float2 v = load2(from + k), w = load2(norm.w + k + 2 * t), b = load2(norm.b + k + 2 * t);
      store_twofold2(out, row, k + 2 * t, fmaf((v.x - mean) * scale, w.x, b.x),
                     fmaf((v.y - mean) * scale, w.y, b.y));
    }
  }
}

__global__ void merge_slices(int slices, std::size_t stride, std::uint32_t n_most,
                             const std::uint32_t* n_device, const float* best, const float* own,
                             const std::uint32_t* id, float* margin, std::uint32_t* other) {
  const std::uint32_t n = n_device != nullptr ? min(*n_device, n_most) : n_most;
  const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float b = best[row], o = own[row];
  std::uint32_t i = id[row];
  for (int slice = 1; slice < slices; ++slice) {  // ascending ids: of equal ones the first stays
    const std::size_t at = slice * stride + row;
    if (best[at] > b) b = best[at], i = id[at];
    o = fmaxf(o, own[at]);
  }
  margin[row] = o - b;
  other[row] = i;
}

}  // namespace

TwofoldBuffer::TwofoldBuffer(std::size_t n, std::size_t width)
    : width_(static_cast<int>(rounded_up(width, kTileDepth))),
      high_(rounded_up(n, kTileRows) * static_cast<std::size_t>(width_)),
      low_(high_.size()) {
  high_.zero();
  low_.zero();
}

PackedWeights::PackedWeights(const float* w, std::size_t depth, std::size_t n)
    : depth_(static_cast<int>(rounded_up(depth, kTileDepth))),
      n_columns_(static_cast<int>(rounded_up(n, kTileColumns))),
      n_valid_(static_cast<int>(n)) {
  const std::size_t size = static_cast<std::size_t>(depth_) * static_cast<std::size_t>(n_columns_);
  std::vector<__half> high(size, __float2half_rn(0.0f)), low(high);
  bool exact = true;
  for (std::size_t k = 0; k < depth; ++k)
    for (std::size_t column = 0; column < n; ++column) {
      const float value = w[k * n + column];
      const std::size_t at = twofold_index(depth_, static_cast<std::uint32_t>(column), static_cast<int>(k));
      high[at] = __float2half_rn(value);
      const float rest = value - __half2float(high[at]);
      low[at] = __float2half_rn(rest);
      exact = exact && rest == 0.0f;
    }
  high_ = DeviceArray<__half>(high);
  if (!exact) low_ = DeviceArray<__half>(low);
}

TwofoldWeights PackedWeights::view() const {
  return {high_.data(), low_.data(), depth_, n_columns_, n_valid_};
}

void product_to_floats(const Product& p, float* out, int stride, cudaStream_t stream) {
  launch(p, StoreFloats{base_of(p), out, stride}, usual_slices(p), stream);
}

void product_activated(const Product& p, Architecture::Mlp mlp, const TwofoldRows& out, cudaStream_t stream) {
  switch (mlp) {
    case Architecture::Mlp::kGelu:
      return launch(p, StoreGelu{base_of(p), out}, usual_slices(p), stream);
    case Architecture::Mlp::kGeluTanh:
      return launch(p, StoreGeluTanh{base_of(p), out}, usual_slices(p), stream);
    case Architecture::Mlp::kSwiGlu:
      return launch(p, StoreSwiGlu{base_of(p), out}, usual_slices(p), stream);
  }
}

void product_added(const Product& p, float* x, int stride, cudaStream_t stream) {
  launch(p, AddFloats{base_of(p), x, stride}, usual_slices(p), stream);
}

void layernorm_rows(const float* x, std::uint32_t n, int d, const LayerNorm& norm, const TwofoldRows& out,
                    cudaStream_t stream, const std::uint32_t* n_device) {
  if (n == 0) return;
  const auto blocks = std::min<std::uint32_t>((n + 63) / 64, 16u * device_traits().n_sm);
  layernorm_kernel<<<blocks, 256, 0, stream>>>(x, n, n_device, d, norm, out);
  check(cudaGetLastError(), "starting a layer norm");
}

Unembedding::Unembedding(const float* w_u, const float* b_u, std::size_t d, std::size_t d_vocab,
                         std::size_t max_rows)
    : max_rows_(rounded_up(max_rows, kTileRows)), w_u_(w_u, d, d_vocab) {
  const std::size_t n_columns = rounded_up(d_vocab, kTileColumns);
  std::vector<float> bias(n_columns, -1e30f);
  std::copy_n(b_u, d_vocab, bias.begin());
  b_u_ = DeviceArray<float>(bias);
  // The fewer rows, the more slices: their product is at most this.
  const std::size_t n = max_rows_ + static_cast<std::size_t>(device_traits().n_sm) * kTileRows;
  best_ = DeviceArray<float>(n);
  own_ = DeviceArray<float>(n);
  id_ = DeviceArray<std::uint32_t>(n);
}

void Unembedding::margins(const TwofoldRows& y, std::uint32_t n, const std::uint32_t* target, float* margin,
                          std::uint32_t* other, cudaStream_t stream, const std::uint32_t* n_device) const {
  if (n == 0) return;
  if (n > max_rows_) throw Failure("unembedding: more rows than there is room for");
  const Product p{.a = y, .n = n, .w = w_u_.view(), .n_device = n_device};
  const int slices = usual_slices(p);
  const std::size_t stride = rounded_up(n, kTileRows);
  launch(p,
         BestOther{.bias = b_u_.data(),
                   .target = target,
                   .stride = stride,
                   .best = best_.data(),
                   .own = own_.data(),
                   .id = id_.data()},
         slices, stream);
  merge_slices<<<(n + 255) / 256, 256, 0, stream>>>(slices, stride, n, n_device, best_.data(), own_.data(),
                                                    id_.data(), margin, other);
  check(cudaGetLastError(), "merging margins");
}

}  // namespace deeptail::cuda
