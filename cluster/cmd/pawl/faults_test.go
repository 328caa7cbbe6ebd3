package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
)

// full makes the tests of faults as long as a day in which all goes wrong; by default
// they are a tenth of that, with short leases.
func full() bool { return os.Getenv("PAWL_KILLS") != "" }

// hole is a proxy before the database that can swallow all traffic.
type hole struct {
	mu    sync.Mutex
	open  chan struct{} // closed while traffic passes
	count int
}

// through returns a proxy, and the journal as seen through it.
func through(t *testing.T, at string) (*hole, string) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	h := &hole{open: make(chan struct{})}
	close(h.open)
	to := u.Host
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			backend, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			go h.pass(client, backend)
			go h.pass(backend, client)
		}
	}()
	u.Host = l.Addr().String()
	return h, u.String()
}

func (h *hole) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if err != nil {
			return
		}
		h.mu.Lock()
		open := h.open
		h.mu.Unlock()
		<-open
		if _, err := to.Write(piece[:n]); err != nil {
			return
		}
	}
}

func (h *hole) shut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = make(chan struct{})
}

func (h *hole) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.open)
}

// The database is a black hole for one of two servers. It starts no effect once its
// leases are over, the other takes its runs over, and its appends are refused.
func TestABlackHoleCostsAServerItsRuns(t *testing.T) {
	lasts := 4 * lease
	if full() {
		lasts = time.Minute
	}
	const each = 24
	p := newProject(t, "hole")
	p.write(t, "script.yaml", script(each, lasts/20))
	h, at := through(t, p.journal)
	url, first, firstLog := project{dir: p.dir, journal: at}.serve(t)
	_, _, secondLog := p.serve(t)
	begin(t, url, runs)
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	await(t, s, "the first calls", func() bool { return len(p.ledger(t)) >= runs })
	before := len(p.ledger(t))
	h.shut()
	shut := time.Now()
	<-time.After(lasts)
	h.clear()
	await(t, s, "the refusal of its appends", func() bool { return strings.Count(firstLog.String(), "run left") == runs })
	rows := allEnded(t, s)
	// On a busy machine a run may have ended meanwhile.
	refused := strings.Count(firstLog.String(), journal.ErrStale.Error())
	if n := refused + strings.Count(firstLog.String(), journal.ErrEnded.Error()); n < runs {
		t.Errorf("%d appends were refused, want %d: %s", n, runs, firstLog)
	}
	own := p.effects(t, first.Process.Pid)
	late := 0
	for _, at := range own {
		if at.After(shut.Add(2 * lease)) { // an effect may begin before the proxy shuts and end later
			late++
		}
	}
	if late > 0 || len(own) == 0 {
		t.Errorf("%d of %d effects of the server began after its leases", late, len(own))
	}
	count(t, p, s, rows, runs*each, before, secondLog.String())
	t.Logf("%s of black hole: %d effects by the server before, none later; %d of its runs refused as stale", lasts, len(own), refused)
}

// The database crashes and recovers again and again.
func TestCrashesOfTheDatabaseEndNoRun(t *testing.T) {
	const crashes, each = 10, 20
	p := newProject(t, "crashes")
	p.write(t, "script.yaml", script(each, 200*time.Millisecond))
	url, _, log := p.serve(t)
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	begin(t, url, runs)
	for range crashes {
		before := len(p.ledger(t))
		if before < runs*each {
			await(t, s, "another call", func() bool { return len(p.ledger(t)) > before })
		}
		if err := server.Down(t.Context(), "immediate"); err != nil {
			t.Fatal(err)
		}
		if err := server.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	repeated := 0
	rows := allEnded(t, s)
	for _, r := range rows {
		answers := map[string]int{}
		for e, err := range drive.Events(t.Context(), s, r.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if a, is := e.Event.Data.(event.ModelResponse); is {
				if answers[fmt.Sprint(a.Cycle)]++; answers[fmt.Sprint(a.Cycle)] > 1 {
					repeated++
				}
			}
		}
		if len(answers) != each+1 {
			t.Errorf("run %s has %d answers, want %d", r.ID, len(answers), each+1)
		}
	}
	times := map[string]int{}
	for _, key := range p.ledger(t) {
		times[key]++
	}
	if len(times) != runs*each || len(p.ledger(t)) != runs*each || repeated > 0 {
		t.Errorf("%d effects of %d calls, want %d; %d answers repeated: %s", len(p.ledger(t)), len(times), runs*each, repeated, log)
	}
	t.Logf("%d crashes, %d runs, %d effects, none twice, %d answers repeated", crashes, len(rows), len(times), repeated)
}

// One of four servers is killed every two seconds, and another one started.
func TestServersThatAreKilledLeaveNoRun(t *testing.T) {
	of, each, delay, kills := 24, 10, time.Second, 10
	if full() {
		of, each, delay, kills = 200, 45, 3*time.Second, 150 // a run has 50 cycles
	}
	p := newProject(t, "kills")
	p.write(t, "script.yaml", script(each, delay))
	var urls []string
	var servers []*exec.Cmd
	var logs []*output
	add := func(i int) {
		url, process, log := p.serve(t)
		urls[i], servers[i], logs = url, process, append(logs, log)
	}
	urls, servers = make([]string, 4), make([]*exec.Cmd, 4)
	for i := range servers {
		add(i)
	}
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range of {
		begin(t, urls[i%len(urls)], 1)
	}
	await(t, s, "the first calls", func() bool { return len(p.ledger(t)) > of/2 })
	before, killed := len(p.ledger(t)), 0
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for killed < kills && len(p.ledger(t)) < of*each {
		i := killed % len(servers)
		if err := servers[i].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = servers[i].Wait()
		killed++
		add(i)
		<-tick.C
	}
	rows := allEnded(t, s)
	var log strings.Builder
	for _, l := range logs {
		log.WriteString(l.String())
	}
	count(t, p, s, rows, of*each, before, log.String())
	t.Logf("%d kills, %d runs of %d calls", killed, len(rows), each)
}

// A newer version of the program migrates the schema while an older one drives runs. The
// older one completes them, and a second process of it does not start.
func TestAnOlderVersionFinishesOnANewerSchema(t *testing.T) {
	p := newProject(t, "versions")
	url, _, log := p.serve(t)
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	begin(t, url, runs)
	await(t, s, "the first call", func() bool { return len(p.ledger(t)) > 0 })
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), strings.ReplaceAll(`UPDATE $S.version SET version = version + 1; ALTER TABLE $S.runs ADD COLUMN newer text NOT NULL DEFAULT ''`, "$S", p.schema)); err != nil {
		t.Fatal(err)
	}
	out, err := p.command("serve", "--addr", "127.0.0.1:0", "--no-auth").CombinedOutput()
	if exit, is := err.(*exec.ExitError); !is || exit.ExitCode() != 2 || !strings.Contains(string(out), "a newer version of Pawl") {
		t.Errorf("another server ends with %v: %s", err, out)
	}
	for _, r := range allEnded(t, s) {
		if r.Detail != string(event.ReasonFinalAnswer) {
			t.Errorf("run %s ended as %s: %s", r.ID, r.Detail, log)
		}
	}
	if n := len(p.ledger(t)); n != runs*calls {
		t.Errorf("%d effects, want %d", n, runs*calls)
	}
}
