package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/llm"
)

// speaking is a model that says an answer piece by piece.
type speaking struct {
	pieces []llm.Delta
	err    error
}

func (s *speaking) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	for _, d := range s.pieces {
		emit(d)
	}
	if s.err != nil {
		err := s.err
		s.pieces, s.err = []llm.Delta{{Kind: llm.DeltaText, Text: "well"}}, nil
		return nil, err
	}
	return s.Generate(ctx, req)
}

func (s *speaking) Generate(context.Context, *llm.Request) (*llm.Response, error) {
	return said("done"), nil
}

// pieces cuts a text into deltas of a few bytes.
func pieces(kind llm.DeltaKind, index, size int, text string) []llm.Delta {
	var out []llm.Delta
	for len(text) > 0 {
		n := min(size, len(text))
		out = append(out, llm.Delta{Kind: kind, Index: index, Text: text[:n]})
		text = text[n:]
	}
	return out
}

// overheard starts a run that knows a secret, in a process that knows another
// one, and gives what was heard of each part of its answer, in the order in
// which the parts began.
func overheard(t *testing.T, m *speaking) (parts []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).model(m)
		r.env.Secrets = secret.NewRedactor(secret.Secret{Name: "DB", Value: password})
		r.Engine = engine.New(r.store, newMachine, engine.Options{Secrets: secret.NewRedactor(secret.Secret{Name: "KEY", Value: "of-the-process"})})
		index := map[string]int{}
		add := func(part, text string) {
			if _, ok := index[part]; !ok {
				index[part] = len(parts)
				parts = append(parts, "")
			}
			parts[index[part]] += text
		}
		for _, e := range r.heard() {
			switch d := e.Data.(type) {
			case event.Text:
				add("text", d.Text)
			case event.Reasoning:
				add("reasoning", d.Text)
			case event.ToolCallDelta:
				add("call"+string(rune('0'+d.Index)), d.Tool+d.Text)
			case event.TextReset:
				index = map[string]int{}
			}
		}
	})
	return parts
}

// A secret is redacted in every output, including live text: a model can repeat a
// secret that it found in an unsearched place.
func TestDeltasAreRedacted(t *testing.T) {
	quoted, _ := json.Marshal(map[string]string{"command": "echo " + password})
	for size := 1; size < len(password)+3; size++ {
		m := &speaking{}
		m.pieces = append(m.pieces, pieces(llm.DeltaReasoning, 0, size, "I know "+password)...)
		m.pieces = append(m.pieces, pieces(llm.DeltaText, 1, size, "It is "+password+" and of-the-process h")...)
		m.pieces = append(m.pieces, pieces(llm.DeltaText, 2, size, "unter2, no secret")...)
		calls := [][]llm.Delta{pieces(llm.DeltaToolCall, 3, size, string(quoted)), pieces(llm.DeltaToolCall, 4, size, string(quoted))}
		calls[0][0].Tool, calls[1][0].Tool = "run", "of-the-process"
		for i := range calls[0] {
			m.pieces = append(m.pieces, calls[0][i], calls[1][i])
		}
		want := []string{
			"I know ${secret:DB}",
			"It is ${secret:DB} and ${secret:KEY} hunter2, no secret",
			`run{"command":"echo ${secret:DB}"}`,
			`${secret:KEY}{"command":"echo ${secret:DB}"}`,
		}
		if diff := cmp.Diff(want, overheard(t, m)); diff != "" {
			t.Errorf("in pieces of %d bytes, -want +got:\n%s", size, diff)
		}
	}
}

func TestHeldBackTextOfBrokenAttemptIsDropped(t *testing.T) {
	m := &speaking{err: errors.New("cut"), pieces: pieces(llm.DeltaText, 0, 4, "It is "+password[:8])}
	if diff := cmp.Diff([]string{"It is ", "well"}, overheard(t, m)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The text so far may end in the middle of a secret.
func TestASubscriberInTheMiddleOfASecretGetsItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.env.Secrets = secret.NewRedactor(secret.Secret{Name: "DB", Value: password})
		step, turn := make(chan struct{}), 0
		run := r.model(modelFunc(func(_ context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
			if turn++; turn == 2 {
				emit(llm.Delta{Kind: llm.DeltaText, Text: "well"})
				return said("well"), nil
			}
			emit(llm.Delta{Kind: llm.DeltaText, Text: "It is " + password[:9]})
			<-step
			emit(llm.Delta{Kind: llm.DeltaText, Text: password[9:] + "."})
			return &llm.Response{Parts: llm.Parts{llm.ToolCall{Name: "none"}}}, nil
		})).start(t.Context())
		synctest.Wait()
		got := make(chan []event.Event, 1)
		go func() { got <- drain(t, run, true) }()
		synctest.Wait()
		close(step)
		if text := spoken(<-got); text != "It is ${secret:DB}.well" {
			t.Errorf("heard %q", text)
		}
	})
}

func TestAWholeAnswerIsLookedThroughToo(t *testing.T) {
	r := newRig(t).model(modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
		return said("It is " + password), nil
	}))
	r.env.Secrets = secret.NewRedactor(secret.Secret{Name: "DB", Value: password})
	r.cfg.NoStream = true
	if text := spoken(r.heard()); text != "It is ${secret:DB}" {
		t.Errorf("heard %q", text)
	}
}

// spoken is the live text among events.
func spoken(events []event.Event) string {
	var text strings.Builder
	for _, e := range events {
		if d, ok := e.Data.(event.Text); ok {
			text.WriteString(d.Text)
		}
	}
	return text.String()
}

// What was shown as text and was a thought is taken back, and with it what was held
// back of a secret.
func TestAResetTakesBackTheDeltasOfAnAttemptThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, again := range []bool{false, true} {
			r := newRig(t).model(modelFunc(func(_ context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
				emit(llm.Delta{Kind: llm.DeltaText, Text: "I must not"})
				emit(llm.Delta{Kind: llm.DeltaReset})
				if again {
					emit(llm.Delta{Kind: llm.DeltaText, Text: "well"})
					emit(llm.Delta{Kind: llm.DeltaReset})
				}
				emit(llm.Delta{Kind: llm.DeltaReasoning, Text: "I must not"})
				emit(llm.Delta{Kind: llm.DeltaText, Index: 1, Text: "done"})
				return said("done"), nil
			}))
			text, thought, resets := "", "", 0
			for _, e := range r.heard() {
				switch d := e.Data.(type) {
				case event.Text:
					text += d.Text
				case event.Reasoning:
					thought += d.Text
				case event.TextReset:
					text, thought, resets = "", "", resets+1
				}
			}
			if text != "done" || thought != "I must not" || resets == 0 || again != (resets == 2) {
				t.Errorf("after %d resets a client shows %q and the thought %q", resets, text, thought)
			}
		}
	})
}
