#include "tensors/torch_file.h"

#include <array>
#include <utility>

#include "core/json.h"
#include "tensors/byte_reader.h"
#include "tensors/layout.h"
#include "tensors/pickle.h"

namespace deeptail {

namespace {

constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";
constexpr std::string_view kSize = "torch.Size";

// All that a pickle may name.
constexpr PickleGlobal kAllowed[] = {
    {"collections.OrderedDict", true},
    {kRebuildTensor, true},
    {kRebuildParameter, true},
    {kSize, true},
    {"torch.FloatStorage", false},
    {"torch.HalfStorage", false},
    {"torch.BFloat16Storage", false},
    {"torch.DoubleStorage", false},
    {"torch.LongStorage", false},
    {"torch.IntStorage", false},
    {"torch.ByteStorage", false},
    {"torch.BoolStorage", false},
    {"torch.float32", false},
    {"torch.float16", false},
    {"torch.bfloat16", false},
    {"torch.float64", false},
    {"torch.int64", false},
    {"torch.int32", false},
    {"torch.uint8", false},
    {"torch.bool", false},
};

constexpr std::array<std::pair<std::string_view, DType>, 8> kStorages{
    {{"torch.FloatStorage", DType::kF32},
     {"torch.HalfStorage", DType::kF16},
     {"torch.BFloat16Storage", DType::kBF16},
     {"torch.DoubleStorage", DType::kF64},
     {"torch.LongStorage", DType::kI64},
     {"torch.IntStorage", DType::kI32},
     {"torch.ByteStorage", DType::kU8},
     {"torch.BoolStorage", DType::kBool}}};

// Tensors may share storages (tied weights), but a small file must not stand for endless data.
constexpr std::size_t kMaxSharing = 16;

struct Storage {
  DType dtype;
  std::span<const std::byte> bytes;
};

class TorchReader {
 public:
  TorchReader(const Pickle& pickle, const ZipDirectory& storages, std::size_t file_size,
              std::string_view where)
      : pickle_(pickle), storages_(storages), bytes_left_(kMaxSharing * file_size), where_(where) {}

  TensorMap read() {
    const PickleValue& root = pickle_[pickle_.root];
    if (is_tensor(root)) return {{"", read_tensor("", root)}};
    if (root.kind != PickleKind::kDict)
      throw InputError("{}: expected a tensor or a dictionary of tensors, found a {}", where_,
                       name_of(root.kind));
    return read_dict(find_state_dict(root));
  }

 private:
  static bool is_tensor(const PickleValue& value) {
    return value.kind == PickleKind::kCall &&
           (value.text == kRebuildTensor || value.text == kRebuildParameter);
  }
  static bool is_scalar(const PickleValue& value) {
    using enum PickleKind;
    return value.kind == kNone || value.kind == kBool || value.kind == kInt || value.kind == kFloat ||
           value.kind == kString || value.kind == kBytes || value.kind == kGlobal || value.text == kSize;
  }

  std::string at(std::string_view name) const {
    return fmt::format("{}: tensor '{}'", where_, printable(name));
  }
  std::string_view key_text(PickleId id) const;

  const PickleValue& find_state_dict(const PickleValue& root) const;
  TensorMap read_dict(const PickleValue& dict);
  Tensor read_tensor(std::string_view name, const PickleValue& value);
  Storage read_storage(std::string_view name, const PickleValue& value) const;
  std::vector<std::int64_t> read_numbers(std::string_view name, const PickleValue& value) const;
  void check_strides(const Tensor& tensor, std::span<const std::int64_t> strides) const;

