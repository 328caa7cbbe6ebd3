package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAReportOfATestRun(t *testing.T) {
	for _, tt := range []struct {
		name, in, out, err, log string
	}{
		{
			name: "what passed is a line a package, and what was skipped has its reason",
			in: `{"Action":"start","Package":"example.org/a"}
{"Action":"output","Package":"example.org/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"output","Package":"example.org/a","Test":"TestOne","Output":"    a_test.go:7: gate of fixtures: 12 of 12 passed\n"}
{"Action":"pass","Package":"example.org/a","Test":"TestOne","Elapsed":0.1}
{"Action":"output","Package":"example.org/a","Test":"TestTwo/as_root","Output":"=== RUN   TestTwo/as_root\n"}
{"Action":"output","Package":"example.org/a","Test":"TestTwo/as_root","Output":"    a_test.go:9: only root can do this\n"}
{"Action":"output","Package":"example.org/a","Test":"TestTwo/as_root","Output":"    --- SKIP: TestTwo/as_root (0.00s)\n"}
{"Action":"skip","Package":"example.org/a","Test":"TestTwo/as_root"}
{"Action":"pass","Package":"example.org/a","Elapsed":1.25}
{"Action":"skip","Package":"example.org/empty"}
`,
			out: "a_test.go:7: gate of fixtures: 12 of 12 passed\nok\texample.org/a\t1.2s\n" +
				"skipped 1, because only root can do this: a.TestTwo\n1 passed, 0 failed, 1 skipped\n",
			log: "=== RUN   TestOne\n    a_test.go:7: gate of fixtures: 12 of 12 passed\n=== RUN   TestTwo/as_root\n" +
				"    a_test.go:9: only root can do this\n    --- SKIP: TestTwo/as_root (0.00s)\n",
		},
		{
			name: "a failed test says what it said, and nothing of the others",
			in: `{"Action":"output","Package":"example.org/a","Test":"TestOne","Output":"all is well\n"}
{"Action":"pass","Package":"example.org/a","Test":"TestOne"}
{"Action":"output","Package":"example.org/a","Test":"TestTwo","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"example.org/a","Test":"TestTwo"}
{"Action":"fail","Package":"example.org/a","Elapsed":2}
`,
			out: "FAIL\texample.org/a\t2.0s\n--- a.TestTwo\ngot 1, want 2\n--- example.org/a\n1 passed, 1 failed, 0 skipped\n",
			err: "tests failed",
			log: "all is well\ngot 1, want 2\n",
		},
		{
			name: "a build that fails is a failure",
			in: `{"ImportPath":"example.org/b","Action":"build-output","Output":"b.go:3: undefined: x\n"}
{"ImportPath":"example.org/b","Action":"build-fail"}
{"Action":"output","Package":"example.org/a","Test":"TestOne","Output":"fine\n"}
{"Action":"pass","Package":"example.org/a","Test":"TestOne"}
`,
			out: "--- example.org/b\nb.go:3: undefined: x\n1 passed, 0 failed, 0 skipped\n",
			err: "tests failed",
			log: "b.go:3: undefined: x\nfine\n",
		},
		{name: "words that are not JSON are shown", in: "go: no such module\n", out: "go: no such module\n0 passed, 0 failed, 0 skipped\n",
			err: "no test ran", log: "go: no such module\n"},
		{
			name: "a package that does not end is a failure",
			in: `{"Action":"start","Package":"example.org/a"}
{"Action":"pass","Package":"example.org/a","Test":"TestOne"}
`,
			out: "1 passed, 0 failed, 0 skipped\n", err: "the tests of example.org/a have begun and not ended",
		},
		{name: "nothing at all is no success", out: "0 passed, 0 failed, 0 skipped\n", err: "no test ran"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, log strings.Builder
			r := newReport(&out, &log)
			if err := r.read(strings.NewReader(tt.in)); err != nil {
				t.Fatal(err)
			}
			var failure string
			if err := r.finish(); err != nil {
				failure = err.Error()
			}
			if diff := cmp.Diff([]string{tt.out, tt.err, tt.log}, []string{out.String(), failure, log.String()}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
