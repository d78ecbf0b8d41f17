#!/usr/bin/env bash
# Check and measure gpuboost on a CUDA card, unattended: benchmarks/gpu_check.sh DIR [options]. See benchmarks/README.md.
#
#   --data-dir D     mnist.npz and covtype.npz; without them data of the same shapes are made
#   --wheels D       wheels that pip installs first, without an index
#   --fatbins D      kernels compiled ahead of time by kernels/build.py
#   --seconds N      when all must be done, counted from the end of the preflight (480)
#   --steps A,B      only these, in this order (facts,conformance,training,adoption,graphs,queued,micro,kernels,sanitizer,model)
#   --dry-run        on the emulated device of the tests, with tiny shapes: needs no card, and measures nothing
#
# DIR/<step>.log and DIR/<step>.json are of one step; DIR/summary.json has everything, DIR/summary.txt is printed at the end.
# Whenever it is killed, what has been found is there. The exit status is 0 if no step has failed, 1 if one has, and 3 if the
# preflight finds that nothing can be measured.
set -u

STEPS=facts,conformance,training,adoption,graphs,queued,micro,kernels,sanitizer,model
declare -A MODULE=([preflight]=preflight [facts]=facts [conformance]=conformance [training]=training [adoption]=adoption
    [graphs]=rounds_of_shapes [queued]=rounds_of_shapes [micro]=micro [kernels]=kernel_table [sanitizer]=sanitizer [model]=model_beside)
# Shares of the time. What a step leaves over goes to those that follow, so the most valuable come first.
declare -A SHARE=([facts]=30 [conformance]=95 [training]=125 [adoption]=15 [graphs]=35 [queued]=25 [micro]=30 [kernels]=70
    [sanitizer]=45 [model]=10)
RESERVE=3 # seconds for the last summary
PREFLIGHT=300 # seconds at most, before the clock starts

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

dir='' data_dir='' wheels='' seconds=480 steps=$STEPS dry_run=''
while (($#)); do
    case $1 in
    --data-dir) data_dir=$(cd "${2:?}" && pwd) || exit 2; shift 2 ;;
    --wheels) wheels=$(cd "${2:?}" && pwd) || exit 2; shift 2 ;;
    --fatbins) GPUBOOST_FATBIN=$(cd "${2:?}" && pwd) || exit 2; export GPUBOOST_FATBIN; shift 2 ;;
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
    [[ -n ${SHARE[$name]-} ]] || { echo "gpu_check.sh: no step $name" >&2; exit 2; }
done

mkdir -p "$dir" && dir=$(cd "$dir" && pwd) && : >"$dir/.writable" && rm "$dir/.writable" ||
    { echo "gpu_check.sh: nothing can be measured: $dir cannot be written" >&2; exit 3; }
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "gpu_check.sh: nothing can be measured: $python is no Python 3.11 or later" >&2; exit 3; }
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 PYTHONFAULTHANDLER=1

summary() { "$python" benchmarks/gpu/summary.py "$dir" "$@"; }

child='' running='' begun=0 limit=0 failed=0
interrupted() {
    trap - TERM INT HUP
    [[ -z $child ]] || { kill "$child"; wait "$child"; } 2>/dev/null
    [[ -z $running ]] || summary "$running" "out of time" $((SECONDS - begun)) "$limit"
    exit 143
}
trap interrupted TERM INT HUP

# run_step NAME LIMIT [OPTION...]: its exit status is in code. A step is told to be done a little before it is killed. One that the
# kernel does not let go, as it may be with a card that hangs, is left behind: the outer timeout ends the inner one alone.
run_step() {
    running=$1 limit=$2 begun=$SECONDS
    local graphs=''
    case $1 in graphs) graphs=1 ;; queued) graphs=0 ;; esac
    env ${graphs:+GPUBOOST_CUDA_GRAPHS="$graphs"} timeout --signal=KILL $((limit + 6)) timeout --kill-after=3 "$limit" \
        "$python" -m "benchmarks.gpu.${MODULE[$1]}" "$dir" --seconds $((limit * 9 / 10)) \
        ${data_dir:+--data-dir "$data_dir"} ${dry_run:+--dry-run} "${@:3}" >"$dir/$1.log" 2>&1 &
    child=$!
    wait "$child"
    code=$? child=''
    case $code in
    0) status=ok ;;
    75) status='cannot run' failed=1 ;;
    76) status='card lost' failed=1 ;;
    77) status=skipped ;;
    124) status='out of time' ;;
    137) # by timeout, or by someone else before: then memory has run out, most likely
        if ((SECONDS - begun >= limit)); then status='out of time'; else status=killed failed=1; fi ;;
    *) status=failed failed=1 ;;
    esac
    summary "$1" "$status" $((SECONDS - begun)) "$limit"
    running=''
}

for name in preflight "${names[@]}"; do rm -f "$dir/$name.json" "$dir/$name.log"; done
summary --steps preflight "${names[@]}"

run_step preflight "$PREFLIGHT" ${wheels:+--wheels "$wheels"}
if ((code == 75)); then
    cat "$dir/summary.txt"
    exit 3
fi

SECONDS=0 shares=0
for name in "${names[@]}"; do shares=$((shares + SHARE[$name])); done
for name in "${names[@]}"; do
    given=$(((seconds - RESERVE - SECONDS) * SHARE[$name] / shares))
    shares=$((shares - SHARE[$name]))
    if ((given < 1)); then
        summary "$name" "out of time" 0 0
    else
        run_step "$name" "$given"
    fi
done
cat "$dir/summary.txt"
exit "$failed"
