#include "tensors/sniff.h"

#include "core/json.h"
#include "tensors/gguf.h"

namespace deeptail {

namespace {

constexpr std::string_view kLfsMagic = "version https://git-lfs";

[[noreturn]] void refuse_lfs_pointer(std::string_view text, const std::string& path) {
  std::string_view size = "unknown";
  if (const auto at = text.find("\nsize "); at != text.npos) {
    size = text.substr(at + 6);
    size = size.substr(0, size.find('\n'));
  }
  throw InputError(
      "{}: is a git-LFS pointer of {} bytes, not the file it stands for (size {}); run `git lfs pull`", path,
      text.size(), printable(size, 20));
}

[[noreturn]] void refuse_old_torch(std::string_view kind, const std::string& path) {
  throw InputError(
      "{}: is an old PyTorch file ({}), expected the zip format of PyTorch 1.6 and later; load it in Python "
      "and "
      "re-save with torch.save(..., _use_new_zipfile_serialization=True)",
      path, kind);
}

// The 64-bit header length of a safetensors file is far below 2^56, so one of its first 8 bytes is zero; JSON
// text has no zero bytes.
bool looks_like_json(std::string_view text) {
  return text.starts_with('{') && text.substr(0, 8).find('\0') == text.npos;
}

}  // namespace

Format sniff(const InputFile& file) {
  const std::string_view text = file.text();
  if (text.empty()) throw InputError("{}: is empty, expected a tensor file", file.path());
  if (text.starts_with(kLfsMagic)) refuse_lfs_pointer(text, file.path());
  if (text.starts_with("\x93NUMPY")) return Format::kNpy;
  if (is_gguf(text)) return Format::kGguf;
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return Format::kTorchZip;
  // Legacy torch.save starts with the pickled magic number 0x1950a86a20f9469cfc6c; before that it wrote tar
  // files.
  if (text.starts_with("\x80\x02\x8a\x0a")) refuse_old_torch("a bare pickle", file.path());
  if (text.size() > 262 && text.substr(257, 5) == "ustar") refuse_old_torch("a tar archive", file.path());
  if (looks_like_json(text)) return Format::kSafetensorsIndex;
  // safetensors has no magic number: byte 8 opens its header. The name only helps to word the error.
  if ((text.size() > 8 && text[8] == '{') || file.path().ends_with(".safetensors"))
    return Format::kSafetensors;
  throw InputError(
      "{}: expected safetensors, GGUF, a PyTorch zip file or .npy, found a file that starts with '{}'",
      file.path(), printable(text.substr(0, 16)));
}

}  // namespace deeptail
