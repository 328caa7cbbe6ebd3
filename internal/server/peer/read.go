package peer

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/journal"
)

const (
	// pace is the shortest time between two looks at which process drives a run, and
	// retryLast the longest between two attempts to reach it.
	pace      = time.Second
	retryLast = 30 * time.Second
	// longest bounds a line: the text so far of an answer, as JSON.
	longest = 8 << 20
)

var (
	errNoAddress = errors.New("the process that drives it registered no address")
	errNoProof   = errors.New("what answers at its address does not have its key")
	errRefused   = errors.New("it refused")
)

// Watch publishes the live events of a tree to the follower while another process
// drives it, until release is called.
func (p *Peer) Watch(root string) (release func()) {
	if _, may := p.Store.(journal.KeepsDrivers); !may {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.watching[root]
	if of == nil {
		ctx, stop := context.WithCancel(context.Background())
		of = &watch{stop: stop}
		p.watching[root] = of
		p.Go(func() { p.watch(ctx, root) })
	}
	of.readers++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if of.readers--; of.readers == 0 {
			delete(p.watching, root)
			of.stop()
		}
	}
}

// watch reads the live events of a tree. It looks again at which process drives it after
// each event, and some time after an attempt that failed.
func (p *Peer) watch(ctx context.Context, root string) {
	for wait := pace; ctx.Err() == nil; {
		began := time.Now()
		after, err := p.Store.Last(ctx)
		if err == nil {
			err = p.read(ctx, root)
		}
		if err != nil && ctx.Err() == nil && wait == pace {
			p.Log.Warn("readers of a run that another process drives get its durable events alone", "run", root, "error", err)
		}
		if err == nil {
			wait = pace
			err = p.changed(ctx, root, after)
		}
		sleep(ctx, wait-time.Since(began))
		if wait = min(2*wait, retryLast); err == nil || time.Since(began) > 2*retryLast {
			wait = pace
		}
	}
}

// changed waits for a durable event of a run after a position.
func (p *Peer) changed(ctx context.Context, run string, after int64) error {
	sub, err := p.Follower.Subscribe(ctx, follow.Query{Run: run, After: after})
	if err != nil {
		return err
	}
	defer sub.Close()
	_, err = sub.Next(ctx)
	return err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// read publishes the live events of a tree until its driver ends the stream. It returns
// nil if no other process drives the tree.
func (p *Peer) read(ctx context.Context, root string) error {
	row, err := p.Store.Run(ctx, root)
	if err != nil || row.Owner == "" || row.Owner == p.Owner || row.State == journal.Ended {
		return err
	}
	live, err := p.Store.(journal.KeepsDrivers).Drivers(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(live, func(d journal.Driver) bool { return d.Owner == row.Owner && d.Addr != "" })
	if at < 0 {
		return errNoAddress
	}
	answer, err := p.connect(ctx, live[at], root)
	if err != nil {
		return fmt.Errorf("%s: %w", live[at].Addr, err)
	}
	defer answer.Body.Close()
	silent := time.AfterFunc(silence, func() { _ = answer.Body.Close() })
	defer silent.Stop()
	said := saying{follower: p.Follower, root: root, runs: map[string]*spoken{}}
	defer said.end()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		silent.Reset(silence)
		if len(lines.Bytes()) == 0 {
			continue
		}
		var l line
		err := json.Unmarshal(lines.Bytes(), &l)
		if err == nil {
			err = decode(&l.Event)
		}
		if err != nil {
			return err
		}
		said.say(l.Event, l.Place)
	}
	return lines.Err()
}

// decode decodes the payload of a live event, whose kinds are not in the journal.
func decode(e *event.Event) (err error) {
	u, _ := e.Data.(event.Unknown)
	switch u.Type {
	case event.TypeText:
		e.Data, err = as[event.Text](u)
	case event.TypeReasoning:
		e.Data, err = as[event.Reasoning](u)
	case event.TypeToolCallDelta:
		e.Data, err = as[event.ToolCallDelta](u)
	case event.TypeTextReset:
		e.Data, err = as[event.TextReset](u)
	case event.TypeToolProgress:
		e.Data, err = as[event.ToolProgress](u)
	case event.TypeToolOutput:
		e.Data, err = as[event.ToolOutput](u)
	default:
		err = fmt.Errorf("%q is no live event", e.Data.EventType())
	}
	return err
}

func as[T event.Data](u event.Unknown) (d T, err error) {
	err = json.Unmarshal(u.Raw, &d)
	return d, err
}

// connect opens the stream of a driver, after both sides have proven that they have its
// key.
func (p *Peer) connect(ctx context.Context, d journal.Driver, root string) (*http.Response, error) {
	client := &http.Client{
		Transport:     &http.Transport{DialContext: (&net.Dialer{Timeout: pace * 5}).DialContext, TLSHandshakeTimeout: pace * 5, ResponseHeaderTimeout: pace * 10, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	challenge, nonce := "", rand.Text()
	for range 2 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Addr+Path+"?run="+url.QueryEscape(root), nil)
		if err != nil {
			return nil, err
		}
		if challenge != "" {
			r.Header.Set(challengeHeader, challenge)
			r.Header.Set(nonceHeader, nonce)
			r.Header.Set(proofHeader, proof(d.Key, "reader", challenge, nonce, root))
		}
		answer, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode == http.StatusOK {
			if challenge != "" && proves(answer.Header.Get(proofHeader), d.Key, "driver", challenge, nonce, root) {
				return answer, nil
			}
			_ = answer.Body.Close()
			return nil, errNoProof
		}
		_ = answer.Body.Close()
		challenge = answer.Header.Get(challengeHeader)
		if answer.StatusCode != http.StatusUnauthorized || challenge == "" {
			return nil, fmt.Errorf("%w: %s", errRefused, answer.Status)
		}
	}
	return nil, fmt.Errorf("%w the proof", errRefused)
}

// saying publishes the live events of one connection.
type saying struct {
	follower *follow.Follower
	root     string
	runs     map[string]*spoken
}

// spoken is what a connection said of one run: the attempt of an answer that is not
// complete, 0 for none, and its last event.
type spoken struct {
	source  *follow.Source
	attempt int
	last    event.Event
	at      follow.Place
}

func (s *saying) say(e event.Event, at follow.Place) {
	of := s.runs[e.Run]
	if of == nil {
		of = &spoken{source: s.follower.Source(s.root)}
		s.runs[e.Run] = of
	}
	if !follow.Apart(e.Type()) {
		of.attempt, of.last, of.at = follow.AttemptOf(e.Data), e, at
	}
	of.source.Say(e, at)
}

// end takes back answers that are not complete: what follows may be said again from the
// start.
func (s *saying) end() {
	for _, of := range s.runs {
		if of.attempt > 0 {
			e, at := of.last, of.at
			e.Data, at.First = event.TextReset{Attempt: of.attempt}, false
			of.source.Say(e, at)
		}
		of.source.Close()
	}
}
