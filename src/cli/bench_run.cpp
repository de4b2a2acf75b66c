// deeptail bench run
#include <fmt/ranges.h>

#include <charconv>

#include "runs/forecast.h"
#include "runs/run_suite.h"
#ifdef DEEPTAIL_MPI
#include "runs/run_mpi.h"
#endif
#include "cli/bench.h"
#include "cli/interrupt.h"
#include "core/progress.h"
#include "core/screen_text.h"

namespace deeptail::cli {

namespace {

struct BenchRunOptions {
  std::string suite, out, shard = "1/1", device = "cpu";
  std::vector<std::string> only;
  std::size_t threads = 0;
  bool dry_run = false, mpi = false, quiet = false;
};

// "2/8" -> shard 2 of 8.
RunOptions run_options(const BenchRunOptions& o) {
  RunOptions out{.out = o.out, .only = o.only};
  const std::size_t slash = std::min(o.shard.find('/'), o.shard.size());
  const auto number = [&](std::size_t from, std::size_t to, std::size_t& value) {
    const char *begin = o.shard.data() + from, *end = o.shard.data() + to;
    const auto [stop, error] = std::from_chars(begin, end, value);
    return error == std::errc() && stop == end;
  };
  const bool good = slash < o.shard.size() && number(0, slash, out.shard) &&
                    number(slash + 1, o.shard.size(), out.n_shards) && out.shard >= 1 &&
                    out.shard <= out.n_shards;
  if (!good)
    throw InputError("--shard {}: expected i/n with i from 1 to n, such as 2/8", screen_text(o.shard));
  return out;
}

void tell_outcome(const RunOutcome& outcome, const BenchRunOptions& o) {
  using Kind = RunOutcome::Kind;
  std::string whose = o.shard == "1/1" ? "" : fmt::format(" of shard {}", o.shard);
  if (!o.only.empty()) whose += fmt::format(" of {}", fmt::join(o.only, ", "));
  switch (outcome.kind) {
    case Kind::kFinished:
      fmt::print("{}: all {} items{} done\n", o.out, outcome.total, whose);
      return;
    case Kind::kAlreadyFinished:
      fmt::print("{}: all {} items{} were done before, nothing to do\n", o.out, outcome.total, whose);
      return;
    case Kind::kLeftToOthers:
      fmt::print("{}: {} of {} items{} done; others are at work on the rest\n", o.out, outcome.done,
                 outcome.total, whose);
      return;
    case Kind::kStopped:
      throw Stopped(kInterrupted,
                    fmt::format("stopped after {} of {} items{}; they are saved in {}, and the same "
                                "command continues",
                                outcome.done, outcome.total, whose, o.out));
  }
}

void dry_run(const Grid& grid, const RunOptions& options, ThreadPool& pool, const BenchRunOptions& o,
             ProgressMeter& meter) {
  meter.restart({.label = "probing", .unit = "probes"});
  const Forecast forecast = forecast_run(grid, options, pool, shown_until_interrupted(meter));
  meter.clear();
  if (interrupted()) throw Stopped(kInterrupted, "interrupted; a dry run leaves nothing behind");
  fmt::print("{}: {} pairs of model and distribution, {} items{}, {} of them done\n",
             screen_text(grid.suite.name), grid.pairs.size(), forecast.items,
             o.shard == "1/1" ? "" : " in shard " + o.shard, forecast.done);
  fmt::print("{:<40} {:>8} {:>10} {:>10}\n", "to do", "items", "s each", "time");
  for (const Forecast::Row& row : forecast.rows)
    if (row.items > 0)
      fmt::print("{:<40} {:>8} {:>10.3g} {:>10}\n", screen_text(row.variant), row.items,
                 row.seconds / static_cast<double>(row.items), clock_text(row.seconds));
  if (forecast.capture_seconds > 0.0)
    fmt::print("{:<40} {:>8} {:>10} {:>10}\n", "activations", "", "", clock_text(forecast.capture_seconds));
  fmt::print("predicted time {} with {} threads, memory {} MiB\n", clock_text(forecast.seconds()),
             pool.size(), forecast.peak_bytes >> 20);
}

void bench_run_mpi([[maybe_unused]] const BenchRunOptions& o, [[maybe_unused]] const RunOptions& options,
                   [[maybe_unused]] const Grid& grid, [[maybe_unused]] ProgressMeter& meter) {
#ifdef DEEPTAIL_MPI
  meter.restart({.label = grid.suite.name, .unit = "items", .total = grid.items.size()});
  // Ranks share a machine's cores already: one thread each unless more are asked for.
  const auto outcome =
      run_suite_mpi(grid, options, std::max<std::size_t>(1, o.threads), shown_until_interrupted(meter));
  meter.clear();
  if (outcome) tell_outcome(*outcome, o);
#else
  throw InputError("--mpi: this build has no MPI; configure with -DDEEPTAIL_MPI=ON, or use --shard i/n");
#endif
}

Suite suite_on_device(const BenchRunOptions& o) {
  const std::optional<Device> device = value_named<Device>(o.device);
  if (!device) throw InputError("--device {}: expected cpu or cuda", screen_text(o.device));
  Suite suite = read_suite(o.suite, *device);
  const auto there = [](const SuiteVariant& v) { return v.method.device != Device::kCpu; };
  if (*device != Device::kCpu && std::none_of(suite.variants.begin(), suite.variants.end(), there))
    throw InputError("--device {}: no method of {} runs there; use --device cpu", o.device, o.suite);
  // A machine without the device may still do the other methods' share of a run.
  const auto wanted = [&](const SuiteVariant& v) {
    return o.only.empty() ||
           std::any_of(o.only.begin(), o.only.end(), [&](const auto& name) { return v.is_called(name); });
  };
  for (const SuiteVariant& v : suite.variants)
    if (wanted(v)) require_device(v.method.device);
  return suite;
}

void bench_run(const BenchRunOptions& o) {
  if (o.out.empty() && !o.dry_run)
    throw InputError("--out: name the run's folder, such as --out runs/quick; only --dry-run needs none");
  const RunOptions options = run_options(o);
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet), {.label = fmt::format("reading {}", o.suite)});
  const Grid grid = build_grid(suite_on_device(o));
  catch_interrupts();
  if (o.mpi && !o.dry_run) return bench_run_mpi(o, options, grid, meter);
  ThreadPool pool(o.threads);
  if (o.dry_run) return dry_run(grid, options, pool, o, meter);
  meter.restart({.label = grid.suite.name, .unit = "items", .total = grid.items.size()});
  const RunOutcome outcome = run_suite(grid, options, pool, shown_until_interrupted(meter));
  meter.clear();
  tell_outcome(outcome, o);
}

}  // namespace

void add_bench_run(CLI::App& bench) {
  CLI::App* sub = bench.add_subcommand("run", "Makes the estimates of a suite, or those that are missing");
  const auto o = std::make_shared<BenchRunOptions>();
  sub->add_option("suite", o->suite, "File, such as suites/quick.toml")->required();
  sub->add_option("--out", o->out, "Folder of the run; made where it is missing, continued where it is not");
  sub->add_option("--shard", o->shard, "i/n: only the i-th of n parts")->capture_default_str();
  sub->add_option("--only", o->only,
                  "Only these methods of the suite, separated by commas; others are left to another run")
      ->delimiter(',');
  sub->add_option("--threads", o->threads, "Threads; 0: one per core")->capture_default_str();
  sub->add_option("--device", o->device, "cpu, or cuda for the methods that have it; others run on the CPU")
      ->capture_default_str();
  sub->add_flag("--dry-run", o->dry_run,
                "Only tell what there is to do, how long it takes and how much memory");
  sub->add_flag("--mpi", o->mpi, "As a rank of an MPI job (builds with DEEPTAIL_MPI)");
  sub->add_flag("--quiet", o->quiet, "No progress");
  sub->callback([o] { bench_run(*o); });
}

}  // namespace deeptail::cli
