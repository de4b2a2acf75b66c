// Where the parts of a template can change an input. Tokens of a text depend on what stands around it, in ways that
// only the tokenizer knows; so inputs are made and compared. Where there are few, all of them are. Otherwise those
// of some contexts, and what came out for the tokens that all inputs begin with is checked whenever one is made.
#include <algorithm>

#include "core/random.h"
#include "inputs/template_law.h"

namespace deeptail {

namespace {

std::size_t first_difference(const Inputs& inputs, std::size_t a, std::size_t b) {
  const auto x = inputs.sequence(a), y = inputs.sequence(b);
  const auto [at, other] = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
  return at == x.end() && other == y.end() ? inputs.max_length : static_cast<std::size_t>(at - x.begin());
}

// A number that nothing else uses.
std::uint64_t tried_number(std::uint64_t index, std::size_t part) {
  return uniform64({0x7465'6d70'6c61'7465, Stream::kInputs}, index, static_cast<std::uint32_t>(part));
}

}  // namespace

double TemplateLaw::n_inputs() const {
  double n = 1.0;
  for (std::size_t part = 0; part < facts_.n_parts; ++part) {
    const std::size_t values = slot_of(part).n_values();
    n *= values == 0 ? 1e300 : static_cast<double>(values);
  }
  return n;
}

void TemplateLaw::look_at_all(ThreadPool& pool) {
  const std::size_t n_parts = facts_.n_parts;
  const auto n = static_cast<std::size_t>(n_inputs());
  std::vector<std::uint64_t> parts(n * n_parts);
  std::vector<std::size_t> stride(n_parts);  // inputs this far apart differ in this part by one value
  for (std::size_t part = n_parts, step = 1; part-- > 0;) {
    const TemplateSlot& slot = slot_of(part);
    stride[part] = step;
    for (std::size_t i = 0; i < n; ++i)
      parts[i * n_parts + part] = slot.number_of(i / step % slot.n_values());
    step *= slot.n_values();
  }
  Inputs inputs;
  make(parts, inputs, pool);
  for (std::size_t part = 0; part < n_parts; ++part)
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t value = i / stride[part] % slot_of(part).n_values();
      first_[part] = std::min(first_[part], first_difference(inputs, i, i - value * stride[part]));
    }
  facts_.max_length = *std::max_element(inputs.lengths.begin(), inputs.lengths.end());
  std::erase_if(free_, [&](std::size_t part) { return first_[part] >= inputs.max_length; });
  for (std::size_t& first : first_) first = std::min(first, facts_.max_length);
}

void TemplateLaw::look_at_some(ThreadPool& pool) {
  const std::size_t n_parts = facts_.n_parts;
  const bool is_slow =
      std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.source->n_values() == 0; });
  const std::size_t budget = is_slow ? 512 : 8192, most_values = 4096, few_values = 8;
  const std::size_t contexts = std::clamp<std::size_t>(budget / (n_parts * (few_values + 1)), 2, 32);
  // Of each part and context: an input, and others that differ from it in this part alone.
  std::vector<std::uint64_t> parts;
  struct Group {
    std::size_t part, first, size;
  };
  std::vector<Group> groups;
  for (std::size_t context = 0; context < contexts; ++context)
    for (const std::size_t part : free_) {
      const TemplateSlot& slot = slot_of(part);
      const bool all_values =
          context == 0 && slot.n_values() > 0 && slot.n_values() <= most_values && !slot.is_tokens();
      const std::size_t size = 1 + (all_values ? slot.n_values() : few_values);
      groups.push_back({part, parts.size() / n_parts, size});
      for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t p = 0; p < n_parts; ++p)
          parts.push_back(context % 2 == 1 ? slot_of(p).short_number() : tried_number(context, p));
        std::uint64_t& own = parts[parts.size() - n_parts + part];
        if (i > 0) own = all_values ? slot.number_of(i - 1) : tried_number(context + contexts * i, part);
      }
    }
  Inputs inputs;
  make(parts, inputs, pool);
  for (const Group& group : groups)
    for (std::size_t i = 1; i < group.size; ++i)
      first_[group.part] =
          std::min(first_[group.part], first_difference(inputs, group.first, group.first + i));
  // Texts that were not tried may reach one token further back than those that were.
  const auto text_slot =
      std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return !s.source->is_tokens(); });
  const std::size_t first_text_part = text_slot == slots_.end() ? n_parts : text_slot->first_part;
  for (std::size_t part = first_text_part; part < n_parts; ++part)
    first_[part] = std::max(bos_.size(), first_[part] - std::min<std::size_t>(first_[part], 1));
  keep_prefix(inputs);
}

// The earliest part is where inputs begin to differ, as far as they were made.
void TemplateLaw::keep_prefix(const Inputs& inputs) {
  std::size_t shared = inputs.sequence(0).size();
  for (std::size_t i = 1; i < inputs.size(); ++i) shared = std::min(shared, first_difference(inputs, 0, i));
  const auto earliest = std::min_element(free_.begin(), free_.end(),
                                         [&](std::size_t a, std::size_t b) { return first_[a] < first_[b]; });
  first_[*earliest] = std::min(first_[*earliest], shared);
  const auto any = inputs.sequence(0).first(first_[*earliest]);
  prefix_.assign(any.begin(), any.end());
}

}  // namespace deeptail
