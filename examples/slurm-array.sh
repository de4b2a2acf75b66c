#!/usr/bin/env bash
# One suite over a Slurm array: each task does every 32nd item. Submit it again to continue, with any array size:
#   sbatch --array=1-32 examples/slurm-array.sh suites/zoo.toml runs/zoo
#SBATCH --job-name=deeptail
#SBATCH --array=1-32
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --time=08:00:00
#SBATCH --signal=USR1@60      # a minute before the end: deeptail saves and exits with code 3
#SBATCH --requeue
set -euo pipefail

suite=${1:?usage: sbatch --array=1-N examples/slurm-array.sh SUITE RUN_FOLDER}
out=${2:?usage: sbatch --array=1-N examples/slurm-array.sh SUITE RUN_FOLDER}

# srun passes signals on to deeptail; the shell alone would not.
code=0
srun build/deeptail bench run "$suite" --out "$out" --threads "$SLURM_CPUS_PER_TASK" --quiet \
  --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" || code=$?

# 3: out of time, with what was done saved. The scheduler starts the task again, and it goes on.
if [[ $code -eq 3 ]]; then scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"; fi
exit "$code"
