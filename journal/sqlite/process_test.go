package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// asChild names the part that this binary plays when a test starts it as
// another process; its tests then run nothing else.
const asChild = "PAWL_SQLITE_CHILD"

func TestMain(m *testing.M) {
	part, path, _ := strings.Cut(os.Getenv(asChild), ":")
	if part == "" {
		os.Exit(m.Run())
	}
	if err := play(part, path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// asUser is whom the other process becomes before it plays its part: it must
// be started as this user, because only this user reaches the binary.
const asUser = "PAWL_SQLITE_UID"

func play(part, path string) error {
	if uid, err := strconv.Atoi(os.Getenv(asUser)); err == nil {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(uid), syscall.Setuid(uid)); err != nil {
			return err
		}
	}
	switch part {
	case "hold":
		return holdLock(path)
	case "read":
		return readAndTry(path)
	case "write":
		return writeRun(path)
	case "small":
		return appendUntilLimit(path)
	case "send":
		return sendOnce(path)
	}
	return playWithDisk(part, path)
}

// readAndTry reports how many events the run "a" has, and the result of a write.
func readAndTry(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer s.Close()
	v, err := journal.Verify(ctx, s, "a", "")
	if err != nil {
		return err
	}
	fmt.Printf("reading: %d events\n", v.Events)
	if _, err := s.Send(ctx, journal.Command{Run: "a"}); !errors.Is(err, journal.ErrReadOnly) {
		return fmt.Errorf("a store for reading took a command: %w", err)
	}
	w, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err == nil {
		err = w.Close()
	}
	if errors.Is(err, journal.ErrReadOnly) {
		err = journal.ErrReadOnly
	}
	fmt.Printf("writing: %v\n", err)
	return nil
}

// writeRun writes a run of a hundred events, one commit each.
func writeRun(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	id := fmt.Sprintf("run%d", os.Getpid())
	lease, _, err := s.Create(ctx, journal.Run{ID: id, Created: journaltest.Epoch()}, journal.Batch{
		Lease: journal.Lease{Owner: id, Expiry: time.Now().Add(time.Minute)},
	})
	if err != nil {
		return err
	}
	w := &plainWriter{s: s, lease: lease}
	for range 100 {
		if err := w.append(ctx, 300); err != nil {
			return err
		}
	}
	return s.Close()
}

// "database is locked" is what users of embedded journals complain about.
func TestProcessesThatWriteAtOnceWaitForEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	const processes = 4
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			if out, err := child(t, "write", path).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	rows, err := s.Runs(t.Context(), journal.Filter{})
	if err != nil || len(rows) != processes {
		t.Fatalf("%d runs, %v", len(rows), err)
	}
	for _, r := range rows {
		if v, err := journal.Verify(t.Context(), s, r.ID, ""); err != nil || v.Events != 100 {
			t.Errorf("%+v, %v", v, err)
		}
	}
	log, err := s.Tail(t.Context(), 0, 0)
	if err != nil || len(log) != processes*100 || log[len(log)-1].Pos != log[0].Pos+processes*100-1 {
		t.Errorf("%d events in the tail, %v", len(log), err)
	}
}

// appendUntilLimit goes on after its process may not make files any larger.
func appendUntilLimit(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	// The signal would end the process before the write fails.
	signal.Ignore(syscall.SIGXFSZ)
	lease, err := s.Acquire(ctx, "a", "child", "owner", time.Minute)
	if err != nil {
		return err
	}
	limit := &syscall.Rlimit{}
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, limit); err != nil {
		return err
	}
	unlimited := limit.Cur
	limit.Cur = 1 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, limit); err != nil {
		return err
	}
	row, err := s.Run(ctx, "a")
	if err != nil {
		return err
	}
	w := &plainWriter{s: s, lease: lease, seq: row.Seq, head: row.Head}
	for err = nil; err == nil; {
		err = w.append(ctx, 20_000)
	}
	fmt.Printf("full: %t\n", errors.Is(err, journal.ErrFull))
	limit.Cur = unlimited
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, limit); err != nil {
		return err
	}
	if err := w.append(ctx, 20_000); err != nil {
		return err
	}
	v, err := journal.Verify(ctx, s, "a", w.head)
	fmt.Printf("after: %t\n", v.Events == w.seq && v.HeadSeq == w.seq)
	return err
}

