package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// calls are the commands that run now, of all boxes of a machine. What one of them may
// write is no change that another one undoes.
type calls struct {
	mu      sync.Mutex
	running map[*call]bool
}

// call is a command from before its snapshots are taken until they are settled.
type call struct {
	of      *calls
	granted []Grant
	// beside are the grants of the calls that ran at any time while this one did.
	beside []Grant
}

// begin adds a call with what it may write besides.
func (cs *calls) begin(granted []Grant) *call {
	c := &call{of: cs}
	for _, g := range granted {
		if _, err := os.Lstat(g.Path); err != nil {
			g.Repository = false // the call makes all of it, settings included
		}
		c.granted = append(c.granted, g)
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for other := range cs.running {
		other.note(c.granted)
		c.note(other.granted)
	}
	if cs.running == nil {
		cs.running = map[*call]bool{}
	}
	cs.running[c] = true
	return c
}

func (c *call) note(granted []Grant) {
	for _, g := range granted {
		if !slices.Contains(c.beside, g) {
			c.beside = append(c.beside, g)
		}
	}
}

// end removes the call; it is safe to repeat.
func (c *call) end() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.running, c)
}

// others are the grants of the calls that have run while this one did.
func (c *call) others() []Grant {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return slices.Clone(c.beside)
}

// covers reports whether a grant of another call is about a path. What decides which
// programs git runs is not covered by the grant of a repository that was there, unless
// git made it with a new worktree or submodule: was reports whether the path was there.
func (g Grant) covers(path string, was bool) bool {
	switch {
	case !g.Tree || !g.Repository:
		return path == g.Path || g.Tree && inside(path, g.Path)
	case path == g.Path || !inside(path, g.Path):
		return false
	}
	rel, err := filepath.Rel(g.Path, path)
	rel = filepath.ToSlash(rel)
	top, _, _ := strings.Cut(rel, "/")
	made := !was && (top == "worktrees" || top == "modules")
	return err == nil && (made || !decisive{}.Protects(rel))
}
