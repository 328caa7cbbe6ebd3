package refine

import (
	"regexp"
	"strconv"
)

// Passing is how many tests passed by what a test program printed, in the forms of the
// usual ones; known is false where it says nothing of the kind.
func Passing(output string) (n int, known bool) {
	for _, line := range regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL)|^(ok|not ok|FAIL)\s`).FindAllStringSubmatch(output, -1) {
		known = true
		if line[1] == "PASS" || line[2] == "ok" {
			n++
		}
	}
	for _, count := range regexp.MustCompile(`\b(\d+) (?:tests? )?(?:passed|passing|pass)\b`).FindAllStringSubmatch(output, -1) {
		if i, err := strconv.Atoi(count[1]); err == nil {
			n, known = n+i, true
		}
	}
	return n, known
}
