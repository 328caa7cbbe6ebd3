// Package models finds the model behind a name like "provider/model".
package models

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// Resolver opens models by name. The zero value resolves script paths against
// the working directory.
type Resolver struct {
	// Dirs are where the path of a scripted model is looked for, in order.
	Dirs []string
}

// Open returns the model and the provider's own name of it.
func (r Resolver) Open(target string) (llm.Model, string, error) {
	provider, name, ok := strings.Cut(target, "/")
	if !ok || name == "" {
		return nil, "", fmt.Errorf("%w: %q has no provider; write provider/model", llm.ErrUnknownModel, target)
	}
	if provider != "scripted" {
		return nil, "", fmt.Errorf("%w: %q names no provider that this version knows", llm.ErrUnknownModel, target)
	}
	return r.openScript(name)
}

func (r Resolver) openScript(name string) (llm.Model, string, error) {
	for _, dir := range append(r.Dirs, "") {
		path := name
		if !filepath.IsAbs(name) {
			path = filepath.Join(dir, name)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		m, err := scripted.Parse(path, data)
		if err != nil {
			return nil, "", err
		}
		return m, name, nil
	}
	return nil, "", fmt.Errorf("%w: the script %s does not exist", llm.ErrUnknownModel, name)
}

// Price returns what a target costs, or nil when that is not known. A model
// that runs here costs nothing.
func (r Resolver) Price(target string) *llm.Price {
	if strings.HasPrefix(target, "scripted/") || strings.HasPrefix(target, "ollama/") {
		return &llm.Price{}
	}
	return nil
}
