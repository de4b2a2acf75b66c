#include "tensors/pickle.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/json.h"
#include "tensors/byte_reader.h"

namespace deeptail {

namespace {

constexpr std::string_view kOrderedDict = "collections.OrderedDict";
// A state dictionary takes about ten values per tensor.
constexpr std::size_t kMaxValues = 1'000'000;

class Unpickler {
 public:
  Unpickler(std::span<const std::byte> pickle, std::string_view where, std::span<const PickleGlobal> allowed)
      : reader_(pickle, where), allowed_(allowed) {}

  Pickle run() {
    for (;;) {
      at_ = reader_.offset();
      const auto op = reader_.read<std::uint8_t>("an opcode (no STOP yet)");
      if (op == '.') break;  // STOP
      const Action action = actions()[op];
      if (action == nullptr)
        fail("unsupported opcode 0x{:02x}; expected a state dictionary saved with pickle protocol 2 to 5",
             op);
      action(*this);
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("expected one value at the end, found {}", stack_.size());
    pickle_.root = stack_.front();
    return std::move(pickle_);
  }

 private:
  using Action = void (*)(Unpickler&);
  static const std::array<Action, 256>& actions();  // by opcode; null: unsupported

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw InputError("{}: offset {}: {}", reader_.where(), at_,
                     fmt::format(text, std::forward<Args>(args)...));
  }

  PickleValue& push(PickleKind kind) {
    if (pickle_.values.size() >= kMaxValues) fail("more than {} values", kMaxValues);
    stack_.push_back(static_cast<PickleId>(pickle_.values.size()));
    pickle_.values.push_back({kind, 0, {}, {}});
    return pickle_.values.back();
  }

  // The stack above the last mark.
  std::size_t available() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  PickleId top() const {
    if (available() == 0) fail("the stack is empty");
    return stack_.back();
  }
  PickleId pop() {
    const PickleId id = top();
    stack_.pop_back();
    return id;
  }
  std::vector<PickleId> pop_many(std::size_t n) {
    if (available() < n) fail("expected {} values on the stack, found {}", n, available());
    std::vector<PickleId> ids(stack_.end() - static_cast<std::ptrdiff_t>(n), stack_.end());
    stack_.resize(stack_.size() - n);
    return ids;
  }
  std::vector<PickleId> pop_to_mark() {
    if (marks_.empty()) fail("no mark on the stack");
    auto ids = pop_many(available());
    marks_.pop_back();
    return ids;
  }

  template <class Length>
  void push_text(PickleKind kind) {
    const auto size = reader_.read<Length>("string length");
    push(kind).text = reader_.text(size, "a string");
  }
  template <class Int>
  void push_int() {
    push(PickleKind::kInt).integer = reader_.read<Int>("an integer");
  }
  void check_protocol();
  void push_long();
  void push_tuple(std::vector<PickleId> items) { push(PickleKind::kTuple).items = std::move(items); }
  void extend(PickleKind kind, const std::vector<PickleId>& items);
  void put(std::uint32_t key);
  void get(std::uint32_t key);
  void push_global(std::string_view module, std::string_view name);
  void global();
  void stack_global();
  void persistent();
  void reduce();
  void build();

