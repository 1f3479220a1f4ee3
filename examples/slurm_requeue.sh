#!/usr/bin/env bash
# One job that survives preemption and the end of its time:
#   sbatch slurm_requeue.sh FEATURES GRAPH
#SBATCH --job-name=nnkgraph
#SBATCH --cpus-per-task=2
#SBATCH --time=60
#SBATCH --requeue --open-mode=append
#SBATCH --signal=USR1@60
set -u

# What is done is kept in the checkpoint. Preempted, the job is started again by Slurm;
# at the end of its time it gets SIGUSR1 a minute before, and asks for another turn.
code=0
srun nnkgraph build "$1" -o "$2" --resume "$2.checkpoint" || code=$?
if [ "$code" -eq 143 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
