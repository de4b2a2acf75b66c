#include <algorithm>
#include <filesystem>

#include "cli/model_inspect.h"
#include "cli/output.h"
#include "core/screen_text.h"
#include "core/tell.h"
#include "deeptail/hub.h"

namespace deeptail::cli {

namespace {

namespace fs = std::filesystem;

struct ListedModel {
  std::string name, path;
};

// Those with a name of their own, then those of the hub, which are called hf:ORG/NAME.
std::vector<ListedModel> listed_models() {
  std::vector<ListedModel> found;
  for (const std::string& path : list_models()) found.push_back({fs::path(path).filename().string(), path});
  for (const std::string& name : list_hub_cache())
    found.push_back({name, find_in_hub_cache(parse_hub_name(name)).path});
  return found;
}

// Calls use(config, model) for each; a broken one does not hide the others.
template <class Use>
void for_each_model(const std::vector<ListedModel>& models, const Use& use) {
  for (const ListedModel& model : models) {
    try {
      use(read_config(model.path), model);
    } catch (const InputError& e) {
      tell(stderr, "deeptail: {}\n", screen_text(e.what(), kAnyWidth));
    }
  }
}

}  // namespace

void print_models(bool json) {
  const auto models = listed_models();
  if (json) {
    OrderedJson rows = OrderedJson::array();
    for_each_model(models, [&](const ModelConfig& c, const ListedModel& model) {
      OrderedJson row = {{"name", model.name}, {"family", c.family}};
      row.update(sizes_json(c));
      row["folder"] = model.path;
      rows.push_back(row);
    });
    return print_json(rows);
  }
  if (models.empty()) {
    fmt::print(
        "no models found in ./models, beside the program, in $DEEPTAIL_HOME/models, or in the HuggingFace "
        "cache\n");
    return;
  }
  std::size_t width = 12;
  for (const ListedModel& model : models) width = std::max(width, screen_text(model.name).size());
  fmt::print("{:{}} {:>6} {:>7} {:>7} {:>7} {:>6}  {}\n", "model", width, "layers", "d_model", "heads",
             "d_vocab", "n_ctx", "folder");
  for_each_model(models, [&](const ModelConfig& c, const ListedModel& model) {
    fmt::print("{:{}} {:>6} {:>7} {:>7} {:>7} {:>6}  {}\n", screen_text(model.name), width, c.n_layers,
               c.d_model, c.n_heads, c.d_vocab, c.n_ctx, screen_text(model.path, kAnyWidth));
  });
}

}  // namespace deeptail::cli
