package server

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/published"
)

// lookPublished is how often a server looks for what was published.
const lookPublished = time.Second

// publications are what the servers of a shared journal offer. The zero mirror is a
// journal that is not shared.
type publications struct {
	mu     sync.Mutex
	mirror *published.Mirror
}

// offer offers the published files, if there are any.
func (p *publications) offer(d *directory) error {
	p.mu.Lock()
	sets := p.mirror.Sets()
	p.mu.Unlock()
	if len(sets) == 0 {
		return nil
	}
	return d.publish(sets)
}

func (p *publications) look(ctx context.Context) (changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mirror.Look(ctx)
}

// watch offers what is published until ctx ends.
func (p *publications) watch(ctx context.Context, s *Server) {
	if p.mirror == nil {
		return
	}
	for sleep(ctx, lookPublished) {
		changed, err := p.look(ctx)
		if err == nil && changed {
			err = p.offer(&s.files)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("what is published cannot be offered", "error", err)
		}
	}
}

// local returns the first event of a run with the paths that published files have on
// this machine.
func (p *publications) local(ctx context.Context, started event.RunStarted) (event.RunStarted, error) {
	if p.mirror == nil {
		return started, nil
	}
	if _, err := p.look(ctx); err != nil {
		return started, err
	}
	p.mu.Lock()
	there, here := p.mirror.Find(started.Source)
	p.mu.Unlock()
	if there == here {
		return started, nil
	}
	// Commands and hooks pin their files by path, too.
	text, err := json.Marshal(started)
	if err != nil {
		return started, err
	}
	var moved event.RunStarted
	err = json.Unmarshal(bytes.ReplaceAll(text, quoted(there), quoted(here)), &moved)
	return moved, err
}

// quoted returns a path as it stands within a JSON string.
func quoted(path string) []byte {
	text, err := json.Marshal(path)
	if err != nil { // no text fails
		return []byte(path)
	}
	return text[1 : len(text)-1]
}
