// Mean and covariance in two passes. Rows are summed within a fixed number of blocks and the blocks are added
// in order, so the result does not depend on the threads.
#include <algorithm>

#include "deeptail/activations.h"

namespace deeptail {

namespace {

constexpr std::size_t kBlocks = 32;
constexpr std::size_t kRowsAtOnce = 4;  // rows per sweep over the matrix, which is larger than the cache

struct RowRange {
  std::size_t first, end;
};
RowRange block_rows(std::size_t n, std::size_t block) {
  return {n * block / kBlocks, n * (block + 1) / kBlocks};
}

// sum: [d, d], lower triangle += x^T x for x: [kRowsAtOnce, d].
void add_products(std::size_t d, const double* x, double* sum) {
  const double *x0 = x, *x1 = x + d, *x2 = x + 2 * d, *x3 = x + 3 * d;
  for (std::size_t i = 0; i < d; ++i) {
    const double c0 = x0[i], c1 = x1[i], c2 = x2[i], c3 = x3[i];
    double* row = sum + i * d;
    for (std::size_t j = 0; j <= i; ++j) row[j] += (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j]);
  }
}

std::vector<double> mean_of(std::size_t n, std::size_t d, ConstRows x, ThreadPool& pool) {
  std::vector<double> sums(kBlocks * d, 0.0);
  pool.for_each_block(kBlocks, [&](std::size_t block, std::size_t) {
    const auto [first, end] = block_rows(n, block);
    for (std::size_t i = first; i < end; ++i)
      for (std::size_t j = 0; j < d; ++j) sums[block * d + j] += x.row(i)[j];
  });
  std::vector<double> mean(d, 0.0);
  for (std::size_t block = 0; block < kBlocks; ++block)
    for (std::size_t j = 0; j < d; ++j) mean[j] += sums[block * d + j];
  for (double& m : mean) m /= static_cast<double>(n);
  return mean;
}

}  // namespace

Moments moments(std::size_t n, std::size_t d, ConstRows x, ThreadPool& pool) {
  Moments out{n, d, mean_of(n, d, x, pool), std::vector<double>(d * d, 0.0)};
  std::vector<std::vector<double>> sums(kBlocks);  // [d, d] each, lower triangle
  pool.for_each_block(kBlocks, [&](std::size_t block, std::size_t) {
    sums[block].assign(d * d, 0.0);
    std::vector<double> centred(kRowsAtOnce * d);
    const auto [first, end] = block_rows(n, block);
    for (std::size_t i = first; i < end; i += kRowsAtOnce) {
      std::fill(centred.begin(), centred.end(), 0.0);
      for (std::size_t r = 0; r < std::min(kRowsAtOnce, end - i); ++r)
        for (std::size_t j = 0; j < d; ++j) centred[r * d + j] = x.row(i + r)[j] - out.mean[j];
      add_products(d, centred.data(), sums[block].data());
    }
  });
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = 0.0;
      for (std::size_t block = 0; block < kBlocks; ++block) sum += sums[block][i * d + j];
      out.covariance[i * d + j] = out.covariance[j * d + i] = sum / static_cast<double>(n);
    }
  return out;
}

}  // namespace deeptail
