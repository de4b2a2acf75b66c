// What the kernels are given: a model and an input distribution as plain arrays, so that device code sees no
// other part of the project.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "deeptail/architecture.h"

namespace deeptail::cuda {

// All matrices row-major [in, out], fp32. Weights as they are, but for zeros that make heads and the MLP as wide
// as kernels take them: a head's after its values, the MLP's at the end. Biases and norms that a model does not
// have are zeros.
struct DenseBlock {
  std::vector<float> ln1_w, ln1_b, ln2_w, ln2_b;  // [d_model]
  std::vector<float> q_norm = {}, k_norm = {};    // [d_head]; empty: none
  std::vector<float> w_qkv, b_qkv;                // [d_model, d_qkv], [d_qkv]: heads of queries, keys, values
  std::vector<float> w_o, b_o;                    // [d_attn, d_model], [d_model]
  // [d_model, d_mlp], [d_mlp]; of a SwiGLU twice as many columns: gate and value of one hidden number are
  // neighbours, so that whoever has one has the other.
  std::vector<float> w_in, b_in;
  std::vector<float> w_out, b_out;  // [d_mlp, d_model], [d_model]
};

struct DenseModel {
  std::size_t n_layers = 0, d_model = 0, n_heads = 0, d_head = 0, d_mlp = 0, n_ctx = 0, d_vocab = 0;
  std::size_t head_values = 0;  // of d_head, those that are the model's
  float eps = 1e-5f;
  Architecture arch = {};
  std::vector<float> scale;  // [n_layers]: what scores are multiplied by
  std::vector<float> w_e,
      w_pos;  // [d_vocab, d_model], [n_ctx, d_model]; w_pos is empty with rotary positions
  std::vector<DenseBlock> blocks;
  std::vector<float> ln_final_w, ln_final_b;  // [d_model]
  std::vector<float> w_u, b_u;                // [d_model, d_vocab], [d_vocab]

  std::size_t n_kv_heads() const { return n_heads / arch.kv_groups; }
  std::size_t d_attn() const { return n_heads * d_head; }
  std::size_t d_qkv() const { return (n_heads + 2 * n_kv_heads()) * d_head; }
  std::size_t mlp_columns() const { return arch.mlp == Architecture::Mlp::kSwiGlu ? 2 * d_mlp : d_mlp; }
};

// An input distribution. A row is a (position, token) pair: position p owns rows [first_row[p], first_row[p]
// + size of its table).
struct DenseInputs {
  struct Table {
    std::uint32_t first_entry, first_guide;  // into the arrays below
    std::uint32_t guide_shift;
  };
  std::vector<Table> tables;                           // [length]: of each position
  std::vector<std::uint32_t> first_row;                // [length + 1]
  std::vector<std::uint32_t> ids;                      // token of each entry
  std::vector<std::uint64_t> last_unit;                // of each entry, as TokenTable
  std::vector<std::uint32_t> guide;                    // as TokenTable
  std::vector<std::uint32_t> row_token, row_position;  // [rows]
  std::size_t length() const { return tables.size(); }
};

// A law of inputs that particles move under: on the rows of DenseInputs, with chances of its own, and perhaps
// with plants: rows that are seen in the place of those that their positions have drawn. Part p < length draws
// position p; where there are plants, part `length` draws the number of one.
inline constexpr std::uint32_t kNowhere = 0xffffffff, kNoPlant = 0xffffffff;
inline constexpr int kMostPlanted = 3;
struct DensePlant {
  std::uint32_t position[kMostPlanted] = {kNowhere, kNowhere, kNowhere}, row[kMostPlanted] = {};
};
struct DenseBase {
  std::vector<DenseInputs::Table> tables;  // [parts]
  std::vector<std::uint64_t> last_unit;    // as in DenseInputs
  std::vector<std::uint32_t> guide;
  std::vector<std::uint32_t> free;  // parts that can change anything, ascending
  std::vector<DensePlant> plants;   // empty: none
};

// Throws Failure where the sizes are not what the kernels take (forward_engine.cu).
void require_forward_sizes(const DenseModel& model, std::size_t length);

// No device, no memory, a failed launch: what CUDA said.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace deeptail::cuda
