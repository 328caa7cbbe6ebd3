package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/cluster/internal/temporaltest"
	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// used returns the processor time of a process, and of its ended children.
func used(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0 // it ended
	}
	_, after, _ := strings.Cut(string(text), ") ")
	sum := 0
	for _, field := range strings.Fields(after)[11:15] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return time.Duration(sum) * 10 * time.Millisecond
}

// usedByDatabase returns the processor time of all processes of the database.
func usedByDatabase(b *testing.B) (sum time.Duration) {
	b.Helper()
	first, err := server.Process()
	if err != nil {
		b.Fatal(err)
	}
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			continue
		}
		text, _ := os.ReadFile(name)
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); pid == first || len(fields) > 1 && fields[1] == strconv.Itoa(first) {
			sum += used(b, pid)
		}
	}
	return sum
}

// share returns how much of a processor servers and the database use, after a while in
// which they start.
func share(b *testing.B, servers []*exec.Cmd) (own, database float64) {
	b.Helper()
	all := func() (sum time.Duration) {
		for _, s := range servers {
			sum += used(b, s.Process.Pid)
		}
		return sum
	}
	<-time.After(10 * time.Second)
	const within = 30 * time.Second
	before, there := all(), usedByDatabase(b)
	<-time.After(within)
	return 100 * float64(all()-before) / float64(within), 100 * float64(usedByDatabase(b)-there) / float64(within)
}

// filled is a journal with a run that waits for a person and n copies of its row, changed
// by SQL.
func filled(b *testing.B, schema string, n int, change string) project {
	b.Helper()
	p := newProject(b, schema)
	p.write(b, "asks.yaml", strings.NewReplacer("name: marks", "name: asks", "mark: never", "mark: always").Replace(agent))
	out, err := p.command("run", "asks.yaml", "go").CombinedOutput()
	if exit, is := err.(*exec.ExitError); !is || exit.ExitCode() != 4 {
		b.Fatalf("%v: %s", err, out)
	}
	conn, err := pgx.Connect(b.Context(), server.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	columns := "parent, depth, kind, name, fork_of, fork_seq, created, updated, state, detail, progress, seq, head, owner, epoch, expiry"
	fill := strings.NewReplacer("$S", p.schema, "$C", columns, "$N", strconv.Itoa(n))
	for _, statement := range []string{
		`INSERT INTO $S.runs (id, root, $C) SELECT 'copy' || g, 'copy' || g, $C FROM $S.runs, generate_series(1, $N) g WHERE $S.runs.id NOT LIKE 'copy%'`,
		change, `VACUUM ANALYZE $S.runs`,
	} {
		if _, err := conn.Exec(b.Context(), fill.Replace(statement)); err != nil {
			b.Fatal(err)
		}
	}
	return p
}

func (p project) several(b *testing.B, n int) (urls []string, processes []*exec.Cmd) {
	b.Helper()
	for range n {
		url, process, _ := p.serve(b)
		urls, processes = append(urls, url), append(processes, process)
	}
	return urls, processes
}

// BenchmarkParkedRuns measures a server beside 100,000 runs that wait for a person, and
// one beside a single such run.
func BenchmarkParkedRuns(b *testing.B) {
	for _, n := range []int{0, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			p := filled(b, fmt.Sprintf("parked%d", n), n, "")
			_, servers := p.several(b, 1)
			own, database := share(b, servers)
			b.ReportMetric(own, "server-%-of-a-core")
			b.ReportMetric(database, "database-%-of-a-core")
		})
	}
}

// BenchmarkRunningRuns measures 20 servers beside 20,000 runs that another process
// drives, and beside none.
func BenchmarkRunningRuns(b *testing.B) {
	for _, n := range []int{0, 20_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			far := fmt.Sprint(time.Now().Add(24 * time.Hour).UnixNano())
			p := filled(b, fmt.Sprintf("running%d", n), n, `UPDATE $S.runs SET state = 'running', detail = '', owner = 'elsewhere', expiry = `+far+` WHERE id LIKE 'copy%'`)
			_, servers := p.several(b, 20)
			own, database := share(b, servers)
			b.ReportMetric(own, "servers-%-of-a-core")
			b.ReportMetric(database, "database-%-of-a-core")
		})
	}
}

// lists makes the runs of the agent marks take steps of 1 s, all but the last of which list
// a directory.
func (p project) lists(b *testing.B, steps int) {
	b.Helper()
	p.write(b, "marks.yaml", "identity: {name: marks}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: [fs.list]}\n")
	var script strings.Builder
	for i := range steps - 1 {
		if err := os.Mkdir(filepath.Join(p.dir, fmt.Sprint("d", i)), 0o700); err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(&script, "- {tool_calls: [{name: fs.list, arguments: {path: d%d}}], delay: 1s}\n", i)
	}
	p.write(b, "script.yaml", script.String()+"- {text: done, delay: 1s}\n")
}

