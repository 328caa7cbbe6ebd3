package agent_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

// Versions that looked at the time without progress between calls only let a
// call outlast it. Their journals go on as they went: a model that was asked is
// asked, whatever a run of today would have done there.
func TestARunThatWentOnBeyondItsTimeWithoutProgressGoesOn(t *testing.T) {
	p := newPlay(t, agent.Config{})
	p.answer(asks("", "read a"))
	p.after(20 * time.Second)
	p.results("c1.1=A")
	if p.call == nil || p.call.Cycle != 2 {
		t.Fatalf("the second cycle has not begun:\n%s", p.log.String())
	}

	old := agent.New()
	for i, body := range p.journal {
		e, err := event.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			e.Data = withLimits(t, e.Data.(event.RunStarted), budget.Limits{MaxIdleSeconds: 10})
		}
		if err := old.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	resumed := &event.Event{Seq: p.seq + 1, Run: "r", Time: p.now.Add(time.Hour), Cycle: 2, Data: event.RunResumed{Recovered: true}}
	if err := old.Apply(resumed); err != nil {
		t.Fatal(err)
	}
	for _, a := range old.Next() {
		if r, ok := a.(machine.Record); ok {
			if end, ended := r.Data.(event.RunTerminatedBy); ended {
				t.Errorf("the run ends: %+v", end)
			}
		}
	}
	if left := old.State().Deadline.At.Sub(resumed.Time); left <= 0 {
		t.Errorf("its deadline is %v away", left)
	}
}

func withLimits(t *testing.T, d event.RunStarted, l budget.Limits) event.RunStarted {
	t.Helper()
	var cfg agent.Config
	if err := json.Unmarshal(d.Config, &cfg); err != nil {
		t.Fatal(err)
	}
	cfg.Limits = l
	raw, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d.Config = raw
	return d
}
