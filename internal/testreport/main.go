// Command testreport reads the output of `go test -json` and prints what a
// person wants to see of it: a line per package and gate, what the failed tests
// said, each skipped test with its reason, and the requirement rows none of whose
// tests ran. It exits with 1 when a test, a package or a build failed, and when no
// test ran.
//
//	go test -json ./... | go run ./internal/testreport -log bin/test.log
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	log := flag.String("log", "", "file for the whole output of the tests")
	rows := flag.String("rows", "", "requirements page, whose rows without a test that ran are listed")
	flag.Parse()
	if err := run(*log, *rows, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
}

// module is the module whose tests are reported.
const module = "github.com/pawlrun/pawl"

func run(log, rows string, in io.Reader, out io.Writer) (err error) {
	whole := io.Discard
	if log != "" {
		f, err := os.Create(log)
		if err != nil {
			return err
		}
		defer func() {
			if closed := f.Close(); err == nil {
				err = closed
			}
		}()
		whole = f
	}
	r := newReport(out, whole)
	if err := r.read(in); err != nil {
		return err
	}
	if rows != "" {
		if err := r.uncounted(out, rows); err != nil {
			return err
		}
	}
	return r.finish()
}
