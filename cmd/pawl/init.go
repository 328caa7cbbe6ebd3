package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/models"
)

// scaffold is what a first agent is made of.
type scaffold struct {
	dir, name, model string
}

// withoutKey is the model that a first agent has when nobody names one: it
// answers from a file and needs no key.
const withoutKey = "scripted/answers.yaml"

func (a *app) initCommand() *cobra.Command {
	s := scaffold{}
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a first agent that runs at once",
		Long: `Writes an agent file, its prompt, and scripted answers with which it runs at once and without a
key. What is there already is never overwritten. On a terminal the name and the model are asked
for; elsewhere, or with the flags, nothing is.`,
		Example: "  pawl init\n  pawl init helper --name helper --model anthropic/claude-sonnet-4-5",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s.dir = "."
			if len(args) > 0 {
				s.dir = args[0]
			}
			return a.init(c, s)
		},
	}
	c.Flags().StringVar(&s.name, "name", "", "the agent's name (default: the directory's)")
	c.Flags().StringVar(&s.model, "model", "", "the agent's model (default: "+withoutKey+", which needs no key)")
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
	if err := s.write(); err != nil {
		return err
	}
	if _, err := launch.Check(s.path("agent.yaml"), launch.Options{Config: config}); err != nil {
		return fmt.Errorf("what was written is wrong: %w", err)
	}
	return a.introduce(s)
}

// ask asks for what no flag says, where somebody can answer.
func (a *app) ask(c *cobra.Command, s *scaffold) {
	here := screenOf(a.in, os.Getenv).terminal && screenOf(a.err, os.Getenv).terminal
	answers := bufio.NewReader(a.in)
	for _, q := range []struct {
		flag, what, otherwise string
		into                  *string
	}{
		{"name", "name of the agent", s.defaultName(), &s.name},
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

// defaultName is the directory's name where that can be one.
func (s scaffold) defaultName() string {
	if abs, err := filepath.Abs(s.dir); err == nil && agentName.MatchString(filepath.Base(abs)) {
		return filepath.Base(abs)
	}
	return "assistant"
}

func (s scaffold) path(name string) string { return filepath.Join(s.dir, name) }

// free refuses a directory in which something would be overwritten.
func (s scaffold) free() error {
	for _, name := range []string{"agent.yaml", "prompt.md", "answers.yaml"} {
		if _, err := os.Lstat(s.path(name)); err == nil {
			return usagef("%s is there already and is not overwritten; name another directory", s.path(name))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return usagef("%w", err)
		}
	}
	return nil
}

func (s scaffold) check(config models.Config) error {
	if !agentName.MatchString(s.name) {
		return usagef("%q cannot be the agent's name; use letters, digits, dots and dashes", s.name)
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

// write writes the files, and takes back those that it made when one of them
// cannot be written.
func (s scaffold) write() (err error) {
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
	for _, f := range []struct{ name, text string }{
		{"prompt.md", firstPrompt},
		{"answers.yaml", firstAnswers},
		{"agent.yaml", fmt.Sprintf(firstAgent, strconv.Quote(s.name), strconv.Quote(s.model))},
	} {
		file, err := os.OpenFile(s.path(f.name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return usagef("%w", err)
		}
		made = append(made, s.path(f.name))
		_, err = file.WriteString(f.text)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// introduce says what was made and what to do next.
func (a *app) introduce(s scaffold) error {
	agent := s.path("agent.yaml")
	run := "pawl run " + shellWord(agent) + ` "What is in this directory?"`
	if s.model != withoutKey {
		run += " --model " + withoutKey
	}
	return a.printf(`Wrote %s (the agent), %s (its instructions) and %s (answers that need no key).
Next:
  pawl check %s
  %s
`, onOneLine(agent), onOneLine(s.path("prompt.md")), onOneLine(s.path("answers.yaml")), shellWord(agent), run)
}
