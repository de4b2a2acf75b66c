// A run by the ranks of an MPI job: rank 0 hands out items one by one, the others compute them, each into a
// shard of its own. Only built with DEEPTAIL_MPI.
#pragma once

#include "runs/run_suite.h"

namespace deeptail {

// To be called once, by every rank. The outcome is rank 0's; other ranks return nothing, or kStopped when a
// signal stopped them. With a single rank it is run_suite.
std::optional<RunOutcome> run_suite_mpi(const Grid& grid, const RunOptions& options, std::size_t threads,
                                        const Watch& watch);

}  // namespace deeptail
