package control_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/question"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/memory"
)

// read counts the records and commands that were read. A command without a kind is
// invalid.
type read struct {
	journal.Store
	records, commands int
}

func (s *read) Inbox(ctx context.Context, run string) ([]journal.Command, error) {
	found, err := s.Store.Inbox(ctx, run)
	s.commands += len(found)
	if slices.ContainsFunc(found, func(c journal.Command) bool { return c.Kind == "" }) {
		return nil, errors.New("a damaged command")
	}
	return found, err
}

func (s *read) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	found, err := s.Store.Records(ctx, run, after, limit)
	s.records += len(found)
	return found, err
}

// shelf returns a controller on an empty journal.
func shelf() (*read, *control.Controller) {
	store := &read{Store: memory.New(nil)}
	return store, control.New(store, engine.New(store, versions.Make, engine.Options{}))
}

// happens appends events to a run and sets its row: the state of its last parking, and
// what it waits for.
func happens(t *testing.T, d *journaltest.Driver, events ...event.Data) {
	t.Helper()
	var waiting drive.Waiting
	var asked question.List
	var s machine.State
	note := func(e *event.Event) {
		waiting.Note(e)
		asked.Apply(e.Data)
		switch d := e.Data.(type) {
		case event.CycleStart:
			asked = question.List{}
		case event.RunParked:
			s.Parked = &d
		case event.RunResumed:
			s.Parked = nil
		}
	}
	for e, err := range drive.AsStored(t.Context(), d.Store, d.Lease.Run) {
		if err != nil {
			t.Fatal(err)
		}
		note(e)
	}
	state := journal.Progress{State: journal.Running}
	for _, e := range events {
		b := d.Batch(t, e)
		note(&event.Event{Seq: d.Seq + 1, Data: e})
		switch e := e.(type) {
		case event.RunParked:
			state = journal.Progress{State: journal.Parked, Detail: string(e.Reason)}
		case event.RunCompleted:
			state = journal.Progress{State: journal.Ended}
		}
		s.Pending = asked.Open()
		b.Status, b.Status.Waits = state, waiting.Of(s)
		if err := d.Write(t, b); err != nil {
			t.Fatal(err)
		}
	}
}

func answered(t *testing.T, store journal.Store, controller *control.Controller, run string) bool {
	t.Helper()
	return stands(t, store, controller, run).Answered
}

