package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/suite"
	"github.com/pawlrun/pawl/models"
)

// scaffold describes a first agent.
type scaffold struct {
	dir, name, model string
	template         kinds.Template
}

// withoutKey is the default model of a first agent: it answers from a file and
// needs no key.
const withoutKey = "scripted/answers.yaml"

func (a *app) initCommand() *cobra.Command {
	s := scaffold{}
	chosen := templateNames()[0]
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a first agent, workflow or goal that runs at once",
		Long: `Writes an agent file, its prompt, its schema for editors, and scripted answers with which it runs
at once and without an API key; a workflow with the agents of its steps; or a goal. Existing files are never overwritten. On a terminal it asks for the
name and the model, unless flags give them.

Templates:
` + templateLines(),
		Example: `  pawl init
  pawl init fixer --template fix-tests
  pawl init helper --name helper --model anthropic/claude-sonnet-4-5`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if s.template, err = templateNamed(chosen); err != nil {
				return err
			}
			s.dir = "."
			if len(args) > 0 {
				s.dir = args[0]
			}
			return a.init(c, s)
		},
	}
	c.Flags().StringVar(&s.name, "name", "", "the name of what is written (default: the directory's)")
	c.Flags().StringVar(&s.model, "model", "", "the model (default: "+withoutKey+", which needs no key)")
	c.Flags().StringVar(&chosen, "template", chosen, "what to begin with: "+strings.Join(templateNames(), ", "))
	return c
}

func (a *app) init(c *cobra.Command, s scaffold) error {
	config, err := a.config()
	if err != nil {
		return err
	}
	if err := s.free(); err != nil {
		return err
	}
	a.ask(c, &s)
	if err := s.check(config); err != nil {
		return err
	}
	files, err := filesOf(s.template, s.name, s.model)
	if err != nil {
		return err
	}
	if err := s.write(files); err != nil {
		return err
	}
	if c := check(s.path(s.template.File), launch.Options{Host: launch.Host{Config: config}}); !c.OK {
		return fmt.Errorf("what was written is wrong: %w", decode.Errors(c.Errors))
	}
	return a.introduce(s, files)
}

// ask reads what no flag sets, if a person is at the terminal.
func (a *app) ask(c *cobra.Command, s *scaffold) {
	here := screenOf(a.in, os.Getenv).terminal && screenOf(a.err, os.Getenv).terminal
	answers := bufio.NewReader(a.in)
	for _, q := range []struct {
		flag, what, otherwise string
		into                  *string
	}{
		{"name", "name of the " + what(s.template), s.defaultName(), &s.name},
		{"model", "model", withoutKey, &s.model},
	} {
		if c.Flags().Changed(q.flag) {
			continue
		}
		*q.into = q.otherwise
		if !here {
			continue
		}
		fmt.Fprintf(a.err, "%s [%s]: ", q.what, q.otherwise)
		line, _ := answers.ReadString('\n')
		if answer := strings.TrimSpace(line); answer != "" {
			*q.into = answer
		}
	}
}

var agentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// defaultName returns the directory's name if it is valid.
func (s scaffold) defaultName() string {
	if abs, err := filepath.Abs(s.dir); err == nil && agentName.MatchString(filepath.Base(abs)) {
		return filepath.Base(abs)
	}
	return "assistant"
}

func (s scaffold) path(name string) string { return filepath.Join(s.dir, name) }

// free rejects a directory in which a file would be overwritten.
func (s scaffold) free() error {
	files, err := filesOf(s.template, s.name, s.model)
	if err != nil {
		return err
	}
	for _, f := range slices.Backward(files) {
		if _, err := os.Lstat(s.path(f.name)); err == nil {
			return usagef("%s is there already and is not overwritten; name another directory", s.path(f.name))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return usagef("%w", err)
		}
	}
	return nil
}

func (s scaffold) check(config models.Config) error {
	if !agentName.MatchString(s.name) {
		return usagef("%q cannot be its name; use letters, digits, dots and dashes", s.name)
	}
	if err := textual("the model's name", s.model); err != nil {
		return err
	}
	if s.model == withoutKey {
		return nil
	}
	resolver := &models.Resolver{Config: config, Dirs: []string{s.dir}}
	if err := resolver.Check(s.model); err != nil && !errors.Is(err, models.ErrNoKey) {
		return usagef("the model cannot be used: %s; 'pawl models' lists some", control.Plain(err))
	}
	return nil
}

// write writes the files. If one fails, it removes those that it created.
func (s scaffold) write(files []newFile) (err error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return usagef("%w", err)
	}
	var made []string
	defer func() {
		if err != nil {
			for _, path := range made {
				_ = os.Remove(path)
			}
		}
	}()
	for _, f := range files {
		path := s.path(f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return usagef("%w", err)
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return usagef("%w", err)
		}
		made = append(made, path)
		_, err = file.WriteString(f.text)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// introduce prints the created files and what to do next.
func (a *app) introduce(s scaffold, files []newFile) error {
	file := s.path(s.template.File)
	verb := "run"
	if s.template.Kind.Name == suite.Kind {
		verb = "eval"
	}
	run := fmt.Sprintf("%s %s %s", a.invocation(), verb, shellWord(file))
	if s.template.Task != "" {
		run += fmt.Sprintf(" %q", s.template.Task)
	}
	if s.template.Workspace != "" {
		run += " --workspace " + shellWord(s.path(s.template.Workspace))
	}
	model := "For a real model set its key, such as ANTHROPIC_API_KEY, and add --model anthropic/claude-sonnet-4-5,\n" +
		"or put its name into each agent's file. 'pawl models' lists some."
	if s.model != withoutKey {
		run += " --model " + withoutKey
		model = "Without --model it calls " + onOneLine(s.model) + ", which needs its key unless it runs on this machine."
	}
	var beside []string
	for _, f := range files[:len(files)-1] {
		beside = append(beside, f.name)
	}
	return a.printf(`Wrote %s (the %s) and, beside it, %s.
Next:
  %s check %s
  %s
This needs no key: the answers come from answers.yaml. %s
`, onOneLine(file), what(s.template), strings.Join(beside, ", "), a.invocation(), shellWord(file), run, model)
}
