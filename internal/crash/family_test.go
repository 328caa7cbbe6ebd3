package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	library "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
)

// familyDir names the directory in which the test binary, started again, plays
// a program with agents that give each other tasks.
const familyDir = "PAWL_CRASH_FAMILY"

// The size of the program's work: in each round that many children at once, each
// with that many calls that leave a line.
const (
	rounds   = 3
	siblings = 3
	lines    = 3
)

// owner is an agent or a workflow whose run is the root of a tree.
type owner interface {
	Start(ctx context.Context, input string, o library.Options) (*library.Run, error)
	Resume(ctx context.Context, run string, o library.Options) (*library.Run, error)
}

// playFamily starts the owner's run, or takes up the one that is there unless it has
// ended.
func playFamily(dir string, owner owner) error {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "journal.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	rows, err := store.Runs(ctx, journal.Filter{})
	if err != nil {
		return err
	}
	run, err := (*library.Run)(nil), error(nil)
	for _, r := range rows {
		switch {
		case r.Parent != "":
		case r.State == journal.Ended:
			return nil // killed after its last event
		default:
			run, err = owner.Resume(ctx, r.ID, library.Options{Journal: store})
		}
	}
	if run == nil && err == nil {
		run, err = owner.Start(ctx, "go", library.Options{Journal: store})
	}
	if err != nil {
		return err
	}
	s, err := run.Wait()
	if err == nil && (s.Outcome == nil || s.Outcome.Reason != event.ReasonFinalAnswer) {
		err = fmt.Errorf("the run stands at %+v", s)
	}
	return err
}

// familyOf is an agent that gives tasks to another one in rounds. Its models say
// what follows from the conversation alone, so that every process hears the same.
func familyOf(dir string) library.Agent {
	note := library.Tool("note", "Leaves a line.", func(_ context.Context, args struct{ Line string }) (string, error) {
		time.Sleep(4 * time.Millisecond)
		err := leave(dir, "effects", args.Line)
		time.Sleep(4 * time.Millisecond)
		return "left " + args.Line, err
	})
	note.Concurrent = true
	worker := library.Agent{Name: "worker", Model: paidModel(dir, func(task string, results int) []llm.ToolCall {
		if results == lines {
			return nil
		}
		return []llm.ToolCall{wants("note", map[string]string{"Line": fmt.Sprintf("%s-%d", task, results)})}
	})}
	worker.Tools = append(worker.Tools, note)
	owner := library.Agent{Name: "owner", Conversation: library.Conversation{Dispatch: "parallel-all"}, Model: paidModel(dir, func(_ string, results int) []llm.ToolCall {
		if results == rounds*siblings {
			return nil
		}
		var calls []llm.ToolCall
		for i := range siblings {
			calls = append(calls, wants("work", map[string]string{"task": fmt.Sprintf("%d-%d", results/siblings, i)}))
		}
		return calls
	})}
	owner.Agents = []library.AgentTool{{Name: "work", Description: "Leaves lines.", Agent: worker}}
	return owner
}

func wants(name string, args map[string]string) llm.ToolCall {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return llm.ToolCall{Name: name, Args: text}
}

// leave adds a line to a file, as one write.
func leave(dir, name, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line + "\n")
	return err
}

// answering is a model that notes each call that would be charged.
type answering struct {
	dir  string
	next func(task string, results int) []llm.ToolCall
}

func paidModel(dir string, next func(task string, results int) []llm.ToolCall) library.Target {
	return library.Target{Name: "test/m", Client: answering{dir, next}, Price: &llm.Price{Input: 1, Output: 1}}
}

// Generate answers after a moment.
func (m answering) Generate(_ context.Context, req *llm.Request) (*llm.Response, error) {
	if err := leave(m.dir, "paid", "a call"); err != nil {
		return nil, err
	}
	time.Sleep(4 * time.Millisecond)
	task, results := "", 0
	for _, said := range req.Messages {
		for _, p := range said.Parts {
			switch p := p.(type) {
			case llm.Text:
				if task == "" {
					task = p.Text
				}
			case llm.ToolResult:
				results++
			}
		}
	}
	r := &llm.Response{Finish: llm.FinishEnd, Usage: llm.Usage{Input: 10, Output: 5}}
	for i, c := range m.next(strings.TrimSpace(task), results) {
		c.ProviderID = fmt.Sprintf("c%d-%d", results, i)
		r.Parts, r.Finish = append(r.Parts, c), llm.FinishTool
	}
	if r.Finish == llm.FinishEnd {
		r.Parts = llm.Parts{llm.Text{Text: "done"}}
	}
	return r, nil
}
