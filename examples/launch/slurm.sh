#!/usr/bin/env bash
# The paper's run on four nodes of eight GPUs: nodes 1 and 2 train, nodes 3 and 4 sample, one server each.
# Before: `arise engines install areal` and `arise engines install vllm` into a folder that every node sees (ARISE_CACHE).
# Submit from the folder of the project: sbatch examples/launch/slurm.sh
#SBATCH --job-name=arise
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=12
#SBATCH --time=3-00:00:00
set -euo pipefail

config=${1:-configs/paper.toml}
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
addresses=()
for node in "${nodes[@]:2}"; do
  srun --nodes=1 --ntasks=1 --gpus=8 --nodelist="$node" --output="server-$node.log" \
    arise engines serve "$config" --host 0.0.0.0 --port 8000 &
  addresses+=("\"http://$node:8000\"")
done

# The driver runs here, on the first node; the trainer's rank 0 does too.
exec arise train "$config" --run-dir "runs/$SLURM_JOB_ID" \
  --set "policy.host=${nodes[0]}" \
  --set "policy.launch=[\"srun\", \"--nodes=2\", \"--ntasks=16\", \"--ntasks-per-node=8\", \"--nodelist=${nodes[0]},${nodes[1]}\"]" \
  --set "policy.sampler.addresses=[$(IFS=,; echo "${addresses[*]}")]"
