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

	mu     sync.Mutex
	opened map[string]opened
	table  *Table
}

type opened struct {
	model llm.Model
	name  string
}

// Open returns the model and the provider's own name of it. The error wraps
// [llm.ErrUnknownModel] or [ErrNoKey], or says
// what is wrong with a script.
func (r *Resolver) Open(target string) (llm.Model, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, ok := r.opened[target]; ok {
		return o.model, o.name, nil
	}
	model, name, err := r.open(target)
	if err != nil {
		return nil, "", err
	}
	if r.opened == nil {
		r.opened = map[string]opened{}
	}
	r.opened[target] = opened{model, name}
	return model, name, nil
}

// Check says whether a target can be called, as far as that shows without a
// call: its provider is known, its key is there, its script is right.
func (r *Resolver) Check(target string) error {
	_, _, err := r.Open(target)
	return err
}

func (r *Resolver) open(target string) (llm.Model, string, error) {
	provider, name, ok := strings.Cut(target, "/")
	if !ok || name == "" {
		return nil, "", fmt.Errorf("%w: %q has no provider; write provider/model", llm.ErrUnknownModel, target)
	}
	switch provider {
	case "scripted":
		model, err := r.openScript(name)
		return model, name, err
	case "openai-chat", "google", "ollama", "replay":
		return nil, "", fmt.Errorf("%w: %s: the provider %s is not built yet", llm.ErrUnknownModel, target, provider)
	}
	return nil, "", fmt.Errorf("%w: %q names no provider that this version knows", llm.ErrUnknownModel, target)
}

func (r *Resolver) env(name string) string {
	if r.Getenv != nil {
		return r.Getenv(name)
	}
	return os.Getenv(name)
}

// Lookup returns what is known of a target; see [Table.Lookup].
func (r *Resolver) Lookup(target string) (Info, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.table == nil {
		t, err := Known()
		if err != nil {
			return Info{}, false
		}
		r.table = &t
	}
	return r.table.Lookup(target)
}

// Price returns what a target costs, or nil when that is not known.
func (r *Resolver) Price(target string) *llm.Price {
	if info, ok := r.Lookup(target); ok {
		return &info.Price
	}
	return nil
}
