package llm

import "context"

// Caller says which run makes a model call, for models that answer each run of a tree in
// its own way, such as scripts. An engine puts it into the context of the call.
type Caller struct {
	// Names returns those that the run is known by, the narrowest first: its step, its
	// agent.
	Names func() []string
	// Turn returns how many calls of the tree to this model were answered or are under way
	// that were made under a name. This call counts under the name from then on.
	Turn func(ctx context.Context, name string) (int, error)
}

type callerKey struct{}

// WithCaller returns a context that says who makes the call.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns who makes the call of a context; ok is false where nothing says it.
func CallerOf(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}
