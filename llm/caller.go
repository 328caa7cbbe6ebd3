package llm

import "context"

// Caller identifies the run that makes a model call, for models that answer each run of
// a tree differently, such as scripts. An engine puts it into the context of the call.
type Caller struct {
	// Names returns the names of the run, most specific first: its step, its agent.
	Names func() []string
	// Turn returns the number of calls of the tree to this model under a name, answered
	// or under way. From then on this call counts too.
	Turn func(ctx context.Context, name string) (int, error)
}

type callerKey struct{}

// WithCaller returns a context that carries the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller that a context carries; ok is false if it carries none.
func CallerOf(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}
