package agent

import (
	"github.com/pawlrun/pawl/compact"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
)

// compactionHooks is how far the hooks about a compaction have come.
type compactionHooks struct {
	before, after hooks
	// begun says that the hooks before the compaction have been asked for.
	begun bool
	// done is the compaction that the hooks behind it are told of.
	done *event.HistoryCompressed
}

// vetoed reports whether a hook will not have the conversation shortened here.
// It is asked again after the next cycle.
func (h *compactionHooks) vetoed() bool { return h.before.refusal != nil }

// hookBeforeCompaction asks for the next hook before a compaction.
func (m *Machine) hookBeforeCompaction(in *compact.Situation, used int) machine.Action {
	hooks := &m.compaction.hooks
	due := hooks.before.due
	if !hooks.begun {
		due = m.cfg.hookAfter(nil, event.HookBeforeCompaction, "")
	}
	if due == nil {
		return nil
	}
	return m.runHook(due, func(a *machine.RunHook) {
		a.Compaction = &event.HistoryCompressed{
			Strategy: string(m.cfg.Compact.Strategy), Trigger: in.Trigger,
			Kept: len(in.Messages), TokensBefore: int64(used),
		}
	})
}

// hookAfterCompaction asks for the next hook behind a compaction. The run goes on
// when all have run.
func (m *Machine) hookAfterCompaction() machine.Action {
	h := m.compaction.hooks.after.due
	switch {
	case h == nil || m.compaction.summary.call.inFlight || m.phase >= phaseEnding:
		return nil
	case m.run.Cancel != nil:
		return record(m.skipped(h, ""))
	}
	return m.runHook(h, func(a *machine.RunHook) { a.Compaction = m.compaction.hooks.done })
}

func (m *Machine) applyCompactionHook(d *event.HookResult) {
	hooks := &m.compaction.hooks
	if d.Stage == event.HookAfterCompaction {
		hooks.after.answered(&m.cfg, d, "")
		return
	}
	if !hooks.begun {
		hooks.begun, hooks.before.due = true, m.cfg.hookAfter(nil, event.HookBeforeCompaction, "")
	}
	hooks.before.answered(&m.cfg, d, "")
}

// compacted begins the hooks behind a compaction.
func (h *compactionHooks) compacted(c *Config, d *event.HistoryCompressed) {
	*h = compactionHooks{}
	if h.after.due = c.hookAfter(nil, event.HookAfterCompaction, ""); h.after.due != nil {
		h.done = d
	}
}
