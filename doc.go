// Package pawl runs agents that loop until done: it calls a model, runs the
// tools the model asks for, feeds the results back, and repeats until something
// that you declared says stop.
//
//	agent := pawl.Agent{
//		Name:   "greeter",
//		Model:  pawl.Target{Name: "anthropic/claude-sonnet-4-5", Client: client},
//		System: "You greet people by name.",
//		Tools:  []tool.Tool{pawl.Tool("lookup", "Find a person's name.", lookup)},
//	}
//	final, err := agent.Run(ctx, "Greet customer 17.")
//
// [Agent.Run] does it all; [Agent.Start] gives a [Run] whose events can be
// ranged over while it goes. Breaking out of the range detaches and leaves the
// run going; cancelling the context cancels the run. An error is a failure of
// the engine or of its journal; a run that failed, or that a limit stopped, says
// so in its [Outcome].
//
// Every step is journalled, in memory unless [Options] name a store. With a
// durable one ([github.com/pawlrun/pawl/journal/sqlite]) what was paid for
// survives a crash: [Agent.Resume] goes on where the journal ends, and no side
// effect happens twice.
package pawl
