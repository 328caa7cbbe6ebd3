package models

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

func (r *Resolver) openScript(name string) (llm.Model, error) {
	for _, dir := range append(r.Dirs[:len(r.Dirs):len(r.Dirs)], "") {
		path := name
		if !filepath.IsAbs(name) {
			path = filepath.Join(dir, name)
		}
		data, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("models: read script: %w", err)
		}
		model, err := scripted.Parse(path, data)
		if err != nil {
			return nil, fmt.Errorf("models: %w", err)
		}
		return model, nil
	}
	return nil, fmt.Errorf("%w: the script %s does not exist", llm.ErrUnknownModel, name)
}
