#include "cli/hints.h"

namespace deeptail::cli {

namespace {

std::string_view flag_of(Hint hint) {
  switch (hint) {
    case Hint::kNone:
      return "";
    case Hint::kDevice:
      return "--device cpu";
    case Hint::kOut:
      return "--out";
    case Hint::kRest:
      return "--out, or --first and `deeptail truth merge`";
    case Hint::kCountTruth:
      return "`deeptail truth`";
    case Hint::kShard:
      return "--mpi without --shard";
    case Hint::kOnly:
      return "--only";
    case Hint::kSubject:
      return "--model and --dist";
    case Hint::kFetch:
      return "`deeptail model fetch`";
  }
  return "";
}

}  // namespace

std::string sentence_of(const InputError& error) {
  const std::string_view flag = flag_of(error.hint());
  return flag.empty() ? std::string(error.what()) : fmt::format("{} ({})", error.what(), flag);
}

}  // namespace deeptail::cli