func stands(t *testing.T, store journal.Store, controller *control.Controller, run string) control.RunStatus {
	t.Helper()
	row, err := store.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	s, err := controller.RunStatus(t.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	forInput    = event.RunParked{Reason: event.ParkInput}
	atLimit     = event.RunParked{Reason: event.ParkInput, Limit: "max_cycles"}
	atLimitOf80 = event.RunParked{Reason: event.ParkInput, Limit: "max_cycles", AtLeast: 80}
	lower       = event.BudgetRaised{Setting: "max_cycles", Value: 79}
	forApproval = event.RunParked{Reason: event.ParkApproval}
	interrupted = event.RunParked{Reason: event.ParkInterrupted}
	raised      = event.BudgetRaised{Setting: "max_cycles", Value: 80}
	said        = event.InputReceived{Text: "go on"}
)

// asked is asks with an early deadline.
func asked(call string) event.Data {
	return event.ToolPendingApproval{CallID: call, ExpiresAt: new(time.Unix(0, 0))}
}

func asks(call string) event.Data    { return event.ToolPendingApproval{CallID: call} }
func decides(call string) event.Data { return event.ToolApprovalResolved{CallID: call} }

func TestAParkedRunIsAnsweredOnceItHasWhatItParkedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		events   []event.Data
		inbox    []journal.Command
		answered bool
	}{
		"a message that nobody sent":           {[]event.Data{forInput}, nil, false},
		"a message":                            {[]event.Data{forInput, said}, nil, true},
		"a message that came before":           {[]event.Data{said, forInput}, nil, false},
		"a message for the run before":         {[]event.Data{forInput, said, event.RunResumed{}, forInput}, nil, false},
		"a message that nobody has read":       {[]event.Data{forInput}, []journal.Command{{Kind: journal.Input}}, true},
		"a message that is lost":               {[]event.Data{forInput}, []journal.Command{{Kind: journal.Input, Sealed: []byte("x")}}, false},
		"a limit that nobody raised":           {[]event.Data{atLimit}, nil, false},
		"a limit, and a message":               {[]event.Data{atLimit, said}, nil, false},
		"a limit":                              {[]event.Data{atLimit, raised}, nil, true},
		"a limit, and a message behind it":     {[]event.Data{atLimit, raised, said}, nil, true},
		"a message, after a limit":             {[]event.Data{atLimit, raised, event.RunResumed{}, forInput, said}, nil, true},
		"a limit, and too little":              {[]event.Data{atLimitOf80, lower}, nil, false},
		"a limit, and just enough":             {[]event.Data{atLimitOf80, raised}, nil, true},
		"a limit, and none of it":              {[]event.Data{atLimitOf80, event.BudgetRaised{Setting: "max_cycles", Value: -1}}, nil, true},
		"a limit, and enough, and too little":  {[]event.Data{atLimitOf80, raised, lower}, nil, false},
		"a limit, and too little, and enough":  {[]event.Data{atLimitOf80, lower, raised}, nil, true},
		"a limit, and too little by a command": {[]event.Data{atLimitOf80, raised}, []journal.Command{{Kind: journal.Raise, Setting: "max_cycles", Value: 79}}, false},
		"another limit":                        {[]event.Data{atLimit, event.BudgetRaised{Setting: "usd_per_run", Value: 80}}, nil, false},
		"a limit that was raised before":       {[]event.Data{raised, atLimit}, nil, false},
		"a limit by a command":                 {[]event.Data{atLimit}, []journal.Command{{Kind: journal.Raise, Setting: "max_cycles"}}, true},
		"another limit by a command":           {[]event.Data{atLimit}, []journal.Command{{Kind: journal.Raise, Setting: "usd_per_run"}}, false},
		"a decision that nobody made":          {[]event.Data{asks("a"), forApproval}, nil, false},
		"a decision":                           {[]event.Data{asks("a"), forApproval, decides("a")}, nil, true},
		"one of two decisions":                 {[]event.Data{asks("a"), asks("b"), forApproval, decides("a")}, nil, false},
		"one of two, of which one is named":    {[]event.Data{asks("a"), asks("b"), event.RunParked{Reason: event.ParkApproval, CallIDs: []string{"b"}}, decides("b")}, nil, false},
		"two decisions":                        {[]event.Data{asks("a"), asks("b"), forApproval, decides("b"), decides("a")}, nil, true},
		"a decision, and a message":            {[]event.Data{asks("a"), forApproval, said}, nil, false},
		"a decision in the inbox":              {[]event.Data{asks("a"), forApproval}, []journal.Command{{Kind: journal.Reject, CallID: "a"}}, true},
		"a decision about what was asked anew": {[]event.Data{
			asks("a"), forApproval, decides("a"), event.RunResumed{}, event.PolicyDecision{CallID: "a"}, asks("a"), forApproval,
		}, nil, false},
		"a decision about what asks no more": {[]event.Data{
			asks("a"), asks("b"), forApproval, event.RunResumed{}, event.PolicyDecision{CallID: "a"}, event.ToolResult{CallID: "a"}, forApproval, decides("b"),
		}, nil, true},
		"a decision about what was asked before another stop": {[]event.Data{asks("a"), forInput, said, event.RunResumed{}, forApproval}, nil, false},
		"a decision of the cycle before":                      {[]event.Data{asks("a"), event.CycleStart{Cycle: 2}, asks("b"), forApproval, decides("b")}, nil, true},
		"a decision about what no rule asks about any more, and a limit": {[]event.Data{
			asks("a"), event.RunParked{Reason: event.ParkApproval, CallIDs: []string{"a"}}, event.RunResumed{}, event.PolicyDecision{CallID: "a"}, atLimit, raised,
		}, nil, true},
		"nothing but to be resumed":  {[]event.Data{interrupted}, nil, false},
		"nothing, and got a message": {[]event.Data{interrupted, said}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			store, controller := shelf()
			happens(t, journaltest.Start(t, store, "run"), append([]event.Data{event.CycleStart{Cycle: 1}}, tt.events...)...)
			for _, c := range tt.inbox {
				c.Run = "run"
				if _, err := store.Send(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			if got := answered(t, store, controller, "run"); got != tt.answered {
				t.Errorf("answered: %t", got)
			}
		})
	}
}

