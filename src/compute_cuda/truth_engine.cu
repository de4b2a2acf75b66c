// The order of kernels: sample, attention of the last position (one layer) or all blocks, tail; then
// near-ties in fp32.
#include "compute_cuda/truth_engine.h"

#include <algorithm>
#include <cmath>

#include "compute_cuda/blocks.cuh"
#include "compute_cuda/device.cuh"
#include "compute_cuda/exact.cuh"
#include "compute_cuda/last_attention.cuh"
#include "compute_cuda/pack.h"
#include "compute_cuda/sample.cuh"
#include "compute_cuda/tail.cuh"

namespace deeptail::cuda {

namespace {

// fp32 weights on the device.
struct DeviceWeights {
  std::vector<DeviceArray<float>> owned;
  std::vector<ExactBlock> blocks;
  const float* keep(const std::vector<float>& values) {
    owned.emplace_back(values);
    return owned.back().data();
  }
  explicit DeviceWeights(const DenseModel& m) {
    for (const DenseBlock& b : m.blocks)
      blocks.push_back({keep(b.ln1_w), keep(b.ln1_b), keep(b.b_qkv), keep(b.b_o), keep(b.ln2_w),
                        keep(b.ln2_b), keep(b.b_in), keep(b.b_out), keep(b.w_qkv), keep(b.w_o), keep(b.w_in),
                        keep(b.w_out)});
  }
};

std::vector<float> padded_columns(const std::vector<float>& w, std::size_t rows, std::size_t n,
                                  std::size_t n_columns) {
  std::vector<float> out(rows * n_columns, 0.0f);
  for (std::size_t r = 0; r < rows; ++r) std::copy_n(w.begin() + r * n, n, out.begin() + r * n_columns);
  return out;
}

DeviceArray<uint4> stream_on_device(const Halves& halves) {
  DeviceArray<uint4> out(halves.size() / 8);
  check(cudaMemcpy(out.data(), halves.data(), halves.size() * 2, cudaMemcpyHostToDevice),
        "copy to the device");
  return out;
}

void require_sizes(const DenseModel& m, std::size_t length) {
  if (m.d_model != kWidth || m.n_heads != kHeads || m.d_head != kWidth / kHeads || m.d_mlp % 32 != 0 ||
      m.d_mlp < 64)
    throw Failure(
        "counts models with d_model 128, 4 heads of 32 and d_mlp a multiple of 32, at least 64, only");
  if (length > 64) throw Failure("counts inputs of at most 64 tokens only");
}

}  // namespace

std::string device_name() {
  int n = 0;
  check(cudaGetDeviceCount(&n), "looking for a CUDA device");
  if (n == 0) throw Failure("looking for a CUDA device: there is none");
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "looking for a CUDA device");
  return std::string(properties.name) + ", " + std::to_string(properties.totalGlobalMem >> 30) + " GiB";
}

struct TruthEngine::Impl {
  Impl(const DenseModel& m, const DenseInputs& inputs, std::uint64_t seed_, const EngineOptions& options_)
      : options(options_),
        seed(seed_),
        length(static_cast<int>(inputs.length())),
        n_layers(static_cast<int>(m.n_layers)),
        n_columns((m.d_vocab + 255) / 256 * 256),
        batch(options_.batch > 0 ? options_.batch
              : m.n_layers == 1  ? 1u << 20
                                 : 1u << 18),
        weights(m),
        blocks_on_device(weights.blocks),
        tables(inputs.tables),
        first_row(inputs.first_row),
        guide(inputs.guide),
        row_token(inputs.row_token),
        row_position(inputs.row_position),
        last_unit(inputs.last_unit),
        w_e(m.w_e),
        w_pos(m.w_pos),
        ln_final_w(m.ln_final_w),
        ln_final_b(m.ln_final_b),
        w_u(padded_columns(m.w_u, m.d_model, m.d_vocab, n_columns)),
        first_exact(inputs.row_token.size() * 384),
        first_rounded(inputs.row_token.size() * 384),
        rows(batch * inputs.length()),
        z(batch * kWidth),
        y(batch * kWidth),
        x_last(m.n_layers > 1 ? batch * kWidth : 0),
        exact_z(batch * kWidth),
        exact_x(m.n_layers > 1 ? batch * kWidth : 0),
        near(batch),
        n_near_now(1),
        n_now(1),
        n_near_total(1),
        counts(n_columns) {
    std::vector<float> bias(n_columns, kNoToken);
    std::copy(m.b_u.begin(), m.b_u.end(), bias.begin());
    b_u = DeviceArray<float>(bias);
    mlp_chunks = stream_on_device(pack_last_mlp(m, order()));
    unembed_chunks = stream_on_device(pack_unembedding(m, order()));
    if (n_layers > 1) block_chunks = stream_on_device(pack_blocks(m, order()));
    counts.zero();
    n_near_total.zero();
    d_mlp = static_cast<int>(m.d_mlp);
    d_vocab = m.d_vocab;
    eps = m.eps;
    score_scale = 1.0f / std::sqrt(static_cast<float>(m.d_head));
    query_scale = score_scale * 1.44269504088896341f;
    prepare_device();
    first_layer_rows<<<static_cast<unsigned>(inputs.row_token.size()), 128>>>(
        embedding(), weights.blocks[0].ln1_w, weights.blocks[0].ln1_b, eps, weights.blocks[0].w_qkv,
        weights.blocks[0].b_qkv, query_scale, first_exact.data(), first_rounded.data());
    check(cudaDeviceSynchronize(), "first layer");
  }

