package cli

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/schema"
	"github.com/pawlrun/pawl/internal/files/suite"
)

//go:embed templates
var templateFiles embed.FS

// what returns the kind of file of a template in words.
func what(t kinds.Template) string { return strings.ToLower(t.Kind.Name) }

// templates returns the templates of all kinds of files, and that of an evaluation, which
// no run has as its file.
func templates() []kinds.Template {
	return append(kinds.Templates(), kinds.Template{
		Template: launch.Template{Name: "eval", About: "judges the runs of an agent on cases, with a table of what passed", File: "suite.yaml"},
		Kind:     launch.Kind{Name: suite.Kind},
	})
}

func templateNames() []string {
	var names []string
	for _, t := range templates() {
		names = append(names, t.Name)
	}
	return names
}

func templateNamed(name string) (kinds.Template, error) {
	for _, t := range templates() {
		if t.Name == name {
			return t, nil
		}
	}
	return kinds.Template{}, usagef("--template is %q; it must be one of %s", name, strings.Join(templateNames(), ", "))
}

// templateLines returns a line for each template.
func templateLines() string {
	var b strings.Builder
	for _, t := range templates() {
		fmt.Fprintf(&b, "  %-10s %s\n", t.Name, t.About)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// newFile is a file to write; its name is relative to the agent's directory.
type newFile struct{ name, text string }

// filesOf returns a template's files with a name and a model; the file to run is
// the last. The first is the schema that the file's first line names for editors;
// it is copied so that it is available without a network.
func filesOf(t kinds.Template, name, model string) ([]newFile, error) {
	chosen := strings.NewReplacer("name: NAME", "name: "+strconv.Quote(name), "model: MODEL", "model: "+strconv.Quote(model))
	var files []newFile
	if t.Kind.Name != suite.Kind {
		schema, err := schema.Of(what(t))
		if err != nil {
			return nil, err
		}
		files = append(files, newFile{"." + what(t) + ".schema.json", string(schema)})
	}
	root := path.Join("templates", t.Name)
	err := fs.WalkDir(templateFiles, root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := templateFiles.ReadFile(file)
		files = append(files, newFile{strings.TrimPrefix(file, root+"/"), chosen.Replace(string(text))})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the template %s: %w", t.Name, err)
	}
	own := slices.IndexFunc(files, func(f newFile) bool { return f.name == t.File })
	last := files[own]
	return append(slices.Delete(files, own, own+1), last), nil
}
