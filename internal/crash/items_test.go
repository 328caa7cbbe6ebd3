package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	library "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
)

// itemsDir names the directory in which the test binary, started again, plays a
// workflow over many items.
const itemsDir = "PAWL_CRASH_ITEMS"

// items is how many items the workflow goes over, 8 at once.
const items = 240

// itemsOf is a workflow whose agent leaves a line for each item, by a tool that may
// not be called twice.
func itemsOf(dir string) library.Workflow {
	worker := library.Agent{Name: "worker", Model: paidModel(dir, func(task string, results int) []llm.ToolCall {
		if results > 0 {
			return nil
		}
		return []llm.ToolCall{wants("count", map[string]string{"Item": task[strings.LastIndex(task, "\n")+1:]})}
	})}
	worker.Tools = append(worker.Tools, library.Tool("count", "Counts an item.", func(_ context.Context, args struct{ Item string }) (string, error) {
		time.Sleep(2 * time.Millisecond)
		err := leave(dir, "effects", args.Item)
		time.Sleep(2 * time.Millisecond)
		return "counted", err
	}))
	all := make([]int, items)
	for i := range all {
		all[i] = i
	}
	return library.Workflow{
		Agents: map[string]library.Agent{"worker": worker},
		Steps:  []library.Step{{ID: "each", Agent: "worker", Instructions: "Count it.", Loop: &library.Loop{Items: all, Concurrency: 8}}},
	}
}

func TestKillInItemLoopDoublesAndLosesNone(t *testing.T) {
	kills := kills(20, 200)
	random := rand.New(rand.NewPCG(seed(t), 2))
	for killed := 0; killed < kills && !t.Failed(); {
		dir := t.TempDir()
		killed += max(killFamilyUntilDone(t, itemsDir, dir, random, min(kills-killed, 10)), 1)
		checkItems(t, dir)
	}
}

// checkItems checks that each item was counted once, or is in doubt.
func checkItems(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	counted, doubted := map[string]int{}, inDoubt(t, dir)
	for _, line := range strings.Fields(string(text)) {
		counted[line]++
	}
	for i := range items {
		switch item := fmt.Sprint(i); {
		case counted[item] > 1:
			t.Errorf("item %s was counted %d times", item, counted[item])
		case counted[item] == 0 && !doubted[item]:
			t.Errorf("item %s was not counted, and nothing says so", item)
		}
	}
	if len(counted) > items {
		t.Errorf("%d items were counted of %d", len(counted), items)
	}
}

// inDoubt are the items whose calls may or may not have taken effect, by the
// journals of the runs that made them. There is one run for each item.
func inDoubt(t *testing.T, dir string) map[string]bool {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "journal.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rows, err := store.Runs(t.Context(), journal.Filter{})
	if err != nil || len(rows) != items+1 {
		t.Fatalf("%d runs for %d items, %v", len(rows), items, err)
	}
	doubted := map[string]bool{}
	for _, row := range rows {
		records, err := store.Records(t.Context(), row.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		item := ""
		for _, rec := range records {
			e, err := event.Decode(rec.Body)
			if err != nil {
				t.Fatal(err)
			}
			switch d := e.Data.(type) {
			case event.ToolCall:
				item = strings.Trim(string(d.Args), `{"Item:}`)
			case event.ToolResult:
				doubted[item] = doubted[item] || d.ErrorType == event.ErrorInDoubt
			}
		}
	}
	return doubted
}
