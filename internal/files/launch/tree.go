package launch

import (
	"sync"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
)

// tree is what the runs of a tree in one workspace share: the files of its agents,
// and what was prepared for each of them. An agent that is offered in several
// places, or started many times, is prepared once.
type tree struct {
	// files are the texts of the agent files as they were pinned, by their absolute
	// paths.
	files map[string]string

	agents, read   once[*spec.Agent]
	targets        once[[]target]
	secrets, below once[[]secret.Secret]
	tools          once[*tool.Set]
	unpriced       once[[]string]

	// builtin are the tools of [anyBuiltin], which nobody changes, and prices the table
	// of [models.Known].
	builtin func() []tool.Tool
	prices  func() (models.Table, error)
}

func newTree(files map[string]string) *tree {
	return &tree{files: files, builtin: anyBuiltin, prices: models.Known}
}

// pinned reports whether a file is one of the tree's.
func (t *tree) pinned(source string) bool {
	if t == nil {
		return false
	}
	_, there := t.files[source]
	return there
}

// once keeps what was made for each file. What could not be made is tried again.
type once[T any] struct {
	mu   sync.Mutex
	made map[string]T
}

// of returns what there is for a file, and makes it where there is nothing yet. A
// file of none of the tree's agents, whose source is empty, has nothing kept.
func (o *once[T]) of(source string, prepare func() (T, error)) (T, error) {
	if source == "" {
		return prepare()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if kept, there := o.made[source]; there {
		return kept, nil
	}
	fresh, err := prepare()
	if err != nil {
		return fresh, err
	}
	if o.made == nil {
		o.made = map[string]T{}
	}
	o.made[source] = fresh
	return fresh, nil
}
