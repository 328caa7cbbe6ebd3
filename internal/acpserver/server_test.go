package acpserver_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

const writes = `
- text: I write it.
  tool_calls: [{name: fs.write, arguments: {path: a.txt, content: "one\n"}}]
- text: Written.
`

// written is what an editor is sent when the call of the script is allowed.
const written = "agent: I write it.\npending edit fs.write a.txt\ncompleted\nagent: Written."

func choose(option acp.PermissionOptionId) func(acp.RequestPermissionRequest) acp.PermissionOptionId {
	return func(acp.RequestPermissionRequest) acp.PermissionOptionId { return option }
}

func TestTwoMessagesAreOneSession(t *testing.T) {
	store, dir := memory.New(nil), t.TempDir()
	c := start(t, store, dir, writes)
	c.ask = choose("allow_once")
	id := c.begin()
	for _, message := range []string{"Write a.txt.", "Write it again."} {
		if stop := c.say(id, message); stop != acp.StopReasonEndTurn {
			t.Errorf("%s stops with %s", message, stop)
		}
		if got := c.questions(); got != "fs.write a.txt" {
			t.Errorf("%s: the editor was asked %q", message, got)
		}
		if diff := cmp.Diff(written, c.transcript()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", message, diff)
		}
	}
	chain, err := sessions.Chain(t.Context(), store, string(id))
	if err != nil || len(chain) != 2 {
		t.Fatalf("the session has %d runs: %v", len(chain), err)
	}
	c.quit()
	again := start(t, store, dir, writes)
	again.load(id)
	if diff := cmp.Diff("user: Write a.txt.\n"+written+"\nuser: Write it again.\n"+written, again.transcript()); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
	list, err := again.ListSessions(t.Context(), acp.ListSessionsRequest{Cwd: &dir})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != id || *list.Sessions[0].Title != "Write a.txt." {
		t.Errorf("the sessions are %+v: %v", list, err)
	}
}

