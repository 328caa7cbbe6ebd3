package refine

import (
	"regexp"
	"strconv"
)

// Passing returns the number of passed tests according to a test program's output in
// one of the usual formats. known is false if the output has none of them.
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
