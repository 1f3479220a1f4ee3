#!/usr/bin/env bash
# One graph by PBS job arrays, run on the login node:
#   ./pbs_array.sh FEATURES GRAPH PARTS
# It submits four jobs, each after the one before: search in parts, merge, solve in parts,
# merge.
set -euo pipefail

# PBS hands variables over, not arguments.
: "${features:=$1}" "${graph:=$2}" "${parts:=$3}" "${step:=submit}"
work=$graph.parts
part=${PBS_ARRAY_INDEX:-}
cd "${PBS_O_WORKDIR:-.}"

case $step in
submit)
    mkdir -p "$work"
    after=()
    for step in search candidates solve graph; do
        array=()
        case $step in search | solve) array=(-J "1-$parts") ;; esac
        job=$(qsub -N "nnk-$step" -r y -V "${array[@]}" "${after[@]}" -v \
            "features=$features,graph=$graph,parts=$parts,step=$step" "$0")
        after=(-W "depend=afterok:$job")
        echo "$step: job $job"
    done
    ;;
search)
    nnkgraph search "$features" -o "$work/search-$part.npz" \
        --shard "auto/$parts" --resume "$work/search-$part.checkpoint"
    ;;
candidates)
    nnkgraph merge "$work"/search-*.npz -o "$work/candidates.npz"
    ;;
solve)
    nnkgraph build "$features" -o "$work/solve-$part.npz" \
        --search precomputed:path="$work/candidates.npz" \
        --shard "auto/$parts" --resume "$work/solve-$part.checkpoint"
    ;;
graph)
    nnkgraph merge "$work"/solve-*.npz -o "$graph"
    ;;
esac
