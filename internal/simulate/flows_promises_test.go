package simulate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/tool"
)

// story is what the journal of one run tells of steps and messages.
type story struct {
	g    *grove
	run  string
	cfg  flow.Config
	once map[string]bool
	// steps are how steps stand, and loops what is known of loops, by their ids. Those
	// of an attempt before are forgotten.
	steps map[string]*stage
	loops map[string]*passes
	// work are the scopes around what is at work, busy how much of it each has, and
	// under how many of its steps go on.
	work        map[string][]scope
	busy, under map[string]int
	// sent are the messages, and heard those in the run's own conversation.
	sent    map[string]*letter
	heard   map[string]int
	readers map[string]string
	outcome *event.Outcome
	refined
}

// stage is how a step stands.
type stage struct {
	attempt    int
	open, over bool
	result     json.RawMessage
}

type passes struct {
	began, ended, judged map[int]bool
	// done is why no other pass may begin, empty while one may.
	done string
}

type letter struct {
	event.MessageSent
	to      []string
	dropped []event.DropReason
}

// scope is a plan that is carried out, by what the ids of its steps begin with; loop
// and index are those of the pass that it is.
type scope struct {
	key   string
	plan  *plan.Plan
	owner string
	loop  *plan.Loop
	index int
}

func (g *grove) newStory(row journal.Run, d event.RunStarted) *story {
	s := &story{
		g: g, run: row.ID, once: map[string]bool{}, steps: map[string]*stage{}, loops: map[string]*passes{}, work: map[string][]scope{},
		busy: map[string]int{}, under: map[string]int{}, sent: map[string]*letter{}, heard: map[string]int{}, readers: map[string]string{},
	}
	if d.Machine == flow.Version {
		if err := json.Unmarshal(d.Config, &s.cfg); err != nil {
			g.violate("%s: %v", row.ID, err)
		}
	}
	var given tool.Task
	if d.Input != nil && json.Unmarshal([]byte(d.Input.Text()), &given) == nil {
		_, inbox, _ := strings.Cut(given.Task, "## Inbox\n")
		s.hear(inbox)
	}
	return s
}

var messageText = regexp.MustCompile(`\{[^{}"]* #\d+\.\d+\}`)

func (s *story) hear(text string) {
	for _, m := range messageText.FindAllString(text, -1) {
		s.heard[m]++
	}
}

func (s *story) violate(format string, args ...any) {
	s.g.violate("run %s:%s: %s", s.run, s.g.path(s.run), fmt.Sprintf(format, args...))
}

// only says that something is done a single time.
func (s *story) only(what ...any) {
	name := fmt.Sprint(what...)
	if s.once[name] {
		s.violate("%s comes twice", name)
	}
	s.once[name] = true
}

var passOf = regexp.MustCompile(`^(\.\d+|\[\d+\])\.?`)

// place is the step behind an id, with the plans around it, the outermost first.
func (s *story) place(id string) (step *plan.Step, around []scope) {
	at, rest := scope{plan: &s.cfg.Plan}, id
	for {
		around = append(around, at)
		name, key := rest, id
		if n := strings.IndexAny(rest, ".["); n >= 0 {
			name, key = rest[:n], id[:len(id)-len(rest)+n]
		}
		i := slices.IndexFunc(at.plan.Steps, func(s plan.Step) bool { return s.ID == name })
		if i < 0 {
			s.violate("there is no step %s", id)
			return &plan.Step{}, nil
		}
		if step, rest = &at.plan.Steps[i], rest[len(name):]; rest == "" {
			return step, around
		}
		if at = (scope{key: key, plan: step.Plan}); step.Plan != nil {
			rest = rest[1:]
			continue
		}
		pass := passOf.FindStringSubmatch(rest)
		at = scope{key: key + pass[1], plan: &step.Loop.Body, owner: key, loop: step.Loop}
		at.index, _ = strconv.Atoi(strings.Trim(pass[1], ".[]"))
		if rest = rest[len(pass[0]):]; rest == "" {
			return &at.plan.Steps[0], append(around, at)
		}
	}
}

func (s *story) loopOf(id string) *passes {
	if s.loops[id] == nil {
		s.loops[id] = &passes{map[int]bool{}, map[int]bool{}, map[int]bool{}, ""}
	}
	return s.loops[id]
}

