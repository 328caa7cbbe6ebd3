package flow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// runOf returns the run id of a child.
func (p *player) runOf(id string) string {
	p.Helper()
	for i, a := range p.begun {
		if run := fmt.Sprint("run", i); a.ID == id && p.runs[run].ID == id {
			return run
		}
	}
	p.Fatalf("%s is not under way, only %v of %v", id, p.runs, p.ids())
	return ""
}

// send sends a message from a child and returns the reply.
func (p *player) send(from, id, to, text string, kind event.MessageKind) string {
	p.Helper()
	become, told := p.m.Post(p.runOf(from), machine.Post{ID: id, To: to, Text: text, Kind: kind})
	for _, d := range become {
		p.apply(d)
	}
	p.decide()
	return told
}

// mail returns the journalled events about messages, one per line.
func (p *player) mail() string {
	var b strings.Builder
	for _, e := range p.events {
		switch d := e.Data.(type) {
		case event.MessageSent:
			fmt.Fprintf(&b, "%s from %s to %s %s\n", d.ID, d.From, d.To, d.Kind)
		case event.MessageDelivered:
			fmt.Fprintf(&b, "%s delivered to %s\n", d.ID, d.To)
		case event.MessageDropped:
			fmt.Fprintf(&b, "%s dropped: %s\n", d.ID, d.Reason)
		case event.BudgetWarning:
			fmt.Fprintf(&b, "warning %s %v of %v\n", d.Setting, d.Used, d.Limit)
		}
	}
	return b.String()
}

func (p *player) mailIs(want string) {
	p.Helper()
	if got := p.mail(); strings.TrimSpace(got) != strings.TrimSpace(want) {
		p.Errorf("it went\n%s\nwant\n%s", got, want)
	}
}

// hub returns a workflow with a coordinator.
func hub(steps ...plan.Step) plan.Plan { return plan.Plan{Coordinator: "boss", Steps: steps} }

// rounds returns a loop with three iterations of one worker.
func rounds() plan.Step {
	return plan.Step{ID: "rounds", Loop: &plan.Loop{Max: 3, Body: plan.Plan{Steps: []plan.Step{step("worker")}}}}
}

// holding returns a player that keeps children active until a test ends them.
func holding(t *testing.T, plan plan.Plan) *player {
	play := newPlayer(t, plan)
	play.says = named(nil)
	play.decide()
	return play
}

func (p *player) ends(id string, said ...string) {
	p.Helper()
	p.finish(p.runOf(id), ok(strings.Join(said, "")))
	p.decide()
}

// rows: DAG-66, DAG-67, DAG-69, DAG-70, DAG-71
func TestCoordinatorReceivesMessagesOfSteps(t *testing.T) {
	p := holding(t, hub(step("setup"), rounds()))
	same(t, p.ids(), []string{"setup", "rounds.0.worker"}) // starts do not call the coordinator
	same(t, p.send("rounds.0.worker", "m1", "", "Half is done.", ""), "queued: for coordinator")
	same(t, p.ids()[2:], []string{"coordinator/1"})
	for _, part := range []string{
		"Steps that have begun: setup, rounds, rounds.0.worker.", "Message from rounds.0.worker", "Half is done.", "## Task\nBuild it.", "rounds.0.worker\nsetup",
	} {
		if told := p.told("coordinator/1"); !strings.Contains(told, part) {
			t.Errorf("it is not told %q:\n%s", part, told)
		}
	}
	same(t, p.begun[2].Name, "boss")
	same(t, p.send("coordinator/1", "c1", "", "All is well.", event.MessageNarration), "said")
	same(t, p.send("coordinator/1", "c2", "rounds.0.worker", "Go on.", event.MessageInfo), "queued: for rounds.0.worker")
	if read := p.read[p.runOf("rounds.0.worker")]; len(read) != 1 || !strings.Contains(read[0], "Message from coordinator") || !strings.Contains(read[0], "Go on.") {
		t.Errorf("the worker reads %q", read)
	}
	// A message that arrives while the coordinator works starts another call at its
	// end, with the starts since then.
	p.ends("setup", "ready")
	same(t, p.send("rounds.0.worker", "m2", "", "And the rest.", ""), "queued: for coordinator")
	p.ends("rounds.0.worker")
	p.ends("coordinator/1", "I told the worker.")
	same(t, p.send("rounds.1.worker", "m3", "", "Again.", ""), "queued: for coordinator")
	if told := p.told("coordinator/2"); strings.Contains(told, "Half is done.") || !strings.Contains(told, "I told the worker.") ||
		!strings.Contains(told, "info rounds.0.worker: Go on.") || !strings.Contains(told, "Steps that have begun: rounds.1.worker.") {
		t.Errorf("it is told again:\n%s", told)
	}
	p.mailIs(`m1 from rounds.0.worker to coordinator 
m1 delivered to coordinator
c1 from coordinator to  narration
c1 delivered to 
c2 from coordinator to rounds.0.worker info
c2 delivered to rounds.0.worker
m2 from rounds.0.worker to coordinator 
m2 delivered to coordinator
m3 from rounds.1.worker to coordinator 
m3 delivered to coordinator`)
	p.holds(p.story())
}