  // Devices of compute capability 9.0 run the code for sm_90a, all others that for mma.sync.
  static TileOrder order() {
    int device = 0, major = 0, minor = 0;
    check(cudaGetDevice(&device), "device");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "device");
    check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "device");
    return major == 9 && minor == 0 ? TileOrder::kWgmma : TileOrder::kMma;
  }

  Embedding embedding() const { return {w_e.data(), w_pos.data(), row_token.data(), row_position.data()}; }

  void prepare_device() {
    int device = 0, shared = 0;
    check(cudaGetDevice(&device), "device");
    check(cudaDeviceGetAttribute(&n_sm, cudaDevAttrMultiProcessorCount, device), "device");
    check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "device");
    const auto allow = [](const void* kernel, std::size_t bytes) {
      check(
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
          "shared memory");
    };
    warps = sizeof(BlocksShared<12>) <= static_cast<std::size_t>(shared)  ? 12
            : sizeof(BlocksShared<8>) <= static_cast<std::size_t>(shared) ? 8
                                                                          : 4;
    if (warps == 12) allow(reinterpret_cast<const void*>(blocks<12>), sizeof(BlocksShared<12>));
    if (warps == 8) allow(reinterpret_cast<const void*>(blocks<8>), sizeof(BlocksShared<8>));
    if (warps == 4) allow(reinterpret_cast<const void*>(blocks<4>), sizeof(BlocksShared<4>));
    allow(reinterpret_cast<const void*>(last_mlp), sizeof(MlpStream::Shared));
    allow(reinterpret_cast<const void*>(unembed), sizeof(UnembedStream::Shared));
    allow(reinterpret_cast<const void*>(exact_blocks), exact_shared_bytes(length));
  }

  void sample(std::uint64_t first, std::uint32_t n) const {
    const SampleTables s{tables.data(), first_row.data(), guide.data(), last_unit.data(), length};
    sample_rows<<<n_sm * 8, 256>>>(s, seed, first, n, rows.data());
  }

  template <class T>
  void attend_last(InputList list, const T* qkv, float scale, T* out) const {
    const auto kernel = length <= 32 ? last_attention<32, T> : last_attention<64, T>;
    kernel<<<n_sm * 8, 256>>>(list, length, rows.data(), qkv, scale, out);
  }

  void run_blocks(std::uint32_t n) const {
    if (n_layers == 1) {
      check(cudaMemcpyAsync(n_now.data(), &n, sizeof(n), cudaMemcpyHostToDevice), "copy to the device");
      attend_last({nullptr, n_now.data()}, first_rounded.data(), 1.0f, z.data());
      return;
    }
    const BlocksArgs args{.n = n,
                          .length = length,
                          .n_layers = n_layers,
                          .d_mlp = d_mlp,
                          .eps = eps,
                          .query_scale = query_scale,
                          .embedding = embedding(),
                          .rows = rows.data(),
                          .first = first_rounded.data(),
                          .chunks = block_chunks.data(),
                          .n_chunks = static_cast<int>(block_chunks.size() / kChunkVectors),
                          .z = z.data(),
                          .x_last = x_last.data()};
    if (warps == 12) blocks<12><<<n_sm, 384, sizeof(BlocksShared<12>)>>>(args);
    if (warps == 8) blocks<8><<<n_sm, 256, sizeof(BlocksShared<8>)>>>(args);
    if (warps == 4) blocks<4><<<n_sm, 128, sizeof(BlocksShared<4>)>>>(args);
  }

  void run_tail(std::uint32_t n, const Verdicts& verdicts) const {
    const LastMlpArgs mlp_args{.n = n,
                               .length = length,
                               .d_mlp = d_mlp,
                               .eps = eps,
                               .z = z.data(),
                               .x_last = x_last.data(),
                               .embedding = embedding(),
                               .rows = rows.data(),
                               .ln_final_w = ln_final_w.data(),
                               .ln_final_b = ln_final_b.data(),
                               .chunks = mlp_chunks.data(),
                               .n_chunks = static_cast<int>(mlp_chunks.size() / kChunkVectors),
                               .out = y.data()};
    last_mlp<<<n_sm, 32 * kMlpWarps, sizeof(MlpStream::Shared)>>>(mlp_args);
    const UnembedArgs args{.n = n,
                           .y = y.data(),
                           .chunks = unembed_chunks.data(),
                           .n_chunks = static_cast<int>(unembed_chunks.size() / kChunkVectors),
                           .near_tie = options.near_tie,
                           .near = near.data(),
                           .n_near = n_near_now.data(),
                           .verdicts = verdicts};
    unembed<<<2 * n_sm, 32 * kUnembedWarps, sizeof(UnembedStream::Shared)>>>(args);
  }

  // Of the inputs listed in near, or of all [0, *n_near_now).
  void run_exact(const Verdicts& verdicts, bool all) const {
    const ExactArgs args{.length = length,
                         .n_layers = n_layers,
                         .d_mlp = d_mlp,
                         .n_columns = static_cast<int>(n_columns),
                         .eps = eps,
                         .score_scale = score_scale,
                         .embedding = embedding(),
                         .rows = rows.data(),
                         .first = first_exact.data(),
                         .blocks = blocks_on_device.data(),
                         .ln_final_w = ln_final_w.data(),
                         .ln_final_b = ln_final_b.data(),
                         .w_u = w_u.data(),
                         .b_u = b_u.data(),
                         .list = {all ? nullptr : near.data(), n_near_now.data()},
                         .z = exact_z.data(),
                         .x_last = exact_x.data(),
                         .verdicts = verdicts};
    if (n_layers == 1)
      attend_last(args.list, first_exact.data(), query_scale, exact_z.data());
    else
      exact_blocks<<<n_sm * 4, kExactThreads, exact_shared_bytes(length)>>>(args);
    exact_tail<<<n_sm * 4, kExactThreads>>>(args);
  }

  void run(std::uint64_t first, std::uint32_t n, const Verdicts& verdicts) const {
    check(cudaMemsetAsync(n_near_now.data(), 0, sizeof(std::uint32_t)), "clear");
    sample(first, n);
    run_blocks(n);
    run_tail(n, verdicts);
    if (options.near_tie > 0.0f) run_exact(verdicts, false);
    check(cudaGetLastError(), "starting the kernels");
  }

  Decisions decisions(std::size_t n, const DeviceArray<std::uint32_t>& said,
                      const DeviceArray<float>& gap) const {
    check(cudaDeviceSynchronize(), "counting");
    Decisions out{said.to_host(), gap.to_host()};
    out.said.resize(n), out.gap.resize(n);
    return out;
  }

  EngineOptions options;
  std::uint64_t seed;
  int length, n_layers;
  std::size_t n_columns, batch, d_vocab = 0;
  int d_mlp = 0, n_sm = 0, warps = 12;
  float eps = 0.0f, score_scale = 0.0f, query_scale = 0.0f;
  DeviceWeights weights;
  DeviceArray<ExactBlock> blocks_on_device;
  DeviceArray<DenseInputs::Table> tables;
  DeviceArray<std::uint32_t> first_row, guide, row_token, row_position;
  DeviceArray<std::uint64_t> last_unit;
  DeviceArray<float> w_e, w_pos, ln_final_w, ln_final_b, w_u, b_u;
  DeviceArray<uint4> block_chunks, mlp_chunks, unembed_chunks;
  DeviceArray<float> first_exact;
  DeviceArray<__half> first_rounded;
  DeviceArray<std::uint32_t> rows;
  DeviceArray<__half> z, y;
  DeviceArray<float> x_last, exact_z, exact_x;
  DeviceArray<std::uint32_t> near, n_near_now, n_now;
  DeviceArray<unsigned long long> n_near_total, counts;
};

