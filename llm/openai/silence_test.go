package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
	"github.com/pawlrun/pawl/llm/openai"
)

// slow answers with pieces that come one every pause, and then stays open until
// the caller goes.
type slow struct {
	pieces []string
	pause  time.Duration
	ctx    context.Context
	sent   int
}

func (s *slow) RoundTrip(req *http.Request) (*http.Response, error) {
	s.ctx = req.Context()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(s), Request: req}, nil
}

func (s *slow) Read(p []byte) (int, error) {
	if s.sent == len(s.pieces) {
		<-s.ctx.Done()
		return 0, s.ctx.Err()
	}
	select {
	case <-time.After(s.pause):
		s.sent++
		return copy(p, s.pieces[s.sent-1]), nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (s *slow) stream(ctx context.Context) (*llm.Response, error) {
	m := openai.New(openai.Options{HTTP: &http.Client{Transport: s}, Idle: time.Minute})
	return m.Stream(ctx, question(), func(llm.Delta) {})
}

func TestSilenceIsBoundedAndEveryByteBreaksIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := sse(created, textAdded, textDelta("one "))
		alive := &slow{pieces: []string{begun, ": ping\n", sse(textDelta("two"), textDone, completed)}, pause: 50 * time.Second}
		if resp, err := alive.stream(t.Context()); err != nil || resp.Parts.Text() != "one two" {
			t.Errorf("with a ping every 50 s: %v", err)
		}
		dead := &slow{pieces: []string{begun}, pause: time.Second}
		start := time.Now()
		resp, err := dead.stream(t.Context())
		if e := asError(t, err); e.Class != llm.ClassNetwork || !errors.Is(err, wire.ErrIdle) || resp.Parts.Text() != "one " {
			t.Errorf("silent: %v, kept %+v", e, resp)
		} else if e.Message != "the connection stalled: no byte arrived for too long" {
			t.Errorf("a person reads %q", e.Message)
		}
		if waited := time.Since(start); waited != time.Minute+time.Second {
			t.Errorf("waited %s", waited)
		}
	})
}

func TestFinishedAnswerIsNotHeldUpByAServerThatStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{pieces: []string{sse(textDone, completed)}, pause: time.Second}
		start := time.Now()
		if resp, err := s.stream(t.Context()); err != nil || resp.Parts.Text() != "one two" {
			t.Errorf("got %+v, %v", resp, err)
		}
		if waited := time.Since(start); waited > 2*time.Second {
			t.Errorf("waited %s", waited)
		}
	})
}

func TestCancelEndsACallAtOnceAndKeepsItsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s := &slow{pieces: []string{sse(textAdded, textDelta("one "))}, pause: time.Second}
		resp, err := s.stream(ctx)
		if e := asError(t, err); e.Class != llm.ClassNetwork || !errors.Is(err, context.DeadlineExceeded) || resp.Parts.Text() != "one " {
			t.Errorf("got %v, kept %+v", e, resp)
		}
	})
}
