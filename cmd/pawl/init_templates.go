package main

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/launch/kinds"
)

//go:embed templates
var templateFiles embed.FS

// schemaFile is the schema that the first line of the file names, for editors. It
// stays with the file, also where nobody has a network.
func (t template) schemaFile() string { return "." + t.what() + ".schema.json" }

// template is one way to begin. Its files are in the directory of its name.
type template struct{ kinds.Template }

// what is the kind of file that the template is, in words.
func (t template) what() string { return strings.ToLower(t.Kind.Name) }

func templates() []template {
	var all []template
	for _, t := range kinds.Templates() {
		all = append(all, template{t})
	}
	return all
}

func templateNames() []string {
	var names []string
	for _, t := range templates() {
		names = append(names, t.Name)
	}
	return names
}

func templateNamed(name string) (template, error) {
	for _, t := range templates() {
		if t.Name == name {
			return t, nil
		}
	}
	return template{}, usagef("--template is %q; it must be one of %s", name, strings.Join(templateNames(), ", "))
}

// listed is a line for each template.
func listed() string {
	var b strings.Builder
	for _, t := range templates() {
		fmt.Fprintf(&b, "  %-10s %s\n", t.Name, t.About)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// newFile is a file to be written; its name is relative to the agent's directory.
type newFile struct{ name, text string }

// files are the template's files with a name and a model, the file to run last.
func (t template) files(name, model string) ([]newFile, error) {
	schema, err := t.Kind.Schema()
	if err != nil {
		return nil, err
	}
	chosen := strings.NewReplacer("name: NAME", "name: "+strconv.Quote(name), "model: MODEL", "model: "+strconv.Quote(model))
	files := []newFile{{t.schemaFile(), string(schema)}}
	root := path.Join("templates", t.Name)
	err = fs.WalkDir(templateFiles, root, func(file string, e fs.DirEntry, err error) error {
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
