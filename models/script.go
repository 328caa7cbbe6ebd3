package models

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// Script returns the file with a target's answers; false if it is not a script, or does
// not exist.
func (r *Resolver) Script(target string) (path string, ok bool) {
	name, scripted := strings.CutPrefix(target, "scripted/")
	if !scripted {
		return "", false
	}
	for _, path := range r.scriptPaths(name) {
		if _, err := os.Stat(path); err == nil {
			return path, true
		}
	}
	return "", false
}

// scriptPaths returns the places of a script, in order.
func (r *Resolver) scriptPaths(name string) []string {
	if filepath.IsAbs(name) {
		return []string{name}
	}
	var places []string
	for _, dir := range append(r.Dirs[:len(r.Dirs):len(r.Dirs)], "") {
		places = append(places, filepath.Join(dir, name))
	}
	return places
}

func (r *Resolver) openScript(name string) (llm.Model, error) {
	for _, path := range r.scriptPaths(name) {
		data, err := readScript(path)
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

// maxScript bounds a script, so that a wrong path does not fill the memory. A
// long recorded run has a few megabytes.
const maxScript = 64 << 20

func readScript(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if len(data) > maxScript {
		return nil, fmt.Errorf("%s has more than %d MiB", path, maxScript>>20)
	}
	return data, err
}