// Without messages the coordinator is not called, and without a coordinator no message
// reaches a step.
func TestNoCoordinatorIsCalledInVain(t *testing.T) {
	p := newPlayer(t, hub(step("a"), step("b", "a")))
	p.says = named(nil)
	if o := p.play(); !o.OK || o.FinalOutput != "said by b" || len(p.begun) != 2 {
		t.Errorf("%+v after %v", o, p.ids())
	}
	p = holding(t, plan.Plan{Steps: []plan.Step{step("a")}})
	same(t, p.send("a", "m1", "", "Anybody?", ""), "dropped: unknown-step")
	p.ends("a")
	same(t, p.play().OK, true)
	same(t, p.ids(), []string{"a"})
	p.mailIs("m1 from a to coordinator \nm1 dropped: unknown-step")
}

// rows: DAG-68, DAG-72, DAG-73, DAG-74, DAG-75
func TestWhereAForwardGoes(t *testing.T) {
	item := func(n int) json.RawMessage { return json.RawMessage(fmt.Sprint(n)) }
	each := plan.Step{ID: "each", Loop: &plan.Loop{Items: &plan.Items{Static: []json.RawMessage{item(1), item(2)}}, Body: plan.Plan{Steps: []plan.Step{step("deploy")}}}}
	again := plan.Step{ID: "again", DependsOn: []string{"setup"}, Loop: &plan.Loop{Single: true, Max: 2, Body: plan.Plan{Steps: []plan.Step{step("")}}}}
	count := plan.Step{ID: "count", Func: &plan.Func{Name: "count"}}
	begin := func(t *testing.T) *player {
		p := holding(t, hub(step("setup"), rounds(), each, again, count, step("last", "setup"), step("other")))
		p.send("setup", "m1", "", "Help.", "")
		return p
	}
	for name, c := range map[string]struct{ target, told string }{
		"a namespaced id":                     {"rounds.0.worker", "queued: for rounds.0.worker"},
		"a bare name":                         {"worker", "queued: for rounds.0.worker"},
		"an item's":                           {"each[1].deploy", "queued: for each[1].deploy"},
		"a bare name of several":              {"deploy", `dropped: resolver-error: 2 steps are called "deploy", name one of: each[0].deploy, each[1].deploy`},
		"one that has not begun":              {"last", "queued: for last"},
		"the next iteration's":                {"rounds.1.worker", "queued: for rounds.1.worker"},
		"one of an iteration that is far off": {"rounds.2.worker", "dropped: unknown-step; the steps that can be told something are: each[0].deploy, each[1].deploy, last, other, rounds.0.worker, setup"},
		"a function's":                        {"count", "dropped: no-transcript"},
		"a loop":                              {"rounds", "dropped: no-transcript"},
		"nobody's":                            {"nobody", "dropped: unknown-step; the steps that can be told something are: each[0].deploy, each[1].deploy, last, other, rounds.0.worker, setup"},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(t)
			same(t, p.send("coordinator/1", "c1", c.target, "So and so.", event.MessageInfo), c.told)
			if drops := strings.Count(p.mail(), "c1 dropped: "); (drops == 1) != strings.HasPrefix(c.told, "dropped") {
				t.Error(p.mail())
			}
			p.holds(p.story())
		})
	}
	t.Run("a step is told at its start what was said before", func(t *testing.T) {
		p := begin(t)
		p.send("coordinator/1", "c1", "last", "Mind the gap.", event.MessageContextUpdate)
		if strings.Contains(p.mail(), "c1 delivered") {
			t.Error("it is delivered before anybody reads it")
		}
		p.ends("setup")
		if told := p.told("last"); !strings.Contains(told, "## Inbox\n\nMessage from coordinator about the context of your task") || !strings.Contains(told, "Mind the gap.") {
			t.Errorf("it is told\n%s", told)
		}
		if again := p.m.Again(p.runOf("last")).Input; string(again) != string(p.begun[len(p.begun)-2].Input) && string(again) != string(p.begun[len(p.begun)-1].Input) {
			t.Errorf("taken up again it would be told\n%s", again)
		}
		same(t, strings.Count(p.mail(), "c1 delivered to last"), 1)
		same(t, p.send("coordinator/1", "c2", "setup", "Too late.", ""), "dropped: target-terminal")
	})
	t.Run("a worker that has ended stands for that of the next iteration", func(t *testing.T) {
		for _, target := range []string{"rounds.0.worker", "worker"} {
			p := begin(t)
			p.send("coordinator/1", "c0", "rounds.1.worker", "First.", "")
			p.ends("rounds.0.worker")
			same(t, p.send("coordinator/1", "c1", target, "Second.", ""), "queued: for rounds.1.worker")
			if told := p.told("rounds.1.worker"); strings.Contains(told, "First.") == false {
				t.Errorf("it is told\n%s", told)
			}
			if read := p.read[p.runOf("rounds.1.worker")]; len(read) != 1 || !strings.Contains(read[0], "Second.") {
				t.Errorf("it reads %q", read)
			}
		}
	})
	t.Run("cancel ends a step", func(t *testing.T) {
		p := begin(t)
		same(t, p.send("coordinator/1", "c1", "other", "Not needed.", event.MessageCancel), "queued: for other")
		if story := p.story(); !strings.Contains(story, "cancelled other: cancelled: Not needed.") {
			t.Error(story)
		}
		same(t, strings.Count(p.mail(), "c1 delivered to other"), 1)
	})
}