  ByteReader reader_;
  std::span<const PickleGlobal> allowed_;
  Pickle pickle_;
  std::size_t at_ = 0;  // offset of the current opcode
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;  // stack sizes
  std::unordered_map<std::uint32_t, PickleId> memo_;
};

// Opcodes with their names in Python's pickletools.
const std::array<Unpickler::Action, 256>& Unpickler::actions() {
  using U = Unpickler;
  using enum PickleKind;
  static constexpr std::pair<std::uint8_t, Action> kTable[] = {
      {0x80, [](U& u) { u.check_protocol(); }},                 // PROTO
      {0x95, [](U& u) { u.reader_.take(8, "frame length"); }},  // FRAME
      {'N', [](U& u) { u.push(kNone); }},                       // NONE
      {0x88, [](U& u) { u.push(kBool); }},                      // NEWTRUE
      {0x89, [](U& u) { u.push(kBool); }},                      // NEWFALSE
      {'J', [](U& u) { u.push_int<std::int32_t>(); }},          // BININT
      {'K', [](U& u) { u.push_int<std::uint8_t>(); }},          // BININT1
      {'M', [](U& u) { u.push_int<std::uint16_t>(); }},         // BININT2
      {0x8a, [](U& u) { u.push_long(); }},                      // LONG1
      // BINFLOAT: no tensor needs its value.
      {'G', [](U& u) { u.push(kFloat), u.reader_.take(8, "a float"); }},
      {'X', [](U& u) { u.push_text<std::uint32_t>(kString); }},                 // BINUNICODE
      {0x8c, [](U& u) { u.push_text<std::uint8_t>(kString); }},                 // SHORT_BINUNICODE
      {0x8d, [](U& u) { u.push_text<std::uint64_t>(kString); }},                // BINUNICODE8
      {'T', [](U& u) { u.push_text<std::uint32_t>(kString); }},                 // BINSTRING
      {'U', [](U& u) { u.push_text<std::uint8_t>(kString); }},                  // SHORT_BINSTRING
      {'B', [](U& u) { u.push_text<std::uint32_t>(kBytes); }},                  // BINBYTES
      {'C', [](U& u) { u.push_text<std::uint8_t>(kBytes); }},                   // SHORT_BINBYTES
      {0x8e, [](U& u) { u.push_text<std::uint64_t>(kBytes); }},                 // BINBYTES8
      {'(', [](U& u) { u.marks_.push_back(u.stack_.size()); }},                 // MARK
      {'0', [](U& u) { u.pop(); }},                                             // POP
      {'1', [](U& u) { u.pop_to_mark(); }},                                     // POP_MARK
      {'2', [](U& u) { u.stack_.push_back(u.top()); }},                         // DUP
      {')', [](U& u) { u.push(kTuple); }},                                      // EMPTY_TUPLE
      {'t', [](U& u) { u.push_tuple(u.pop_to_mark()); }},                       // TUPLE
      {0x85, [](U& u) { u.push_tuple(u.pop_many(1)); }},                        // TUPLE1
      {0x86, [](U& u) { u.push_tuple(u.pop_many(2)); }},                        // TUPLE2
      {0x87, [](U& u) { u.push_tuple(u.pop_many(3)); }},                        // TUPLE3
      {']', [](U& u) { u.push(kList); }},                                       // EMPTY_LIST
      {'a', [](U& u) { u.extend(kList, u.pop_many(1)); }},                      // APPEND
      {'e', [](U& u) { u.extend(kList, u.pop_to_mark()); }},                    // APPENDS
      {'}', [](U& u) { u.push(kDict); }},                                       // EMPTY_DICT
      {'s', [](U& u) { u.extend(kDict, u.pop_many(2)); }},                      // SETITEM
      {'u', [](U& u) { u.extend(kDict, u.pop_to_mark()); }},                    // SETITEMS
      {'q', [](U& u) { u.put(u.reader_.read<std::uint8_t>("memo key")); }},     // BINPUT
      {'r', [](U& u) { u.put(u.reader_.read<std::uint32_t>("memo key")); }},    // LONG_BINPUT
      {0x94, [](U& u) { u.put(static_cast<std::uint32_t>(u.memo_.size())); }},  // MEMOIZE
      {'h', [](U& u) { u.get(u.reader_.read<std::uint8_t>("memo key")); }},     // BINGET
      {'j', [](U& u) { u.get(u.reader_.read<std::uint32_t>("memo key")); }},    // LONG_BINGET
      {'c', [](U& u) { u.global(); }},                                          // GLOBAL
      {0x93, [](U& u) { u.stack_global(); }},                                   // STACK_GLOBAL
      {'R', [](U& u) { u.reduce(); }},                                          // REDUCE
      {'b', [](U& u) { u.build(); }},                                           // BUILD
      {'Q', [](U& u) { u.persistent(); }},                                      // BINPERSID
  };
  static const auto kByOpcode = [] {
    std::array<Action, 256> by_opcode{};
    for (const auto& [opcode, action] : kTable) by_opcode[opcode] = action;
    return by_opcode;
  }();
  return kByOpcode;
}

void Unpickler::check_protocol() {
  const auto version = reader_.read<std::uint8_t>("protocol");
  if (version < 2 || version > 5) fail("pickle protocol {}, expected 2 to 5", version);
}

// Little-endian two's complement of any length.
void Unpickler::push_long() {
  const auto n_bytes = reader_.read<std::uint8_t>("an integer");
  if (n_bytes > 8) fail("an integer of {} bytes, expected at most 8", n_bytes);
  const auto bytes = reader_.take(n_bytes, "an integer");
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < n_bytes; ++i) bits |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  const bool negative = n_bytes > 0 && (bytes.back() & std::byte{0x80}) != std::byte{0};
  if (negative && n_bytes < 8) bits |= ~std::uint64_t{0} << (8 * n_bytes);
  push(PickleKind::kInt).integer = static_cast<std::int64_t>(bits);
}

// Appends to the list, or adds key-value pairs to the dictionary, on top of the stack.
void Unpickler::extend(PickleKind kind, const std::vector<PickleId>& items) {
  PickleValue& container = pickle_.values[top()];
  if (container.kind != kind)
    fail("expected a {} to fill, found a {}", name_of(kind), name_of(container.kind));
  if (kind == PickleKind::kDict && items.size() % 2 != 0) fail("a dictionary key without a value");
  container.items.insert(container.items.end(), items.begin(), items.end());
}

void Unpickler::put(std::uint32_t key) {
  memo_[key] = top();
  if (memo_.size() > kMaxValues) fail("more than {} memo entries", kMaxValues);
}

void Unpickler::get(std::uint32_t key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) fail("memo entry {} is used before it is set", key);
  stack_.push_back(found->second);
}

