package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/tool"
)

// explain prints what a file's policy would do with one call. The file and the call
// may come in either order, because the flag is readable before both.
func (a *app) explain(files []string, call string, o launch.Options, asJSON bool) error {
	f, call, err := fileAndCall("--explain", files, call)
	if err != nil {
		return err
	}
	e, err := f.Explain(call, o)
	switch {
	case err != nil:
		return a.cannotCall(f, err, asJSON)
	case asJSON:
		return a.printJSON(e)
	}
	_, err = io.WriteString(a.out, explanation(e))
	return err
}

// fileAndCall reads the file of a flag that takes a file and a call.
func fileAndCall(flag string, files []string, call string) (kinds.File, string, error) {
	if len(files) != 1 {
		return kinds.File{}, "", usagef("%s takes one file and one call", flag)
	}
	file := files[0]
	if isFile(call) && !isFile(file) {
		file, call = call, file
	}
	if err := textual("CALL", call); err != nil {
		return kinds.File{}, "", err
	}
	f, err := kinds.Read(file)
	if err != nil {
		return kinds.File{}, "", usagef("%v", err)
	}
	return f, call, nil
}

// cannotCall reports why a file or a call is wrong.
func (a *app) cannotCall(f kinds.File, err error, asJSON bool) error {
	if problems, ok := errors.AsType[decode.Errors](err); ok {
		return a.reportChecked([]checked{{File: f.Path, Errors: problems, Warnings: []decode.Problem{}}}, asJSON)
	}
	return usagef("%v", err)
}

// callProgram runs one call of a file's program, outside a run.
func (a *app) callProgram(ctx context.Context, files []string, call string, o launch.Options, asJSON bool) error {
	f, call, err := fileAndCall("--call", files, call)
	if err != nil {
		return err
	}
	r, err := f.Call(ctx, call, o)
	if refused, ok := errors.AsType[*tool.Error](err); ok {
		r.IsError, r.ErrorType, r.Output = true, refused.Type, tool.ErrorOutput(refused.Type, refused.Message, r.Output)
	} else if err != nil {
		return a.cannotCall(f, err, asJSON)
	}
	if asJSON {
		err = a.printJSON(struct {
			OK        bool            `json:"ok"`
			Output    string          `json:"output"`
			ErrorType event.ErrorType `json:"errorType,omitempty"`
			ExitCode  *int            `json:"exitCode,omitempty"`
		}{!r.IsError, r.Output, r.ErrorType, r.ExitCode})
	} else {
		err = a.printf("%s\n", harmless(strings.TrimSuffix(r.Output, "\n")))
	}
	if err == nil && r.IsError {
		err = withCode(exitFailed)
	}
	return err
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func explanation(e launch.Explanation) string {
	var b strings.Builder
	if p := e.Call.Problem; p != nil {
		fmt.Fprintf(&b, "fails     %s: %s\n", p.Type, oneLine(p.Message))
		return b.String()
	}
	for _, h := range e.Hooks {
		kind := "may block, ask or rewrite"
		if h.Observer {
			kind = "an observer"
		}
		fmt.Fprintf(&b, "hook      %s runs first: %s\n", oneLine(h.Name), kind)
	}
	fmt.Fprintf(&b, "%-9s by %s\n", e.Decision.Decision, e.Decision.Rule)
	if e.Decision.Reason != "" {
		fmt.Fprintf(&b, "because   %s\n", oneLine(e.Decision.Reason))
	}
	if e.Hidden != "" {
		fmt.Fprintf(&b, "hidden    from the model by %s\n", e.Hidden)
	}
	if e.Call.Facts != nil {
		writeFacts(&b, *e.Call.Facts)
	}
	if labels := labelNames(e.Call.Labels); labels != "" {
		fmt.Fprintf(&b, "labels    %s\n", labels)
	}
	for _, v := range e.Rules {
		fmt.Fprintf(&b, "rule      %s by %s\n", v.Decision, v.Rule)
	}
	if v := e.Tainted; v != nil {
		fmt.Fprintf(&b, "%-9s by %s, %s\n", v.Decision, v.Rule, v.Reason)
	}
	writeBoundary(&b, e.Sandbox)
	return b.String()
}

// writeBoundary says where the call would run; what runs in Pawl itself has no
// sandbox.
func writeBoundary(w *strings.Builder, b launch.Boundary) {
	if b.Programs {
		holds := b.Holds
		if b.Inside && holds.OnDemand {
			inside := *holds
			inside.OnDemand, holds = false, &inside
		}
		text := view.Boundary(event.RunStarted{Sandbox: string(b.Tier), Confinement: holds})
		fmt.Fprintf(w, "sandbox   %s\n", strings.TrimPrefix(text, "sandbox: "))
	}
	for _, what := range b.Closed {
		fmt.Fprintf(w, "closed    %s\n", oneLine(what))
	}
	if b.Refused != "" {
		fmt.Fprintf(w, "refused   %s\n", oneLine(b.Refused))
	}
}

func labelNames(l event.Labels) string {
	var names []string
	for _, label := range []struct {
		on   bool
		name string
	}{{l.Untrusted, "untrusted"}, {l.Private, "private"}, {l.Outgoing, "outgoing"}} {
		if label.on {
			names = append(names, label.name)
		}
	}
	return strings.Join(names, ", ")
}

func writeFacts(b *strings.Builder, f event.Facts) {
	fmt.Fprintf(b, "risk      %s\n", f.Risk)
	for _, p := range f.Paths {
		fmt.Fprintf(b, "path      %s%s\n", oneLine(p.Path), pathNotes(p))
	}
	for i := range f.Hosts {
		fmt.Fprintf(b, "host      %s\n", oneLine(f.HostPort(i)))
	}
	for _, c := range f.Commands {
		note := ""
		if c.ReadOnly {
			note = " (read-only)"
		}
		fmt.Fprintf(b, "command   %s%s\n", oneLine(strings.Join(c.Words, " ")), note)
	}
	for _, file := range f.Runs {
		fmt.Fprintf(b, "runs      %s (sha256 %.16s)\n", oneLine(file.Path), file.Digest)
	}
	if f.Redefined != nil {
		fmt.Fprintf(b, "changed   %s (sha256 %.16s)\n", oneLine(f.Redefined.Change), f.Redefined.Digest)
	}
	for _, why := range f.Unclear {
		fmt.Fprintf(b, "unclear   %s\n", oneLine(why))
	}
}

func pathNotes(p event.PathUse) string {
	var notes []string
	for _, n := range []struct {
		on   bool
		note string
	}{
		{p.Write, "written"}, {p.Tree, "with all below it"}, {p.Repository, "but the config and hooks of git"}, {p.Outside, "outside the workspace"},
		{p.Unknown, "computed when it runs"}, {p.Given, "given to a program"}, {p.Alias, "a name that leads there through a link"},
	} {
		if n.on {
			notes = append(notes, n.note)
		}
	}
	if len(notes) == 0 {
		return " (read)"
	}
	return " (" + strings.Join(notes, ", ") + ")"
}

// oneLine shows a text of a call's on a line of its own.
func oneLine(s string) string { return strings.ReplaceAll(harmless(s), "\n", " ") }
