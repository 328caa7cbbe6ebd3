package wiregate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// The number of faults tried on each recorded answer, and the time that one
// may take. The seed is fixed: a failure is found again by running the test.
const (
	eventCuts = 48
	byteCuts  = 32
	damages   = 64
	faultTime = 10 * time.Second
	faultSeed = 20260101
)

// faultGate cuts and damages every recorded answer. An answer that just ends is
// a broken one, with its partial text kept; no fault hangs or panics; and no
// answer that counts as whole holds a call with partial arguments.
func faultGate(t *testing.T, a Adapter) {
	r := report{name: "fault/" + a.API}
	for _, s := range load(t, a.API) {
		a := a.of(&s)
		for i := range s.Exchanges {
			x := &s.Exchanges[i]
			if x.Status != http.StatusOK {
				continue
			}
			r.run(t, x.Name, func(t *testing.T) string {
				f := fault{adapter: a, scenario: &s, exchange: x, random: rand.New(rand.NewPCG(faultSeed, uint64(len(x.Body))))}
				f.tools = requestTools(f.adapter, x)
				f.full, f.fullErr = f.read(t, x.Body, nil)
				f.cutEverywhere(t)
				f.damage(t)
				return ""
			})
		}
	}
	r.finish(t)
}

// fault tries faults on one answer.
type fault struct {
	adapter  *Adapter
	scenario *Scenario
	exchange *Exchange
	random   *rand.Rand
	tools    []llm.ToolDef
	full     *llm.Response
	fullErr  error
}

func (f *fault) cutEverywhere(t *testing.T) {
	var ends []int
	at := 0
	for piece := range pieces(f.exchange.Body, PerEvent) {
		at += len(piece)
		ends = append(ends, at)
	}
	step := max(1, len(ends)/eventCuts)
	for i := 0; i < len(ends); i += step {
		f.cut(t, ends[i], io.EOF)
	}
	for range byteCuts {
		f.cut(t, f.random.IntN(len(f.exchange.Body)), io.EOF)
		f.cut(t, f.random.IntN(len(f.exchange.Body)), io.ErrUnexpectedEOF)
	}
}

// cut ends the body early. What remains is either the whole answer or broken.
func (f *fault) cut(t *testing.T, at int, end error) {
	t.Helper()
	where := fmt.Sprintf("cut at byte %d of %d with %v", at, len(f.exchange.Body), end)
	resp, err := f.read(t, f.exchange.Body[:at], end)
	if err == nil {
		if diff := difference(f.full, resp); diff != "" {
			t.Errorf("%s: no error and not the whole answer (-whole +got):\n%s", where, diff)
		}
		return
	}
	e := asError(t, err)
	if e == nil {
		return
	}
	if e.Class != llm.ClassNetwork && errorText(err) != errorText(f.fullErr) {
		t.Errorf("%s: class %s", where, e.Class)
	}
	f.checkPartial(t, where, resp)
}

// checkPartial holds what was kept of a broken answer against the whole one.
func (f *fault) checkPartial(t *testing.T, where string, partial *llm.Response) {
	t.Helper()
	if partial == nil || f.full == nil {
		return
	}
	if !strings.HasPrefix(f.full.Parts.Text(), partial.Parts.Text()) {
		t.Errorf("%s: partial text %q is not how %q begins", where, partial.Parts.Text(), f.full.Parts.Text())
	}
	whole := map[string]any{}
	for _, c := range f.full.Parts.ToolCalls() {
		whole[c.ProviderID] = meaning(c.Args)
	}
	for _, c := range partial.Parts.ToolCalls() {
		if diff := difference(whole[c.ProviderID], meaning(c.Args)); diff != "" {
			t.Errorf("%s: call %s has partial arguments: %s%s", where, c.ProviderID, c.Args, c.ArgsText)
		}
	}
}

// damage changes bytes in the middle.
func (f *fault) damage(t *testing.T) {
	for range damages {
		body := append([]byte(nil), f.exchange.Body...)
		at := f.random.IntN(len(body))
		n := min(1+f.random.IntN(40), len(body)-at)
		switch f.random.IntN(4) {
		case 0:
			body[at] = byte(f.random.Uint32())
		case 1:
			body = append(body[:at], body[at+n:]...)
		case 2:
			body = append(body[:at], append(append([]byte(nil), body[at:at+n]...), body[at:]...)...)
		case 3:
			for i := range n {
				body[at+i] = byte(f.random.Uint32())
			}
		}
		resp, err := f.read(t, body, nil)
		if err != nil {
			asError(t, err)
			continue
		}
		for _, c := range resp.Parts.ToolCalls() {
			if len(c.Args) > 0 && !json.Valid(c.Args) {
				t.Errorf("damage at byte %d: call %s has arguments that are no JSON: %s", at, c.Name, c.Args)
			}
		}
	}
}

// read streams a body from memory. It fails the test when that takes too long
// or the deltas do not build up to the answer.
func (f *fault) read(t *testing.T, body []byte, end error) (*llm.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), faultTime)
	defer cancel()
	client := &http.Client{Transport: canned{exchange: f.exchange, body: body, broken: end}}
	m := f.adapter.New("http://canned.invalid", client)
	req := &llm.Request{
		Model: f.scenario.Model, Messages: []*llm.Message{llm.UserText("replay")}, Tools: f.tools,
	}
	var live collected
	resp, err := m.Stream(ctx, req, live.add)
	if ctx.Err() != nil {
		t.Fatalf("reading hung on %d of %d bytes", len(body), len(f.exchange.Body))
	}
	live.compare(resp).report(t, "deltas")
	if err == nil && resp == nil {
		t.Fatal("neither an answer nor an error")
	}
	return resp, err
}