// A later worker reads, in order of arrival, the messages that a worker did not read.
// Unread messages are dropped when no worker is left.
//
// rows: DAG-75
func TestWhatAWorkerLeavesUnread(t *testing.T) {
	p := newPlayer(t, hub(rounds()))
	p.says = named(nil)
	p.decide()
	p.send("rounds.0.worker", "m1", "", "Help.", "")
	forward := func(id string) {
		become, _ := p.m.Post(p.runOf("coordinator/1"), machine.Post{ID: id, To: "worker", Text: id, Kind: event.MessageInfo})
		for _, d := range become {
			p.apply(d)
		}
	}
	forward("c1") // it is not delivered before the worker ends
	forward("c2")
	p.ends("rounds.0.worker")
	if told := p.told("rounds.1.worker"); !strings.Contains(told, "\nc1\n") || strings.Index(told, "\nc2\n") < strings.Index(told, "\nc1\n") {
		t.Errorf("it is told\n%s", told)
	}
	p.ends("rounds.1.worker")
	forward("c3")
	p.ends("rounds.2.worker")
	p.ends("coordinator/1")
	p.mailIs(`m1 from rounds.0.worker to coordinator 
m1 delivered to coordinator
c1 from coordinator to rounds.0.worker info
c2 from coordinator to rounds.0.worker info
c1 delivered to rounds.1.worker
c2 delivered to rounds.1.worker
c3 from coordinator to rounds.2.worker info
c3 dropped: target-terminal`)
	same(t, p.m.State().Outcome.OK, true)
	p.holds(p.story())
}

