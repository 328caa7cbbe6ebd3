package view

import (
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Digest is a view with what a reader of the whole run needs in addition to its
// entries. It keeps texts, so it is for a reader that shows the run once.
type Digest struct {
	View
	// Started is the first event of the run.
	Started event.RunStarted
	// Parked and Because are why the run has stopped.
	Parked  *event.RunParked
	Because string
	// Allowed lists what people allowed for the rest of the run.
	Allowed []event.PermissionAdded
	// Unread are the events that a parked run has received and not acted on.
	Unread []*event.Event
	// Checkpoints are the checkpoints of a goal.
	Checkpoints []event.Checkpoint
	// Compactions lists where the conversation became shorter.
	Compactions []Compaction
	// Hooks lists the hooks of the run as a whole.
	Hooks  []event.HookResult
	cycles []*CycleLine
}

// Compaction is one history.compressed of a run.
type Compaction struct {
	Seq int64 `json:"seq"`
	// Cycle is the last cycle before it; UndoSeq is the event to fork at to restore
	// the conversation.
	Cycle   int   `json:"cycle"`
	UndoSeq int64 `json:"undoSeq"`
	event.HistoryCompressed
}

// CompactionOf returns the compaction in an event.
func CompactionOf(e *event.Event, d event.HistoryCompressed) Compaction {
	return Compaction{Seq: e.Seq, Cycle: e.Cycle, UndoSeq: e.Seq - 1, HistoryCompressed: d}
}

// CycleLine is the summary of one cycle.
type CycleLine struct {
	Cycle int                `json:"cycle"`
	Start time.Time          `json:"start"`
	Model string             `json:"model,omitempty"`
	Text  string             `json:"text,omitempty"`
	Calls []string           `json:"calls,omitempty"`
	Hooks []event.HookResult `json:"hooks,omitempty"`
	// CacheBreaks lists input that was paid again although it should have been
	// cached.
	CacheBreaks []event.CacheBreak `json:"cacheBreaks,omitempty"`
	// Errors counts the failed calls, Retries the attempts.
	Errors  int       `json:"errors,omitempty"`
	Retries int       `json:"retries,omitempty"`
	Usage   llm.Usage `json:"usage"`
	USD     float64   `json:"usd"`
	// Context is the input of the cycle's last answer, in tokens; Window is the
	// model's, 0 if unknown; WindowShare is how much of it the context filled.
	Context     int64   `json:"context"`
	Window      int64   `json:"window,omitempty"`
	WindowShare float64 `json:"windowShare,omitempty"`

	more
}

// more holds what only a comparison of two runs needs: the calls with their results, in
// order, and the usage of the cycle without the runs below it.
type more struct {
	Made []*CallLine `json:"-"`
	Own  Spent       `json:"-"`
	// Ends is why the run ended in the cycle, empty if it did not.
	Ends  event.Reason `json:"-"`
	entry *Entry
}

// CallLine is a call of a cycle and its result.
type CallLine struct{ ID, Label, Output string }

// Add is [View.Add].
func (d *Digest) Add(e *event.Event) {
	d.Texts = true
	update := d.View.Add(e)
	if n, is := e.Data.(event.CycleStart); is {
		c := &CycleLine{Cycle: n.Cycle, Start: e.Time}
		c.entry = update.Entry
		d.cycles = append(d.cycles, c)
	}
	c := d.cycle()
	d.stands(e)
	d.list(e, c)
	if c != nil {
		c.add(e.Data, d.windows)
	}
}

// cycle returns the last cycle, nil if there is none.
func (d *Digest) cycle() *CycleLine {
	if len(d.cycles) == 0 {
		return nil
	}
	return d.cycles[len(d.cycles)-1]
}

// Cycles returns the cycles with their usage.
func (d *Digest) Cycles() []CycleLine {
	all := make([]CycleLine, len(d.cycles))
	for i, c := range d.cycles {
		c.Usage = c.entry.Usage
		if c.entry.Cost != nil {
			c.USD = c.entry.Cost.USD
		}
		all[i] = *c
	}
	return all
}

// stands records whether the run has stopped, and what it receives meanwhile.
func (d *Digest) stands(e *event.Event) {
	switch x := e.Data.(type) {
	case event.RunStarted:
		d.Started = x
	case event.RunPlaced:
		d.Started = d.Started.Placed(x)
	case event.RunForked:
		d.Allowed = nil
	case event.PermissionAdded:
		d.Allowed = append(d.Allowed, x)
	case event.RunParked:
		d.Parked = &x
	case event.RunResumed:
		d.Parked = nil
	case event.RunTerminatedBy:
		d.Parked, d.Because = nil, x.Detail
	}
	if d.Parked == nil {
		d.Unread = nil
		return
	}
	switch e.Data.(type) {
	case event.Resolving, event.InputReceived, event.BudgetRaised:
		d.Unread = append(d.Unread, e)
	}
}

// list adds an event to the lists that it belongs to.
func (d *Digest) list(e *event.Event, c *CycleLine) {
	switch x := e.Data.(type) {
	case event.Checkpoint:
		d.Checkpoints = append(d.Checkpoints, x)
	case event.HistoryCompressed:
		d.Compactions = append(d.Compactions, CompactionOf(e, x))
	case event.HookResult:
		if c == nil || x.Stage == event.HookAfterRun {
			d.Hooks = append(d.Hooks, x)
		}
	}
}

// add applies an event of the cycle; windows holds the pinned windows.
func (c *CycleLine) add(data event.Data, windows map[string]int) {
	switch d := data.(type) {
	case event.ModelResponse:
		c.Own.Spend(d.Usage, d.Cost)
		if d.Purpose == "" {
			c.Model, c.Text, c.Context, c.Window = d.Model, llm.Parts(d.Parts).Text(), d.Usage.Input, int64(windows[d.Model])
		}
	case event.ModelAttemptFailed:
		c.Own.Spend(d.Usage, d.Cost)
	case event.ModelRetrying, event.ToolRetrying:
		c.Retries++
	case event.HookResult:
		if d.Stage != event.HookAfterRun {
			c.Hooks = append(c.Hooks, d)
		}
	case event.ToolCall:
		c.Calls = append(c.Calls, Label(d))
		c.call(d.CallID).Label = Label(d)
	case event.ToolResult:
		call := c.call(d.CallID)
		if call.Output = d.Output; call.Label == "" { // the end of the run interrupted the call
			call.Label = Label(event.ToolCall{Tool: d.Tool})
		}
		if d.IsError {
			c.Errors++
		}
	case event.CacheBreak:
		c.CacheBreaks = append(c.CacheBreaks, d)
	case event.RunTerminatedBy:
		c.Ends = d.Reason
	}
}

// call returns the call with an id, and adds it if necessary.
func (c *CycleLine) call(id string) *CallLine {
	for i := len(c.Made) - 1; i >= 0; i-- {
		if c.Made[i].ID == id {
			return c.Made[i]
		}
	}
	c.Made = append(c.Made, &CallLine{ID: id})
	return c.Made[len(c.Made)-1]
}
