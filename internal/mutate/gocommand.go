package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// realGo names the go command that [asGo] starts.
const realGo = "MUTATE_GO"

// memory bounds what a test may take: a loop that a mutant keeps from ending often
// appends until the machine has no more.
const memory = 4 << 30

// asGo is the go command as gremlins sees it. It puts right what gremlins gets wrong:
// a mutant that does not compile ends go test with 1, like a test that fails, and would
// count as killed; and no coverage profile has the conditions of a switch's cases in it,
// so that they would all count as not covered.
func asGo(args []string) int {
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: memory, Max: memory}); err != nil {
		fmt.Fprintln(os.Stderr, "limit the memory of a test:", err)
		return 3
	}
	return runGo(os.Getenv(realGo), args)
}

func runGo(tool string, args []string) int {
	profile := ""
	if i := slices.Index(args, "-coverprofile"); i >= 0 && i+1 < len(args) {
		profile = args[i+1]
		last := len(args) - 1
		args[last] = strings.TrimSuffix(args[last], "/...") // the packages below have mutants of their own
	}
	out, err := exec.Command(tool, args...).CombinedOutput()
	os.Stdout.Write(out)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && (bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]"))):
		return 2
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	if profile != "" {
		if err := addUncounted(profile); err != nil {
			fmt.Fprintln(os.Stderr, "read the coverage:", err)
			return 3
		}
	}
	return 0
}