// A message repeated under the same id counts once.
func TestRepeatedMessageCountsOnce(t *testing.T) {
	p := holding(t, hub(step("a")))
	p.send("a", "m1", "", "Once.", "")
	same(t, p.send("a", "m1", "", "Once.", ""), "queued: for coordinator")
	p.send("coordinator/1", "c1", "nobody", "Hm.", event.MessageInfo)
	p.m = p.again()
	same(t, p.send("a", "m1", "", "Once.", ""), "queued: for coordinator")
	same(t, p.send("coordinator/1", "c1", "nobody", "Hm.", event.MessageInfo), "dropped: unknown-step")
	p.mailIs("m1 from a to coordinator \nm1 delivered to coordinator\nc1 from coordinator to nobody info\nc1 dropped: unknown-step")
}

func TestTheClosingWord(t *testing.T) {
	p := holding(t, hub(step("a")))
	p.send("a", "m1", "", "One.", "")
	p.ends("a")
	same(t, p.m.State().Outcome, (*event.Outcome)(nil)) // the coordinator still has a message to read
	same(t, p.send("coordinator/1", "c1", "", "It is good.", event.MessageFinal), "said")
	p.ends("coordinator/1", "Done.")
	if o := p.m.State().Outcome; o == nil || !o.OK || o.FinalOutput != "It is good." || o.LastOutput != "" {
		t.Errorf("%+v", o)
	}
	p = holding(t, hub(step("a"), step("b")))
	p.send("a", "m1", "", "One.", "")
	become, _ := p.m.Post(p.runOf("b"), machine.Post{ID: "m2", Text: "Two."})
	for _, d := range become {
		p.apply(d)
	}
	p.send("coordinator/1", "c1", "", "It is good.", event.MessageFinal)
	same(t, p.send("b", "m3", "", "Three.", ""), "dropped: mailbox-closed-by-finalize")
	p.ends("a")
	p.ends("b")
	p.ends("coordinator/1")
	p.mailIs(`m1 from a to coordinator 
m1 delivered to coordinator
m2 from b to coordinator 
c1 from coordinator to  final
c1 delivered to 
m2 dropped: mailbox-closed-by-finalize
m3 from b to coordinator 
m3 dropped: mailbox-closed-by-finalize`)
	same(t, p.m.State().Outcome.OK, true)
}

func TestACancelledWorkflowDropsWhatIsUnread(t *testing.T) {
	p := holding(t, hub(step("a"), step("b", "a")))
	p.send("a", "m1", "", "One.", "")
	p.send("coordinator/1", "c1", "b", "Later.", event.MessageInfo)
	p.apply(event.CancelRequested{Reason: "enough"})
	p.decide()
	same(t, p.m.State().Outcome.Status, event.StatusCancelled)
	if mail := p.mail(); !strings.Contains(mail, "c1 dropped: workflow-cancelled") {
		t.Error(mail)
	}
}

// The plan's time also limits its coordinator. Steps that have ended by then keep their
// status.
func TestTheTimeOfAPlanBoundsItsCoordinator(t *testing.T) {
	p := hub(step("a"))
	p.Timeout = time.Minute
	play := holding(t, p)
	play.send("a", "m1", "", "One.", "")
	play.hold = func(id string) bool { return id == "coordinator/1" }
	play.ends("a", "done")
	if o := play.play(); !o.OK || o.FinalOutput != "done" || play.now.Sub(time.Unix(1000, 0)) != time.Minute {
		t.Errorf("%+v at %s", o, play.now)
	}
	play.mailIs("m1 from a to coordinator \nm1 delivered to coordinator")
}

