package control_test

import (
	"errors"
	"testing"

	"github.com/pawlrun/pawl/internal/engine/control"
)

func TestErrorTextOmitsPackagePrefixes(t *testing.T) {
	for text, want := range map[string]string{
		"launch: llm: unknown model: nope/x":           "unknown model: nope/x",
		"launch: openai: auth: there is no key":        "openai: auth: there is no key",
		"engine: run k7x2: journal: run has ended":     "run k7x2: journal: run has ended",
		"there is no file: launch: agent.yaml":         "there is no file: launch: agent.yaml",
		"launch: ":                                     "",
		"launch":                                       "launch",
		"agent.yaml:1:1: prompt.system: it is missing": "agent.yaml:1:1: prompt.system: it is missing",
	} {
		if got := control.Plain(errors.New(text)); got != want {
			t.Errorf("%q is told as %q, want %q", text, got, want)
		}
	}
}

func TestWhoDrivesARunIsToldAsAProcess(t *testing.T) {
	for owner, want := range map[string]string{
		"host:3f2a/4711/99120/k7x2": "process 4711 on host", "somebody": "somebody", "": "",
	} {
		if got := control.Driver(owner); got != want {
			t.Errorf("%q is told as %q, want %q", owner, got, want)
		}
	}
}
