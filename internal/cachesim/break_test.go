package cachesim_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
)

// changed is the number of the request that something happens to.
const changed = 6

// adapter is what a provider's model can do.
type adapter interface {
	llm.Model
	llm.Encoder
	llm.Cacher
}

// meddler is an adapter that a bug or an upgrade made encode requests in
// another way, from one request on.
type meddler struct {
	adapter
	requests int
	change   func(*llm.Request)
}

func (m *meddler) Encode(req *llm.Request) (*llm.Encoded, error) {
	m.requests++
	if m.requests < changed || m.change == nil {
		return m.adapter.Encode(req)
	}
	other := *req
	m.change(&other)
	other.Memo = nil
	return m.adapter.Encode(&other)
}

func changeResult(r *llm.Request) {
	r.Messages = slices.Clone(r.Messages)
	r.Messages[2] = &llm.Message{Role: llm.RoleTool, Parts: slices.Clone(r.Messages[2].Parts)}
	result, _ := r.Messages[2].Parts[0].(llm.ToolResult)
	result.Output = "at " + result.Output
	r.Messages[2].Parts[0] = result
}

// ten is a run of ten cycles with two calls each.
func ten(n int) int {
	if n == 10 {
		return 0
	}
	return 2
}

// A break names the first segment that changed and its cost; a wait that is too
// long for the cache is none.
func TestABreakNamesWhatChangedAndWhatItCost(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*llm.Request)
		before func(*provider)
		want   string
	}{
		"a message":                  {change: changeResult, want: "message 3"},
		"how a request is encoded":   {change: func(r *llm.Request) { r.System += " " }, want: "settings"},
		"the provider forgot":        {before: func(p *provider) { p.cache.drop() }, want: "marker"},
		"a wait beyond the lifetime": {before: func(p *provider) { p.pass(6 * time.Minute) }},
		"nothing":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			s := services()[0]
			p := s.provider(ten)
			l := newLab(t, s, p)
			l.use(&meddler{adapter: anthropic.New(anthropic.Options{HTTP: &http.Client{Transport: p}}), change: tt.change})
			p.before = func(n int, _ context.Context) error {
				if n == changed-1 && tt.before != nil {
					tt.before(p)
				}
				return nil
			}
			r := l.start(t.Context())
			l.finish(r)
			l.expectBreak(r.ID, tt.want)
		})
	}
}

// The check holds by each provider's own rules: what it says of writes, how it
// rounds, how long it keeps, and whether it promises anything.
func TestABreakIsFoundByTheRulesOfEachProvider(t *testing.T) {
	for _, s := range services() {
		for name, tt := range map[string]struct {
			change func(*llm.Request)
			before func(*provider)
			want   string
		}{
			"a message":                  {change: changeResult, want: "message 3"},
			"the provider forgot":        {before: func(p *provider) { p.cache.drop() }, want: "marker"},
			"a wait beyond the lifetime": {before: func(p *provider) { p.pass(31 * time.Minute) }},
			"nothing":                    {},
		} {
			if s.name == "openai-chat" && tt.change != nil {
				continue // its adapter encodes requests for whole answers again, so the meddler's are not sent
			}
			t.Run(s.name+"/"+name, func(t *testing.T) {
				p := s.provider(ten)
				l := newLab(t, s, p)
				inner, ok := s.model(&http.Client{Transport: p}).(adapter)
				if !ok {
					t.Fatal("the adapter tells no rules")
				}
				l.use(&meddler{adapter: inner, change: tt.change})
				p.before = func(n int, _ context.Context) error {
					if n == changed-1 && tt.before != nil {
						tt.before(p)
					}
					return nil
				}
				r := l.start(t.Context())
				l.finish(r)
				got := l.breaks(r.ID)
				if tt.want == "" {
					if len(got) > 0 {
						t.Errorf("got %+v", got)
					}
					return
				}
				if len(got) != 1 || got[0].Segment != tt.want || got[0].USD <= 0 {
					t.Fatalf("got %+v, want %s", got, tt.want)
				}
				before, now := p.served[changed-2], p.served[changed-1]
				if missing := before.input - now.read; got[0].TokensRewritten > missing || got[0].TokensRewritten < missing-missing/50-128 {
					t.Errorf("%d tokens are said to be written again, %d were", got[0].TokensRewritten, missing)
				}
			})
		}
	}
}

// expectBreak wants one break, at the changed request, or none where segment
// is empty.
func (l *lab) expectBreak(run, segment string) {
	l.t.Helper()
	got := l.breaks(run)
	if segment == "" {
		if len(got) > 0 {
			l.t.Fatalf("got %+v", got)
		}
		return
	}
	if len(got) != 1 {
		l.t.Fatalf("%d breaks: %+v", len(got), got)
	}
	b := got[0]
	before, now := l.p.served[changed-2], l.p.served[changed-1]
	missing := before.read + before.write - now.read
	usd := float64(missing) * (3.75 - 0.3) / 1e6
	if b.Segment != segment || b.Guess == "" || b.TokensRewritten != missing || fmt.Sprintf("%.9f", b.USD) != fmt.Sprintf("%.9f", usd) {
		l.t.Errorf("got %+v, want %s, %d tokens, %f USD", b, segment, missing, usd)
	}
}

// What a request is compared with comes from the journal: a process that
// encodes otherwise than the one before it is found out.
func TestABreakIsFoundAcrossARestart(t *testing.T) {
	for want, change := range map[string]func(*llm.Request){"message 3": changeResult, "": nil} {
		s := services()[0]
		p := s.provider(ten)
		l := newLab(t, s, p)
		ctx, interrupt := context.WithCancelCause(t.Context())
		defer interrupt(nil)
		p.before = func(n int, flight context.Context) error {
			if n != changed-1 || flight.Err() != nil {
				return nil
			}
			// The answer is in time; the run parks before the next request.
			interrupt(engine.ErrInterrupted)
			<-flight.Done()
			return nil
		}
		r := l.start(ctx)
		if s := l.wait(r); s.Phase != machine.Parked {
			t.Fatalf("the run is %s", s.Phase)
		}
		// The interrupted request is made again; its usage was never told.
		l.use(&meddler{adapter: anthropic.New(anthropic.Options{HTTP: &http.Client{Transport: p}}), change: change, requests: changed})
		l.finish(l.resume(r.ID))
		if got := l.breaks(r.ID); (len(got) > 0) != (want != "") || len(got) > 0 && got[0].Segment != want {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}

// Another model has a cache of its own.
func TestASwitchOfModelsIsNoBreak(t *testing.T) {
	s := services()[0]
	p := s.provider(ten)
	l := newLab(t, s, p)
	l.cfg.Targets = append(l.cfg.Targets, agent.Target{Model: "anthropic/claude-opus-4-1", Price: l.cfg.Targets[0].Price})
	failed := false
	p.before = func(n int, _ context.Context) error {
		if n == changed && !failed {
			failed = true
			return fmt.Errorf("connection reset by peer")
		}
		return nil
	}
	r := l.start(t.Context())
	state := l.finish(r)
	if !failed || state.Usage.CacheRead == 0 {
		t.Fatal("no switch was tested")
	}
	l.expectBreak(r.ID, "")
}