// The coordinator is called at most MostWakes times.
func TestTheCapsOfMessages(t *testing.T) {
	p := holding(t, hub(step("a")))
	for i := range flow.MostWakes {
		p.send("a", fmt.Sprint("m", i), "", "Hm.", "")
		p.ends(fmt.Sprint("coordinator/", i+1))
	}
	same(t, p.send("a", "one more", "", "Hm.", ""), "dropped: max-wake-cycles")
	same(t, strings.Count(p.mail(), "warning coordinator_wakes 80 of 100"), 1)
	p.ends("a")
	same(t, p.m.State().Outcome.OK, true)
	p.holds(p.story())
}

func TestAFullMailbox(t *testing.T) {
	p := holding(t, hub(step("a"), step("b", "a")))
	p.send("a", "m", "", "Hm.", "")
	run := p.runOf("coordinator/1")
	told := ""
	for i := range flow.MostUnread + 1 {
		var become []event.Data
		become, told = p.m.Post(run, machine.Post{ID: fmt.Sprint("c", i), To: "b", Text: "Hm.", Kind: event.MessageInfo})
		for _, d := range become {
			p.apply(d)
		}
	}
	same(t, told, "dropped: mailbox-full")
	p.decide()
	same(t, strings.Count(p.mail(), "warning inbox b 800 of 1000"), 1)
	same(t, strings.Count(p.mail(), "dropped: mailbox-full"), 1)
	p.ends("a")
	same(t, strings.Count(p.mail(), "delivered to b"), flow.MostUnread)
	p.holds(p.story())
}

// manyMessages returns the events of a run with n messages from a step to the
// coordinator and n back.
func manyMessages(t *testing.T, n int) []event.Event {
	p := holding(t, hub(step("a"), step("b", "a")))
	p.send("a", "first", "", "Hm.", "")
	a, boss := p.runOf("a"), p.runOf("coordinator/1")
	post := func(run string, m machine.Post) {
		become, _ := p.m.Post(run, m)
		for _, d := range become {
			p.apply(d)
		}
	}
	for i := range n {
		post(a, machine.Post{ID: fmt.Sprint("m", i), Text: "Hm."})
		post(boss, machine.Post{ID: fmt.Sprint("c", i), To: "a", Text: "Hm.", Kind: event.MessageInfo})
		post(boss, machine.Post{ID: fmt.Sprint("b", i), To: "b", Text: "Hm.", Kind: event.MessageInfo})
	}
	p.decide()
	p.ends("a")
	if got := strings.Count(p.mail(), "delivered"); got != 3*n+1 {
		t.Fatalf("%d of %d are delivered", got, 3*n+1)
	}
	return p.events
}

// The cost of a message does not grow with the number of messages.
func TestManyMessagesAreFoldedInLinearTime(t *testing.T) {
	if testing.Short() {
		t.Skip("measures how time grows")
	}
	fold := func(events []event.Event) time.Duration {
		return takes(t, func() {
			for range 3 {
				m := flow.New()
				for i := range events {
					if err := m.Apply(&events[i]); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
	few, many := fold(manyMessages(t, flow.MostUnread/10)), fold(manyMessages(t, flow.MostUnread))
	if many > 30*max(few, 30*time.Millisecond) {
		t.Errorf("100 messages take %s, 1,000 take %s", few, many)
	}
}

// A message carries the taint of its sender.
func TestTheTaintOfAMessage(t *testing.T) {
	p := holding(t, hub(step("a"), step("b", "a")))
	source := &event.TaintSource{Run: "run0", Tool: "web.fetch"}
	become, _ := p.m.Post(p.runOf("a"), machine.Post{ID: "m1", Text: "See.", Taint: event.Taint{Untrusted: source}})
	for _, d := range become {
		p.apply(d)
	}
	p.decide()
	i := slices.Index(p.ids(), "coordinator/1")
	same(t, p.begun[i].Taint.Untrusted, source)
	become, _ = p.m.Post(p.runOf("coordinator/1"), machine.Post{ID: "c1", To: "b", Text: "See.", Kind: event.MessageInfo, Taint: event.Taint{Untrusted: source}})
	for _, d := range become {
		p.apply(d)
	}
	p.decide()
	p.ends("a")
	i = slices.Index(p.ids(), "b")
	same(t, p.begun[i].Taint.Untrusted, source)
}
