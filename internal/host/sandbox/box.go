package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Box runs commands in a tier under a policy. The commands of one box share temporary
// files, and those of one workspace a home directory. A box is safe for concurrent use.
type Box struct {
	tier   Tier
	shim   Shim
	policy Policy
	calls  *calls
	// temp and home are the directories that replace /tmp and the home directory for
	// commands.
	temp, home string
	own        tempDir
	links      links
}

// Open opens a box in a tier that works on this machine and enforces the policy;
// otherwise the error is [ErrUnavailable]. The caller must close the box.
func (m *Machine) Open(t Tier, p Policy) (*Box, error) {
	p = p.withDefaults()
	for _, f := range m.findings {
		if f.Tier == t && !f.Works {
			return nil, fmt.Errorf("%w: %s: %s", ErrUnavailable, t, f.Why)
		}
	}
	if t == None {
		return nil, fmt.Errorf("%w: a box needs a tier", ErrUnavailable)
	}
	if err := t.Holds(p); err != nil {
		return nil, err
	}
	workspace, err := filepath.EvalSymlinks(p.Workspace)
	if err != nil {
		return nil, fmt.Errorf("sandbox: the workspace: %w", err)
	}
	p.Workspace = workspace
	if p.Environment == nil {
		p.Environment = os.Environ()
	}
	b := &Box{tier: t, shim: m.shim, policy: p, calls: &m.calls}

	m.swept.Do(removeLeftovers)
	if b.own, err = newTempDir(); err != nil {
		return nil, err
	}
	b.temp = b.own.path
	if b.home, err = privateHome(workspace, b.temp); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Policy returns the policy of the box with its defaults.
func (b *Box) Policy() Policy { return b.policy }

// Tier returns the tier of the box.
func (b *Box) Tier() Tier { return b.tier }

// Close deletes the temporary files. No command of the box may still run.
func (b *Box) Close() error { return b.own.remove() }

// Tier is a kind of boundary around commands.
type Tier string

// The tiers.
const (
	// Bubblewrap: namespaces created by bwrap, with a seccomp filter inside.
	Bubblewrap Tier = "bubblewrap"
	// Namespaces: namespaces created by this program itself, with Landlock rules and a
	// seccomp filter inside.
	Namespaces Tier = "namespaces"
	// Landlock: Landlock rules and a seccomp filter on an ordinary process.
	Landlock Tier = "landlock"
	// None: no boundary.
	None Tier = "none"
)

// Tiers returns all tiers, the strongest first.
func Tiers() []Tier { return []Tier{Bubblewrap, Namespaces, Landlock, None} }

// AtLeast reports whether t is at least as strong as other. An unknown tier is the
// weakest.
func (t Tier) AtLeast(other Tier) bool {
	at := slices.Index(Tiers(), t)
	return at >= 0 && at <= slices.Index(Tiers(), other)
}

// mounts reports whether commands of a tier have a separate file system and separate
// processes.
func (t Tier) mounts() bool { return t == Bubblewrap || t == Namespaces }
