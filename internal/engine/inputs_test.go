package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// comparing is a message with a large and a small picture.
func comparing(run string) journal.Command {
	large, small := image(50_000), image(100)
	small.Name = "icon.png"
	return journal.Command{Run: run, Kind: journal.Input, Text: "compare these", Media: []llm.Media{large, small}}
}

// compares says that a request carries that message, once.
func compares(t *testing.T, body string) {
	t.Helper()
	if texts, files := strings.Count(body, "compare these"), strings.Count(body, `"media_type":"image/png"`); texts != 1 || files != 2 || len(body) < 60_000 {
		t.Errorf("a request of %d bytes has the text %d times and %d files", len(body), texts, files)
	}
}

// gatedOnDisk is a run on a file that waits for an approval.
func gatedOnDisk(t *testing.T, path string) (*rig, string) {
	t.Helper()
	r := onDisk(t, path).tools(printing("gate", tool.Result{Output: "open"}, nil)).gate("gate").turns(scripted.Turn{ToolCalls: calls("gate", "{}")})
	run := r.start(t.Context())
	parkedAs(t, run, event.ParkApproval)
	return r, run.ID
}

func TestFilesOfParkedRunAreReadByTheResumingProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	first, run := gatedOnDisk(t, path)
	message := comparing(run)
	first.send(message)
	events := first.journal(run)
	said, _ := events[len(events)-1].Data.(event.InputReceived)
	if len(said.Media) != 2 || said.Media[0].Blob != journal.Digest(message.Media[0].Data) || said.Media[0].Data != nil || len(said.Media[1].Data) != 100 {
		t.Fatalf("the event holds %+v", said)
	}
	if message.Media[0].Blob != "" {
		t.Error("the sender's attachment was changed")
	}

	model := encoding(scripted.Turn{}, scripted.Turn{Text: "ok"})
	other := onDisk(t, path).tools(printing("gate", tool.Result{Output: "open"}, nil)).gate("gate").model(model)
	other.send(journal.Command{Run: run, Kind: journal.Approve, CallID: run + "-1-1"})
	if o := outcome(t, other.resume(run)); !o.OK || len(model.bodies) != 1 {
		t.Fatalf("%d requests, outcome %+v", len(model.bodies), o)
	}
	compares(t, model.bodies[0])
	if v, err := journal.Verify(t.Context(), other.store, run, ""); err != nil || v.Blobs != 1 {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

func TestFilesThatComeBeforeAForkBelongToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, run, step := live(t)
		r.send(journal.Command{Run: run.ID, Kind: journal.Pause})
		synctest.Wait()
		close(step)
		parkedAs(t, run, event.ParkPaused)
		r.send(comparing(run.ID))
		events := r.journal(run.ID)
		id, b := r.fork(run.ID, events[len(events)-1].Seq, event.RunForked{})
		if unread := b.Machine.(*agent.Machine).Unread(); len(unread) != 1 || len(unread[0].Parts) != 3 {
			t.Errorf("unread: %+v", unread)
		}
		model := encoding(scripted.Turn{}, scripted.Turn{Text: "ok"})
		wait(t, r.model(model).resume(id))
		if len(model.bodies) != 1 {
			t.Fatalf("%d requests", len(model.bodies))
		}
		compares(t, model.bodies[0])
	})
}

func TestFilesReachALiveRunFromAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		model := encoding(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		r := newRig(t).tools(toolFunc("work", func(context.Context) (string, error) {
			<-step
			return "worked", nil
		})).model(model)
		run := r.start(t.Context())
		synctest.Wait()
		r.other().send(comparing(run.ID))
		synctest.Wait()
		if left, err := r.store.Inbox(t.Context(), ""); err != nil || len(left) != 0 {
			t.Errorf("the inbox still holds %d commands (%v)", len(left), err)
		}
		close(step)
		if o := outcome(t, run); !o.OK || len(model.bodies) != 2 {
			t.Fatalf("%d requests, outcome %+v", len(model.bodies), o)
		}
		compares(t, model.bodies[1])
	})
}

func TestSecretInFileIsRedactedBeforeTheInbox(t *testing.T) {
	for name, send := range map[string]func(r *rig, run *engine.Run, store journal.Store, c journal.Command) error{
		"of the process": func(r *rig, run *engine.Run, store journal.Store, c journal.Command) error {
			c.Run = run.ID
			return engine.New(store, newMachine, engine.Options{Secrets: secret.NewRedactor(secret.Secret{Name: "KEY", Value: password})}).Send(r.t.Context(), c)
		},
		"of the run": func(r *rig, run *engine.Run, _ journal.Store, c journal.Command) error {
			return run.Send(r.t.Context(), c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &remembering{Store: newRig(t).store}
			r := newRig(t, store).tools(printing("gate", tool.Result{Output: "open"}, nil)).gate("gate").turns(scripted.Turn{ToolCalls: calls("gate", "{}")})
			if name == "of the run" {
				r.env.Secrets = secret.NewRedactor(secret.Secret{Name: "KEY", Value: password})
			}
			run := r.start(t.Context())
			parkedAs(t, run, event.ParkApproval)
			note := llm.Media{MediaType: "text/plain", Name: "note.txt", Data: []byte("log in with " + password + strings.Repeat(" and so on", 10_000))}
			if err := send(r, run, store, journal.Command{Kind: journal.Input, Media: []llm.Media{note}}); err != nil {
				t.Fatal(err)
			}
			if len(store.sent) != 1 || strings.Contains(string(store.sent[0].Media[0].Data), "hunter2") {
				t.Error("the inbox was given the secret")
			}
			events := r.journal(run.ID)
			said := events[len(events)-1].Data.(event.InputReceived)
			content, err := store.Blob(t.Context(), said.Media[0].Blob)
			if err != nil || !strings.HasPrefix(string(content), "log in with ${secret:KEY} and") {
				t.Errorf("the store keeps %.60q: %v", content, err)
			}
			if !strings.Contains(string(note.Data), password) {
				t.Error("the sender's file was changed")
			}
		})
	}
}

// remembering remembers what is sent.
type remembering struct {
	journal.Store
	sent []journal.Command
}

func (s *remembering) Send(ctx context.Context, c journal.Command) (int64, error) {
	s.sent = append(s.sent, c)
	return s.Store.Send(ctx, c)
}

func TestAFileWithoutContentIsNotSent(t *testing.T) {
	r, run := gatedOnDisk(t, filepath.Join(t.TempDir(), "journal.db"))
	photo := image(50_000)
	err := r.Send(t.Context(), journal.Command{Run: run, Kind: journal.Input, Text: "look", Media: []llm.Media{
		{MediaType: "image/png", Name: "stolen.png", Blob: journal.Digest(photo.Data)},
	}})
	if err == nil || !strings.Contains(err.Error(), `the attachment "stolen.png" has no content`) {
		t.Errorf("error %v", err)
	}
	if left, err := r.store.Inbox(t.Context(), run); err != nil || len(left) != 0 {
		t.Errorf("the inbox holds %+v (%v)", left, err)
	}
}
