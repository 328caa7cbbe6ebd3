// Package models finds the model behind a name like "provider/model": which
// wire it speaks, with which key, and what it costs.
package models

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/transport"
)

// ErrNoKey is wrapped when a model is known and the key to it is not set.
var ErrNoKey = errors.New("models: no key")

// Resolver opens models by name. It opens each model once and is safe for
// concurrent use. The zero value takes scripts from the working directory and
// keys from this process's environment.
type Resolver struct {
	// Dirs are where the path of a scripted model is looked for, in order.
	Dirs []string
	// Getenv looks keys and endpoints up; nil means os.Getenv.
	Getenv func(string) string
	// HTTP is the transport of all providers; nil leaves it to each.
	HTTP *http.Client
	// Replay opens the model that answers from a recorded run; nil where there
	// is no journal.
	Replay func(run string) (llm.Model, error)
	// Config is the owner's: further providers, and what is known of models.
	Config Config
	// Limiter, where set, keeps the requests of all providers within their
	// rate limits. It is shared by the resolvers of a process.
	Limiter *transport.Limiter

	mu sync.Mutex
	// opened are the models of providers by the provider's name, and scripts
	// by their target: a wire serves every model of its provider.
	opened map[string]llm.Model
	table  *Table
}

// Open returns the model and the provider's own name of it. The error wraps
// [llm.ErrUnknownModel] or [ErrNoKey], or says what is wrong with a script.
func (r *Resolver) Open(target string) (llm.Model, string, error) {
	provider, name, ok := strings.Cut(target, "/")
	if !ok || name == "" {
		return nil, "", fmt.Errorf("%w: %q has no provider; write provider/model", llm.ErrUnknownModel, target)
	}
	id := provider
	if provider == "scripted" || provider == "replay" {
		id = target
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if model, ok := r.opened[id]; ok {
		return model, name, nil
	}
	model, err := r.open(provider, name)
	if err != nil {
		return nil, "", err
	}
	if r.opened == nil {
		r.opened = map[string]llm.Model{}
	}
	r.opened[id] = model
	return model, name, nil
}

// Check says whether a target can be called, as far as that shows without a
// call: its provider is known, its key is there, its script is right.
func (r *Resolver) Check(target string) error {
	_, _, err := r.Open(target)
	return err
}

func (r *Resolver) open(provider, name string) (llm.Model, error) {
	switch provider {
	case "scripted":
		return r.openScript(name)
	case "replay":
		if r.Replay == nil {
			return nil, fmt.Errorf("%w: %s/%s: there is no journal to replay a run from", llm.ErrUnknownModel, provider, name)
		}
		return r.Replay(name)
	}
	model, err := r.provider(provider)
	if err == nil && model == nil {
		err = fmt.Errorf("%w: %s/%s: there is no provider %q; there are %s, scripted and replay",
			llm.ErrUnknownModel, provider, name, provider, strings.Join(r.Providers(), ", "))
	}
	return model, err
}

func (r *Resolver) env(name string) string {
	if r.Getenv != nil {
		return r.Getenv(name)
	}
	return os.Getenv(name)
}

// Lookup returns what is known of a target: what the config says of it, else
// what the table does; see [Table.Lookup].
func (r *Resolver) Lookup(target string) (Info, bool) {
	info, known := r.tabled(target)
	override, given := r.Config.Models[target]
	if !given {
		return info, known
	}
	return override.apply(info, known), true
}

// Can says whether a model has an ability, and whether that is known at all. Of
// models that run here, and of those that neither the table nor the config
// lists, it is not. That the table does not say that a model answers by schema
// says nothing: for some providers it never does.
func (r *Resolver) Can(target, ability string) (can, known bool) {
	info, listed := r.Lookup(target)
	can = slices.Contains(info.Can, ability)
	switch override := r.Config.Models[target]; {
	case can || override.Can != nil:
		return can, true
	case !listed || local(target) || ability == CanSchema:
		return false, false
	}
	_, tabled := r.tabled(target)
	return false, tabled
}

func (r *Resolver) tabled(target string) (Info, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.table == nil {
		t, err := Known()
		if err != nil {
			return Info{}, false
		}
		r.table = &t
	}
	name := r.pricedAs(target)
	info, ok := r.table.Lookup(name)
	if ok {
		info.Can = withSchema(name, info.Can)
	}
	return info, ok
}

// withSchema adds that a model answers by schema where its wire knows so: the
// table says it of no model of Anthropic's.
func withSchema(name string, can []string) []string {
	model, ours := strings.CutPrefix(name, "anthropic/")
	if !ours || slices.Contains(can, CanSchema) || !anthropic.AnswersBySchema(model) {
		return can
	}
	return append(can[:len(can):len(can)], CanSchema)
}

// Price returns what a target costs, or nil when that is not known.
func (r *Resolver) Price(target string) *llm.Price {
	if info, ok := r.Lookup(target); ok && info.Priced() {
		return &info.Price
	}
	return nil
}

func providerOf(target string) string {
	provider, _, _ := strings.Cut(target, "/")
	return provider
}
