package schema_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/suite"
	"github.com/pawlrun/pawl/internal/files/workflow"
)

// Examples copied from the documentation are valid files.
func TestTheFilesOfTheDocumentationAreValid(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	checked := 0
	for _, page := range append(pages, "../../../README.md") {
		if filepath.Base(page) == "config.md" {
			continue // the config file is not an agent; launch reads its example
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			file := m[1]
			if checked++; strings.Contains(file, "\nsteps:") {
				if _, err := workflow.Parse("example.yaml", []byte(file), spec.Options{}); err != nil {
					t.Errorf("%s: %v\n%s", page, err, file)
				}
				continue
			}
			if strings.Contains(file, "kind: Eval\n") {
				if _, err := suite.Parse(withFilesOf(t, file), []byte(file)); err != nil {
					t.Errorf("%s: %v\n%s", page, err, file)
				}
				continue
			}
			if !strings.Contains(file, "identity:") {
				file = "identity: {name: example}\n" + file
			}
			if _, err := spec.ParseAgent("example.yaml", []byte(file), spec.Options{}); err != nil {
				t.Errorf("%s: %v\n%s", page, err, file)
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d files were found", checked)
	}
}

// withFilesOf returns the path of a suite in a directory that has what the suite names.
func withFilesOf(t *testing.T, text string) string {
	dir := t.TempDir()
	for _, m := range regexp.MustCompile(`(?m)^[ -]*(agent|files): ([a-z/.-]+)$`).FindAllStringSubmatch(text, -1) {
		path := filepath.Join(dir, m[2])
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil && m[1] == "files" {
			err = os.Mkdir(path, 0o700)
		} else if err == nil {
			err = os.WriteFile(path, nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "suite.yaml")
}
