package wiregate

import (
	"errors"
	"testing"

	"github.com/pawlrun/pawl/llm"
)

// wireGate decodes every exchange of the adapter's wire format, streaming and
// collected, however the bytes are cut: always the same answer, and the one
// that independent readers agree on.
func wireGate(t *testing.T, a Adapter) {
	r := report{name: "wire/" + a.API}
	for _, s := range load(t, a.API) {
		a := a.of(&s)
		for i := range s.Exchanges {
			x := &s.Exchanges[i]
			r.run(t, x.Name, func(t *testing.T) string {
				checkExchange(t, a, &s, x)
				return ""
			})
		}
	}
	r.finish(t)
}

func checkExchange(t *testing.T, a *Adapter, s *Scenario, x *Exchange) {
	first, firstErr := read(t, a, s, x, Unsplit, true)
	switch {
	case x.Expected.Error != nil:
		checkFailure(t, x, firstErr)
	case x.Expected.Finish.Raw == nil:
		want, named := errorClasses[x.Name]
		if !named {
			want = llm.ClassNetwork // a stream that just ends
		}
		if e := asError(t, firstErr); e != nil && e.Class != want {
			t.Errorf("a broken answer is of class %s, not %s", e.Class, want)
		}
	case firstErr != nil:
		t.Fatalf("decode: %v", firstErr)
	default:
		compareAnswer(a, x, first).report(t, "decoded")
	}
	for _, way := range []struct {
		cut    Cut
		stream bool
	}{{Unsplit, false}, {PerEvent, true}, {PerEvent, false}, {OneByte, true}, {OneByte, false}} {
		got, err := read(t, a, s, x, way.cut, way.stream)
		if diff := difference(first, got); diff != "" {
			t.Errorf("body %s, streamed %t, reads otherwise than whole and streamed (-whole +got):\n%s", way.cut, way.stream, diff)
		}
		if errorText(err) != errorText(firstErr) {
			t.Errorf("body %s, streamed %t: error %q, where it was %q", way.cut, way.stream, errorText(err), errorText(firstErr))
		}
	}
}

// read makes one call of the exchange; streamed, it also holds the deltas
// against the parts that they build up to.
func read(t *testing.T, a *Adapter, s *Scenario, x *Exchange, cut Cut, stream bool) (*llm.Response, error) {
	t.Helper()
	replay := Serve(t, *x)
	m := a.New(replay.URL, replay.Client(cut))
	req := &llm.Request{Model: s.Model, Messages: []*llm.Message{llm.UserText("replay")}, Tools: requestTools(a, x)}
	if !stream {
		return m.Generate(t.Context(), req)
	}
	var live collected
	resp, err := m.Stream(t.Context(), req, live.add)
	live.compare(resp).report(t, "deltas")
	return resp, err
}

// requestTools offers what the recorded request offered, so that names are
// mapped back as they would be.
func requestTools(a *Adapter, x *Exchange) []llm.ToolDef {
	if x.Request == nil {
		return nil
	}
	req, err := a.Parse(x.Request)
	if err != nil {
		return nil
	}
	return req.Tools
}

func checkFailure(t *testing.T, x *Exchange, err error) {
	t.Helper()
	if e := asError(t, err); e != nil {
		compareError(x, e).report(t, "error")
	}
}

// asError demands a classified error.
func asError(t *testing.T, err error) *llm.Error {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Errorf("got error %v, want an *llm.Error", err)
		return nil
	}
	return e
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
