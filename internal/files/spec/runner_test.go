package spec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/spec"
)

func TestARunnerIsACommandLineWithCarefulDefaults(t *testing.T) {
	var c spec.Runner
	if c.Idle() != 300*time.Second || c.Longest() != 0 || c.Class() != event.EffectAtMostOnce || !c.Streams() {
		t.Errorf("%s, %s, %s, %t", c.Idle(), c.Longest(), c.Class(), c.Streams())
	}
	none, hour := spec.Seconds(0), spec.Seconds(3600)
	c = spec.Runner{IdleTimeout: &none, MaxTime: &hour, Effect: "idempotent", Events: "none"}
	if c.Idle() != 0 || c.Longest() != time.Hour || c.Class() != event.EffectIdempotent || c.Streams() {
		t.Errorf("%s, %s, %s, %t", c.Idle(), c.Longest(), c.Class(), c.Streams())
	}
}

func TestRunnerProblemsHavePositions(t *testing.T) {
	below := spec.Seconds(-1)
	for want, c := range map[string]spec.Runner{
		"":                               {Command: []string{"claude", "-p"}, Env: []string{"ANTHROPIC_API_KEY"}},
		"loop.runner.command is missing": {},
		"loop.runner.command has a NUL":  {Command: []string{"a\x00b"}},
		"loop.runner.env[1]":             {Command: []string{"a"}, Env: []string{"A", "KEY=value"}},
		"loop.runner.idle_timeout is -1": {Command: []string{"a"}, IdleTimeout: &below},
		"loop.runner.max_time is -1":     {Command: []string{"a"}, MaxTime: &below},
	} {
		problems := spec.RunnerProblems(&c)
		said := ""
		if len(problems) > 0 {
			said = problems.Error()
		}
		if said == "" != (want == "") || !strings.Contains(strings.ReplaceAll(said, ":", ""), want) {
			t.Errorf("%+v: %q, want %q", c, said, want)
		}
	}
}