// below reports whether an id is that of something below a step.
func below(id, step string) bool {
	rest, is := strings.CutPrefix(id, step)
	return is && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// begin is for an attempt at a step.
func (s *story) begin(id string, attempt int) {
	step, around := s.place(id)
	if around == nil {
		return
	}
	was := s.steps[id]
	switch {
	case was == nil && attempt != 1, was != nil && (was.open || was.over || attempt != was.attempt+1), attempt > step.Retries+1:
		s.violate("attempt %d at %s begins, which stood at %+v", attempt, id, was)
	case attempt > 1:
		s.g.seen("another attempt")
	}
	for other := range s.steps {
		if below(other, id) {
			delete(s.steps, other)
		}
	}
	for other := range s.loops {
		if other == id || below(other, id) {
			delete(s.loops, other)
		}
	}
	s.steps[id] = &stage{attempt: attempt, open: true}
	in := around[len(around)-1]
	for _, dep := range step.DependsOn {
		before := dep
		if in.key != "" {
			before = in.key + "." + dep
		}
		if d := s.steps[before]; d == nil || !d.over {
			s.violate("%s begins before %s has ended", id, before)
		}
	}
	if s.under[in.key]++; in.plan.Width > 0 && s.under[in.key] > in.plan.Width {
		s.violate("%d steps of %q are under way, and %d may be", s.under[in.key], in.key, in.plan.Width)
	}
	for _, at := range around {
		s.pass(at)
	}
	if step.Plan == nil && step.Loop == nil {
		s.works("step "+id, around)
	}
}

// pass is for something that begins in a scope, which may be a pass of a loop.
func (s *story) pass(at scope) {
	if at.loop == nil {
		return
	}
	l := s.loopOf(at.owner)
	if l.ended[at.index] {
		s.violate("something begins in %s, which has ended", at.key)
	}
	if l.done != "" && !l.began[at.index] {
		s.violate("%s begins after %s", at.key, l.done)
	}
	l.began[at.index] = true
	if at.loop.Items != nil {
		if most := at.loop.Items.Concurrency; most > 0 && len(l.began)-len(l.ended) > most {
			s.violate("%d items of %s are under way, and %d may be", len(l.began)-len(l.ended), at.owner, most)
		}
		return
	}
	if before := at.index - 1; before >= 0 && !l.ended[before] {
		s.violate("%s begins before the iteration before it has ended", at.key)
	} else if stops := at.loop.StopWhen; before >= 0 && len(stops) == 1 && stops[0].Judge != "" && at.loop.OnError == plan.IterationFails && !l.judged[before] {
		s.violate("%s begins without a verdict on the iteration before it", at.key)
	}
}

// works holds the bounds of the plans around against what is at work in them.
func (s *story) works(name string, around []scope) {
	s.work[name] = around
	for i, at := range around {
		most := at.plan.Concurrency
		if c := s.cfg.Concurrency; i == 0 && c > 0 && (most == 0 || c < most) {
			most = c
		}
		if s.busy[at.key]++; most > 0 && s.busy[at.key] > most {
			s.violate("%d are at work in %q, and %d may be", s.busy[at.key], at.key, most)
		}
	}
}

func (s *story) rests(name string) {
	for _, at := range s.work[name] {
		s.busy[at.key]--
	}
	delete(s.work, name)
}

// finish is for the end of an attempt, or of a step that was not begun.
func (s *story) finish(d *event.StepFinished) {
	step, around := s.place(d.Step)
	st := s.steps[d.Step]
	if st == nil {
		st = &stage{}
		s.steps[d.Step] = st
	}
	// One that was to begin and did not has a number, too.
	unbegun := !st.open && d.Attempt == st.attempt+1 && d.Status != event.StepStatusCompleted
	if around == nil || st.over || st.attempt != d.Attempt && !unbegun {
		s.violate("%s ends as %+v, and stood at %+v", d.Step, d, st)
		return
	}
	for other, b := range s.steps {
		if b.open && below(other, d.Step) {
			s.violate("%s ends before %s", d.Step, other)
		}
	}
	if st.open {
		s.under[around[len(around)-1].key]--
		s.rests("step " + d.Step)
	}
	st.open, st.result = false, d.Result
	st.over = d.Status != event.StepStatusFailed || d.Attempt == 0 || d.Attempt > step.Retries
	s.g.seen("step " + string(d.Status))
	if d.Error != nil && d.Error.Class == "timeout" {
		s.g.seen("step timed out")
	}
	if step.Loop != nil && step.Loop.Items != nil && len(d.Result) > 0 {
		s.inOrder(d, step.Loop)
	}
}

// inOrder holds a result of a loop over items against those of the items.
func (s *story) inOrder(d *event.StepFinished, l *plan.Loop) {
	var all struct {
		Items []struct{ Result json.RawMessage }
	}
	if err := json.Unmarshal(d.Result, &all); err != nil || l.Items.Expression == "" && len(all.Items) != len(l.Items.Static) {
		s.violate("%s over %d items gives %s (%v)", d.Step, len(l.Items.Static), d.Result, err)
	}
	for i, item := range all.Items {
		key, found := fmt.Sprintf("%s[%d]", d.Step, i), len(item.Result) == 0
		for id, st := range s.steps {
			found = found || (id == key || below(id, key)) && bytes.Equal(st.result, item.Result)
		}
		if !found {
			s.violate("%s gives for item %d the result %s, which no step of it gave", d.Step, i, item.Result)
		}
		if len(item.Result) > 0 && i > 0 {
			s.g.seen("items in order")
		}
	}
}

// iteration is for the end of a pass.
func (s *story) iteration(d *event.Iteration) {
	step, _ := s.place(d.Step)
	l := s.loopOf(d.Step)
	key := fmt.Sprintf("%s.%d", d.Step, d.Index)
	if step.Loop.Items != nil {
		key = fmt.Sprintf("%s[%d]", d.Step, d.Index)
		if static := step.Loop.Items.Static; len(static) > 0 && !bytes.Equal(static[d.Index], d.Item) {
			s.violate("item %d of %s is %s instead of %s", d.Index, d.Step, d.Item, static[d.Index])
		}
	}
	for id, st := range s.steps {
		if st.open && (id == key || below(id, key)) {
			s.violate("%s ends before %s", key, id)
		}
	}
	if l.ended[d.Index] || d.Number != d.Index+1 {
		s.violate("%s ends as %+v, twice: %t", key, d, l.ended[d.Index])
	}
	l.began[d.Index], l.ended[d.Index] = true, true
	s.g.seen("iteration")
}

func (s *story) verdict(d *event.JudgeVerdict) {
	l, i := s.loopOf(d.Step), d.Number-1
	if !l.ended[i] || !s.once["end of "+d.Child] {
		s.violate("iteration %d of %s is judged as %+v", d.Number, d.Step, d)
	}
	s.only("the verdict of ", d.Child)
	l.judged[i] = true
	switch {
	case d.Failed:
		s.g.seen("no verdict")
		return
	case d.Verdict != event.VerdictNotDone:
		l.done = "its judge has said " + string(d.Verdict)
	}
	s.g.seen("verdict " + string(d.Verdict))
}

func (s *story) event(data event.Data) {
	if s == nil {
		return
	}
	if s.cfg.Plan.Refine {
		s.refines(data)
	}
	switch d := data.(type) {
	case event.ChildStarted:
		s.only("child ", d.Action())
		s.readers[d.Child] = d.Step
		if d.BeginsStep() {
			s.begin(d.Step, 1)
		} else if d.Step != "" && d.Step != event.Coordinator && strings.Contains(d.ID, "/judge") {
			_, around := s.place(d.Step)
			s.works("child "+d.Child, around)
		}
	case event.ChildFinished:
		s.only("end of ", d.Child)
		s.rests("child " + d.Child)
	case event.StepStarted:
		s.begin(d.Step, d.Attempt)
	case event.StepFinished:
		s.finish(&d)
	case event.StepSkipped:
		s.finish(&event.StepFinished{Step: d.Step, Status: event.StepStatusSkipped})
	case event.Iteration:
		s.iteration(&d)
	case event.JudgeVerdict:
		s.verdict(&d)
	case event.ConditionEvaluated:
		s.only("evaluation ", d.ID)
	case event.ToolPendingApproval:
		if s.cfg.Plan.Name != "" {
			s.g.seen("command asked about")
		}
	case event.CommandStarted:
		if s.cfg.Plan.Name == "" && s.g.runners["program"].Effect == event.EffectPure {
			return // the run is that program, which may run again
		}
		if s.only("command ", d.ID); s.cfg.Plan.Name == "" {
			return
		}
		if step, around := s.place(d.Step); step.Command == nil {
			s.works("command "+d.ID, around)
		}
	case event.CommandFinished:
		s.only("end of command ", d.ID)
		s.rests("command " + d.ID)
	case event.WaitStarted:
		s.only("wait ", d.ID)
	case event.WaitFinished:
		s.only("end of wait ", d.ID)
		s.g.seen("wait")
	case event.InputReceived:
		if d.MessageID != "" {
			s.hear(d.Text)
		}
	case event.MessageSent:
		s.only("message ", d.ID)
		s.sent[d.ID] = &letter{MessageSent: d}
	case event.MessageDelivered:
		if s.letter(d.ID) {
			s.sent[d.ID].to = append(s.sent[d.ID].to, d.To)
		}
	case event.MessageDropped:
		if s.letter(d.ID) {
			s.sent[d.ID].dropped = append(s.sent[d.ID].dropped, d.Reason)
		}
	case event.RunCompleted:
		s.outcome = &d.Outcome
	}
	s.tell(data)
}

func (s *story) letter(id string) bool {
	if s.sent[id] == nil {
		s.violate("something becomes of the message %s, which was not sent", id)
	}
	return s.sent[id] != nil
}

// tell adds to the story of the tree what is the same in whatever order things
// happen.
func (s *story) tell(data event.Data) {
	switch d := data.(type) {
	case event.ChildStarted:
		if d.ID == "" || d.Step == event.Coordinator {
			return
		}
		data = event.ChildStarted{Kind: d.Kind, Name: d.Name, Step: d.Step, ID: d.ID}
	case event.JudgeVerdict:
		d.Child = ""
		data = d
	case event.Iteration:
		d.Child = ""
		data = d
	case event.StepStarted:
		d.Child = ""
		data = d
	case event.StepFinished, event.StepSkipped, event.ConditionEvaluated:
	default:
		return
	}
	raw, _ := json.Marshal(data)
	s.g.tellf("%s: %s %s", s.g.path(s.run), data.EventType(), withoutErrors(raw))
}

func (g *grove) tellf(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told = append(g.told, fmt.Sprintf(format, args...))
}

// end is for a run that has ended: nothing is left open.
func (s *story) end() {
	for id, st := range s.steps {
		if st.open {
			s.violate("%s has no end", id)
		}
	}
	if len(s.work) > 0 {
		s.violate("at its end these are at work: %v", s.work)
	}
	for id, m := range s.sent {
		if len(m.to)+len(m.dropped) != 1 {
			s.violate("the message %s (%s) was delivered to %q and dropped as %v", id, m.Text, m.to, m.dropped)
		}
	}
	if len(s.cfg.Plan.Steps) == 0 || s.outcome == nil {
		return
	}
	if s.cfg.Plan.Refine {
		s.endRefined()
		return
	}
	n := s.outcome.Steps
	if n == nil || n.Completed+n.Failed+n.Skipped+n.Cancelled != len(s.cfg.Plan.Steps) {
		s.violate("of %d steps it says %+v", len(s.cfg.Plan.Steps), n)
	}
	for _, step := range s.cfg.Plan.Steps {
		if s.steps[step.ID] == nil {
			s.violate("nothing became of %s", step.ID)
		}
	}
}

// read holds what a run says of its messages against the conversations of those that
// it started.
func (g *grove) read(trees map[string]*trunk, run *trunk) {
	for _, m := range run.sent {
		spoken := m.To != "" && m.Kind != event.MessageCancel && m.Kind != event.MessageFinal
		heard, made := 0, true
		for child, step := range run.readers {
			c := trees[child]
			if c == nil {
				made = made && (len(m.to) == 0 || step != m.to[0])
				continue
			}
			if heard += c.heard[m.Text]; c.heard[m.Text] > 0 && (len(m.to) == 0 || step != m.to[0]) {
				g.violate("run %s, which is %s, has the message %q, of which run %s says %q, %v", child, step, m.Text, run.row.ID, m.to, m.dropped)
			}
		}
		switch {
		case len(m.dropped) > 0:
			g.seen("dropped " + string(m.dropped[0]))
		case spoken && m.to[0] == event.Coordinator:
			g.seen("delivered to the coordinator")
		case spoken:
			g.seen("delivered to a step")
		}
		if delivered := spoken && len(m.to) > 0; delivered && heard != 1 && made || !delivered && heard > 0 {
			g.violate("the message %q of run %s is in conversations %d times, and was delivered to %q and dropped as %v", m.Text, run.row.ID, heard, m.to, m.dropped)
		}
	}
}
