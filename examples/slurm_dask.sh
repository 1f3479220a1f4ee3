#!/usr/bin/env bash
# One graph by dask workers on several nodes:
#   sbatch --ntasks=64 slurm_dask.sh FEATURES GRAPH
#SBATCH --job-name=nnkgraph-dask
#SBATCH --ntasks=2 --cpus-per-task=1
#SBATCH --time=60
set -euo pipefail

scheduler=$2.scheduler.json
rm -f "$scheduler"
trap 'kill $(jobs -p) 2> /dev/null; wait; rm -f "$scheduler"' EXIT

dask scheduler --scheduler-file "$scheduler" --port 0 --no-dashboard &
srun dask worker --scheduler-file "$scheduler" --nthreads 1 --memory-limit 0 \
    --no-dashboard --local-directory "${TMPDIR:-/tmp}" &
# The scheduler writes its address first.
until [ -s "$scheduler" ]; do sleep 1; done
nnkgraph build "$1" -o "$2" \
    --executor "dask:scheduler_file=$scheduler,workers=$SLURM_NTASKS"
