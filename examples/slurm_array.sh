#!/usr/bin/env bash
# One graph by job arrays, run on the login node:
#   ./slurm_array.sh FEATURES GRAPH PARTS
# It submits four jobs, each after the one before: search in parts, merge, solve in parts,
# merge. Tasks that are preempted go on where they were.
#SBATCH --cpus-per-task=1
#SBATCH --requeue --open-mode=append
set -euo pipefail

features=$1 graph=$2 parts=$3 step=${4:-submit}
work=$graph.parts
part=${SLURM_ARRAY_TASK_ID:-}

case $step in
submit)
    mkdir -p "$work"
    after=()
    for step in search candidates solve graph; do
        array=()
        case $step in search | solve) array=(--array="1-$parts") ;; esac
        job=$(sbatch --parsable --job-name="nnkgraph-$step" \
            --output="$work/%x-%A_%a.log" "${array[@]}" "${after[@]}" \
            "$0" "$features" "$graph" "$parts" "$step")
        after=(--dependency="afterok:$job" --kill-on-invalid-dep=yes)
        echo "$step: job $job"
    done
    ;;
search)
    nnkgraph search "$features" -o "$work/search-$part.npz" \
        --shard auto --resume "$work/search-$part.checkpoint"
    ;;
candidates)
    nnkgraph merge "$work"/search-*.npz -o "$work/candidates.npz"
    ;;
solve)
    nnkgraph build "$features" -o "$work/solve-$part.npz" \
        --search precomputed:path="$work/candidates.npz" \
        --shard auto --resume "$work/solve-$part.checkpoint"
    ;;
graph)
    nnkgraph merge "$work"/solve-*.npz -o "$graph"
    ;;
esac
