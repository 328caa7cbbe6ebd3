package command

import (
	"os"
	"path/filepath"
	"strings"
)

// Files are the files that the command names: what it does depends on them.
// Those of a command line are guessed from its words. Where $PATH has
// directories of the workspace, the programs are named that would be found
// there, whether they are there yet or not.
func (c Command) Files() []string {
	search := c.search()
	var files []string
	for _, w := range c.named() {
		if file := c.inWorkspace(w); regular(file) {
			files = append(files, file)
		}
		if !strings.ContainsAny(w, "/$") && strings.Trim(w, ".") != "" && !strings.HasPrefix(w, "-") {
			files = append(files, c.found(w, search)...)
		}
	}
	return files
}

// named are the words of the command, those of a command line as far as they
// can be told apart without a shell.
func (c Command) named() []string {
	if c.Line == "" {
		return c.words()
	}
	apart := strings.NewReplacer("$PAWL_AGENT_DIR", c.FileDir, "${PAWL_AGENT_DIR}", c.FileDir, `"`, " ", "'", " ", ";", " ", "|", " ", "&", " ")
	return strings.Fields(apart.Replace(c.Line))
}

// found are the places in the workspace where a program's name leads to, or
// would if something were put there.
func (c Command) found(program string, search []string) []string {
	root := resolved(c.Workspace)
	var files []string
	for _, dir := range search {
		dir = c.inWorkspace(dir)
		file := filepath.Join(dir, program)
		if rel, err := filepath.Rel(root, resolved(dir)); err == nil && filepath.IsLocal(rel) {
			files = append(files, file)
		}
		if regular(file) {
			break
		}
	}
	return files
}

// search are the directories in which the command finds its programs.
func (c Command) search() []string {
	var search []string
	for _, kv := range c.environment() {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = filepath.SplitList(value)
		}
	}
	return search
}

// inWorkspace is a name as the program reads it, which runs there.
func (c Command) inWorkspace(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.Workspace, name)
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// resolved is a directory behind its links, as far as it is there.
func resolved(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}
