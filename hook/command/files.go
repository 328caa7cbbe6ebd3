package command

import (
	"os"
	"path/filepath"
	"strings"
)

// Files returns the files that the command names, because its effect depends on them.
// Those of a command line, including one that a word passes to a shell, are guessed
// from its words. If $PATH contains directories of the workspace, the list includes the
// programs that would be found there, whether or not they exist yet.
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

// named returns the words of the command, and those of the command lines in it.
func (c Command) named() []string {
	named := c.plain()
	for _, line := range c.lines() {
		named = append(named, c.splitWords(line)...)
	}
	return named
}

// plain returns the words of the command itself.
func (c Command) plain() []string {
	if c.Line != "" {
		return nil
	}
	return c.words()
}

// lines returns the command lines that a shell may read: the hook's own, or words such
// as the one after "sh -c". It is unknown which programs read one, so every word that
// looks like one counts.
func (c Command) lines() []string {
	if c.Line != "" {
		return []string{c.Line}
	}
	var lines []string
	for _, w := range c.Words {
		if strings.ContainsAny(w, " \t\n;|&<>()`$\"'") {
			lines = append(lines, w)
		}
	}
	return lines
}

// splitWords returns the words of a command line, as far as they can be split without a
// shell.
func (c Command) splitWords(line string) []string {
	line = strings.NewReplacer("$PAWL_AGENT_DIR", c.FileDir, "${PAWL_AGENT_DIR}", c.FileDir).Replace(line)
	return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&<>()`\"'", r) })
}

// found returns the places in the workspace where a program's name is, or could be,
// found.
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

// search returns the directories in which the command finds its programs.
func (c Command) search() []string {
	var search []string
	for _, kv := range c.environment() {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = filepath.SplitList(value)
		}
	}
	return search
}

// inWorkspace returns a name as the program, which runs there, resolves it.
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

// resolved returns a directory with its links resolved, as far as it exists.
func resolved(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}
