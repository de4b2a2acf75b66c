#include "model/cpu/block.h"

#include <gtest/gtest.h>

#include "unit/compute/kernel_checks.h"

namespace deeptail {
namespace {

PackedMatrix random_matrix(std::size_t k, std::size_t n, std::uint32_t seed) {
  const auto values = random_values(k * n, seed);
  return PackedMatrix({values.data(), values.size()}, k, n);
}

// Gates are made some columns at a time where nothing has to be kept of them, and all at once on a tape.
TEST(Block, GatesInPartsAreGatesAtOnceToTheBit) {
  for (const std::size_t d_mlp : {std::size_t{40}, std::size_t{64}, std::size_t{272}, std::size_t{528}}) {
    ModelConfig c;
    c.d_model = 24, c.d_mlp = d_mlp, c.n_heads = 1, c.d_head = 24;
    c.arch.mlp = Architecture::Mlp::kSwiGlu;
    PackedBlock w;
    w.w_in = random_matrix(c.d_model, 2 * d_mlp, 1), w.w_out = random_matrix(d_mlp, c.d_model, 2);
    w.ln2 = {.weight = AlignedVector<float>(c.d_model, 1.0f), .bias = {}, .centred = false};
    const std::size_t m = kMlpRows + 5;
    AlignedVector<float> here = random_values(m * c.d_model, 3), on_tape = here;
    MlpScratch scratch(c);
    BlockTape tape(c, m, 1, 1);
    mlp_forward(w, m, {here.data(), c.d_model}, scratch);
    mlp_forward(w, m, {on_tape.data(), c.d_model}, scratch, &tape);
    EXPECT_EQ(here, on_tape) << d_mlp;
  }
}

}  // namespace
}  // namespace deeptail
