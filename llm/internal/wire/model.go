package wire

import "context"

type modelKey struct{}

// ForModel returns a context that names the model that a request asks.
func ForModel(ctx context.Context, model string) context.Context {
	return context.WithValue(ctx, modelKey{}, model)
}

// ModelOf is the model that [ForModel] named, "" where none is.
func ModelOf(ctx context.Context) string {
	model, _ := ctx.Value(modelKey{}).(string)
	return model
}
