package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// office is a controller with one run that has parked to ask about one call.
type office struct {
	*control.Controller
	t      *testing.T
	store  journal.Store
	engine *engine.Engine
	run    string
}

const agentFile = `identity: {name: writer}
model_policy: {primary: scripted/turns.yaml}
tools: {allow: [fs.write], approvals: {fs.write: always}, secrets: {door: {env: DOOR_WORD, tools: [fs.write]}}}
`

const turns = `- tool_calls: [{name: fs.write, arguments: {path: a.txt, content: x}}]
- text: done
`

func parked(t *testing.T) office {
	t.Helper()
	return parkedAs(t, agentFile, func(*event.RunStarted) {})
}

// parkedAs is parked with another file and another first event.
func parkedAs(t *testing.T, file string, pin func(*event.RunStarted)) office {
	t.Helper()
	t.Setenv("DOOR_WORD", "open-sesame-4711")
	dir := t.TempDir()
	for name, text := range map[string]string{"agent.yaml": file, "turns.yaml": turns} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := memory.New(nil)
	e := engine.New(store, versions.Make, engine.Options{})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	agent, err := kinds.Read(filepath.Join(dir, "agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	started, env, err := agent.Launch("go", launch.Options{Flags: launch.Flags{Workspace: dir}})
	if err != nil {
		t.Fatal(err)
	}
	pin(&started)
	run, err := e.Start(t.Context(), started, env)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return office{control.New(store, e), t, store, e, run.ID}
}

func (o office) row() journal.Run {
	o.t.Helper()
	row, err := o.store.Run(o.t.Context(), o.run)
	if err != nil {
		o.t.Fatal(err)
	}
	return row
}

func (o office) pending() control.Pending {
	o.t.Helper()
	calls, err := o.Pending(o.t.Context(), o.run)
	if err != nil || len(calls) != 1 {
		o.t.Fatalf("%d calls wait: %v", len(calls), err)
	}
	return calls[0]
}

// journal returns the stored form of the run's journal.
func (o office) journal() string {
	o.t.Helper()
	records, err := o.store.Records(o.t.Context(), o.run, 0, 0)
	if err != nil {
		o.t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range records {
		b.Write(r.Body)
	}
	return b.String()
}

// rows: HAR-66
func TestADecisionReachesARunThatNobodyDrives(t *testing.T) {
	for kind, want := range map[journal.CommandKind]event.ApprovalKind{journal.Approve: event.ApprovalApproved, journal.Reject: event.ApprovalRejected} {
		o := parked(t)
		call := o.pending().ID
		got, err := o.Send(t.Context(), o.row(), journal.Command{Kind: kind, CallID: call, By: "ann", Text: "because"})
		if err != nil || !got.Taken || got.Live || got.Run != o.run || got.CallID != call || got.Command != control.Verb(kind) {
			t.Fatalf("%s: %+v, %v", kind, got, err)
		}
		made, err := o.engine.Decisions(t.Context(), o.run, call)
		if err != nil || len(made) != 1 || made[0].Resolution().Kind != want || made[0].Resolution().Approver != "ann" || made[0].Resolution().Reason != "because" || made[0].Resolution().Command != got.ID {
			t.Errorf("%s: %+v, %v", kind, made, err)
		}
		// A second decision is refused.
		if _, err := o.Send(t.Context(), o.row(), journal.Command{Kind: journal.Approve, CallID: call, By: "bob"}); !errors.Is(err, engine.ErrNotPending) {
			t.Errorf("after %s a second decision gives %v", kind, err)
		}
		if calls, err := o.Pending(t.Context(), o.run); err != nil || len(calls) != 0 {
			t.Errorf("after %s there wait %v, %v", kind, calls, err)
		}
	}
}

func TestADecisionAboutNothingIsRefused(t *testing.T) {
	o := parked(t)
	if _, err := o.Send(t.Context(), o.row(), journal.Command{Kind: journal.Approve, CallID: "another", By: "ann"}); !errors.Is(err, engine.ErrNotPending) {
		t.Errorf("another call: %v", err)
	}
	if _, err := o.Send(t.Context(), o.row(), journal.Command{Kind: journal.Cancel, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Send(t.Context(), o.row(), journal.Command{Kind: journal.Input, Text: "more", By: "ann"}); !errors.Is(err, journal.ErrEnded) {
		t.Errorf("an ended run takes a message: %v", err)
	}
}

// No process drives a parked run, so only the controller knows its secrets.
func TestWhatAParkedRunIsToldIsLookedThroughForItsSecrets(t *testing.T) {
	o := parked(t)
	args := json.RawMessage(`{"path":"open-sesame-4711.txt","content":"x"}`)
	if _, err := o.Send(t.Context(), o.row(), journal.Command{Kind: journal.Input, Text: "the word is open-sesame-4711", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Send(t.Context(), o.row(), journal.Command{Kind: journal.Approve, CallID: o.pending().ID, Args: args, Text: "open-sesame-4711", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if text := o.journal(); strings.Contains(text, "sesame") || !strings.Contains(text, "the word is") {
		t.Errorf("the journal holds a secret, or not what was said:\n%s", text)
	}
}

// rows: HAR-67
func TestEditedArgumentsAreValidatedBeforeTheDecision(t *testing.T) {
	o := parked(t)
	p := o.pending()
	for args, want := range map[string]string{
		`{"path":"b.txt","content":"y"}`: "",
		`{"path":"b.txt"}`:               "content",
		`{"path":7,"content":"y"}`:       "path",
		`{"paths":"b","content":"y"}`:    "paths",
		`[1]`:                            "no JSON object",
		`null`:                           "no JSON object",
		`{`:                              "no JSON object",
	} {
		err := o.CheckArgs(t.Context(), p, json.RawMessage(args))
		if wrong, ok := errors.AsType[*control.ArgsError](err); ok != (want != "") || ok && !strings.Contains(wrong.Message, want) || !ok && err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	if o.pending().ID != p.ID {
		t.Error("the question is gone")
	}
}

func TestARunIsDrivenWhileItsLeaseHolds(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		run  journal.Run
		want bool
	}{
		"nobody's":  {journal.Run{Expiry: now.Add(time.Second)}, false},
		"held":      {journal.Run{Owner: "a", Expiry: now.Add(time.Second)}, true},
		"run out":   {journal.Run{Owner: "a", Expiry: now}, false},
		"long gone": {journal.Run{Owner: "a", Expiry: now.Add(-time.Hour)}, false},
	} {
		if got := control.Driven(c.run, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestARunThatIsParkedHasNoDriver(t *testing.T) {
	o := parked(t)
	if got, err := o.Drivers(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("it is driven by %v, %v", got, err)
	}
	if run, err := o.StartedByRun(t.Context()); err != nil || run != "" {
		t.Errorf("this test was started by %q, %v", run, err)
	}
}

// Copied text may contain a secret that cannot be searched for here.
func TestAParkedRunIsToldNothingThatMayHoldASecretUnseen(t *testing.T) {
	o := parked(t)
	t.Setenv("DOOR_WORD", "")
	before := o.journal()
	for name, c := range map[string]journal.Command{
		"a message": {Kind: journal.Input, Text: "the word is open-sesame-4711"},
		"a reason":  {Kind: journal.Reject, CallID: o.pending().ID, Text: "open-sesame-4711"},
		"arguments": {Kind: journal.Approve, CallID: o.pending().ID, Args: json.RawMessage(`{"path":"a","content":"open-sesame-4711"}`)},
	} {
		_, err := o.Send(t.Context(), o.row(), c)
		if missing, ok := errors.AsType[*engine.SecretsError](err); !ok || len(missing.Missing) != 1 || missing.Missing[0] != "door" || missing.Run != o.run {
			t.Errorf("%s: %v", name, err)
		}
	}
	if o.journal() != before {
		t.Error("the run was told something")
	}
	if got, err := o.Send(t.Context(), o.row(), journal.Command{Kind: journal.Reject, CallID: o.pending().ID, Text: "no", By: "ann"}); err != nil || !got.Taken {
		t.Errorf("a call cannot be declined: %+v, %v", got, err)
	}
}

// A run can be cancelled even if its secrets are unknown.
func TestARunIsCancelledWithoutAReasonThatMayHoldASecret(t *testing.T) {
	for name, pin := range map[string]func(*event.RunStarted){"a file": func(*event.RunStarted) {}, "a file that cannot be read": unreadable} {
		o := parkedAs(t, agentFile, pin)
		t.Setenv("DOOR_WORD", "")
		got, err := o.Send(t.Context(), o.row(), journal.Command{Kind: journal.Cancel, Text: "open-sesame-4711", By: "ann"})
		if err != nil || !got.Taken || got.State != journal.Ended || !strings.Contains(got.Unsaid, "door") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if text := o.journal(); strings.Contains(text, "sesame") || !strings.Contains(text, `{"by":"ann","principal":`) {
			t.Errorf("%s: the journal holds the reason, or not the cancel:\n%s", name, text)
		}
		t.Setenv("DOOR_WORD", "open-sesame-4711")
		o = parkedAs(t, agentFile, func(*event.RunStarted) {})
		if got, err := o.Send(t.Context(), o.row(), journal.Command{Kind: journal.Cancel, Text: "it took too long"}); err != nil || got.Unsaid != "" || !strings.Contains(o.journal(), "too long") {
			t.Errorf("%s: a reason that can be looked through is left out: %+v, %v", name, got, err)
		}
	}
}

// unreadable pins a file with keys of another version.
func unreadable(s *event.RunStarted) { s.Spec = "identity: [" }

func TestRunWithUnreadableFileCanBeStoppedAndDecided(t *testing.T) {
	for name, c := range map[string]journal.Command{
		"a pause":     {Kind: journal.Pause},
		"a cancel":    {Kind: journal.Cancel},
		"an approval": {Kind: journal.Approve},
		"a rejection": {Kind: journal.Reject, Text: "no"},
	} {
		o := parkedAs(t, agentFile, unreadable)
		if c.Kind == journal.Approve || c.Kind == journal.Reject {
			c.CallID = o.pending().ID
		}
		if got, err := o.Send(t.Context(), o.row(), c); err != nil || !got.Taken || (got.State == journal.Ended) != (c.Kind == journal.Cancel) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestTheJournalDecidesWhatARunIsToldWhoseFileCannotBeRead(t *testing.T) {
	told := map[string]journal.Command{
		"a message": {Kind: journal.Input, Text: "the word is open-sesame-4711"},
	}
	noSecrets := strings.Replace(agentFile, ", secrets: {door: {env: DOOR_WORD, tools: [fs.write]}}", "", 1)
	for name, c := range told {
		o := parkedAs(t, agentFile, unreadable)
		_, err := o.Send(t.Context(), o.row(), c)
		if missing, ok := errors.AsType[*engine.SecretsError](err); !ok || !slices.Equal(missing.Missing, []string{"door"}) {
			t.Errorf("%s to a run with a secret: %v", name, err)
		}
		if text := o.journal(); strings.Contains(text, "sesame") {
			t.Errorf("%s: the journal holds a secret:\n%s", name, text)
		}

		o = parkedAs(t, noSecrets, unreadable)
		if got, err := o.Send(t.Context(), o.row(), c); err != nil || !got.Taken {
			t.Errorf("%s to a run without one: %+v, %v", name, got, err)
		}
	}
}

func TestWhoeverDecidesSecondIsToldWhatWasDecided(t *testing.T) {
	o := parked(t)
	call, sent := o.pending().ID, time.Now()
	first, err := o.Send(t.Context(), o.row(), journal.Command{Kind: journal.Approve, CallID: call, By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		command journal.Command
		at      time.Time
		second  bool
	}{
		"the one that counts":      {journal.Command{Kind: journal.Approve, By: "ann", ID: first.ID}, sent, false},
		"an equal one":             {journal.Command{Kind: journal.Approve, By: "ann", ID: first.ID + 1}, sent, true},
		"one without a number":     {journal.Command{Kind: journal.Approve, By: "ann"}, sent, false},
		"another one's":            {journal.Command{Kind: journal.Approve, By: "bob"}, sent, true},
		"another decision":         {journal.Command{Kind: journal.Reject, By: "ann"}, sent, true},
		"the same, but later":      {journal.Command{Kind: journal.Approve, By: "ann"}, time.Now().Add(time.Minute), true},
		"a message, which is none": {journal.Command{Kind: journal.Input, By: "bob"}, sent, false},
	} {
		c.command.Run, c.command.CallID = o.run, call
		err := o.Overtaken(t.Context(), c.command, c.at)
		if d, ok := errors.AsType[*engine.DecidedError](err); ok != c.second || ok && d.Decision.Resolution().Approver != "ann" || !ok && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// byAnn sets a principal that may send the command.
func byAnn(c journal.Command) journal.Command {
	c.Principal = event.Principal{Name: "ann", Role: string(access.Editor), Proof: event.ProofUser}
	return c
}

// Send sends a command as a principal that may send it.
func (o office) Send(ctx context.Context, r journal.Run, c journal.Command) (control.Delivery, error) {
	return o.Controller.Send(ctx, r, byAnn(c))
}

// A command without a principal, or of one that may only read, reaches no run.
func TestWhoMayTellARunNothingTellsItNothing(t *testing.T) {
	o := parked(t)
	for _, role := range []access.Role{"", access.Anyone, access.Viewer, "owner"} {
		c := journal.Command{Kind: journal.Cancel, Principal: event.Principal{Name: "eve", Role: string(role)}}
		_, err := o.Controller.Send(t.Context(), o.row(), c)
		denied, ok := errors.AsType[*access.DeniedError](err)
		if !ok || denied.Name != "eve" || denied.Need != access.Editor {
			t.Errorf("%q: %v", role, err)
		}
	}
	if left, err := o.store.Inbox(t.Context(), o.run); err != nil || len(left) > 0 {
		t.Errorf("the run was told %v, %v", left, err)
	}
	if _, err := o.Send(t.Context(), o.row(), journal.Command{Kind: journal.Cancel}); err != nil {
		t.Error(err)
	}
}