// BenchmarkSteps measures 256 runs of steps of 1 s at four servers: half of the runs take
// how many times as long as their steps.
func BenchmarkSteps(b *testing.B) {
	const of, steps = 256, 6
	p := newProject(b, "steps")
	p.lists(b, steps)
	urls, _ := p.several(b, 4)
	s, err := postgres.Open(b.Context(), p.journal, postgres.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for i := range of {
		begin(b, urls[i%len(urls)], 1)
	}
	var lasted []float64
	for _, r := range allEnded(b, s) {
		var first, last time.Time
		for e, err := range drive.Events(b.Context(), s, r.ID, 0) {
			if err != nil {
				b.Fatal(err)
			}
			if last = e.Event.Time; first.IsZero() {
				first = last
			}
			if o, is := e.Event.Data.(event.RunCompleted); is && !o.Outcome.OK {
				b.Errorf("run %s: %+v", r.ID, o)
			}
		}
		lasted = append(lasted, last.Sub(first).Seconds()/steps)
	}
	slices.Sort(lasted)
	b.ReportMetric(lasted[len(lasted)/2], "of-ideal-p50")
	b.ReportMetric(lasted[len(lasted)*99/100], "of-ideal-p99")
}

// ended waits until n runs have ended. It looks once a second, because each look takes
// processor time of the database that is measured.
func ended(b *testing.B, s journal.Store, n int) {
	b.Helper()
	for range 300 {
		<-time.After(time.Second)
		rows, err := s.Runs(b.Context(), journal.Filter{States: []journal.State{journal.Ended}})
		if err != nil {
			b.Fatal(err)
		}
		if len(rows) == n {
			return
		}
	}
	b.Fatalf("%d runs have not ended within 5 minutes", n)
}

// results returns the number of results of tools, and checks that each run ended well.
func results(b *testing.B, s journal.Store) (n int) {
	b.Helper()
	rows, err := s.Runs(b.Context(), journal.Filter{})
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range rows {
		for e, err := range drive.Events(b.Context(), s, r.ID, 0) {
			if err != nil {
				b.Fatal(err)
			}
			switch d := e.Event.Data.(type) {
			case event.ToolResult:
				n++
			case event.RunCompleted:
				if !d.Outcome.OK {
					b.Errorf("run %s: %+v", r.ID, d)
				}
			}
		}
	}
	return n
}

// BenchmarkProcessors measures the processor time of 64 runs of 13 steps of 1 s: that of
// two workers, a server, PostgreSQL and Temporal, and that of one server with a file. The
// tool lists a directory, which takes next to nothing, or is a command.
func BenchmarkProcessors(b *testing.B) {
	for _, tool := range []string{"list", "command"} {
		b.Run(tool, func(b *testing.B) { processors(b, tool == "list") })
	}
}

func processors(b *testing.B, list bool) {
	const of, steps = 64, 13
	b.Setenv(leaseOf, "15s") // the usual one
	at := temporaltest.New(b)
	several := newPlacedAt(b, at, fmt.Sprint("processors", list), steps-1, "1s")
	file := placed{project: project{dir: b.TempDir(), journal: "journal.db"}}
	for _, name := range []string{"marks.yaml", "script.yaml", "mark.sh"} {
		text, err := os.ReadFile(filepath.Join(several.dir, name))
		if err != nil {
			b.Fatal(err)
		}
		file.write(b, name, string(text))
	}
	if list {
		several.lists(b, steps)
		file.lists(b, steps)
	}
	url, single, _ := file.serve(b)
	file.url = url
	own := []*exec.Cmd{several.process, several.worker(b, "one").Cmd, several.worker(b, "two").Cmd}
	alone, err := sqlite.Open(b.Context(), filepath.Join(file.dir, file.journal), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer alone.Close()
	sum := func() (all time.Duration) {
		for _, c := range own {
			all += used(b, c.Process.Pid)
		}
		return all
	}
	// A first run of each connects all of them.
	file.begin(b, "marks", 1)
	several.begin(b, "marks", 1)
	ended(b, alone, 1)
	ended(b, several.store, 1)
	before := used(b, single.Process.Pid)
	file.begin(b, "marks", of)
	ended(b, alone, 1+of)
	yardstick := (used(b, single.Process.Pid) - before).Seconds()
	before, database, places := sum(), usedByDatabase(b), used(b, at.Pid())
	several.begin(b, "marks", of)
	ended(b, several.store, 1+of)
	pawl, theirs, temporals := (sum() - before).Seconds(), (usedByDatabase(b) - database).Seconds(), (used(b, at.Pid()) - places).Seconds()
	for _, s := range []journal.Store{alone, several.store} {
		if n := results(b, s); n != (1+of)*(steps-1) {
			b.Errorf("%d results of tools, want %d", n, (1+of)*(steps-1))
		}
	}
	b.ReportMetric(yardstick, "file-s")
	b.ReportMetric(pawl, "pawl-s")
	b.ReportMetric(theirs, "database-s")
	b.ReportMetric(temporals, "temporal-s")
	b.ReportMetric(pawl/yardstick, "pawl-of-file")
	b.ReportMetric((pawl+theirs+temporals)/yardstick, "all-of-file")
}
