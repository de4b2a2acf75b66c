// Laws of inputs, and activations of a model on them.
#include <algorithm>

#include "c_api/caller.h"
#include "c_api/guard.h"
#include "c_api/handles.h"
#include "core/json.h"
#include "deeptail/activations.h"

namespace deeptail::c_api {

namespace {

std::unique_ptr<InputLaw> read_law(std::string_view name, const dt_model* model, std::string_view folder) {
  const std::size_t first = name.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && name[first] == '{';
  const std::string path(name);
  if (model == nullptr) return is_json ? parse_law(name, "law", folder) : load_law(path);
  if (!is_json) return load_law(path, model->loaded);
  const LawSubject subject = law_subject(model->loaded);
  auto law = parse_law(name, "law", folder, &subject);
  check_fits(*law, model->loaded.config(),
             subject.tokenizer ? std::string_view(subject.tokenizer->sha256) : "");
  return law;
}

std::string law_info(const InputLaw& law) {
  ThreadPool pool(1);
  const LawFacts& f = law.facts();
  return json_text(OrderedJson{{"name", f.name},
                               {"sha256", f.sha256},
                               {"d_vocab", f.d_vocab},
                               {"tokenizer_sha256", f.tokenizer_sha256},
                               {"n_parts", f.n_parts},
                               {"max_length", f.max_length},
                               {"tables", law.tables() != nullptr},
                               {"constant_prefix", constant_prefix(law, pool)}});
}

}  // namespace

}  // namespace deeptail::c_api

using namespace deeptail;
using namespace deeptail::c_api;

extern "C" {

dt_status dt_law_load(const char* name, const dt_model* model, const char* folder, dt_law** out) {
  return guarded([&] {
    require(out, "out");
    *out = new dt_law{read_law(given_text(name, "law"), model, folder == nullptr ? "" : folder)};
  });
}

void dt_law_free(dt_law* law) { delete law; }

dt_status dt_law_info(const dt_law* law, dt_text* out) {
  return guarded([&] {
    require(law, "law");
    give_text(law_info(*law->law), out);
  });
}

dt_status dt_law_sample(const dt_law* law, uint64_t seed, uint64_t first, size_t n, size_t threads,
                        int32_t* tokens, uint32_t* lengths) {
  return guarded([&] {
    require(law, "law");
    ThreadPool pool(threads);
    const Inputs inputs = sample_inputs(*law->law, seed, first, n, pool);
    std::copy(inputs.tokens.begin(), inputs.tokens.end(), tokens);
    std::copy(inputs.lengths.begin(), inputs.lengths.end(), lengths);
  });
}

dt_status dt_capture(const dt_model* model, const dt_law* law, uint64_t count, uint64_t seed, size_t threads,
                     const dt_hooks* hooks, float* out, int32_t* last_tokens, uint64_t* captured) {
  return guarded([&] {
    require(model, "model");
    require(law, "law");
    Activations a;
    Caller caller(hooks);
    caller.run([&](const Watch& watch) {
      ThreadPool pool(threads);
      a = capture(model->loaded.transformer, *law->law, {.count = count, .seed = seed}, pool, watch);
    });
    std::copy(a.values.begin(), a.values.end(), out);
    if (last_tokens != nullptr) {
      std::fill_n(last_tokens, a.n, -1);
      std::copy(a.last_tokens.begin(), a.last_tokens.end(), last_tokens);
    }
    if (captured != nullptr) *captured = a.n;
  });
}

}  // extern "C"
