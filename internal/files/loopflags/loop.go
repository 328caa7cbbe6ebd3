// Package loopflags makes an agent file of the flags of a command line that repeats a
// task: a test, a pattern, a bound and the agent that does the work.
package loopflags

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// Loop is a refinement loop that a command line describes.
type Loop struct {
	// Test is a command and Pattern a regular expression that end the loop; both
	// are optional.
	Test, Pattern string
	// Max bounds the iterations; 0 leaves the bound to the file or the default.
	Max int
	// Agent is the file of the agent that does the work; empty means the built-in
	// agent.
	Agent string
	// Command is the program of another agent, with its arguments, that does the
	// work instead; empty means none.
	Command string
	// Keep writes the loop to [KeptFile], beside the agent's file or in the
	// directory of the flags.
	Keep bool
}

// defaultClass is the class of the config file that names the default model.
const defaultClass = "default"

// KeptFile is the name of the file that a kept loop is written to.
const KeptFile = "loop.yaml"

// builtinPrompt is the system prompt of the built-in agent.
const builtinPrompt = `You change the code in the current directory until the task is done.

Read the files that matter before you change them, and keep to how they are written. Make the smallest change that does the task, and never
weaken or delete a test to make it pass. Run the tests when you are done. End with a few sentences: what you changed, what the tests say
now, and what the next attempt should try if it is not done yet.
`

// Launch prepares a run of the loop and pins the loop as the text of an agent file.
func (l Loop) Launch(input string, o launch.Options) (event.RunStarted, perform.Env, error) {
	fail := func(err error) (event.RunStarted, perform.Env, error) { return event.RunStarted{}, perform.Env{}, err }
	a, source, err := l.agent(o)
	if err != nil {
		return fail(err)
	}
	if err := l.apply(a); err != nil {
		return fail(err)
	}
	if err := l.programs(a, o); err != nil {
		return fail(err)
	}
	if err := a.Validate(o.Checks()); err != nil {
		return fail(err)
	}
	text, err := a.Text()
	if err != nil {
		return fail(err)
	}
	if l.Keep { // before the run reads its workspace
		a.File, source = KeptFile, spec.Absolute(filepath.Join(a.Dir, KeptFile))
		if err := keep(source, text); err != nil {
			return fail(err)
		}
	}
	started, env, err := launch.Prepare(a, source, text, input, o)
	if err != nil && l.Keep {
		err = errors.Join(err, os.Remove(source))
	}
	return started, env, err
}

// keep writes a file that does not exist yet.
func keep(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("launch: keep the loop: %w", err)
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("launch: keep the loop: %w", err)
	}
	return nil
}

// agent returns the agent that does the work, and its file.
func (l Loop) agent(o launch.Options) (a *spec.Agent, source string, err error) {
	switch {
	case l.Agent != "" && l.Command != "":
		return nil, "", errors.New("launch: an agent and a command are given, and one of them does the work; leave one out")
	case l.Command != "":
		argv, err := words("--command", l.Command)
		return &spec.Agent{
			APIVersion: "pawl/v1", Kind: "Agent", Identity: spec.Identity{Name: "loop"}, Dir: o.Dir,
			Loop: &spec.Loop{Runner: &spec.Runner{Command: argv}},
		}, "", err
	case l.Agent == "":
		a, err = coder(o)
		return a, "", err
	}
	a, err = spec.ReadAgent(l.Agent, o.Checks())
	return a, spec.Absolute(l.Agent), err
}

// coder returns the built-in coding agent. It lists its tools, so that nothing
// inside the workspace needs approval.
func coder(o launch.Options) (*spec.Agent, error) {
	model := o.Config.Classes[defaultClass]
	if cmp.Or(o.Model, model) == "" {
		return nil, errors.New("launch: no model: give --model provider/model, or set classes." + defaultClass + " in the config file")
	}
	names := spec.Names{}
	for _, t := range launch.BuiltinTools() {
		if strings.HasPrefix(t.Name, "fs.") || t.Name == machine.CommandTool {
			names = append(names, t.Name)
		}
	}
	return &spec.Agent{
		APIVersion: "pawl/v1", Kind: "Agent", Identity: spec.Identity{Name: "loop"}, Dir: o.Dir,
		ModelPolicy: spec.ModelPolicy{Primary: spec.Model{Model: cmp.Or(model, o.Model)}},
		Prompt:      spec.Prompt{System: builtinPrompt},
		Tools:       spec.Tools{Allow: names, Permissions: &spec.Permissions{Network: "none"}},
	}, nil
}