// plainWriter is a driver where there is no test.
type plainWriter struct {
	s     *sqlite.Store
	lease journal.Lease
	seq   int64
	head  string
}

func (w *plainWriter) append(ctx context.Context, size int) error {
	e := event.Event{
		Seq: w.seq + 1, Run: w.lease.Run, Time: journaltest.Epoch(), Prev: w.head,
		Data: event.InputReceived{Text: strings.Repeat("x", size), By: "child"},
	}
	body, err := event.Encode(&e)
	if err != nil {
		return err
	}
	head := event.Hash(body)
	_, err = w.s.Append(ctx, journal.Batch{
		Lease: w.lease, Head: head, Time: journaltest.Epoch(), Status: journal.Progress{State: journal.Running},
		Records: []journal.Record{{Run: e.Run, Seq: e.Seq, Type: string(e.Type()), Body: body}},
	})
	if err == nil {
		w.seq, w.head = e.Seq, head
	}
	return err
}

// A limit on the size of files is a full disk that SQLite does not know.
func TestALimitOnFileSizeIsAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	journaltest.Start(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := child(t, "small", path).CombinedOutput()
	if err != nil || string(out) != "full: true\nafter: true\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// sendOnce sends a command to the run "a" and reports the result.
func sendOnce(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{BusyTimeout: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	_, err = s.Send(ctx, journal.Command{Run: "a", Kind: journal.Pause})
	if errors.Is(err, journal.ErrLocked) {
		err = journal.ErrLocked
	}
	fmt.Println(err)
	return s.Close()
}

// holdLock keeps the write lock until its stdin ends.
func holdLock(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	fmt.Println("held")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	_, err = db.Exec("ROLLBACK")
	return err
}

// child makes this binary play a part in another process.
func child(t *testing.T, part, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), asChild+"="+part+":"+path)
	return cmd
}

func TestALockedJournalIsNamedAndGoesOnAfterwards(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := journaltest.Start(t, s, "a")
	holder := child(t, "hold", path)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Wait() }()
	defer in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	if err := d.Write(t, d.Batch(t, texts(1)...)); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	// Readers do not care, and neither does who opens it.
	intact(t, s, d)
	second, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatalf("open while it is locked: %v", err)
	}
	intact(t, second, d)
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := holder.Wait(); err != nil {
		t.Fatal(err)
	}
	d.Append(t, texts(2)...)
	intact(t, s, d)
}

// A start-up race is where embedded databases say "database is locked".
func TestManyOpenANewJournalAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	const n = 12
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			d := journaltest.Start(t, s, fmt.Sprintf("run%d", i))
			d.Append(t, texts(3)...)
			intact(t, s, d)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	wg.Wait()
	rows, err := open(t, path).Runs(t.Context(), journal.Filter{})
	if err != nil || len(rows) != n {
		t.Errorf("%d runs, %v; want %d", len(rows), err, n)
	}
}

func TestAnotherStoreOnTheFileSeesCommitsAndCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	here, there := open(t, path), open(t, path)
	d := journaltest.Start(t, here, "a")
	events, commands := there.Watch(t.Context()), here.WatchInbox(t.Context(), "a")
	d.Append(t, texts(1)...)
	for seen := 0; seen < 2; {
		select {
		case <-events:
			records, err := there.Records(t.Context(), "a", 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			seen = len(records)
		case <-time.After(time.Minute):
			t.Fatal("the other process's commit was never told")
		}
	}
	if _, err := there.Send(t.Context(), journal.Command{Run: "a", Kind: journal.Pause}); err != nil {
		t.Fatal(err)
	}
	for seen := 0; seen < 1; {
		select {
		case <-commands:
			inbox, err := here.Inbox(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			seen = len(inbox)
		case <-time.After(time.Minute):
			t.Fatal("the other process's command was never told")
		}
	}
	lease, err := there.Acquire(t.Context(), "a", "heir", "owner", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(t, d.Batch(t, texts(1)...)); !errors.Is(err, journal.ErrStale) {
		t.Errorf("the old holder: %v, want ErrStale", err)
	}
	d.Store, d.Lease = there, lease
	d.Append(t, event.InputReceived{Text: "from there", By: "heir"})
	intact(t, here, d)
}
