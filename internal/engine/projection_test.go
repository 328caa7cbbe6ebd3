package engine_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
	"github.com/pawlrun/pawl/tool"
)

var (
	record = flag.Bool("record", false, "make the journals of the projection test anew")
	update = flag.Bool("update", false, "write anew what requests the journals of the projection test give")
)

// wires are the APIs that a journal is projected to.
func wires() map[string]llm.Encoder {
	return map[string]llm.Encoder{
		"anthropic": anthropic.New(anthropic.Options{APIKey: "none"}),
		"openai":    openai.New(openai.Options{APIKey: "none"}),
		"chat":      openaichat.New(openaichat.Options{APIKey: "none"}),
		"gemini":    gemini.New(gemini.Options{APIKey: "none"}),
	}
}

// A journal that is kept means the same requests for ever, on every wire: after
// a restart, after an upgrade, with a memo and without. Where this test fails
// because the projection was changed on purpose, runs that are under way would
// lose their providers' caches, so history.Version has to change with it.
func TestAKeptJournalGivesTheSameRequestBytes(t *testing.T) {
	if *record {
		recordProjections(t)
	}
	for _, name := range []string{"cleared", "summarised", "forked"} {
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join("testdata", "projection", name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "projection", name+".golden")
			got := projected(t, body)
			if *update || *record {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("requests (-kept +now):\n%s", diff)
			}
		})
	}
}

// projected folds a journal and lists the requests that it gives.
func projected(t *testing.T, journal []byte) string {
	t.Helper()
	var b strings.Builder
	m := agent.New()
	memos := map[string]*llm.Memo{}
	for name := range wires() {
		memos[name] = new(llm.Memo)
	}
	for line := range bytes.Lines(journal) {
		e, err := event.Decode(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(event.ModelRequested); ok {
			request := dueRequest(t, m)
			fmt.Fprintf(&b, "event %d %s %d messages\n", e.Seq, d.Purpose, len(request.Messages))
			for _, name := range []string{"anthropic", "chat", "gemini", "openai"} {
				encoded := encodedTwice(t, wires()[name], request, memos[name])
				fmt.Fprintf(&b, "  %-9s %s %d bytes\n", name, encoded.Digest, encoded.Len())
				if name == "anthropic" && (encoded.Digest != d.RequestDigest || encoded.Len() != d.RequestBytes) {
					t.Errorf("event %d: the run that was recorded sent %s, %d bytes", e.Seq, d.RequestDigest, d.RequestBytes)
				}
			}
		}
		if err := m.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func dueRequest(t *testing.T, m machine.Machine) llm.Request {
	t.Helper()
	for _, a := range m.Next() {
		if call, ok := a.(machine.CallModel); ok {
			return call.Request
		}
	}
	t.Fatal("no model call is due")
	return llm.Request{}
}

// encodedTwice encodes a request with a memo and without, to the same bytes.
func encodedTwice(t *testing.T, wire llm.Encoder, request llm.Request, memo *llm.Memo) *llm.Encoded {
	t.Helper()
	request.Model, request.Memo = "model", memo
	with, err := wire.Encode(&request)
	if err != nil {
		t.Fatal(err)
	}
	request.Memo = nil
	without, err := wire.Encode(&request)
	if err != nil {
		t.Fatal(err)
	}
	if with.Digest != without.Digest || !bytes.Equal(bytes.Join(with.Segments, nil), bytes.Join(without.Segments, nil)) {
		t.Error("the bytes with a memo are not those without")
	}
	return with
}

// recordProjections drives runs that have everything in them which a projection
// meets, and keeps their journals.
func recordProjections(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := long(t, 24, compact.Settings{Window: 4000})
		r.everything()
		run := r.start(t.Context())
		outcome(t, run)
		r.keep("cleared", run.ID)

		r = long(t, 24, compact.Settings{Window: 4000, Strategy: compact.SummarizeOlder})
		r.everything()
		run = r.start(t.Context())
		outcome(t, run)
		r.keep("summarised", run.ID)

		var at int64
		for _, e := range r.journal(run.ID) {
			if e.Type() == event.TypeHistoryCompressed {
				at = e.Seq
				break
			}
		}
		fork, _ := r.fork(run.ID, at+1, event.RunForked{})
		outcome(t, r.resume(fork))
		r.keep("forked", fork)
	})
}

// everything gives the worker's tool results of all kinds: long, failed, from
// outside, and pinned.
func (r *rig) everything() {
	r.t.Helper()
	read, _ := r.env.Tools.Lookup("read")
	plain := read.Run
	read.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		got, err := plain(ctx, c)
		switch string(c.Args) {
		case `{"n":2}`:
			got.Output = strings.Repeat("<&> a line that is \"long\" \\ é 😀\n", 400)
		case `{"n":4}`:
			return got, errors.New("no such file")
		case `{"n":5}`:
			got.Untrusted = true
		case `{"n":3}`, `{"n":7}`:
			got.Pin = "todo"
		case `{"n":8}`, `{"n":9}`:
			got.Output = strings.Repeat("the same twice ", 60)
		case `{"n":10}`:
			got.Media = []llm.Media{{MediaType: "image/png", Name: "dot.png", Data: []byte("\x89PNG dot")}}
		}
		return got, err
	}
	r.tools(read)
	r.cfg.System, r.cfg.Limits.MaxResultChars = "You read with care.", 4000
}

// keep writes a run's events, those that it shares included.
func (r *rig) keep(name, run string) {
	r.t.Helper()
	records, err := r.store.Records(r.t.Context(), run, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	var b bytes.Buffer
	for _, rec := range records {
		b.Write(rec.Body)
		b.WriteByte('\n')
	}
	path := filepath.Join("testdata", "projection", name+".jsonl")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		r.t.Fatal(err)
	}
}
