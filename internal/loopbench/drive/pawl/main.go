// Command pawl drives Pawl as a program would that uses it: each run is started by itself,
// and all is as it is by default. With a folder every event is durable in a journal there.
package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/loopbench/drive"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
	"github.com/pawlrun/pawl/tool"
)

func main() {
	drive.Main(func(o drive.Order) (drive.Run, error) {
		agent := pawl.Agent{
			Name: "bench", System: drive.System, Limits: pawl.Limits{MaxCycles: o.Turns + 1, MaxToolCalls: -1},
			Tools: []tool.Tool{
				harmless(pawl.Tool(drive.EchoName, drive.EchoDoes, func(_ context.Context, a drive.Echo) (string, error) { return a.Do() })),
				harmless(pawl.Tool(drive.SumName, drive.SumDoes, func(_ context.Context, a drive.Sum) (string, error) { return a.Do() })),
			},
			Model: pawl.Target{
				Name: "openai-chat/" + drive.Model, Price: &llm.Price{}, Client: openaichat.New(openaichat.Options{APIKey: "k", BaseURL: o.URL}),
			},
		}
		var options pawl.Options
		if o.Dir != "" {
			store, err := sqlite.Open(context.Background(), filepath.Join(o.Dir, "journal.db"), sqlite.Options{})
			if err != nil {
				return nil, err
			}
			options.Journal = store
		}
		return func(ctx context.Context, task string) (string, error) { return run(ctx, agent, task, options) }, nil
	})
}

func run(ctx context.Context, agent pawl.Agent, task string, options pawl.Options) (string, error) {
	run, err := agent.Start(ctx, task, options)
	if err != nil {
		return "", err
	}
	for e, err := range run.Stream() {
		if err != nil {
			return "", err
		}
		if text, ok := e.Data.(event.Text); ok {
			drive.Show(text.Text)
		}
	}
	final, err := run.Wait()
	if err == nil && final.Status != pawl.StatusCompleted {
		err = fmt.Errorf("the run is %s: %+v", final.Status, final.Outcome)
	}
	if err != nil {
		return "", err
	}
	return final.Text(), nil
}

// harmless is a tool that changes nothing, may run beside others, and says its own words.
func harmless(t tool.Tool) tool.Tool {
	t.ReadOnly, t.Concurrent, t.Labels = true, true, &event.Labels{}
	return t
}