namespace {
__global__ void add_near(const std::uint32_t* now, unsigned long long* total) { *total += *now; }
}  // namespace

TruthEngine::TruthEngine(const DenseModel& model, const DenseInputs& inputs, std::uint64_t seed,
                         const EngineOptions& options) {
  require_sizes(model, inputs.length());
  device_name();
  impl_ = std::make_unique<Impl>(model, inputs, seed, options);
}
TruthEngine::~TruthEngine() = default;

std::size_t TruthEngine::batch() const { return impl_->batch; }

void TruthEngine::count(std::uint64_t first, std::uint64_t n) {
  for (std::uint64_t done = 0; done < n; done += impl_->batch) {
    const auto now = static_cast<std::uint32_t>(std::min<std::uint64_t>(impl_->batch, n - done));
    impl_->run(first + done, now, {impl_->counts.data(), nullptr, nullptr});
    add_near<<<1, 1>>>(impl_->n_near_now.data(), impl_->n_near_total.data());
  }
}

void TruthEngine::collect(std::span<std::uint64_t> counts) {
  check(cudaDeviceSynchronize(), "counting");
  const std::vector<unsigned long long> found = impl_->counts.to_host();
  for (std::size_t id = 0; id < counts.size(); ++id) counts[id] += found[id];
  impl_->counts.zero();
}

