package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// exitRefused is the exit code of a program that refuses a call.
const exitRefused = 2

// ForCommand returns the tool for a program. It runs like the commands of shell.exec:
// in the same sandbox, with the same environment, judged by the same facts. Its effect
// is unknown, so it runs alone.
func ForCommand(c tool.Command, o Options) tool.Tool {
	o = o.withDefaults()
	o.Env = append(slices.Clip(o.Env), c.Env...)
	effect := c.Effect
	if effect == "" {
		effect = event.EffectAtMostOnce
	}
	p := program{o, c, line(tool.Invocation{Argv: c.Argv})}
	return tool.Tool{
		Name: c.Name, Description: c.Description, Schema: c.Schema, Effect: effect, Risk: c.Risk, Sandboxed: true, Timeout: c.Timeout,
		Access: func(json.RawMessage) []event.Access { return []event.Access{{Key: "*", Write: true}} },
		Check:  func(json.RawMessage) error { return o.here() },
		Facts:  func(json.RawMessage) event.Facts { return p.judgedBy() },
		Labels: c.Labels, LabelsFor: p.labelsFor(), Writing: o.writing, Run: p.run,
		Describe: func(args json.RawMessage) string { return c.Name + " " + string(args) },
	}
}

// program is a program that is a tool. line is its argv as a command line.
type program struct {
	Options
	command tool.Command
	line    string
}

func (p program) labelsFor() func(json.RawMessage, *event.Facts) event.Labels {
	if p.command.Labels != nil {
		return nil
	}
	return p.labels
}

// judgedBy returns the facts of every call. The words of the command are the owner's,
// so the files that they name are not judged.
func (p program) judgedBy() event.Facts {
	facts := p.facts(p.line)
	facts.Paths = slices.DeleteFunc(facts.Paths, func(use event.PathUse) bool { return use.Given })
	return facts
}

func (p program) run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if c.Facts != nil {
		if err := asJudged(c.Facts, p.judgedBy()); err != nil {
			return tool.Result{}, err
		}
	}
	end, err := p.execute(ctx, tool.Invocation{
		Argv: p.command.Argv, Env: []string{"PAWL_CALL_ID=" + c.ID, "PAWL_IDEMPOTENCY_KEY=" + c.Key}, Stdin: c.Args,
		Facts: c.Facts, Sandbox: c.Sandbox, Apart: true,
	})
	if err != nil {
		return tool.Result{}, err
	}
	r := tool.Result{Reached: end.reached, Changed: end.changed, Untrusted: end.fetched()}
	r.Output, r.Truncated = end.out.text("", c.Redact)
	shown, overwritten := tool.Screen(r.Output)
	if shown != r.Output {
		r.Raw, r.Output, r.Overwritten = r.Output, shown, overwritten
	}
	if end.stopped {
		return r, ctx.Err()
	}
	code := end.exitCode()
	r.ExitCode = &code
	if code == 0 && len(end.changed) == 0 {
		return r, nil
	}
	r.IsError, r.ErrorType = true, p.failure(end)
	stderr, _ := end.errs.text("", c.Redact)
	stderr, _ = tool.Screen(stderr)
	if r.ErrorType != event.ErrorDenied {
		stderr = withLine(stderr, p.closedNote(end, r.Output+"\n"+stderr, c.Facts, p.boxed(c.Sandbox)))
	}
	r.Output = tool.ErrorOutput(r.ErrorType, p.why(end, stderr), r.Output)
	return r, nil
}

func (p program) failure(end ended) event.ErrorType {
	switch {
	case len(end.changed) > 0:
		return event.ErrorProtected
	case end.signal == 0 && end.code == exitRefused:
		return event.ErrorDenied
	}
	return event.ErrorTool
}

// why returns the message of a failed call.
func (p program) why(end ended, stderr string) string {
	var how string
	switch {
	case end.signal != 0:
		how = fmt.Sprintf("%s was ended by a signal: %s", p.command.Name, end.signal)
	case end.code == exitRefused:
		how = p.command.Name + " refused the call"
	default:
		how = fmt.Sprintf("%s failed with exit code %d", p.command.Name, end.code)
	}
	if note := strings.TrimSpace(end.note); note != "" {
		how += " " + note
	}
	if stderr = strings.TrimSpace(stderr); stderr != "" {
		how += ": " + stderr
	}
	return how
}
