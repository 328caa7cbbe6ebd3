// Package models finds the model behind a name like "provider/model": which
// wire it speaks, with which key, and what it costs.
package models

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/llm"
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
	// Known gives what the table has that this version was built with, for resolvers
	// that share it; nil means [Known].
	Known func() (Table, error)

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
		return nil, "", fmt.Errorf("%w: %q is not provider/model", llm.ErrUnknownModel, target)
	}
	id := provider
	if BuiltIn(provider) {
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
	if open := builtIn[provider]; open != nil {
		return open(r, name)
	}
	model, err := r.provider(provider)
	if err == nil && model == nil {
		err = fmt.Errorf("%w: %s/%s: there is no provider %q; there are %s, scripted and replay",
			llm.ErrUnknownModel, provider, name, provider, strings.Join(r.providerNames(), ", "))
	}
	return model, err
}

// builtIn are what stands in the place of a provider and calls none.
var builtIn = map[string]func(*Resolver, string) (llm.Model, error){
	"scripted": (*Resolver).openScript,
	"replay":   (*Resolver).openReplay,
}

// BuiltIn reports whether models of that name call no provider: they answer from
// a script or from a record.
func BuiltIn(provider string) bool { return builtIn[provider] != nil }

func (r *Resolver) openReplay(run string) (llm.Model, error) {
	if r.Replay == nil {
		return nil, fmt.Errorf("%w: replay/%s: there is no journal to replay a run from", llm.ErrUnknownModel, run)
	}
	return r.Replay(run)
}

func (r *Resolver) env(name string) string {
	if r.Getenv != nil {
		return r.Getenv(name)
	}
	return os.Getenv(name)
}

func providerOf(target string) string {
	provider, _, _ := strings.Cut(target, "/")
	return provider
}