  const Pickle& pickle_;
  const ZipDirectory& storages_;
  std::size_t bytes_left_;
  std::string_view where_;
};

std::string_view TorchReader::key_text(PickleId id) const {
  const PickleValue& key = pickle_[id];
  if (key.kind != PickleKind::kString)
    throw InputError("{}: expected dictionary keys that are strings, found a {}", where_, name_of(key.kind));
  return key.text;
}

// The dictionary itself, or the one dictionary among its scalars: {"model": {...}, "epoch": 3}.
const PickleValue& TorchReader::find_state_dict(const PickleValue& root) const {
  const PickleValue* nested = nullptr;
  std::string_view nested_key, tensor_key, other_key;
  for (std::size_t i = 0; i < root.items.size(); i += 2) {
    const auto key = key_text(root.items[i]);
    const PickleValue& value = pickle_[root.items[i + 1]];
    if (is_tensor(value)) {
      tensor_key = key;
    } else if (value.kind == PickleKind::kDict) {
      if (nested != nullptr)
        throw InputError(
            "{}: expected one dictionary of tensors, found several ('{}' and '{}'); save only one", where_,
            printable(nested_key), printable(key));
      nested = &value;
      nested_key = key;
    } else if (!is_scalar(value)) {
      other_key = key;
    }
  }
  if (nested == nullptr) return root;
  if (tensor_key.data() != nullptr || other_key.data() != nullptr)
    throw InputError(
        "{}: expected one dictionary of tensors, found '{}' next to the dictionary '{}'; save only one",
        where_, printable(tensor_key.data() != nullptr ? tensor_key : other_key), printable(nested_key));
  return *nested;
}

TensorMap TorchReader::read_dict(const PickleValue& dict) {
  TensorMap tensors;
  for (std::size_t i = 0; i < dict.items.size(); i += 2) {
    const auto name = key_text(dict.items[i]);
    const PickleValue& value = pickle_[dict.items[i + 1]];
    if (!is_tensor(value))
      throw InputError("{}: key '{}': expected a tensor, found a {}", where_, printable(name),
                       name_of(value.kind));
    if (!tensors.emplace(name, read_tensor(name, value)).second)
      throw InputError("{}: key '{}' appears twice", where_, printable(name));
  }
  return tensors;
}

Tensor TorchReader::read_tensor(std::string_view name, const PickleValue& value) {
  const PickleValue* call = &value;
  const PickleValue* arguments = &pickle_[call->items[0]];
  if (call->text == kRebuildParameter && !arguments->items.empty()) {  // (tensor, requires_grad, hooks)
    call = &pickle_[arguments->items[0]];
    if (call->kind == PickleKind::kCall) arguments = &pickle_[call->items[0]];
  }
  if (call->kind != PickleKind::kCall || call->text != kRebuildTensor || arguments->items.size() < 4)
    throw InputError("{}: expected {}(storage, offset, size, stride, ...)", at(name), kRebuildTensor);
  const auto argument = [&](std::size_t i) -> const PickleValue& { return pickle_[arguments->items[i]]; };

  const Storage storage = read_storage(name, argument(0));
  Tensor tensor{std::string(name), storage.dtype, read_numbers(name, argument(2)), {}, nullptr};
  const auto size = byte_size(tensor.dtype, tensor.shape);
  if (!size) throw InputError("{}: shape {} is not valid", at(name), shape_text(tensor.shape));
  const auto strides = read_numbers(name, argument(3));
  if (*size > 0) check_strides(tensor, strides);  // without values there is no layout
  // In elements, so that no product can overflow.
  const std::size_t n_stored = storage.bytes.size() / size_of(tensor.dtype);
  const std::size_t n = *size / size_of(tensor.dtype);
  const std::int64_t offset = argument(1).integer;
  if (argument(1).kind != PickleKind::kInt || offset < 0 || static_cast<std::size_t>(offset) > n_stored ||
      n > n_stored - static_cast<std::size_t>(offset))
    throw InputError("{}: shape {} at offset {} reaches beyond its storage of {} values", at(name),
                     shape_text(tensor.shape), offset, n_stored);
  if (*size > bytes_left_)
    throw InputError("{}: the tensors share storages so often that they take over {} times the file's size",
                     at(name), kMaxSharing);
  bytes_left_ -= *size;
  tensor.bytes = storage.bytes.subspan(static_cast<std::size_t>(offset) * size_of(tensor.dtype), *size);
  return tensor;
}

Storage TorchReader::read_storage(std::string_view name, const PickleValue& value) const {
  using enum PickleKind;
  const auto malformed = [&] {
    return InputError("{}: expected a storage ('storage', type, key, device, number of values)", at(name));
  };
  if (value.kind != kPersistent || pickle_[value.items[0]].items.size() != 5) throw malformed();
  const auto& id = pickle_[value.items[0]].items;
  const PickleValue &type = pickle_[id[1]], &key = pickle_[id[2]], &n_values = pickle_[id[4]];
  if (pickle_[id[0]].text != "storage" || key.kind != kString || n_values.kind != kInt) throw malformed();

  for (const auto& [known, dtype] : kStorages) {
    if (type.kind != kGlobal || type.text != known) continue;
    const auto found = storages_.find(key.text);
    if (found == storages_.end())
      throw InputError("{}: its storage data/{} is missing from the zip file", at(name), printable(key.text));
    const auto expected = byte_size(dtype, std::span(&n_values.integer, 1));
    if (expected != found->second.size())
      throw InputError("{}: its storage data/{} has {} bytes, expected {} values of {}", at(name),
                       printable(key.text), found->second.size(), n_values.integer, name_of(dtype));
    return {dtype, found->second};
  }
  throw InputError("{}: unknown storage type '{}'", at(name), printable(type.text));
}

std::vector<std::int64_t> TorchReader::read_numbers(std::string_view name, const PickleValue& value) const {
  if (value.kind != PickleKind::kTuple || value.items.size() > kMaxRank)
    throw InputError("{}: expected size and stride to be tuples of at most {} integers", at(name), kMaxRank);
  std::vector<std::int64_t> numbers;
  for (const PickleId id : value.items) {
    if (pickle_[id].kind != PickleKind::kInt)
      throw InputError("{}: expected size and stride of integers, found a {}", at(name),
                       name_of(pickle_[id].kind));
    numbers.push_back(pickle_[id].integer);
  }
  return numbers;
}

// Row-major: the last axis has stride 1, each other the product of the dimensions after it. The stride of an
// axis of length 1 is never used and may be anything.
void TorchReader::check_strides(const Tensor& tensor, std::span<const std::int64_t> strides) const {
  bool contiguous = strides.size() == tensor.shape.size();
  std::int64_t expected = 1;
  for (std::size_t axis = tensor.shape.size(); contiguous && axis-- > 0;) {
    contiguous = tensor.shape[axis] == 1 || strides[axis] == expected;
    expected *= tensor.shape[axis];  // byte_size() has shown that it fits
  }
  if (!contiguous)
    throw InputError(
        "{}: shape {} with strides {} is not contiguous (transposed or sliced?); re-save it with "
        ".contiguous()",
        at(tensor.name), shape_text(tensor.shape), shape_text(strides));
}

void check_byte_order(const ZipDirectory& zip, const std::string& folder, std::string_view where) {
  const auto found = zip.find(folder + "byteorder");
  if (found != zip.end() && as_text(found->second) != "little")
    throw InputError("{}: byte order is '{}', expected 'little'; re-save it on a little-endian machine",
                     where, printable(as_text(found->second)));
}

// "NAME/" of the one entry NAME/data.pkl.
std::string find_folder(const ZipDirectory& zip, std::string_view where) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::string folder;
  for (const auto& [name, bytes] : zip) {
    if (!name.ends_with(kPickle) || name.find('/') != name.size() - kPickle.size()) continue;
    if (!folder.empty()) throw InputError("{}: expected one data.pkl in the zip file, found several", where);
    folder = name.substr(0, name.size() - kPickle.size() + 1);
  }
  if (folder.empty())
    throw InputError(
        "{}: a zip file without data.pkl, expected one written by torch.save (an .npz file? save its "
        "arrays with numpy.save)",
        where);
  return folder;
}

}  // namespace

TensorMap parse_torch_pickle(std::span<const std::byte> pickle, const ZipDirectory& storages,
                             std::size_t file_size, std::string_view where) {
  const Pickle parsed = parse_pickle(pickle, fmt::format("{}: data.pkl", where), kAllowed);
  return TorchReader(parsed, storages, file_size, where).read();
}

TensorMap parse_torch_zip(std::span<const std::byte> file, std::string_view where) {
  const ZipDirectory zip = read_zip_directory(file, where);
  const std::string folder = find_folder(zip, where);
  check_byte_order(zip, folder, where);
  const std::string prefix = folder + "data/";
  ZipDirectory storages;
  for (const auto& [name, bytes] : zip)
    if (name.starts_with(prefix)) storages.emplace(name.substr(prefix.size()), bytes);
  return parse_torch_pickle(zip.at(folder + "data.pkl"), storages, file.size(), where);
}

}  // namespace deeptail
