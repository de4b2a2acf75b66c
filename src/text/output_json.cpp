// The parts of a tokenizer.json that come after the model: post_processor and decoder; and what
// tokenizer_config.json says of the token before a text.
#include "deeptail/core.h"
#include "text/parts_json.h"
#include "text/spec.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxTokenId = std::size_t{1} << 31;
constexpr std::size_t kMaxStrip = 1024;
constexpr std::size_t kMaxBos = 16;

DecodeReplace read_decode_replace(const JsonNode& node) {
  const JsonNode pattern = node.at("pattern");
  if (!pattern.has("String")) pattern.fail_expected("{\"String\": ...}");
  return {non_empty(pattern.at("String")), node.at("content").text()};
}

DecodeStrip read_strip(const JsonNode& node) {
  return {one_character(node.at("content")), node.at("start").count(0, kMaxStrip),
          node.at("stop").count(0, kMaxStrip)};
}

DecodeMetaspace read_decode_metaspace(const JsonNode& node) {
  const Metaspace metaspace = read_metaspace(node);
  return {metaspace.replacement, metaspace.scheme != PrependScheme::never};
}

// The members of a decoder in order: those before Fuse see every token, the others the whole text.
class DecoderReader {
 public:
  void add(const JsonNode& node) {
    const std::string& type = type_of(node);
    if (after_bytes_ && type != "Fuse")
      throw InputError("{}: follows ByteFallback; supported after it is Fuse", node.where());
    after_bytes_ = false;
    auto& steps = fused_ ? joined_ : each_;
    if (type == "Replace") {
      steps.push_back(read_decode_replace(node));
    } else if (type == "Strip") {
      steps.push_back(read_strip(node));
    } else if (type == "Metaspace") {
      steps.push_back(read_decode_metaspace(node));
    } else if (type == "ByteFallback") {
      steps.push_back(DecodeByteFallback{});
      after_bytes_ = !fused_;
    } else if (type == "ByteLevel") {
      steps.push_back(DecodeByteLevel{});
      fused_ = true;
    } else if (type == "Fuse") {
      fused_ = true;
    } else {
      refuse_type(node,
                  "ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Strip, a Sequence of them, and null");
    }
  }
  TextDecoder finish() { return {std::move(each_), std::move(joined_)}; }

 private:
  std::vector<TextDecoder::Step> each_, joined_;
  bool fused_ = false, after_bytes_ = false;
};

// The ids of special_tokens[name].
void append_special(const JsonNode& processor, const JsonNode& name, std::vector<TokenId>& out) {
  const JsonNode all = processor.at("special_tokens");
  all.expect_object();
  const std::string& text = name.text();
  if (!all.has(text.c_str())) name.fail_expected("a key of special_tokens");
  for (const TokenId id : all.at(text.c_str()).at("ids").token_ids(kMaxTokenId)) out.push_back(id);
}

// What stands before the text in a template.
std::vector<TokenId> read_single(const JsonNode& processor) {
  std::vector<TokenId> before;
  const JsonNode single = processor.at("single");
  for (const JsonNode& piece : single.elements()) {
    piece.expect_object();
    if (piece.has("Sequence")) return before;
    if (!piece.has("SpecialToken")) piece.fail_expected("a SpecialToken or a Sequence");
    append_special(processor, piece.at("SpecialToken").at("id"), before);
  }
  single.fail_expected("a Sequence among its pieces");
}

TokenId read_roberta(const JsonNode& processor) {
  const JsonNode cls = processor.at("cls");
  if (cls.array_size() != 2) cls.fail_expected("[token, id]");
  return cls.element(1).token_id(kMaxTokenId);
}

}  // namespace

TextDecoder read_decoder(const JsonNode& root, const PreTokenizer& pre_tokenizer) {
  if (!root.has("decoder")) return pre_tokenizer.bytes ? TextDecoder({DecodeByteLevel{}}, {}) : TextDecoder();
  DecoderReader reader;
  for_each_member(root.at("decoder"), "decoders", [&](const JsonNode& node) { reader.add(node); });
  return reader.finish();
}

std::optional<std::vector<TokenId>> read_template(const JsonNode& root) {
  std::optional<std::vector<TokenId>> bos;
  if (!root.has("post_processor")) return bos;
  for_each_member(root.at("post_processor"), "processors", [&](const JsonNode& node) {
    const std::string& type = type_of(node);
    if (type == "ByteLevel") return;
    std::vector<TokenId> before;
    if (type == "TemplateProcessing")
      before = read_single(node);
    else if (type == "RobertaProcessing")
      before = {read_roberta(node)};
    else
      refuse_type(node, "ByteLevel, RobertaProcessing, TemplateProcessing, a Sequence of them, and null");
    if (bos) before.insert(before.end(), bos->begin(), bos->end());
    if (before.size() > kMaxBos)
      throw InputError("{}: {} special tokens before a text; at most {} are supported", node.where(),
                       before.size(), kMaxBos);
    bos = std::move(before);
  });
  return bos;
}

std::string read_config_bos(const JsonNode& root) {
  root.expect_object();
  if (!root.has("add_bos_token") || !root.at("add_bos_token").boolean()) return "";
  const JsonNode token = root.at("bos_token");
  return token.value().is_object() ? token.at("content").text() : token.text();
}

}  // namespace deeptail
