#!/bin/sh
# Tests total.sh.
got=$(sh ./total.sh 1 2 3)
if [ "$got" != 6 ]; then
	echo "FAIL: total.sh 1 2 3 prints $got, want 6"
	exit 1
fi
echo "all tests passed"
