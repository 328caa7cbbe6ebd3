package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/journal"
)

// ServeHTTP streams the live events of the tree of a root run that this process drives,
// until another process may drive it.
func (p *Peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	challenge, nonce, run := r.Header.Get(challengeHeader), r.Header.Get(nonceHeader), r.URL.Query().Get("run")
	if !p.challenged(challenge) || !proves(r.Header.Get(proofHeader), p.key, "reader", challenge, nonce, run) {
		w.Header().Set(challengeHeader, p.challenge())
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if drives, err := p.drives(r.Context(), run); err != nil || !drives {
		w.WriteHeader(http.StatusConflict)
		return
	}
	after, err := p.Store.Last(r.Context())
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	sub, err := p.Follower.Subscribe(r.Context(), follow.Query{Run: run, Tree: true, After: after, Deltas: true})
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer sub.Close()
	w.Header().Set(proofHeader, proof(p.key, "driver", challenge, nonce, run))
	w.Header().Set("Content-Type", "application/x-ndjson")
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	if err := p.stream(r.Context(), sub, run, w, control); err != nil {
		p.Log.Debug("live events are no longer read", "run", run, "error", err)
	}
}

// drives reports whether this process holds the lease of a root run.
func (p *Peer) drives(ctx context.Context, run string) (bool, error) {
	row, err := p.Store.Run(ctx, run)
	return err == nil && row.Parent == "" && row.Owner == p.Owner && row.State != journal.Ended, err
}

func (p *Peer) stream(ctx context.Context, sub *follow.Subscription, run string, w http.ResponseWriter, control *http.ResponseController) error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	for alive := true; ; {
		events, err := sub.Poll(ctx)
		if err != nil {
			return err
		}
		if alive {
			out.WriteByte('\n')
		}
		alive = false
		over := false
		events = follow.Coalesce(events)
		for i := range events {
			e := &events[i]
			if e.Seq > 0 {
				over = over || e.Run == run && (e.Type() == event.TypeRunCompleted || e.Type() == event.TypeRunParked)
				continue
			}
			if err := lines.Encode(&line{Event: e.Event, Place: e.Place()}); err != nil {
				return err
			}
		}
		if out.Len() > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(slowest))
			if _, err := out.WriteTo(w); err != nil {
				return err
			}
			if err := control.Flush(); err != nil {
				return err
			}
		}
		switch {
		case over:
			return nil
		case sub.More():
			continue
		}
		select {
		case <-sub.Wake():
		case <-tick.C:
			alive = true
			if drives, err := p.drives(ctx, run); err != nil || !drives {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