// A run that only needs to be resumed must not be listed as waiting.
func TestParkedRunExpiresWhenAllItsQuestionsAreSettledOrLate(t *testing.T) {
	named := event.RunParked{Reason: event.ParkApproval, CallIDs: []string{"a"}}
	tooLate := event.ToolApprovalResolved{CallID: "a", Kind: event.ApprovalExpired}
	for name, tt := range map[string]struct {
		events []event.Data
		// sent is when a decision was sent that is not taken, 0 for none.
		sent    int64
		expired bool
	}{
		"nobody decided":                     {[]event.Data{asked("a"), named}, 0, true},
		"there is time":                      {[]event.Data{asks("a"), named}, 0, false},
		"there is time for another one":      {[]event.Data{asks("b"), asked("a"), named}, 0, false},
		"another one was decided":            {[]event.Data{asks("b"), asked("a"), named, decides("b")}, 0, true},
		"it was decided":                     {[]event.Data{asked("a"), named, decides("a")}, 0, false},
		"somebody came too late":             {[]event.Data{asked("a"), named, tooLate}, 0, true},
		"the one of a stop before":           {[]event.Data{asked("a"), named, event.RunResumed{}, tooLate, event.ToolResult{CallID: "a"}, asks("b"), forApproval, decides("b")}, 0, false},
		"a limit that nobody raised as well": {[]event.Data{asked("a"), atLimit}, 0, false},
		"one was sent in time":               {[]event.Data{asked("a"), named}, -1, false},
		"one was sent too late":              {[]event.Data{asked("a"), named}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			store, controller := shelf()
			happens(t, journaltest.Start(t, store, "run"), append([]event.Data{event.CycleStart{Cycle: 1}}, tt.events...)...)
			if tt.sent != 0 {
				if _, err := store.Send(t.Context(), journal.Command{Run: "run", Kind: journal.Reject, CallID: "a", At: time.Unix(tt.sent, 0)}); err != nil {
					t.Fatal(err)
				}
			}
			if got := stands(t, store, controller, "run"); got.Expired != tt.expired || got.Expired && got.Answered {
				t.Errorf("expired: %t, answered: %t", got.Expired, got.Answered)
			}
		})
	}
}

func TestARunWhoseChildrenAskIsAnsweredOnceTheyAre(t *testing.T) {
	childsLimit := event.RunParked{Reason: event.ParkInput, ParentLimit: "max_cycles"}
	childsLimitOf81 := event.RunParked{Reason: event.ParkInput, ParentLimit: "max_cycles", AtLeast: 81}
	for name, tt := range map[string]struct {
		parent, child      []event.Data
		answered, childToo bool
	}{
		"a decision that nobody made":   {[]event.Data{forApproval}, []event.Data{asks("a"), forApproval}, false, false},
		"a decision":                    {[]event.Data{forApproval}, []event.Data{asks("a"), forApproval, decides("a")}, true, true},
		"a decision about both":         {[]event.Data{asks("p"), forApproval, decides("p")}, []event.Data{asks("a"), forApproval, decides("a")}, true, true},
		"a decision about its own call": {[]event.Data{asks("p"), forApproval, decides("p")}, []event.Data{asks("a"), forApproval}, false, false},
		"a decision of one that was interrupted": {
			[]event.Data{forApproval}, []event.Data{asks("a"), interrupted}, false, false,
		},
		"the child's limit, not raised":                                    {[]event.Data{forInput}, []event.Data{atLimit}, false, false},
		"the child's limit":                                                {[]event.Data{forInput}, []event.Data{atLimit, raised}, true, true},
		"the child's limit, raised in the parent":                          {[]event.Data{forInput, raised}, []event.Data{atLimit}, false, false},
		"the parent's limit, not raised":                                   {[]event.Data{atLimit}, []event.Data{childsLimit}, false, false},
		"the parent's limit":                                               {[]event.Data{atLimit, raised}, []event.Data{childsLimit}, true, true},
		"the parent's limit, raised too little":                            {[]event.Data{atLimit, raised}, []event.Data{childsLimitOf81}, false, false},
		"the parent's limit, raised in the child":                          {[]event.Data{atLimit}, []event.Data{childsLimit, raised}, false, false},
		"the parent's limit, not raised, and a child that was interrupted": {[]event.Data{atLimit}, []event.Data{interrupted}, false, false},
		"the parent's limit, raised before": {
			[]event.Data{raised, forApproval}, []event.Data{childsLimit}, false, false,
		},
		"a decision of one that is not heard any more": {
			[]event.Data{event.ChildFinished{Child: "child"}, asks("p"), forApproval, decides("p")}, []event.Data{asks("a"), forApproval}, true, false,
		},
		"a child that only has to be resumed": {[]event.Data{forApproval}, []event.Data{interrupted}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			store, controller := shelf()
			parent := append([]event.Data{event.CycleStart{Cycle: 1}, event.ChildStarted{Child: "child"}}, tt.parent...)
			happens(t, journaltest.Start(t, store, "parent"), parent...)
			child := &journaltest.Driver{Store: store}
			child.Lease = journal.Lease{Run: "child", Owner: "owner"}
			lease, _, err := store.Create(t.Context(), journal.Run{ID: "child", Parent: "parent", Kind: "Agent"}, child.Batch(t))
			if err != nil {
				t.Fatal(err)
			}
			child.Lease = lease
			happens(t, child, tt.child...)
			if got := answered(t, store, controller, "parent"); got != tt.answered {
				t.Errorf("the parent is answered: %t", got)
			}
			if got := answered(t, store, controller, "child"); got != tt.childToo {
				t.Errorf("the child is answered: %t", got)
			}
		})
	}
}

