package place

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/worker"
)

// unreached is a worker whose start fails while left, which workers share, is above 0.
type unreached struct {
	worker.Worker
	left *int
}

func (u unreached) Start() error {
	if *u.left--; *u.left >= 0 {
		return errors.New("failed reaching server")
	}
	return nil
}

// A worker that does not reach Temporal tries again after longer and longer times, writes
// one line, and stops trying when it is stopped. The second queue begins anew.
func TestWorkerStartsOnceTemporalIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		a := &activities{Options: Options{Log: slog.New(slog.NewTextHandler(&text, nil))}}
		ctx, stop := context.WithCancel(t.Context())
		for queue, c := range []struct {
			fails int
			want  time.Duration
		}{{6, 45 * time.Second}, {0, 0}, {1, time.Second}} {
			text.Reset()
			began, made := time.Now(), 0
			w := a.start(ctx, func() worker.Worker { made++; return unreached{left: &c.fails} })
			lines := strings.Count(text.String(), "cannot be reached")
			if w == nil || time.Since(began) != c.want || lines != min(made-1, 1) {
				t.Errorf("queue %d: %v after %d attempts in %v with %d lines, want %v", queue, w, made, time.Since(began), lines, c.want)
			}
		}
		never := 1000
		time.AfterFunc(time.Hour, stop)
		if w := a.start(ctx, func() worker.Worker { return unreached{left: &never} }); w != nil || never == 1000 || never < 700 {
			t.Errorf("%v when it is stopped, after %d attempts in an hour", w, 1000-never)
		}
	})
}
