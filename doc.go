// Package pawl runs agents that loop until done: it calls a model, runs the
// tools the model asks for, feeds the results back, and repeats until a stop
// condition is met.
//
//	agent := pawl.Agent{
//		Name:   "greeter",
//		Model:  pawl.Target{Name: "anthropic/claude-sonnet-4-5", Client: client},
//		System: "You greet people by name.",
//		Tools:  []tool.Tool{pawl.Tool("lookup", "Find a person's name.", lookup)},
//	}
//	final, err := agent.Run(ctx, "Greet customer 17.")
//
// [Agent.Run] runs a task to its end. [Agent.Start] returns a [Run] whose
// events can be ranged over while it is running. Breaking out of the range
// leaves the run running; cancelling the context cancels the run. An error is a
// failure of the engine or of its journal. A run that failed, or that a limit
// stopped, says so in its [Outcome].
//
// Every step is journalled, in memory unless [Options] name a store. With a
// durable store ([github.com/pawlrun/pawl/journal/sqlite]) a crash loses no
// finished work: [Agent.Resume] continues where the journal ends, and no side
// effect happens twice.
package pawl