func TestARejectedCallReachesTheModel(t *testing.T) {
	c := start(t, memory.New(nil), t.TempDir(), writes)
	c.ask = choose("reject_once")
	c.say(c.begin(), "Write a.txt.")
	if got := c.transcript(); !strings.Contains(got, "fs.write a.txt\nfailed\nagent: Written.") {
		t.Errorf("the editor was sent\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "a.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file was written: %v", err)
	}
}

// The steps of a workflow are the plan, live and when the session is loaded.
func TestTheStepsOfAWorkflowAreThePlan(t *testing.T) {
	store, dir := memory.New(nil), t.TempDir()
	for range 2 {
		c := start(t, store, dir, "- text: Done.\n")
		text := "name: two\nagents: {a: {description: Works., model: scripted/script.yaml, tools: []}}\n" +
			"steps: [{id: first, agent: a, instructions: Work.}, {id: second, agent: a, instructions: Work., dependsOn: [first]}]\n"
		if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if rows, err := store.Runs(t.Context(), journal.Filter{Roots: true}); err != nil || len(rows) == 0 {
			c.say(c.begin(), "Go.")
		} else {
			c.load(acp.SessionId(rows[0].ID))
		}
		for _, plan := range []string{"first pending, second pending", "first in_progress, second pending", "first completed, second in_progress", "first completed, second completed"} {
			c.awaitNoted("plan " + plan)
		}
		c.quit()
	}
}

// A rule that the user always allows or rejects holds for the rest of the run, for the
// messages after it, and in another process.
func TestAlwaysHoldsForTheSession(t *testing.T) {
	twice := "- tool_calls: [{name: fs.write, arguments: {path: docs/a.txt, content: x}}]\n- tool_calls: [{name: fs.write, arguments: {path: docs/b.txt, content: x}}]\n- text: Done.\n"
	for option, status := range map[acp.PermissionOptionId]string{"reject_always": "failed", "allow_always": "completed"} {
		store, dir := memory.New(nil), t.TempDir()
		c := start(t, store, dir, twice)
		c.ask = choose(option)
		id := c.begin()
		for i := range 3 {
			c.say(id, "Write.")
			if n := strings.Count(c.transcript(), status); n != 2 {
				t.Errorf("%s: of message %d, %d calls are %s", option, i, n, status)
			}
			if asked := c.questions(); (asked == "fs.write docs/a.txt") != (i == 0) || i > 0 && asked != "" {
				t.Errorf("%s: message %d asks %q", option, i, asked)
			}
			if i == 1 {
				c.quit()
				c = start(t, store, dir, twice)
				c.load(id)
				c.transcript()
			}
		}
		c.quit()
	}
}

// The editor's user closes the question. Another editor asks it again, twice.
func TestAnOpenQuestionIsAskedWhenTheSessionIsLoaded(t *testing.T) {
	store, dir := memory.New(nil), t.TempDir()
	c := start(t, store, dir, writes)
	id := c.begin()
	if stop := c.say(id, "Write a.txt."); stop != acp.StopReasonEndTurn {
		t.Errorf("the turn stops with %s", stop)
	}
	if got := c.transcript(); !strings.Contains(got, "The run waits for a decision") {
		t.Errorf("the editor was sent\n%s", got)
	}
	c.quit()
	for _, option := range []acp.PermissionOptionId{"", "allow_once"} {
		c := start(t, store, dir, writes)
		c.ask = choose(option)
		c.load(id)
		if option == "" {
			c.await("The run waits")
		} else {
			c.await("Written.")
			c.until(id, func(r journal.Run) bool { return r.State == journal.Ended })
		}
		if got := c.questions(); got != "fs.write a.txt" {
			t.Errorf("the editor was asked %q", got)
		}
		c.quit()
	}
}

// A question of the editor is decided by another surface: the first decision counts.
func TestAQuestionIsDecidedElsewhere(t *testing.T) {
	store := memory.New(nil)
	c := start(t, store, t.TempDir(), writes)
	id, decided := c.begin(), make(chan error, 1)
	c.ask = func(r acp.RequestPermissionRequest) acp.PermissionOptionId {
		row, err := store.Run(t.Context(), string(id))
		if err == nil {
			_, err = c.controller.Send(t.Context(), row, journal.Command{Kind: journal.Approve, Run: row.ID, CallID: string(r.ToolCall.ToolCallId), By: "bob", Principal: ann()})
		}
		decided <- err
		return "reject_once"
	}
	if stop := c.say(id, "Write a.txt."); stop != acp.StopReasonEndTurn {
		t.Errorf("the turn stops with %s", stop)
	}
	if err := <-decided; err != nil {
		t.Error(err)
	}
	if got := c.transcript(); !strings.HasSuffix(got, "completed\nagent: Written.") {
		t.Errorf("the editor was sent\n%s", got)
	}
}

func TestACancelParksTheRunAndTheNextMessageGoesOn(t *testing.T) {
	store := memory.New(nil)
	c := start(t, store, t.TempDir(), "- {text: Slow., delay: 10m}\n- text: Done.\n")
	id := c.begin()
	stopped := make(chan acp.StopReason, 1)
	go func() {
		r, err := c.Prompt(t.Context(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock("Think.")}})
		if err != nil {
			t.Error(err)
		}
		stopped <- r.StopReason
	}()
	c.until(id, func(r journal.Run) bool { return r.Seq >= 3 })
	if err := c.Cancel(t.Context(), acp.CancelNotification{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	if stop := <-stopped; stop != acp.StopReasonCancelled {
		t.Errorf("the turn stops with %s", stop)
	}
	row, err := store.Run(t.Context(), string(id))
	if err != nil || row.State != journal.Parked || row.Detail != string(event.ParkInterrupted) {
		t.Errorf("the run is %s (%s): %v", row.State, row.Detail, err)
	}
}

// An editor cancels a message at its question, as the protocol wants: the notification, and
// then the answer to the request. The next message asks again, and is cancelled, too.
func TestACancelAtAQuestionStopsTheTurn(t *testing.T) {
	c := start(t, memory.New(nil), t.TempDir(), writes)
	id := c.begin()
	c.ask = func(acp.RequestPermissionRequest) acp.PermissionOptionId {
		if err := c.Cancel(t.Context(), acp.CancelNotification{SessionId: id}); err != nil {
			t.Error(err)
		}
		return ""
	}
	for i := range 2 {
		if stop := c.say(id, "Write."); stop != acp.StopReasonCancelled {
			t.Errorf("message %d stops with %s", i, stop)
		}
	}
	if got := c.transcript(); strings.Contains(got, "waits for a decision") {
		t.Errorf("the editor was sent\n%s", got)
	}
}

func TestAFailureIsTheErrorOfTheRequest(t *testing.T) {
	c := start(t, memory.New(nil), t.TempDir(), "- {error: {class: auth, message: the key is wrong}}\n")
	_, err := c.Prompt(t.Context(), acp.PromptRequest{SessionId: c.begin(), Prompt: []acp.ContentBlock{acp.TextBlock("Go.")}})
	if refused, is := errors.AsType[*acp.RequestError](err); !is || !strings.Contains(refused.Message, "the key is wrong") {
		t.Errorf("the error is %v", err)
	}
}

func TestAnUnknownSessionIsNotFound(t *testing.T) {
	c := start(t, memory.New(nil), t.TempDir(), writes)
	_, err := c.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: "none", Cwd: c.dir, McpServers: []acp.McpServer{}})
	if refused, is := errors.AsType[*acp.RequestError](err); !is || refused.Code != -32002 {
		t.Errorf("the error is %v", err)
	}
}

// The editor's user agrees to the tree's AGENTS.md once, and not to a changed one.
func TestTheEditorsUserIsAskedToTrustATree(t *testing.T) {
	store, dir := memory.New(nil), t.TempDir()
	trusted := 0
	for i, text := range []string{"Be brief.", "Be brief.", "Be long."} {
		if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := start(t, store, dir, "- text: Hi.\n")
		c.ask = choose("allow_always")
		if i == 2 {
			c.ask = nil
		}
		id := c.begin()
		c.say(id, "Hello.")
		trusted += strings.Count(c.questions(), "Trust what ")
		started, err := drive.At[event.RunStarted](t.Context(), store, string(id), 0)
		if err != nil {
			t.Fatal(err)
		}
		if uses := len(started.Instructions) == 1; uses != (i < 2) {
			t.Errorf("session %d uses %v, with the warnings %q", i, started.Instructions, started.Warnings)
		}
		c.quit()
	}
	if trusted != 2 {
		t.Errorf("the user was asked %d times", trusted)
	}
}
