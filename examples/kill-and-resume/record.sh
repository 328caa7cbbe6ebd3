#!/bin/sh
# Prints the recording in README.md: an agent is killed while it works, and resumed.
# 'make recording' runs it with the binary that it builds.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$here"/*.yaml "$dir"
cd "$dir"
unset PAWL_JOURNAL PAWL_CONFIG || true
: >sent.log

# shown leaves out what differs from machine to machine, and folds long lines.
shown() { grep -vE '^(limits|sandbox|warning|journal checksum): ' "$1" | fold -s -w 100 | sed 's/ *$//'; }

echo '$ pawl run agent.yaml "Send the invoices." &'
pawl run agent.yaml "Send the invoices." >run.txt 2>&1 &
pid=$!
until grep -q 'invoice 3' sent.log; do
	kill -0 "$pid" || { cat run.txt; exit 1; }
	sleep 0.1
done
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
shown run.txt
echo
echo '$ kill -9 $!'
run=$(sed -n 's/^run \([a-z0-9]*\): .*/\1/p' run.txt)
echo "$ pawl runs resume $run"
pawl runs resume "$run" >resume.txt 2>&1 || { cat resume.txt; exit 1; }
shown resume.txt
echo
echo '$ cat sent.log'
cat sent.log