// A run that parked at a limit above it for its children continues when these have
// ended; one whose own call was refused does not.
func TestARunDoesNotWaitForTheLimitOfChildrenThatHaveEnded(t *testing.T) {
	limit := event.RunParked{Reason: event.ParkInput, ParentLimit: "usd_per_run", LimitRun: "root", AtLeast: 2}
	ended := []event.Data{limit, event.RunCompleted{}}
	refused := event.BudgetRefused{Setting: "usd_per_run", Run: "root", Ask: true}
	for name, tt := range map[string]struct {
		parent, first, second []event.Data
		answered              bool
	}{
		"both ended":               {[]event.Data{limit}, ended, ended, true},
		"one waits":                {[]event.Data{limit}, ended, []event.Data{limit}, false},
		"its own call was refused": {[]event.Data{refused, limit}, ended, ended, false},
		"its own call was refused before it was resumed": {[]event.Data{refused, limit, event.RunResumed{}, limit}, ended, ended, true},
	} {
		t.Run(name, func(t *testing.T) {
			store, controller := shelf()
			happens(t, journaltest.Start(t, store, "root"), event.CycleStart{Cycle: 1})
			start := func(id, parent string, events ...event.Data) {
				d := &journaltest.Driver{Store: store}
				d.Lease = journal.Lease{Run: id, Owner: "owner"}
				lease, _, err := store.Create(t.Context(), journal.Run{ID: id, Parent: parent, Kind: "Agent"}, d.Batch(t))
				if err != nil {
					t.Fatal(err)
				}
				d.Lease = lease
				happens(t, d, events...)
			}
			started := []event.Data{event.CycleStart{Cycle: 1}, event.ChildStarted{Child: "first"}, event.ChildStarted{Child: "second"}}
			start("parent", "root", append(started, tt.parent...)...)
			start("first", "parent", tt.first...)
			start("second", "parent", tt.second...)
			if got := answered(t, store, controller, "parent"); got != tt.answered {
				t.Errorf("the parent is answered: %t", got)
			}
		})
	}
}

