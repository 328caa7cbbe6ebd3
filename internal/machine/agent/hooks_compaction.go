package agent

import (
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/compact"
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

// nextBefore asks for the next hook before a compaction.
func (h *compactionHooks) nextBefore(r *run, in *compact.Situation, used int) machine.Action {
	due := h.before.due
	if !h.begun {
		due = r.cfg.hookAfter(nil, event.HookBeforeCompaction, "")
	}
	if due == nil {
		return nil
	}
	return r.runHook(due, func(a *machine.RunHook) {
		a.Compaction = &event.HistoryCompressed{
			Strategy: string(r.cfg.Compact.Strategy), Trigger: in.Trigger,
			Kept: len(in.Messages), TokensBefore: int64(used),
		}
	})
}

// nextAfter asks for the next hook behind a compaction. The run goes on when all
// have run.
func (h *compactionHooks) nextAfter(r *run) machine.Action {
	switch due := h.after.due; {
	case due == nil || r.phase >= phaseEnding:
		return nil
	case r.Cancel != nil:
		return record(r.skipped(due, ""))
	default:
		return r.runHook(due, func(a *machine.RunHook) { a.Compaction = h.done })
	}
}

func (h *compactionHooks) answered(c *Config, d *event.HookResult) {
	if d.Stage == event.HookAfterCompaction {
		h.after.answered(c, d, "")
		return
	}
	if !h.begun {
		h.begun, h.before.due = true, c.hookAfter(nil, event.HookBeforeCompaction, "")
	}
	h.before.answered(c, d, "")
}

// compacted begins the hooks behind a compaction.
func (h *compactionHooks) compacted(c *Config, d *event.HistoryCompressed) {
	*h = compactionHooks{}
	if h.after.due = c.hookAfter(nil, event.HookAfterCompaction, ""); h.after.due != nil {
		h.done = d
	}
}