void Unpickler::push_global(std::string_view module, std::string_view name) {
  for (const PickleGlobal& global : allowed_) {
    const auto dot = global.name.rfind('.');
    if (global.name.substr(0, dot) == module && global.name.substr(dot + 1) == name) {
      push(PickleKind::kGlobal).text = global.name;
      return;
    }
  }
  fail(
      "the pickle asks for '{}.{}', which is not allowed: only tensors in dictionaries are read; re-save as "
      "torch.save(model.state_dict(), path)",
      printable(module), printable(name));
}

void Unpickler::global() {
  const auto module = reader_.line("a module name");
  push_global(module, reader_.line("a global name"));
}

void Unpickler::stack_global() {
  const auto ids = pop_many(2);
  const PickleValue &module = pickle_[ids[0]], &name = pickle_[ids[1]];
  if (module.kind != PickleKind::kString || name.kind != PickleKind::kString)
    fail("expected the names of a module and a global");
  push_global(module.text, name.text);
}

void Unpickler::reduce() {
  const auto ids = pop_many(2);
  const PickleValue &callee = pickle_[ids[0]], &arguments = pickle_[ids[1]];
  const auto is_callee = [&](const PickleGlobal& global) {
    return global.callable && global.name == callee.text;
  };
  if (callee.kind != PickleKind::kGlobal || std::none_of(allowed_.begin(), allowed_.end(), is_callee))
    fail("the pickle calls a {} '{}', which is not allowed", name_of(callee.kind), printable(callee.text));
  if (arguments.kind != PickleKind::kTuple) fail("expected a tuple of arguments");
  if (callee.text == kOrderedDict) {
    if (!arguments.items.empty()) fail("{} with arguments, expected none", kOrderedDict);
    push(PickleKind::kDict);
    return;
  }
  const std::string_view name = callee.text;  // push() may move the values
  PickleValue& call = push(PickleKind::kCall);
  call.text = name;
  call.items = {ids[1]};
}

void Unpickler::persistent() {
  auto id = pop_many(1);
  push(PickleKind::kPersistent).items = std::move(id);
}

// Attributes of a dictionary (a state dict's _metadata) carry no tensors and are dropped.
void Unpickler::build() {
  pop();
  if (const auto kind = pickle_[top()].kind; kind != PickleKind::kDict)
    fail("the pickle sets attributes of a {}, which is not allowed", name_of(kind));
}

}  // namespace

Pickle parse_pickle(std::span<const std::byte> pickle, std::string_view where,
                    std::span<const PickleGlobal> allowed) {
  return Unpickler(pickle, where, allowed).run();
}

}  // namespace deeptail
