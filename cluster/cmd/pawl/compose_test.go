package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// Each command of pawl in compose.yaml has flags that this program knows.
func TestComposeFileUsesFlagsThatExist(t *testing.T) {
	text, err := os.ReadFile("../../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Command     yaml.Node
			Environment map[string]string
			Volumes     []string
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	parses := func(args ...string) ([]byte, error) {
		return project{dir: t.TempDir()}.command(append(args, "--help")...).CombinedOutput()
	}
	commands := 0
	for name, service := range file.Services {
		lines := []string{service.Command.Value}
		for _, word := range service.Command.Content {
			lines = append(lines, word.Value)
		}
		for _, command := range regexp.MustCompile(`\n|&&`).Split(strings.Join(lines, "\n"), -1) {
			args := strings.Fields(command)
			if len(args) == 0 || args[0] != "pawl" {
				continue
			}
			commands++
			// A container that replaces another is the same host, with its clones.
			kept := slices.ContainsFunc(service.Volumes, func(v string) bool {
				volume, dir, _ := strings.Cut(v, ":")
				_, named := file.Volumes[volume]
				return named && dir == service.Environment["XDG_DATA_HOME"]
			})
			if !kept || service.Environment["PAWL_HOST"] == "" {
				t.Errorf("%s: %v with the volumes %v", name, service.Environment, service.Volumes)
			}
			if out, err := parses(args[1:]...); err != nil {
				t.Errorf("%s: %q: %v: %s", name, command, err, out)
			}
		}
	}
	if out, err := parses("serve", "--no-such-flag"); err == nil || commands < 5 {
		t.Errorf("%d commands were found, and an unknown flag is accepted: %v: %s", commands, err, out)
	}
}
