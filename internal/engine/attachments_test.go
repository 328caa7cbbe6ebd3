package engine_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/result"
)

// onDisk is a rig on a journal in a file, opened by a process of its own as far
// as the journal can tell.
func onDisk(t *testing.T, path string) *rig {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return newRig(t, s)
}

// image is n bytes that are unlike each other.
func image(n int) llm.Media {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	return llm.Media{MediaType: "image/png", Name: "photo.png", Data: data}
}

// encoded is a scripted model that encodes its requests for a real wire and
// remembers them.
type encoded struct {
	*scripted.Model
	wire *anthropic.Model

	mu     sync.Mutex
	bodies []string
}

func encoding(turns ...scripted.Turn) *encoded {
	return &encoded{Model: scripted.New("test", turns...), wire: anthropic.New(anthropic.Options{APIKey: "none"})}
}

func (e *encoded) Encode(req *llm.Request) (*llm.Encoded, error) {
	enc, err := e.wire.Encode(req)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bodies = append(e.bodies, string(bytes.Join(enc.Segments, nil)))
	return enc, nil
}

// startWith begins a run whose task has files.
func (r *rig) startWith(ctx context.Context, files ...llm.Media) (*engine.Run, error) {
	input := llm.UserText("look")
	for _, f := range files {
		input.Parts = append(input.Parts, f)
	}
	started, err := agent.Start(r.cfg.WithDefaults(), input)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.Start(ctx, started, r.env)
}