func TestARunThatIsDrivenIsPausingFromTheRequestUntilItParks(t *testing.T) {
	pause := event.PauseRequested{By: "ann"}
	for name, tt := range map[string]struct {
		events  []event.Data
		inbox   []journal.Command
		left    bool
		pausing bool
	}{
		"nobody asked":                                       {[]event.Data{asks("a")}, nil, false, false},
		"while a call waits for a decision":                  {[]event.Data{asks("a"), pause}, nil, false, true},
		"with events behind it":                              {[]event.Data{pause, event.ToolCall{}, asks("a")}, nil, false, true},
		"a command that nobody has read":                     {[]event.Data{asks("a")}, []journal.Command{{Kind: journal.Pause}}, false, true},
		"another command":                                    {[]event.Data{asks("a")}, []journal.Command{{Kind: journal.Input, Text: "x"}}, false, false},
		"one that parked":                                    {[]event.Data{pause, event.RunParked{Reason: event.ParkPaused}}, nil, false, false},
		"one that somebody has gone on with":                 {[]event.Data{pause, event.RunResumed{}, asks("a")}, nil, false, false},
		"one whose process has gone, which goes on unpaused": {[]event.Data{asks("a"), pause}, nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			store, controller := shelf()
			d := journaltest.Start(t, store, "run")
			happens(t, d, append([]event.Data{event.CycleStart{Cycle: 1}}, tt.events...)...)
			for _, c := range tt.inbox {
				c.Run = "run"
				if _, err := store.Send(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			row, err := store.Run(t.Context(), "run")
			if err != nil {
				t.Fatal(err)
			}
			row.Expiry = time.Now().Add(time.Minute)
			if tt.left {
				row.Expiry = time.Now().Add(-time.Minute)
			}
			if s, err := controller.RunStatus(t.Context(), row); err != nil || s.Pausing != tt.pausing {
				t.Errorf("pausing %t, %v", s.Pausing, err)
			}
		})
	}
}

// A list computes it for every run that it shows, however long the runs are.
func TestAListReadsNoMoreOfARunThanItsLastCycle(t *testing.T) {
	for name, tt := range map[string]struct {
		runs, cycles int
		end          []event.Data
		// most bounds the records that are read of one run.
		most int
	}{
		"ended runs":                       {1000, 2, nil, 0},
		"runs that wait for a decision":    {200, 30, []event.Data{asks("a"), event.RunParked{Reason: event.ParkApproval, CallIDs: []string{"a"}}}, 5},
		"runs that were decided about":     {200, 30, []event.Data{asks("a"), forApproval, decides("a")}, 21},
		"runs that wait for a limit":       {200, 30, []event.Data{atLimit}, 1},
		"runs of which a limit was raised": {200, 30, []event.Data{atLimit, raised}, 21},
	} {
		t.Run(name, func(t *testing.T) {
			store, controller := shelf()
			for i := range tt.runs {
				d := journaltest.Start(t, store, fmt.Sprint("run", i))
				var cycles []event.Data
				for n := range tt.cycles {
					cycles = append(cycles, event.CycleStart{Cycle: n + 1}, event.ModelResponse{}, event.ToolCall{}, event.ToolResult{})
				}
				d.Append(t, cycles...)
				if tt.most == 0 {
					d.End(t)
					continue
				}
				happens(t, d, tt.end...)
			}
			rows, err := store.Runs(t.Context(), journal.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			store.records = 0
			all, err := controller.RunStatuses(t.Context(), rows)
			if err != nil || len(all) != tt.runs {
				t.Fatal(len(all), err)
			}
			if store.records > tt.runs*tt.most {
				t.Errorf("%d records were read of %d runs", store.records, tt.runs)
			}
			if all[0].Answered != (tt.most > 5) {
				t.Errorf("answered: %t", all[0].Answered)
			}
		})
	}
}

// loses is a store that has lost the events of a run but not its row.
type loses struct{ journal.Store }

func (loses) Records(context.Context, string, int64, int) ([]journal.Record, error) { return nil, nil }

func TestARunWhoseEventsAreLostDoesNotReadAsAnswered(t *testing.T) {
	store, _ := shelf()
	happens(t, journaltest.Start(t, store, "run"), event.CycleStart{Cycle: 1}, asks("a"), forApproval)
	damaged := loses{store}
	controller := control.New(damaged, engine.New(damaged, versions.Make, engine.Options{}))
	if answered(t, store, controller, "run") {
		t.Error("answered")
	}
	if _, err := controller.Pending(t.Context(), "run"); !errors.As(err, new(*journal.CorruptError)) {
		t.Errorf("what it waits for: %v", err)
	}
}

// The inboxes of other runs may be large.
func TestTheStandingOfOneRunReadsNoCommandOfAnother(t *testing.T) {
	store, controller := shelf()
	for _, run := range []string{"run", "other"} {
		happens(t, journaltest.Start(t, store, run), event.CycleStart{Cycle: 1}, forInput)
		if _, err := store.Send(t.Context(), journal.Command{Run: run, Kind: journal.Input}); err != nil {
			t.Fatal(err)
		}
	}
	if !answered(t, store, controller, "run") || store.commands != 1 {
		t.Errorf("%d commands were read", store.commands)
	}
}

func TestADamagedCommandHidesNoRunAndChangesNoOther(t *testing.T) {
	store, controller := shelf()
	for run, kind := range map[string]journal.CommandKind{"a": journal.Input, "b": "", "c": journal.Input} {
		happens(t, journaltest.Start(t, store, run), event.CycleStart{Cycle: 1}, forInput)
		if _, err := store.Send(t.Context(), journal.Command{Run: run, Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := store.Runs(t.Context(), journal.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := controller.RunStatuses(t.Context(), rows)
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	for _, s := range all {
		if s.Answered != (s.ID != "b") {
			t.Errorf("run %s is answered: %t", s.ID, s.Answered)
		}
	}
}
