package control_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// payer returns a program's agent, whose only call needs an approval.
func payer(secrets ...pawl.Secret) pawl.Agent {
	return pawl.Agent{
		Model: pawl.Target{Name: "test/m", Client: scripted.New("test",
			scripted.Turn{ToolCalls: []scripted.Call{{Name: "pay", Arguments: []byte("{}")}}}, scripted.Turn{Text: "paid"})},
		Tools: []tool.Tool{pawl.Tool("pay", "Pays.", func(context.Context, struct {
			To string `json:"to,omitempty"`
		}) (string, error) {
			return "ok", nil
		})},
		Approvals: pawl.Approvals{Tools: []string{"pay"}, Mode: pawl.ApprovePark}, Secrets: secrets,
	}
}

// ledger is a journal in a file with a parked run of a program, and the controller of
// another process.
type ledger struct {
	t          *testing.T
	dir        string
	store      journal.Store
	controller *control.Controller
	run        string
}

func parkedProgram(t *testing.T, a pawl.Agent) *ledger {
	t.Helper()
	l := &ledger{t: t, dir: t.TempDir()}
	store, err := sqlite.Open(t.Context(), filepath.Join(l.dir, "journal.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(store, versions.Make, engine.Options{})
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	run, err := a.Start(t.Context(), "Pay.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := run.Wait(); err != nil || s.Status != pawl.StatusParked {
		t.Fatalf("%+v, %v", s, err)
	}
	l.store, l.controller, l.run = store, control.New(store, e), run.ID()
	return l
}

func (l *ledger) send(c journal.Command) (control.Delivery, error) {
	l.t.Helper()
	row, err := l.store.Run(l.t.Context(), l.run)
	if err != nil {
		l.t.Fatal(err)
	}
	c.By = "ann"
	return l.controller.Send(l.t.Context(), row, byAnn(c))
}

// holding returns the files of the journal that contain a text.
func (l *ledger) holding(text string) []string {
	l.t.Helper()
	files, err := filepath.Glob(filepath.Join(l.dir, "*"))
	if err != nil || len(files) == 0 {
		l.t.Fatal(files, err)
	}
	return slices.DeleteFunc(files, func(name string) bool {
		content, err := os.ReadFile(name)
		if err != nil {
			l.t.Fatal(err)
		}
		return !bytes.Contains(content, []byte(text))
	})
}

// withToken returns all commands that carry text, with the token in it.
func withToken(call string) map[string]journal.Command {
	return map[string]journal.Command{
		"a message":        {Kind: journal.Input, Text: "it is " + token},
		"an attachment":    {Kind: journal.Input, Media: []llm.Media{{MediaType: "text/plain", Name: "a.txt", Data: []byte("it is " + token)}}},
		"its name":         {Kind: journal.Input, Media: []llm.Media{{MediaType: "text/plain", Name: token, Data: []byte("a")}}},
		"an approval":      {Kind: journal.Approve, CallID: call, Text: "use " + token},
		"a rejection":      {Kind: journal.Reject, CallID: call, Text: "not with " + token},
		"edited arguments": {Kind: journal.Approve, CallID: call, Args: []byte(`{"to":"` + token + `"}`)},
		"a cancel":         {Kind: journal.Cancel, Text: "leaked " + token},
	}
}

// A run of a program has no file that names its secrets; its journal names them.
func TestAProgramsParkedRunIsToldNothingThatMayHoldASecret(t *testing.T) {
	l := parkedProgram(t, payer(pawl.Secret{Name: "token", Value: token}))
	before := stored(t, l.store, l.run)
	for name, c := range withToken(l.run + "-1-1") {
		if c.Kind == journal.Cancel {
			continue // it is sent without its reason
		}
		_, err := l.send(c)
		if refused, ok := errors.AsType[*engine.SecretsError](err); !ok || refused.Run != l.run || !slices.Equal(refused.Missing, []string{"token"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if found := l.holding(token); len(found) > 0 || stored(t, l.store, l.run) != before {
		t.Errorf("the run was told something; the value is in %v", found)
	}
	if got, err := l.send(journal.Command{Kind: journal.Reject, CallID: l.run + "-1-1", Text: "no"}); err != nil || !got.Taken {
		t.Errorf("a call cannot be declined: %+v, %v", got, err)
	}
	if got, err := l.send(withToken("")["a cancel"]); err != nil || got.State != journal.Ended || got.Unsaid == "" {
		t.Errorf("a run cannot be cancelled: %+v, %v", got, err)
	}
	if found := l.holding(token); len(found) > 0 {
		t.Errorf("the reason of a cancel is in %v", found)
	}
}

func TestAProgramsParkedRunWithoutSecretsIsToldAnything(t *testing.T) {
	for name := range withToken("") {
		l := parkedProgram(t, payer())
		if got, err := l.send(withToken(l.run + "-1-1")[name]); err != nil || !got.Taken {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// The program may have added a secret since the run began, and removed it again.
func TestASecretCountsFromTheResumeThatBringsIt(t *testing.T) {
	l := parkedProgram(t, payer())
	for _, secrets := range [][]pawl.Secret{{{Name: "token", Value: token}}, {}} {
		run, err := payer(secrets...).Resume(t.Context(), l.run, pawl.Options{Journal: l.store})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := run.Wait(); err != nil || s.Status != pawl.StatusParked {
			t.Fatalf("%+v, %v", s, err)
		}
		_, err = l.send(journal.Command{Kind: journal.Input, Text: "it is " + token})
		if refused := (*engine.SecretsError)(nil); errors.As(err, &refused) != (len(secrets) > 0) {
			t.Errorf("with %d secrets: %v", len(secrets), err)
		}
	}
}

// olderJournal is a journal of a version that did not record which secrets a run has.
type olderJournal struct{ journal.Store }

func (s olderJournal) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	records, err := s.Store.Records(ctx, run, after, limit)
	for i := range records {
		records[i].Body = bytes.Replace(records[i].Body, []byte(`,"secrets":[]`), nil, 1)
	}
	return records, err
}

func TestARunThatDoesNotSayWhatItsSecretsAreMayHaveSome(t *testing.T) {
	l := parkedProgram(t, payer())
	l.store = olderJournal{l.store}
	l.controller = control.New(l.store, engine.New(l.store, versions.Make, engine.Options{}))
	_, err := l.send(journal.Command{Kind: journal.Input, Text: "it is " + token})
	if refused, ok := errors.AsType[*engine.SecretsError](err); !ok || len(refused.Missing) != 0 {
		t.Errorf("it was told: %v", err)
	}
	if found := l.holding(token); len(found) > 0 {
		t.Errorf("the value is in %v", found)
	}
}