// apply makes the agent the body of the loop. Conditions of the command line
// replace those of the file. A loop with conditions that never met one fails.
func (l Loop) apply(a *spec.Agent) error {
	given, err := l.conditions()
	if err != nil {
		return err
	}
	if a.Loop == nil {
		a.Loop = &spec.Loop{}
	}
	a.Loop.Enabled = true
	if len(given) > 0 {
		a.Loop.Criteria, a.Loop.StopWhen, a.LoopSettings.StopWhen = nil, given, nil
	}
	if l.Max != 0 {
		a.Loop.MaxIterations = &l.Max
	}
	if ends := a.Loop.Criteria; ends != nil && ends.Type != "max_iterations" || len(a.Loop.StopWhen)+len(a.LoopSettings.StopWhen) > 0 {
		a.Loop.OnLimit = cmp.Or(a.Loop.OnLimit, "stopped")
	}
	return nil
}

// conditions returns the conditions of the command line, in their order.
func (l Loop) conditions() (all []spec.RefineStop, err error) {
	if l.Test != "" {
		argv, err := words("--until-test", l.Test)
		if err != nil {
			return nil, err
		}
		all = append(all, spec.RefineStop{Command: &spec.StopCommand{Argv: argv}})
	}
	if l.Pattern != "" {
		if _, err := regexp.Compile("(?i)" + l.Pattern); err != nil {
			return nil, fmt.Errorf("launch: the pattern that is to match: %w", err)
		}
		all = append(all, spec.RefineStop{Regex: l.Pattern})
	}
	return all, nil
}

// shellSyntax matches characters that a shell interprets, and a variable that is set for
// the command. In a regular expression or a pattern the characters may be literal.
var shellSyntax = regexp.MustCompile("[|&;<>\"'`]+|\\$[A-Za-z_{(]|^[ \t]*[A-Za-z_][A-Za-z_0-9]*=")

// inDoubleQuotes escapes what a shell interprets within double quotes.
var inDoubleQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")

// scripted matches a command line that runs a shell: sh -c '…', which the error for
// shell syntax recommends.
var scripted = regexp.MustCompile(`^\s*(/bin/sh|/bin/bash|sh|bash)\s+(-[a-z]*c)\s+'([^']*(?:'\\''[^']*)*)'\s*$`)

// words splits a command without a shell. A line that needs a shell is an
// error that names the shell command to use.
func words(flag, line string) ([]string, error) {
	if m := scripted.FindStringSubmatch(line); m != nil {
		return []string{m[1], m[2], strings.ReplaceAll(m[3], `'\''`, "'")}, nil
	}
	argv := strings.Fields(line)
	if len(argv) == 0 {
		return nil, errors.New("launch: a command has no words")
	}
	if word := shellSyntax.FindString(line); word != "" {
		quoted := "sh -c '" + strings.ReplaceAll(strings.TrimSpace(line), "'", `'\''`) + "'"
		return nil, fmt.Errorf("launch: %s is split at spaces and runs without a shell, and only a shell reads its %s; write %s \"%s\"", flag, strings.TrimSpace(word), flag, inDoubleQuotes.Replace(quoted))
	}
	return argv, nil
}

// programs returns an error if a program of the command line does not exist.
func (l Loop) programs(a *spec.Agent, o launch.Options) error {
	host := shell.Options{Dir: o.Workspace, Env: shell.Environment(os.Environ())}
	find := func(flag string, argv []string) error {
		if _, err := host.Program(tool.Invocation{Argv: argv}); err != nil {
			return fmt.Errorf("launch: %s: %w", flag, err)
		}
		return nil
	}
	for _, c := range a.Loop.StopWhen {
		if l.Test != "" && c.Command != nil {
			if err := find("--until-test", c.Command.Argv); err != nil {
				return err
			}
		}
	}
	if l.Command != "" {
		return find("--command", a.Loop.Runner.Command)
	}
	return nil
}