std::uint64_t TruthEngine::n_near() const { return impl_->n_near_total.to_host()[0]; }

std::vector<std::uint32_t> TruthEngine::sampled_rows(std::uint64_t first, std::size_t n) {
  impl_->sample(first, static_cast<std::uint32_t>(n));
  check(cudaDeviceSynchronize(), "sampling");
  std::vector<std::uint32_t> rows = impl_->rows.to_host();
  rows.resize(n * static_cast<std::size_t>(impl_->length));
  return rows;
}

Decisions TruthEngine::decide(std::uint64_t first, std::size_t n) {
  const DeviceArray<std::uint32_t> said(impl_->batch);
  const DeviceArray<float> gap(impl_->batch);
  const DeviceArray<unsigned long long> counts(impl_->n_columns);
  impl_->run(first, static_cast<std::uint32_t>(n), {counts.data(), said.data(), gap.data()});
  return impl_->decisions(n, said, gap);
}

Decisions TruthEngine::decide_exact(std::uint64_t first, std::size_t n) {
  const DeviceArray<std::uint32_t> said(impl_->batch);
  const DeviceArray<float> gap(impl_->batch);
  const DeviceArray<unsigned long long> counts(impl_->n_columns);
  impl_->sample(first, static_cast<std::uint32_t>(n));
  const auto all = static_cast<std::uint32_t>(n);
  check(cudaMemcpy(impl_->n_near_now.data(), &all, sizeof(all), cudaMemcpyHostToDevice),
        "copy to the device");
  impl_->run_exact({counts.data(), said.data(), gap.data()}, true);
  check(cudaGetLastError(), "starting the kernels");
  return impl_->decisions(n, said, gap);
}

TruthEngine::StageSeconds TruthEngine::time_stages(std::uint64_t first) {
  cudaEvent_t event[5];
  for (cudaEvent_t& e : event) check(cudaEventCreate(&e), "timing");
  const auto n = static_cast<std::uint32_t>(impl_->batch);
  const DeviceArray<unsigned long long> counts(impl_->n_columns);
  const Verdicts verdicts{counts.data(), nullptr, nullptr};
  impl_->n_near_now.zero();
  cudaEventRecord(event[0]);
  impl_->sample(first, n);
  cudaEventRecord(event[1]);
  impl_->run_blocks(n);
  cudaEventRecord(event[2]);
  impl_->run_tail(n, verdicts);
  cudaEventRecord(event[3]);
  if (impl_->options.near_tie > 0.0f) impl_->run_exact(verdicts, false);
  cudaEventRecord(event[4]);
  check(cudaDeviceSynchronize(), "timing");
  float ms[4];
  for (int i = 0; i < 4; ++i) check(cudaEventElapsedTime(&ms[i], event[i], event[i + 1]), "timing");
  for (const cudaEvent_t e : event) cudaEventDestroy(e);
  return {ms[0] * 1e-3, ms[1] * 1e-3, ms[2] * 1e-3, ms[3] * 1e-3};
}

}  // namespace deeptail::cuda
