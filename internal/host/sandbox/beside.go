package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// calls holds the running commands of all boxes of a machine. A change that one of them
// may make is not undone at the end of another.
type calls struct {
	mu      sync.Mutex
	running map[*call]bool
}

// call is a command from before its snapshots are taken until they are settled.
type call struct {
	of      *calls
	granted []Grant
	// beside holds the grants of the calls that ran at the same time.
	beside []Grant
}

// begin adds a call with its grants.
func (cs *calls) begin(granted []Grant) *call {
	c := &call{of: cs}
	for _, g := range granted {
		if _, err := os.Lstat(g.Path); err != nil {
			g.Repository = false // the call creates all of it, including settings
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

// others returns the grants of the calls that ran at the same time.
func (c *call) others() []Grant {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return slices.Clone(c.beside)
}

// covers reports whether a grant of another call covers a path. The grant of an
// existing repository does not cover files that decide which programs git runs, unless
// git created them with a new worktree or submodule: was reports whether the path
// existed.
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
