package cli

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// harm clears a part of a page of the project's journal, as a disk does.
func (p project) harm(page int) {
	p.t.Helper()
	path := filepath.Join(p.dir, ".pawl/journal.db")
	b, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	clear(b[page*4096+8 : page*4096+200])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p project) alter(statement string) {
	p.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.dir, ".pawl/journal.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		p.t.Fatal(err)
	}
}

func TestADamagedJournalIsNoticedBeforeItIsWrittenTo(t *testing.T) {
	p := greeter(t)
	p.exits(0, "run", "agent.yaml", "hi")
	p.exits(0, "run", "agent.yaml", "hi")
	if f := p.pawl("doctor"); !strings.Contains(f.out, "journal.db is there") {
		t.Fatalf("doctor says of a sound one: %s", f.out)
	}
	p.harm(3)
	for range 2 {
		f := p.exits(1, "run", "agent.yaml", "hi")
		f.clean(t, "damaged", "restore .pawl/journal.db from a backup, or name another journal with --journal")
	}
	if f := p.exits(1, "doctor"); !strings.Contains(f.out, "damaged") || !strings.Contains(f.out, "runs verify --all") {
		t.Errorf("doctor says %s", f.out)
	}
	p.exits(0, "run", "agent.yaml", "hi", "--journal", "other.db")
}

func TestARunWhoseLastEventWasAlteredIsNotAppendedTo(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": asksAgent, "script.yaml": shellTurn("touch one") + "- text: the end\n"})
	p.exits(4, "run", "agent.yaml", "go")
	id := p.newest()
	p.alter(`UPDATE commits SET body = replace(body, 'approval_required', 'approval_requirec') WHERE pos = (SELECT max(pos) FROM commits)`)
	for range 2 {
		f := p.exits(1, "runs", "resume", id)
		f.clean(t, "is damaged at event", "its hash is not the one in the run's row")
	}
	p.alter(`UPDATE commits SET body = replace(body, 'approval_requirec', 'approval_required') WHERE pos = (SELECT max(pos) FROM commits)`)
	p.exits(4, "runs", "resume", id)
}

func TestADamagedRunIsNotContinued(t *testing.T) {
	p := greeter(t)
	p.exits(0, "run", "agent.yaml", "hi")
	id := p.newest()
	p.alter(`UPDATE commits SET body = replace(body, 'hello', 'jello')`)
	for range 2 {
		p.exits(1, "run", "--continue", id, "Go on.").clean(t, "is damaged at event", "its hash is not the one that event")
	}
}

func TestVerifyAllGoesOnAfterABadRun(t *testing.T) {
	p := greeter(t)
	var ids []string
	for range 3 {
		p.exits(0, "run", "agent.yaml", "hi")
		ids = append(ids, p.newest())
	}
	p.alter(`UPDATE commits SET body = X'00' WHERE 2 BETWEEN seq - events + 1 AND seq AND rid IN (SELECT rid FROM runs ORDER BY rid DESC LIMIT 2)`)
	f := p.exits(1, "runs", "verify", "--all")
	for i, want := range []string{": journal checksum ok, ", ": journal checksum does NOT match: ", ": journal checksum does NOT match: "} {
		if !strings.Contains(f.out, ids[i]+want) {
			t.Errorf("of run %d, which should be%q: %s", i, want, f.out)
		}
	}
	p.harm(3)
	if f := p.exits(1, "runs", "verify", "--all"); !strings.Contains(f.out, "damaged") {
		t.Errorf("of a damaged page: %s%s", f.out, f.err)
	}
}

func TestTheListCountsWhatARunHas(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":    "identity: {name: greeter}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: []}\n",
		"loop.yaml":     "identity: {name: repeats}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: []}\nloop: {loopEnabled: true, maxIterations: 2}\n",
		"workflow.yaml": "apiVersion: pawl/v1\nname: steps\nsteps: [{id: one, command: [\"true\"]}, {id: two, command: [\"true\"]}, {id: three, command: [\"true\"]}]\n",
		"script.yaml":   "- text: hello\n- text: hello again\n",
	})
	p.pawl("run", "agent.yaml", "hi")
	p.pawl("run", "loop.yaml", "hi")
	p.pawl("run", "workflow.yaml", "hi")
	f := p.exits(0, "runs")
	for name, want := range map[string]string{"greeter": "1 cycle ", "repeats": "2 iterations ", "steps": "3 steps "} {
		for line := range strings.Lines(f.out) {
			if strings.Contains(line, "  "+name+"  ") && !strings.Contains(line, want) {
				t.Errorf("%s has not %q: %s", name, want, line)
			}
		}
		if !strings.Contains(f.out, want) {
			t.Errorf("no run has %q: %s", want, f.out)
		}
	}
}
