// Package models finds the model for a name like "provider/model": its wire, its key,
// and its price.
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

// ErrNoKey is wrapped if a model is known and its key is not set.
var ErrNoKey = errors.New("models: no key")

// Resolver opens models by name. It opens each model once and is safe for
// concurrent use. The zero value takes scripts from the working directory and
// keys from this process's environment.
type Resolver struct {
	// Dirs are the directories in which scripts are looked for, in order.
	Dirs []string
	// Getenv returns keys and endpoints; nil means os.Getenv.
	Getenv func(string) string
	// HTTP is the client for all providers; nil leaves it to each.
	HTTP *http.Client
	// Replay opens the model that answers from a recorded run; nil without a journal.
	Replay func(run string) (llm.Model, error)
	// Config is the owner's configuration.
	Config Config
	// Limiter, if set, keeps the requests of all providers within their rate limits.
	// The resolvers of a process share it.
	Limiter *transport.Limiter
	// Known returns the built-in table, for resolvers that share it; nil means [Known].
	Known func() (Table, error)

	mu sync.Mutex
	// opened holds the models of providers by the provider's name, and scripts by their
	// target: a wire serves every model of its provider.
	opened map[string]llm.Model
	table  *Table
}

// Open returns the model and the provider's name for it. The error wraps
// [llm.ErrUnknownModel] or [ErrNoKey], or describes an error in a script.
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

// Check returns why a target cannot be called, as far as that is known without a call:
// whether its provider is known, its key is set, and its script is valid.
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

// builtIn maps the prefixes that are not providers and call none.
var builtIn = map[string]func(*Resolver, string) (llm.Model, error){
	"scripted": (*Resolver).openScript,
	"replay":   (*Resolver).openReplay,
}

// BuiltIn reports whether models with that prefix call no provider: they answer from a
// script or a record.
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
