package workflow

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/attach"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/llm"
)

// maxContext bounds a context file and a file with a text.
const maxContext = 10 << 20

// readIncludes reads the files that steps include, in loops too, because their agents
// must be known before any step is checked.
func (f *workflowFile) readIncludes(path string, s *WorkflowStep) {
	if s.Include != "" {
		f.include(path, s.Include)
	}
	if s.Loop == nil {
		return
	}
	for i := range s.Loop.Steps {
		f.readIncludes(fmt.Sprintf("%s.loop.steps[%d]", path, i), &s.Loop.Steps[i])
	}
}

// include reads the file that a step includes.
func (f *workflowFile) include(path, name string) {
	at := path + ".include"
	file, registered := f.w.Includes[name]
	if registered {
		name = file
	}
	name = f.path(name)
	abs := spec.Absolute(name)
	const expected = "a name of includes, or the path of a workflow file, relative to this one"
	switch {
	case f.refusedFile(at, "an include"):
		return
	case slices.Contains(f.open, abs):
		f.fail(at, "another file", "%s includes itself%s", filepath.Base(f.open[slices.Index(f.open, abs)]), f.through(abs))
		return
	case len(f.open) > maxIncludeDepth:
		f.fail(at, fmt.Sprintf("files that include each other at most %d deep", maxIncludeDepth), "is %d deep", len(f.open))
		return
	}
	data, err := decode.ReadFile(name)
	if err != nil {
		f.fail(at, expected, "cannot be read: %v", err)
		return
	}
	included := f.parse(name, data)
	f.included[path] = included
	f.merge(at, included)
}

// through names the files on the way from a file back to itself.
func (f *workflowFile) through(abs string) string {
	way := f.open[slices.Index(f.open, abs)+1:]
	if len(way) == 0 {
		return ""
	}
	names := make([]string, len(way))
	for i, name := range way {
		names[i] = filepath.Base(name)
	}
	return ", by way of " + strings.Join(names, ", ")
}

// merge adds the agents of an included file.
func (f *workflowFile) merge(at string, included *workflowFile) {
	taken := map[string]*workflowFile{}
	for name := range included.w.Agents {
		taken[name] = included
	}
	maps.Copy(taken, included.imported)
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		owner, here := taken[name], f.imported[name]
		if f.w.Agents[name] != nil {
			here = f
		}
		if here != nil && spec.Absolute(here.File) != spec.Absolute(owner.File) {
			f.fail(at, "agents with names of their own", "the agent %s is defined in %s and in %s", name, here.File, owner.File)
			continue
		}
		f.imported[name] = owner
	}
}

// path resolves a path of the file.
func (f *workflowFile) path(name string) string { return spec.PathIn(f.w.Dir, name) }

// refusedFile reports a file that a sent text names.
func (f *workflowFile) refusedFile(at, what string) bool {
	if f.options.Sent {
		f.fail(at, "a file without it", "%s names a file of this machine, which a file that was sent may not", what)
	}
	return f.options.Sent
}

// text returns a text of the file, or the content of the file after @.
func (f *workflowFile) text(at, text string) string {
	name, reference := strings.CutPrefix(text, "@")
	if !reference || f.refusedFile(at, "@"+name) {
		return text
	}
	data, err := decode.ReadUpTo(f.path(name), maxContext)
	switch {
	case err != nil:
		f.fail(at, "a text, or @ and the path of a file, relative to this one", "cannot be read: %v", err)
	case !utf8.Valid(data):
		f.fail(at, "a text in UTF-8", "%s is not UTF-8", name)
	}
	return strings.TrimPrefix(string(data), "\ufeff")
}

// context reads the context files of a step.
func (f *workflowFile) context(at string, names []string) []plan.File {
	var files []plan.File
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", at, i)
		if f.refusedFile(at, name) {
			continue
		}
		data, err := decode.ReadUpTo(f.path(name), maxContext)
		var media llm.Media
		if err == nil && len(data) > 0 {
			media, err = attach.Data(name, data)
		}
		switch {
		case err != nil:
			f.fail(at, "the path of a file, relative to this one", "cannot be read: %v", err)
		case len(data) == 0, strings.HasPrefix(media.MediaType, "text/"):
			files = append(files, plan.File{Path: name, Text: string(media.Data)})
		default:
			files = append(files, plan.File{Path: name, Media: &media})
		}
	}
	return files
}
