// A pickle, read without running it. Only what state dictionaries need exists: constants, containers, a list
// of allowed globals, and objects left as "this callable with these arguments" for the caller to interpret.
// No Python code, no imports, no classes.
//
// A pickle is a program for a stack machine: one-byte opcodes push constants, gather the values above a mark
// into a container, store values in a memo and push them again. Every opcode makes at most one value, values
// refer to each other by number, and their count is limited: memory stays proportional to the pickle, however
// often it refers to the same value.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "deeptail/core.h"
#include "deeptail/enum_names.h"

namespace deeptail {

using PickleId = std::uint32_t;  // a position in Pickle::values

enum class PickleKind {
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kBytes,
  kTuple,
  kList,
  kDict,
  kGlobal,
  kCall,
  kPersistent
};

template <>
struct EnumNames<PickleKind> {
  static constexpr std::string_view kAll[] = {"None",  "bool", "int",        "float",  "string", "bytes",
                                              "tuple", "list", "dictionary", "global", "object", "storage"};
};

struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  std::int64_t integer = 0;  // kInt
  std::string_view text;     // kString, kBytes: into the pickle. kGlobal, kCall: PickleGlobal::name
  // kTuple, kList: the items. kDict: key, value, key, value ... kCall: the tuple of arguments, kPersistent:
  // the name; one item, not a copy, since a pickle may use the same tuple often.
  std::vector<PickleId> items;
};

struct PickleGlobal {
  std::string_view name;  // "module.name"; must outlive the Pickle
  bool callable;
};

struct Pickle {
  std::vector<PickleValue> values;
  PickleId root = 0;

  const PickleValue& operator[](PickleId id) const { return values[id]; }
};

// `allowed`: every global the pickle may name. collections.OrderedDict() becomes a kDict.
Pickle parse_pickle(std::span<const std::byte> pickle, std::string_view where,
                    std::span<const PickleGlobal> allowed);

}  // namespace deeptail
