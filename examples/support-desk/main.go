// Support-desk is a program that embeds Pawl: an agent with two tools that are
// Go functions, a journal on disk, and a person who decides about money.
//
//	go run ./examples/support-desk
//
// Kill it while it waits for the answer and start it again: it goes on at the
// question, and looks nothing up twice. The model is a script, so that no key is
// needed; a client of a provider goes in its place.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, filepath.Join(os.TempDir(), "pawl-support-desk.db")); err != nil {
		fmt.Fprintln(os.Stderr, "support-desk:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, path string) error {
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()

	run, err := startOrResume(ctx, desk(bufio.NewReader(os.Stdin)), store)
	if err != nil {
		return err
	}
	for e, err := range run.Events() {
		if err != nil {
			return err
		}
		if result, ok := e.Data.(event.ToolResult); ok {
			fmt.Printf("%s: %s\n", result.Tool, result.Output)
		}
	}
	final, err := run.Wait()
	if err != nil {
		return err
	}
	if final.Status == pawl.StatusParked {
		fmt.Println("\nStart me again to decide.")
		return nil
	}
	fmt.Println(final.Text())
	return nil
}

// startOrResume goes on with a run that an earlier process left, if there is one.
func startOrResume(ctx context.Context, agent pawl.Agent, store journal.Store) (*pawl.Run, error) {
	runs, err := store.Runs(ctx, journal.Filter{})
	if err != nil {
		return nil, fmt.Errorf("looking for a run to go on with: %w", err)
	}
	o := pawl.Options{Journal: store}
	for _, r := range runs {
		if r.State != journal.Ended {
			return agent.Resume(ctx, r.ID, o)
		}
	}
	return agent.Start(ctx, "Order 17 arrived broken. The customer wants the money back.", o)
}

type order struct {
	Number int `json:"number" jsonschema:"the order's number"`
}

type refund struct {
	Order int     `json:"order"`
	Euros float64 `json:"euros"`
}

func desk(in *bufio.Reader) pawl.Agent {
	lookup := pawl.Tool("orders.lookup", "Say what an order was and what it cost.", func(_ context.Context, o order) (string, error) {
		return fmt.Sprintf("order %d: one lamp, 39.00 euros, delivered on Monday", o.Number), nil
	})
	lookup.ReadOnly, lookup.Effect = true, event.EffectPure

	// A tool without a declared effect runs at most once: after a crash in the middle
	// of a refund its result is in doubt, and the refund is not made again.
	pay := pawl.Tool("orders.refund", "Pay money back to a customer.", func(_ context.Context, r refund) (string, error) {
		return fmt.Sprintf("%.2f euros are on their way", r.Euros), nil
	})

	return pawl.Agent{
		Name: "support-desk",
		Model: pawl.Target{
			Name: "scripted/support-desk", Client: scripted.New("support-desk", script()...),
			Price: &llm.Price{}, // a script costs nothing
		},
		System: "You answer customers of a lamp shop. Be generous and short.",
		Tools:  []tool.Tool{lookup, pay},
		Approvals: pawl.Approvals{
			Tools: []string{"orders.refund"},
			Ask: func(ctx context.Context, a pawl.Approval) (pawl.Decision, error) {
				fmt.Printf("%s %s? [y/N] ", a.Tool, a.Args)
				answer, err := in.ReadString('\n')
				if err != nil {
					return pawl.Decision{}, errors.New("no person is there to decide") // the run parks
				}
				return pawl.Decision{Approve: strings.TrimSpace(answer) == "y"}, nil
			},
		},
		Limits: pawl.Limits{MaxCycles: 10, USDPerRun: 0.50},
	}
}

func script() []scripted.Turn {
	call := func(name, args string) []scripted.Call {
		return []scripted.Call{{Name: name, Arguments: json.RawMessage(args)}}
	}
	return []scripted.Turn{
		{ToolCalls: call("orders.lookup", `{"number":17}`)},
		{ToolCalls: call("orders.refund", `{"order":17,"euros":39}`)},
		{Text: "I am sorry about the lamp. Your request has been dealt with."},
	}
}
