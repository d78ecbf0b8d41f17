#!/usr/bin/env bash
# Check and measure gpuboost on a CUDA card, unattended: benchmarks/gpu_check.sh DIR [options]. See benchmarks/README.md.
#
#   --data-dir D     mnist.npz and covtype.npz; without them data of the same shapes are made
#   --seconds N      when all must be done (480)
#   --steps A,B      only these, in this order (facts,conformance,training,micro,kernels,sanitizer)
#   --dry-run        on the emulated device of the tests, with tiny shapes: needs no card, and measures nothing
#
# DIR/<step>.log and DIR/<step>.json are of one step; DIR/summary.json has everything, DIR/summary.txt is printed at the end.
# Whenever it is killed, what has been found is there. The exit status is 0 if no step has failed.
set -u

declare -A MODULE=([facts]=facts [conformance]=conformance [training]=training [micro]=micro [kernels]=kernel_table [sanitizer]=sanitizer)
# Shares of the time. What a step leaves over goes to those that follow, so the most valuable come first.
declare -A SHARE=([facts]=45 [conformance]=110 [training]=150 [micro]=35 [kernels]=80 [sanitizer]=60)
RESERVE=3 # seconds for the last summary

usage() {
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

dir='' data_dir='' seconds=480 steps=facts,conformance,training,micro,kernels,sanitizer dry_run=''
while (($#)); do
    case $1 in
    --data-dir) data_dir=$(cd "${2:?}" && pwd) || exit 2; shift 2 ;;
    --seconds) seconds=${2:?}; shift 2 ;;
    --steps) steps=${2:?}; shift 2 ;;
    --dry-run) dry_run=1; shift ;;
    -*) usage ;;
    *) [[ -z $dir ]] || usage; dir=$1; shift ;;
    esac
done
[[ -n $dir && $seconds =~ ^[0-9]+$ ]] || usage
IFS=, read -ra names <<<"$steps"
for name in "${names[@]}"; do
    [[ -n ${MODULE[$name]-} ]] || { echo "gpu_check.sh: no step $name" >&2; exit 2; }
done

mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 2
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
python=${PYTHON:-python3}
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1

summary() { "$python" benchmarks/gpu/summary.py "$dir" "$@"; }

child='' running='' begun=0 limit=0
interrupted() {
    trap - TERM INT HUP
    [[ -z $child ]] || { kill "$child"; wait "$child"; } 2>/dev/null
    [[ -z $running ]] || summary "$running" "out of time" $((SECONDS - begun)) "$limit"
    exit 143
}
trap interrupted TERM INT HUP

for name in "${names[@]}"; do rm -f "$dir/$name.json" "$dir/$name.log"; done
summary --steps "${names[@]}"

shares=0 failed=0
for name in "${names[@]}"; do shares=$((shares + SHARE[$name])); done
for name in "${names[@]}"; do
    limit=$(((seconds - RESERVE - SECONDS) * SHARE[$name] / shares))
    shares=$((shares - SHARE[$name]))
    if ((limit < 1)); then
        summary "$name" "out of time" 0 0
        continue
    fi
    running=$name begun=$SECONDS
    # A step is told to be done a little before it is killed.
    timeout --kill-after=3 "$limit" "$python" -m "benchmarks.gpu.${MODULE[$name]}" "$dir" --seconds $((limit * 9 / 10)) \
        ${data_dir:+--data-dir "$data_dir"} ${dry_run:+--dry-run} >"$dir/$name.log" 2>&1 &
    child=$!
    wait "$child"
    code=$? child=''
    case $code in
    0) status=ok ;;
    77) status=skipped ;;
    124 | 137) status='out of time' ;;
    *) status=failed failed=1 ;;
    esac
    summary "$name" "$status" $((SECONDS - begun)) "$limit"
    running=''
done
cat "$dir/summary.txt"
exit "$failed"