func TestARequestHasTheSameBytesBeforeAndAfterARestart(t *testing.T) {
	photo, shot := image(100_000), image(50_000)
	shot.Data[0]++
	turns := []scripted.Turn{
		{ToolCalls: calls("look", "{}")}, {ToolCalls: calls("gate", "{}")}, {ToolCalls: calls("look", "{}")}, {Text: "ok"},
	}
	equip := func(r *rig, m llm.Model) *rig {
		return r.tools(printing("look", tool.Result{Output: lines(1000), Media: []llm.Media{shot}}, nil),
			printing("gate", tool.Result{Output: "open"}, nil)).gate("gate").model(m)
	}
	begin := func(r *rig) *engine.Run {
		r.cfg.Limits.MaxResultChars = 500
		run, err := r.startWith(t.Context(), photo)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	path, parted := filepath.Join(t.TempDir(), "journal.db"), encoding(turns...)
	first := begin(equip(onDisk(t, path), parted))
	parkedAs(t, first, event.ParkApproval)
	other := equip(onDisk(t, path), parted)
	other.send(journal.Command{Run: first.ID, Kind: journal.Approve, CallID: first.ID + "-2-1"})
	outcome(t, other.resume(first.ID))

	whole := encoding(turns...)
	undisturbed := equip(newRig(t), whole).asker(func(context.Context, event.Question) (event.Resolution, error) {
		return event.Resolution{Kind: event.ApprovalApproved, Approver: "test"}, nil
	})
	second := begin(undisturbed)
	outcome(t, second)

	if len(parted.bodies) != 4 || len(whole.bodies) != 4 || len(parted.bodies[3]) < 250_000 {
		t.Fatalf("%d and %d requests", len(parted.bodies), len(whole.bodies))
	}
	for i := range whole.bodies {
		got := strings.ReplaceAll(parted.bodies[i], first.ID, "run")
		want := strings.ReplaceAll(whole.bodies[i], second.ID, "run")
		if got != want {
			t.Errorf("request %d differs: %d bytes, want %d", i+1, len(got), len(want))
		}
	}
}

func TestAnEventHoldsALargeAttachmentByReferenceOnly(t *testing.T) {
	photo, icon := image(32<<10+1), image(32<<10)
	r := newRig(t).turns(scripted.Turn{Text: "ok"})
	run, err := r.startWith(t.Context(), photo, icon)
	if err != nil {
		t.Fatal(err)
	}
	live := drain(t, run, false)
	first := r.whole(run.ID)[0].Data.(event.RunStarted).Input.Parts
	large, small := first[1].(llm.Media), first[2].(llm.Media)
	if large.Data != nil || large.Blob != journal.Digest(photo.Data) || large.Name != "photo.png" {
		t.Errorf("the large one is stored as %d bytes and %q", len(large.Data), large.Blob)
	}
	if !bytes.Equal(small.Data, icon.Data) || small.Blob != "" {
		t.Errorf("the small one is stored as %d bytes and %q", len(small.Data), small.Blob)
	}
	shown, err := live[0].MarshalJSON()
	if err != nil || len(shown) > 100_000-32<<10 || !strings.HasSuffix(r.journalText(run.ID)[:len(shown)-len(`"pos":1,`)], string(shown[len(`{"pos":1,`):])) {
		t.Errorf("what is published (%d bytes) is not what is stored: %v", len(shown), err)
	}
	if photo.Blob != "" {
		t.Error("the caller's attachment was changed")
	}
}

// parkedWithoutItsPhoto is a run whose store lost the photo of its task while
// the run was parked.
func parkedWithoutItsPhoto(t *testing.T) (*rig, *forgetful, *engine.Run) {
	t.Helper()
	store := &forgetful{Store: newRig(t).store}
	r := newRig(t, store).tools(toolFunc("gate", func(context.Context) (string, error) { return "", nil })).gate("gate").
		turns(scripted.Turn{ToolCalls: calls("gate", "{}")}, scripted.Turn{Text: "ok"})
	photo := image(50_000)
	run, err := r.startWith(t.Context(), photo)
	if err != nil {
		t.Fatal(err)
	}
	parkedAs(t, run, event.ParkApproval)
	store.lost = journal.Digest(photo.Data)
	return r, store, run
}

func TestAMissingAttachmentRefusesTheResumeAndLosesNothing(t *testing.T) {
	r, store, run := parkedWithoutItsPhoto(t)
	build := func(event.RunStarted) (perform.Env, error) { return r.env, nil }
	_, err := r.Resume(t.Context(), run.ID, build)
	mustBe(t, err, journal.ErrNotFound)
	for _, want := range []string{"event 1", `"photo.png"`, store.lost, "missing from the journal"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	store.lost = ""
	r.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1"})
	if o := outcome(t, r.resume(run.ID)); !o.OK {
		t.Errorf("outcome %+v", o)
	}
}

// forgetful is a store that has lost one blob.
type forgetful struct {
	journal.Store
	lost string
}

func (f *forgetful) Blob(ctx context.Context, digest string) ([]byte, error) {
	if digest == f.lost {
		return nil, journal.ErrNotFound
	}
	return f.Store.Blob(ctx, digest)
}

func TestARunWithALostAttachmentCanStillBeCancelled(t *testing.T) {
	r, _, run := parkedWithoutItsPhoto(t)
	r.send(journal.Command{Run: run.ID, Kind: journal.Cancel})
	if m, err := r.Inspect(t.Context(), run.ID); err != nil || m.State().Phase != machine.Ended {
		t.Errorf("state %+v (%v)", m, err)
	}
}

func TestAnAttachmentCannotReferToWhatAnotherRunKeeps(t *testing.T) {
	r := newRig(t).turns(scripted.Turn{Text: "ok"})
	photo := image(50_000)
	run, err := r.startWith(t.Context(), photo)
	if err != nil {
		t.Fatal(err)
	}
	wait(t, run)
	_, err = r.startWith(t.Context(), llm.Media{MediaType: "image/png", Name: "stolen.png", Blob: journal.Digest(photo.Data)})
	if err == nil || !strings.Contains(err.Error(), `attachment "stolen.png": it has no content`) {
		t.Errorf("error %v", err)
	}
}

// continued begins a run from an ended one.
func (r *rig) continued(from string) (*engine.Run, error) {
	r.t.Helper()
	m, err := r.Inspect(r.t.Context(), from)
	if err != nil {
		r.t.Fatal(err)
	}
	conversation, err := m.(*agent.Machine).Conversation()
	if err != nil {
		r.t.Fatal(err)
	}
	started, err := agent.Start(r.cfg.WithDefaults(), llm.UserText("go on"))
	if err != nil {
		r.t.Fatal(err)
	}
	started.From = &event.ContinuedFrom{Run: from, Seq: 1, History: conversation}
	return r.Start(r.t.Context(), started, r.env)
}

func TestContinuedRunKeepsAttachmentsOfDeletedRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	whole, photo := lines(3000), image(50_000)
	handle := journal.Digest([]byte(whole))
	print := printing("print", tool.Result{Output: whole}, nil)
	print.Labels = &event.Labels{Untrusted: true, Private: true}
	first := onDisk(t, path).tools(print, result.New()).turns(scripted.Turn{ToolCalls: calls("print", "{}")}, scripted.Turn{Text: "ok"})
	first.cfg.Limits.MaxResultChars = 1000
	run, err := first.startWith(t.Context(), photo)
	if err != nil {
		t.Fatal(err)
	}
	wait(t, run)

	// A chain of two: the third run reads what the first was given.
	ids := []string{run.ID}
	for range 2 {
		model := encoding(scripted.Turn{ToolCalls: []scripted.Call{reads(handle, 666, 50)}}, scripted.Turn{Text: "ok"})
		next := onDisk(t, path).tools(print, result.New()).model(model)
		next.cfg.Limits.MaxResultChars = 1000
		run, err := next.continued(ids[len(ids)-1])
		if err != nil {
			t.Fatal(err)
		}
		if err := next.store.Delete(t.Context(), ids[len(ids)-1]); err != nil {
			t.Fatal(err)
		}
		drain(t, run, false)
		ids = append(ids, run.ID)
		got := results(next.whole(run.ID))
		if len(got) != 1 || got[0].IsError || !got[0].Untrusted || !got[0].Private || !strings.HasSuffix(got[0].Output, string([]rune(whole)[666:716])) {
			t.Errorf("results %+v", got)
		}
		if len(model.bodies) != 2 || len(model.bodies[0]) < 60_000 {
			t.Errorf("the picture is not in the %d requests", len(model.bodies))
		}
		if v, err := journal.Verify(t.Context(), next.store, run.ID, ""); err != nil || v.Blobs != 2 {
			t.Errorf("verify: %+v, %v", v, err)
		}
	}
}

func TestARunCannotContinueFromOneWhoseContentIsLost(t *testing.T) {
	store := &forgetful{Store: newRig(t).store}
	r := newRig(t, store).turns(scripted.Turn{Text: "ok"})
	photo := image(50_000)
	run, err := r.startWith(t.Context(), photo)
	if err != nil {
		t.Fatal(err)
	}
	wait(t, run)
	store.lost = journal.Digest(photo.Data)
	if _, err := r.continued(run.ID); !errors.Is(err, journal.ErrNotFound) || !strings.Contains(err.Error(), store.lost) {
		t.Errorf("error %v", err)
	}
}

func TestAForkReadsWhatTheRunThatItSharesKept(t *testing.T) {
	whole, photo := lines(3000), image(50_000)
	r := newRig(t).tools(printing("print", tool.Result{Output: whole}, nil), result.New()).
		turns(scripted.Turn{ToolCalls: calls("print", "{}")}, scripted.Turn{Text: "ok"})
	r.cfg.Limits.MaxResultChars = 1000
	run, err := r.startWith(t.Context(), photo)
	if err != nil {
		t.Fatal(err)
	}
	wait(t, run)
	var seq int64
	for _, e := range r.journal(run.ID) {
		if _, ok := e.Data.(event.ToolResults); ok {
			seq = e.Seq
		}
	}
	id, _ := r.fork(run.ID, seq, event.RunForked{})
	model := encoding(scripted.Turn{}, scripted.Turn{ToolCalls: []scripted.Call{reads(journal.Digest([]byte(whole)), 666, 50)}}, scripted.Turn{Text: "ok"})
	wait(t, r.model(model).resume(id))
	got := results(r.journal(id))
	if last := got[len(got)-1]; len(got) != 2 || last.IsError || !strings.HasSuffix(last.Output, string([]rune(whole)[666:716])) {
		t.Errorf("results %+v", got)
	}
	if len(model.bodies) != 2 || len(model.bodies[0]) < 60_000 {
		t.Errorf("the picture is not in the %d requests", len(model.bodies))
	}
	if v, err := journal.Verify(t.Context(), r.store, id, ""); err != nil || v.Blobs != 2 {
		t.Errorf("verify: %+v, %v", v, err)
	}
}
