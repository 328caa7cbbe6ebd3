package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
)

func TestANonceIsChosenOnceWhereARunNeedsAFence(t *testing.T) {
	store, made := memory.New(nil), 0
	e := engine.New(store, newMachine, engine.Options{NewNonce: func() string { made++; return fmt.Sprint("nonce", made) }})
	defer func() { _ = e.Close() }()
	create := func(fence *event.Fence) string {
		t.Helper()
		started, err := agent.Start(agent.Config{Targets: []agent.Target{{Model: "m/a"}}}.WithDefaults(), llm.UserText("do it"))
		if err != nil {
			t.Fatal(err)
		}
		started.Fence = fence
		id := engine.NewID()
		err = e.Create(t.Context(), id, started, nil)
		if err != nil {
			t.Fatal(err)
		}
		records, err := store.Records(t.Context(), id, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		first, err := event.Decode(records[0].Body)
		if err != nil {
			t.Fatal(err)
		}
		if got := first.Data.(event.RunStarted).Fence; got != nil {
			return got.Nonce
		}
		return "none"
	}
	wanted := &event.Fence{}
	for _, tt := range []struct {
		fence *event.Fence
		want  string
	}{{nil, "none"}, {wanted, "nonce1"}, {wanted, "nonce2"}, {&event.Fence{Nonce: "kept"}, "kept"}} {
		if got := create(tt.fence); got != tt.want {
			t.Errorf("%+v: the nonce is %s, want %s", tt.fence, got, tt.want)
		}
	}
	if wanted.Nonce != "" {
		t.Error("what the caller gave was changed")
	}
}

func TestNoncesAreNotGuessed(t *testing.T) {
	e := engine.New(memory.New(nil), newMachine, engine.Options{})
	defer func() { _ = e.Close() }()
	seen := map[string]bool{}
	for range 50 {
		started, err := agent.Start(agent.Config{Targets: []agent.Target{{Model: "m/a"}}}.WithDefaults(), llm.UserText("do it"))
		if err != nil {
			t.Fatal(err)
		}
		started.Fence = &event.Fence{}
		id := engine.NewID()
		err = e.Create(t.Context(), id, started, nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.Inspect(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		nonce := m.(*agent.Machine).Fence().Nonce
		if len(nonce) != 16 || seen[nonce] || strings.Contains(nonce, id) {
			t.Fatalf("the nonce of %s is %q", id, nonce)
		}
		seen[nonce] = true
	}
}
