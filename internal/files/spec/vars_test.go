package spec_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/processor"
)

func TestVariablesOfThePromptAreReplaced(t *testing.T) {
	for _, c := range []struct {
		system string
		values map[string]string
		want   string
	}{
		{"plain $x {y} $ {z}", nil, "plain $x {y} $ {z}"},
		{"fix ${what} in ${where}, ${what}!", map[string]string{"what": "tests", "where": "a b"}, "fix tests in a b, tests!"},
		{"${a}${b}", map[string]string{"a": "${b}", "b": ""}, "${b}"},
		{"echo $${HOME} ${a}", map[string]string{"a": "1"}, "echo ${HOME} 1"},
		{"${1} ${} ${a b}", nil, "${1} ${} ${a b}"},
	} {
		got, err := (&spec.Agent{System: c.system}).Expand(c.values)
		if err != nil || got != c.want {
			t.Errorf("%q: got %q, %v; want %q", c.system, got, err, c.want)
		}
	}
}

func TestVariablesAreListedOnce(t *testing.T) {
	a := &spec.Agent{System: "${b} ${a} $${c} ${b}"}
	if got := a.Variables(); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("got %v", got)
	}
}

func TestVariableWithoutValueAndValueWithoutVariableAreErrors(t *testing.T) {
	dir := t.TempDir()
	prompt := filepath.Join(dir, "p.md")
	if err := os.WriteFile(prompt, []byte("You fix\nthe ${project}.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.yaml")
	a := parse(t, file, small+"prompt: {system_file: p.md}\n")
	_, err := a.Expand(map[string]string{"projekt": "x"})
	want := prompt + ":1:1: prompt.system_file: the prompt has no ${projekt}; did you mean project?\n" +
		prompt + ":2:5: prompt.system_file: ${project} has no value (expected --var project=…, or $${project} for the text itself)"
	var problems decode.Errors
	if !errors.As(err, &problems) || err.Error() != want {
		t.Errorf("got %v\nwant %v", err, want)
	}
	_, err = parse(t, file, small+"prompt: {system: 'x ${y}'}\n").Expand(nil)
	if !errors.As(err, &problems) || problems[0].Line != 3 || problems[0].Column != 18 {
		t.Errorf("got %v", err)
	}
}

// A prompt that names thousands of variables took minutes to be refused, and a short
// one that names a long value again and again the memory of the machine.
func TestAPromptFullOfVariablesCostsNoMoreThanItIsLong(t *testing.T) {
	var names strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&names, "${v%d}\n", i)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.md"), []byte(names.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	a := parse(t, filepath.Join(dir, "a.yaml"), small+"prompt: {system_file: p.md}\n")
	began := processor.Time(t)
	_, err := a.Expand(map[string]string{"v1": "x"})
	var problems, unasked decode.Errors
	if !errors.As(err, &problems) || len(problems) != 101 || problems[99].Line != 101 || problems[100].Message != "and 99899 more problems" {
		t.Errorf("%d problems", len(problems))
	}
	others := map[string]string{}
	for i := range 20_000 {
		others[fmt.Sprintf("w%d", i)] = ""
	}
	if _, err := a.Expand(others); !errors.As(err, &unasked) || len(unasked) != 101 {
		t.Errorf("%d problems with values that nobody asks for", len(unasked))
	}
	if got := len(a.Variables()); got != 100_000 {
		t.Errorf("%d variables", got)
	}
	if took := processor.Time(t) - began; took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	often := &spec.Agent{System: strings.Repeat("${a}", 10_000)}
	if _, err := often.Expand(map[string]string{"a": strings.Repeat("x", 1000)}); err == nil || !strings.Contains(err.Error(), "with its values it has more than 4 MiB") {
		t.Errorf("10 MB of prompt: %v", err)
	}
	if got, err := often.Expand(map[string]string{"a": strings.Repeat("x", 400)}); err != nil || len(got) != 4_000_000 {
		t.Errorf("4 MB of prompt: %d bytes, %v", len(got), err)
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("x ${a} $${b} ${", "a", "${a}")
	f.Add("$$${a}}", "a", "")
	f.Fuzz(func(t *testing.T, system, name, value string) {
		a := &spec.Agent{System: system}
		got, err := a.Expand(map[string]string{name: value})
		asked := a.Variables()
		switch {
		case err == nil && !slices.Equal(asked, []string{name}):
			t.Errorf("%q asks for %q and was content with %q", system, asked, name)
		case err != nil && slices.Equal(asked, []string{name}) && len(system)*(len(value)+1) <= 4<<20:
			t.Errorf("%q with %q: %v", system, name, err)
		case err == nil && len(got) > len(system)*(len(value)+1):
			t.Errorf("%q became %q", system, got)
		}
	})
}
