// deeptail bench
#include "cli/bench.h"

#include "cli/commands.h"

namespace deeptail::cli {

void add_bench(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Estimators against ground truth");
  bench->require_subcommand(1);
  add_bench_run(*bench);
  add_bench_export(*bench);
  add_bench_tune(*bench);
}

}  // namespace deeptail::cli
