package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// Machine holds the tiers that work on this machine. It is safe for concurrent use.
type Machine struct {
	shim     Shim
	findings []Finding
	// supervises reports that this program can start itself as a supervisor.
	supervises bool
	// swept makes the removal of leftovers of killed processes run once.
	swept sync.Once
	calls calls
}

// Finding reports whether a tier works on this machine.
type Finding struct {
	Tier  Tier `json:"tier"`
	Works bool `json:"works"`
	// Why is the error, Help how to enable the tier. If no tier works, Why also
	// explains why commands have no supervisor.
	Why  string `json:"why,omitempty"`
	Help string `json:"help,omitempty"`
	// StartMs is the duration of the trial in milliseconds, including the start and the
	// end of a command.
	StartMs int64 `json:"startMs,omitempty"`
}

// probeTimeout bounds the trial of one tier.
const probeTimeout = 10 * time.Second

// Detect tries each tier by running a command in it; [Main] returns the shim. It writes
// only temporary files.
func Detect(ctx context.Context, shim Shim) *Machine {
	m := &Machine{shim: shim}
	for _, t := range Tiers() {
		m.findings = append(m.findings, m.try(ctx, t))
	}
	return m
}

// Strongest tries the tiers up to most, strongest first, until one works, and reports
// only that one and those that failed before it. It is what a run needs; [Detect] is
// for people. Empty means all tiers.
func Strongest(ctx context.Context, shim Shim, most Tier) *Machine {
	m := &Machine{shim: shim}
	for _, t := range Tiers() {
		if most != "" && !most.AtLeast(t) {
			m.findings = append(m.findings, Finding{Tier: t, Why: "the owner allows no tier above " + string(most)})
			continue
		}
		f := m.try(ctx, t)
		m.findings = append(m.findings, f)
		if f.Works {
			break
		}
	}
	return m
}

// Findings returns the results, the strongest tier first.
func (m *Machine) Findings() []Finding { return slices.Clone(m.findings) }

// Tier returns the strongest tier that works.
func (m *Machine) Tier() Tier {
	for _, f := range m.findings {
		if f.Works {
			return f.Tier
		}
	}
	return None
}

// Why returns why there is no stronger tier, in one sentence.
func (m *Machine) Why() string {
	var why []string
	for _, f := range m.findings {
		if f.Works {
			break
		}
		why = append(why, string(f.Tier)+": "+f.Why)
	}
	return strings.Join(why, "; ")
}

// Holds reports whether a tier enforces a policy; the error, which wraps
// [ErrUnavailable], names what it does not enforce.
func (t Tier) Holds(p Policy) error {
	p = p.withDefaults()
	switch {
	case t == None && (p.Egress.Network != egress.NetworkHost || p.Filesystem != FilesystemFull):
		return fmt.Errorf("%w: without a sandbox, nothing holds network: %s and filesystem: %s", ErrUnavailable, p.Egress.Network, p.Filesystem)
	case t == Landlock && p.Egress.Network == egress.NetworkAllowlist:
		return fmt.Errorf("%w: network: allowlist needs the bubblewrap or the namespaces tier, because only there is a network of the command's own", ErrUnavailable)
	}
	return nil
}

func (m *Machine) try(ctx context.Context, t Tier) Finding {
	f := Finding{Tier: t}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if t == None {
		f.Works = true
		if !m.supervises {
			f.Why = plainly(m.probe(ctx, None))
		}
		m.supervises = f.Why == ""
		return f
	}
	start := time.Now()
	if err := m.probe(ctx, t); err != nil {
		f.Why, f.Help = plainly(err), helpFor(t, err)
		return f
	}
	m.supervises = true
	f.Works, f.StartMs = true, max(1, time.Since(start).Milliseconds())
	return f
}

func plainly(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), "sandbox: ")
}

// Bare returns a box that restricts nothing: its commands have the rights of this
// process. But every process that a command starts ends with it, including one that
// left its session and lost its parents, so that nothing keeps running unobserved. A
// command that kills its supervisor escapes, unless this process adopts orphans
// ([Shim.Adopt]) and is not killed as well.
//
// Bare is nil if this program cannot start itself as a supervisor;
// [Machine.Unsupervised] returns the reason. It need not be closed.
func (m *Machine) Bare() *Box {
	if m == nil || !m.supervises {
		return nil
	}
	return &Box{tier: None, shim: m.shim, calls: &m.calls}
}

// Unsupervised returns why commands outside a sandbox have no supervisor on this
// machine, empty if they have one.
func (m *Machine) Unsupervised() string {
	for _, f := range m.findings {
		if f.Tier == None {
			return f.Why
		}
	}
	return ""
}

// barePlan returns the plan for the supervisor of such a command.
func barePlan(c Command) plan {
	return plan{Args: c.Args, Env: c.Env, Dir: c.Dir, Free: true, Limits: Limits{MemoryBytes: -1, Processes: -1}}
}
