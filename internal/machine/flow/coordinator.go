package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// MostWakes is how often the coordinator may be called.
const MostWakes = 100

// warnAt is the share of a cap, in percent, at which the run's owner is warned.
const warnAt = 80

// coordinator is the agent that receives the messages of steps. It is called when there
// are messages, in a run of its own each time.
type coordinator struct {
	agent string
	mailbox
	// child is the name of its current or next run, empty for none.
	child string
	wakes int
	// starts are the steps that began since it last received a message, and more the
	// number of earlier ones.
	starts []string
	more   int
	// earlier is its output so far, the newest last, and size the length.
	earlier []string
	size    int
	// closed is why it receives nothing more, and word its closing text.
	closed event.DropReason
	word   string
	taint  event.Taint
}

// mostStarts is how many starts of steps one message to the coordinator names.
const mostStarts = 100

// note records the start of a step for the coordinator, without calling it.
func (c *coordinator) note(step string) {
	if c.closed != "" {
		return
	}
	if c.starts = append(c.starts, step); len(c.starts) > mostStarts {
		c.starts = c.starts[1:]
		c.more++
	}
}

// news returns the starts that it has not received.
func (c *coordinator) news() string {
	if len(c.starts) == 0 {
		return ""
	}
	text := "Steps that have begun: "
	if c.more > 0 {
		text += fmt.Sprintf("%d others, then ", c.more)
	}
	text += strings.Join(c.starts, ", ") + ".\n"
	c.starts, c.more = nil, 0
	return text
}

func (c *coordinator) remember(what string) {
	c.earlier = append(c.earlier, what)
	c.size += len(what)
	for c.size > MostOfOne && len(c.earlier) > 1 {
		c.size -= len(c.earlier[0])
		c.earlier = c.earlier[1:]
	}
}

// attend calls the coordinator if messages wait for it, and ends a run whose steps have
// ended once none do.
func (m *Machine) attend() {
	c := &m.coordinator
	if m.root == nil || c.child != "" || m.Cancel != nil || m.Terminated != nil {
		return
	}
	if len(c.unread) == 0 || c.closed != "" {
		if m.done && !m.over {
			m.over = true
			m.endRun()
		}
		return
	}
	c.child = fmt.Sprint(event.Coordinator, "/", c.wakes+1)
	m.beginCoordinator()
}

// beginCoordinator requests the call of the coordinator, or a replacement.
func (m *Machine) beginCoordinator() {
	c := &m.coordinator
	m.requests.add("child "+c.child, func() []machine.Action { return []machine.Action{m.callCoordinator()} }, func(d event.Data) {
		run := d.(event.ChildStarted).Child
		c.wakes++
		m.beginMail(&c.mailbox, run, event.Coordinator)
		anew := func() {
			c.wakes--
			m.readAgain(&c.mailbox)
			m.beginCoordinator()
		}
		m.under[run] = underWay{m.callCoordinator, anew, func(d event.ChildFinished) { m.coordinatorDone(&d) }}
		m.warn("coordinator_wakes", c.wakes, MostWakes)
	})
}

// warn warns once that most of a cap is used.
func (m *Machine) warn(setting string, used, most int) {
	if used*100 != most*warnAt {
		return
	}
	m.record("warning "+setting, event.BudgetWarning{Setting: setting, Used: float64(used), Limit: float64(most), Percent: warnAt}, nil)
}

// callCoordinator returns the action that starts the coordinator's run.
func (m *Machine) callCoordinator() machine.StartChild {
	c := &m.coordinator
	given := c.started()
	taint := m.given.With(c.taint)
	for _, said := range given {
		taint = taint.With(said.Taint)
	}
	return machine.StartChild{
		ID: c.child, Kind: KindAgent, Name: c.agent, Step: event.Coordinator, Taint: taint, Input: task(m.coordinatorTask(given), nil),
	}
}

func (m *Machine) coordinatorTask(given []event.InputReceived) string {
	parts := []string{"## Coordinator\nYou coordinate a workflow whose steps are done by other agents. You are called because some of them have sent you " +
		"messages. Tell people what matters with narrate, and a step what it needs to know with forward_to_agent, if anything. " +
		"When you have heard enough, finalize closes your inbox with your closing word for the whole workflow. Then answer in one sentence what you did."}
	if m.task != "" {
		parts = append(parts, "## Task\n"+m.task)
	}
	if ids := m.readers(); len(ids) > 0 {
		parts = append(parts, "## Steps that can be told something\n"+strings.Join(ids, "\n"))
	}
	if earlier := m.coordinator.earlier; len(earlier) > 0 {
		parts = append(parts, "## What you did before\n"+m.fence.Wrap(event.Coordinator, strings.Join(earlier, "\n")))
	}
	return strings.Join(append(parts, inbox(given)), "\n\n")
}

// inbox is the part of a run's task that contains messages to it from before it began.
func inbox(given []event.InputReceived) string {
	parts := []string{"## Inbox"}
	for i := range given {
		parts = append(parts, given[i].Text)
	}
	return strings.Join(parts, "\n\n")
}

func (m *Machine) coordinatorDone(d *event.ChildFinished) {
	c := &m.coordinator
	m.Forget(c.child)
	m.endMail(&c.mailbox)
	c.child, c.taint = "", c.taint.With(d.Taint)
	if said := d.Outcome.FinalOutput; said != "" && c.closed == "" {
		c.remember("You answered: " + said)
	}
	if c.wakes == MostWakes && c.closed == "" {
		m.closeMail(event.DropMaxWakeCycles)
	}
}

// closeMail ends what the coordinator receives.
func (m *Machine) closeMail(why event.DropReason) {
	c := &m.coordinator
	if c.closed != "" {
		return
	}
	c.closed = why
	if _, had := m.requests.drop("child " + c.child); had {
		c.child = ""
	}
	if c.child != "" && why == event.DropWorkflowCancelled {
		m.Stop(c.child, "the workflow has no time left")
	}
	m.drop(&c.mailbox, event.Coordinator, why)
}

// readers returns the ids of the steps that can receive a message, at most so many.
func (m *Machine) readers() []string {
	ids := slices.Sorted(maps.Keys(m.steps))
	ids = slices.DeleteFunc(ids, func(id string) bool { return !m.steps[id].reachable() })
	if len(ids) > mostStarts {
		ids = append(ids[:mostStarts], fmt.Sprintf("and %d others", len(ids)-mostStarts))
	}
	return ids
}
