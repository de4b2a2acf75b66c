#include "model/weights.h"

#include <algorithm>
#include <set>

#include "core/json.h"

namespace deeptail {

namespace {

using Shape = std::vector<std::int64_t>;

Shape shape_of(std::initializer_list<std::size_t> sizes) { return Shape(sizes.begin(), sizes.end()); }

std::string text_of(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// Hands out tensors by name, checks their shapes, and remembers which were used.
class Reader {
 public:
  Reader(const TensorMap& tensors, const std::string& where) : tensors_(tensors), where_(where) {}

  bool has(const std::string& name) const { return tensors_.contains(name); }

  std::vector<float> take(const std::string& name, std::initializer_list<std::size_t> sizes) {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) throw InputError("{}: tensor {} is missing", where_, name);
    const Shape expected = shape_of(sizes);
    if (it->second.shape != expected)
      throw InputError("{}: tensor {}: expected shape {} from config.json, found {}", where_, name,
                       text_of(expected), text_of(it->second.shape));
    used_.insert(name);
    return to_float(it->second);
  }

  // Anything not used must be a buffer that old TransformerLens files carry.
  void refuse_extra() const {
    for (const auto& [name, tensor] : tensors_) {
      const bool buffer = name.ends_with(".attn.mask") || name.ends_with(".attn.IGNORE");
      if (!buffer && !used_.contains(name))
        throw InputError("{}: tensor {} is not part of this architecture", where_, printable(name));
    }
  }

 private:
  const TensorMap& tensors_;
  const std::string& where_;
  std::set<std::string> used_;
};

AlignedVector<float> aligned(const std::vector<float>& values) { return {values.begin(), values.end()}; }

LayerNorm take_layernorm(Reader& reader, const std::string& name, const ModelConfig& c) {
  return {aligned(reader.take(name + ".w", {c.d_model})), aligned(reader.take(name + ".b", {c.d_model})),
          c.eps};
}

// Copies w: [n_heads, d_model, d_head] into columns [first, first + d_attn) of out: [d_model, width].
void heads_side_by_side(const std::vector<float>& w, const ModelConfig& c, std::vector<float>& out,
                        std::size_t width, std::size_t first) {
  for (std::size_t h = 0; h < c.n_heads; ++h)
    for (std::size_t i = 0; i < c.d_model; ++i)
      std::copy_n(w.begin() + static_cast<std::ptrdiff_t>((h * c.d_model + i) * c.d_head), c.d_head,
                  out.begin() + static_cast<std::ptrdiff_t>(i * width + first + h * c.d_head));
}

// The last block answers for one position only, so keys and values are never formed: the query is carried
// through W_K, and the average of the inputs through W_V (last_block.cpp).
void pack_last_block(BlockWeights& block, const ModelConfig& c, const std::vector<float> (&w)[3],
                     const std::vector<float> (&b)[3]) {
  std::vector<float> w_q(c.d_model * c.d_attn());
  heads_side_by_side(w[0], c, w_q, c.d_attn(), 0);
  block.w_q = PackedMatrix(w_q, c.d_model, c.d_attn(), b[0]);
  const std::size_t head_size = c.d_model * c.d_head;
  for (std::size_t h = 0; h < c.n_heads; ++h) {
    const std::span<const float> k(w[1].data() + h * head_size, head_size),
        v(w[2].data() + h * head_size, head_size);
    block.w_k_t.push_back(PackedMatrix(k, c.d_model, c.d_head).transposed());
    block.w_v.emplace_back(v, c.d_model, c.d_head, std::span(b[2]).subspan(h * c.d_head, c.d_head));
  }
}

void pack_qkv(BlockWeights& block, const ModelConfig& c, const std::vector<float> (&w)[3],
              const std::vector<float> (&b)[3]) {
  std::vector<float> w_qkv(c.d_model * 3 * c.d_attn()), b_qkv;
  for (std::size_t i = 0; i < 3; ++i) {
    heads_side_by_side(w[i], c, w_qkv, 3 * c.d_attn(), i * c.d_attn());
    b_qkv.insert(b_qkv.end(), b[i].begin(), b[i].end());
  }
  block.w_qkv = PackedMatrix(w_qkv, c.d_model, 3 * c.d_attn(), b_qkv);
}

BlockWeights take_block(Reader& reader, const ModelConfig& c, std::size_t index) {
  const std::string at = fmt::format("blocks.{}.", index);
  BlockWeights block;
  block.ln1 = take_layernorm(reader, at + "ln1", c);
  block.ln2 = take_layernorm(reader, at + "ln2", c);

  std::vector<float> w[3], b[3];  // queries, keys, values
  for (std::size_t i = 0; i < 3; ++i) {
    w[i] = reader.take(fmt::format("{}attn.W_{}", at, "QKV"[i]), {c.n_heads, c.d_model, c.d_head});
    b[i] = reader.take(fmt::format("{}attn.b_{}", at, "QKV"[i]), {c.n_heads, c.d_head});
  }
  const bool last = index + 1 == c.n_layers;
  if (last)
    pack_last_block(block, c, w, b);
  else
    pack_qkv(block, c, w, b);

  // W_O: [n_heads, d_head, d_model] is [d_attn, d_model] as it stands.
  const auto w_o = reader.take(at + "attn.W_O", {c.n_heads, c.d_head, c.d_model});
  block.w_o = PackedMatrix(w_o, c.d_attn(), c.d_model, reader.take(at + "attn.b_O", {c.d_model}));
  const auto w_in = reader.take(at + "mlp.W_in", {c.d_model, c.d_mlp});
  block.w_in = PackedMatrix(w_in, c.d_model, c.d_mlp, reader.take(at + "mlp.b_in", {c.d_mlp}));
  const auto w_out = reader.take(at + "mlp.W_out", {c.d_mlp, c.d_model});
  block.w_out = PackedMatrix(w_out, c.d_mlp, c.d_model, reader.take(at + "mlp.b_out", {c.d_model}));
  return block;
}

}  // namespace

Weights make_weights(const ModelConfig& c, const TensorMap& tensors, const std::string& where) {
  Reader reader(tensors, where);
  Weights weights;
  weights.w_e = aligned(reader.take("embed.W_E", {c.d_vocab, c.d_model}));
  weights.w_pos = aligned(reader.take("pos_embed.W_pos", {c.n_ctx, c.d_model}));
  for (std::size_t i = 0; i < c.n_layers; ++i) weights.blocks.push_back(take_block(reader, c, i));
  weights.head.ln_final = take_layernorm(reader, "ln_final", c);
  const auto w_u = reader.take("unembed.W_U", {c.d_model, c.d_vocab});
  std::vector<float> b_u;
  if (reader.has("unembed.b_U")) b_u = reader.take("unembed.b_U", {c.d_vocab});
  weights.head.w_u = PackedMatrix(w_u, c.d_model, c.d_vocab, b_u);
  reader.refuse_extra();
  return weights;
}

}  // namespace deeptail
