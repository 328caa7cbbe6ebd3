package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// MostWakes limits the calls of the coordinator.
const MostWakes = 100

// warnAt is the percentage of a cap at which the machine warns the run's owner.
const warnAt = 80

// coordinator is the agent that receives the messages of steps. Each call of it is a
// separate run, which starts when there are messages.
type coordinator struct {
	agent string
	mailbox
	// child is the name of its current or next run, or empty.
	child string
	wakes int
	// starts are the newest step starts since it last received a message, and more is
	// the number of older ones.
	starts []string
	more   int
	// earlier contains its outputs so far, newest last, and size is their total length.
	earlier []string
	size    int
	// closed is the reason why it receives no more messages, and word its closing text.
	closed event.DropReason
	word   string
	taint  event.Taint
}

// mostStarts limits the step starts that one message to the coordinator lists.
const mostStarts = 100

// note records the start of a step for the coordinator without calling it.
func (c *coordinator) note(step string) {
	if c.closed != "" {
		return
	}
	if c.starts = append(c.starts, step); len(c.starts) > mostStarts {
		c.starts = c.starts[1:]
		c.more++
	}
}

// news returns the step starts that the coordinator has not received.
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

// attend calls the coordinator if it has messages. If it has none and all steps have
// ended, attend ends the run.
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

// warn records one warning when most of a cap is used.
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

// inbox returns the section of a run's task with the messages that it received before
// it began.
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

// closeMail closes the coordinator's mailbox.
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

// readers returns the ids of at most that many steps that can receive a message.
func (m *Machine) readers() []string {
	ids := slices.Sorted(maps.Keys(m.steps))
	ids = slices.DeleteFunc(ids, func(id string) bool { return !m.steps[id].reachable() })
	if len(ids) > mostStarts {
		ids = append(ids[:mostStarts], fmt.Sprintf("and %d others", len(ids)-mostStarts))
	}
	return ids
}
