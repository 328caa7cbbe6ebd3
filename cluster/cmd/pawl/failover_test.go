package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/cluster/internal/pgtest"
	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/journal"
)

// verified runs 'pawl runs verify --all' and returns what it prints and its exit code.
func (p project) verified(t *testing.T) (out string, exit int) {
	t.Helper()
	text, err := p.command("runs", "verify", "--all").CombinedOutput()
	if failed, is := errors.AsType[*exec.ExitError](err); is {
		return string(text), failed.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text), 0
}

// A standby that lacks acknowledged events is promoted. The server that had them leaves
// its runs, another completes them from what is there, and 'pawl runs verify' names the
// runs and the positions, at once and ever after.
func TestVerifyNamesWhatAFailoverLost(t *testing.T) {
	p := newProject(t, "failover")
	primary, standby, either := pgtest.Pair(t)
	p.journal = either + "&schema=failover"
	// A call ends when there is a gate.
	p.write(t, "mark.sh", "echo \"$PAWL_CALL_ID\" >> ledger\nuntil test -e gate; do sleep 0.1; done\n")
	url, _, log := p.serve(t)
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	begin(t, url, runs)
	await(t, s, "the first calls", func() bool { return len(p.ledger(t)) == runs })
	follower, err := postgres.Open(t.Context(), standby.URL()+"?schema=failover", postgres.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	await(t, s, "the runs on the standby", func() bool {
		rows, err := follower.Runs(t.Context(), journal.Filter{})
		return err == nil && len(rows) == runs
	})
	if err := follower.Close(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Down(t.Context(), "fast"); err != nil {
		t.Fatal(err)
	}
	p.write(t, "gate", "")
	for _, r := range allEnded(t, s) { // none of these ends is on the standby
		if r.Detail != "final_answer" {
			t.Errorf("run %s ended as %s", r.ID, r.Detail)
		}
	}
	if err := os.Remove(filepath.Join(p.dir, "gate")); err != nil {
		t.Fatal(err)
	}
	begin(t, url, 1)
	await(t, s, "a call of one run more", func() bool { return len(p.ledger(t)) > runs*calls })
	if out, exit := p.verified(t); exit != 0 || strings.Contains(out, "lost") {
		t.Errorf("exit code %d before the failover: %s", exit, out)
	}
	if err := errors.Join(primary.Down(t.Context(), "immediate"), standby.Up(t.Context()), standby.Promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	p.write(t, "gate", "")
	await(t, s, "the server to leave its run", func() bool { return strings.Contains(log.String(), "run left") })
	check := func(when string) {
		t.Helper()
		out, exit := p.verified(t)
		if exit != 1 || !strings.Contains(out, "acknowledged events are lost, up to position") || strings.Count(out, "and the database lost it") != runs {
			t.Errorf("exit code %d %s: %s", exit, when, out)
		}
	}
	check("after the failover")
	again := project{dir: p.dir, journal: p.journal}
	again.serve(t)
	rows := allEnded(t, s)
	if len(rows) != runs {
		t.Errorf("%d runs are left", len(rows))
	}
	for _, r := range rows {
		row, err := s.Run(t.Context(), r.ID)
		if err != nil || row.State != journal.Ended || row.Detail != "final_answer" {
			t.Errorf("run %s ended as %s, %v", r.ID, row.Detail, err)
		}
	}
	check("after the runs were completed")
}
