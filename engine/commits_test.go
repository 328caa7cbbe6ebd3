package engine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
)

// cycles is a model that asks for a tool a number of times, then answers.
func cycles(n int) llm.Model {
	return modelFunc(func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		if req.Ordinal == n-1 {
			return said("done"), nil
		}
		return &llm.Response{Parts: llm.Parts{llm.ToolCall{Name: "work"}}, Finish: llm.FinishTool}, nil
	})
}

// A cycle costs one commit for the answer and the intents of its calls, and one
// for the results and the intent of the next call.
func TestACycleCostsTwoCommits(t *testing.T) {
	const n = 20
	store := &watched{Store: memory.New(nil)}
	r := newRig(t, store).model(cycles(n)).tools(toolFunc("work", progress()))
	if o := outcome(t, r.start(t.Context())); o.Cycles != n {
		t.Fatalf("outcome %+v", o)
	}
	// The first intent and the end share no commit with another cycle.
	if got, want := store.count(), 2*n; got != want {
		t.Errorf("%d cycles cost %d commits, want %d", n, got, want)
	}
}

func TestRunsThatGoAtOnceShareTheirCommits(t *testing.T) {
	const runs, n = 64, 5
	path := filepath.Join(t.TempDir(), "journal.db")
	file, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	store := &watched{Store: file}
	r := newRig(t, store).model(cycles(n)).tools(toolFunc("work", progress()))
	var all sync.WaitGroup
	for range runs {
		all.Go(func() {
			if _, err := r.start(t.Context()).Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	appends, commits := store.count(), walCommits(t, path+"-wal")
	t.Logf("%d runs of %d cycles: %d appends, %d commits in the write-ahead log", runs, n, appends, commits)
	if appends != runs*2*n {
		t.Errorf("%d appends, want %d", appends, runs*2*n)
	}
	if commits > appends/2 {
		t.Errorf("%d appends took %d commits: they hardly share any", appends, commits)
	}
}

// progress is a tool that gives something new each time; the same again and
// again would be taken for a loop.
func progress() func(context.Context) (string, error) {
	var done atomic.Int64
	return func(context.Context) (string, error) { return fmt.Sprint("worked ", done.Add(1)), nil }
}

// walCommits counts the commits in a write-ahead log that has not been
// restarted: its frames whose header says how large the database is after them.
func walCommits(t *testing.T, path string) int {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const header, frameHeader = 32, 24
	frame := frameHeader + int(binary.BigEndian.Uint32(log[8:12]))
	commits := 0
	for at := header; at+frame <= len(log); at += frame {
		if binary.BigEndian.Uint32(log[at+4:at+8]) != 0 {
			commits++
		}
	}
	return commits
}
