#!/usr/bin/env bash
# Runs fuzzers until their time is up or one finds something. `make fuzz-long` calls it; see README.md here.
#
#   long.sh SRCDIR FUZZER...      FUZZ_SECONDS=600 each, FUZZ_JOBS=1 at once, FUZZ_ONLY="name name" picks some
#
# Inputs it comes upon stay in fuzz-found/NAME/ for the next run; a finding in fuzz-found/NAME-crash-* (or timeout-,
# oom-, leak-). Ends only what it started.
set -uo pipefail
src=$1
shift
seconds=${FUZZ_SECONDS:-600} jobs=${FUZZ_JOBS:-1} only=${FUZZ_ONLY:-}
found=$PWD/fuzz-found
mkdir -p "$found"
declare -A running=() # process id: name
failed=''

stop() {
	[ "${#running[@]}" = 0 ] || kill "${!running[@]}" 2>/dev/null
	wait
}
trap 'stop; exit 130' INT TERM

begin() { # PROGRAM
	local name=${1##*/fuzz_} dict
	mkdir -p "$found/$name"
	dict=$src/tests/fuzz/${name%%_*}.dict
	[ -f "$dict" ] && set -- "$1" "-dict=$dict"
	"$@" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$found/$name-" "$found/$name" "$src/tests/fuzz/corpus/$name" >"$found/$name.log" 2>&1 &
	running[$!]=$name
}

# One of them has ended: what came of it?
collect() {
	local pid status=0 name
	wait -n -p pid "${!running[@]}" || status=$?
	name=${running[$pid]}
	unset "running[$pid]"
	if [ "$status" = 0 ]; then
		printf 'ok %s: %s runs, nothing found\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$found/$name.log")"
		return 0
	fi
	failed=$name
	printf 'not ok %s: exit %s\n' "$name" "$status"
	tail -n 25 "$found/$name.log"
	cat <<-END
		What to do: run  tests/fuzz/fuzz_$name FILE  with the file named above (fuzz-found/$name-...) until it passes;
		make the file smaller with -minimize_crash=1 -runs=10000; put it into tests/fuzz/corpus/$name/ under a name that
		says what it is, and where it shows a rule, add a row to the unit test of that parser.
	END
	return 1
}

for program in "$@"; do
	name=${program##*/fuzz_}
	if [ -n "$only" ]; then case " $only " in *" $name "*) ;; *) continue ;; esac; fi
	while [ "${#running[@]}" -ge "$jobs" ]; do collect || break 2; done
	printf 'fuzzing %s for %s s\n' "$name" "$seconds"
	begin "$program"
done
while [ -z "$failed" ] && [ "${#running[@]}" -gt 0 ]; do collect || break; done
stop
[ -z "$failed" ]
