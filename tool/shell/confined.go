package shell

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/resolve"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/tool"
)

// confine runs a program in a box.
func confine(ctx context.Context, box *sandbox.Box, p process, grants []sandbox.Grant, out, errs *outlet) (ended, error) {
	got, stopped, err := spawnIn(ctx, box, p, grants, out, errs)
	end := ended{code: got.Code, signal: got.Signal, stopped: stopped, note: limitNote(got.Limit, box.Policy().Limits) + changeNote(got.Changed)}
	for _, r := range got.Reached {
		end.reached = append(end.reached, event.Reach{Host: r.Host, Port: int(r.Port), Denied: r.Denied, Count: r.Count})
	}
	for _, c := range got.Changed {
		end.changed = append(end.changed, event.Change{Path: inText(c.Path), Undone: c.Undone, Kept: inText(c.Kept)})
	}
	return end, err
}

// grants returns the paths that an approved call may write although the sandbox
// protects them: policy asks about every path outside the workspace and every protected
// one that a call names. In a read-only workspace a call need not have asked, so
// nothing is granted there.
func (o Options) grants(facts *event.Facts) []sandbox.Grant {
	if facts == nil || o.Sandbox == nil {
		return nil
	}
	var grants []sandbox.Grant
	for _, p := range facts.Paths {
		if !p.Write || p.Unknown || p.Alias || p.Pattern || p.Scratch || !p.Outside && o.Sandbox.Policy().Filesystem == sandbox.FilesystemReadOnly {
			continue
		}
		grants = append(grants, sandbox.Grant{Path: o.at(p), Tree: p.Tree, Repository: p.Repository})
	}
	return grants
}

// withProtection marks the paths that a command writes and that the sandbox must open
// for it although it keeps them read-only: the sandbox may have another owner than the
// rules that judge the call.
func (o Options) withProtection(facts event.Facts) event.Facts {
	if o.Sandbox == nil || o.Sandbox.Policy().Protected == nil {
		return facts
	}
	held, behind := o.Sandbox.Policy().Protected, o.behindLinks()
	for i, p := range facts.Paths {
		facts.Paths[i].Protected = p.Write && !p.Outside && !p.Unknown && !p.Alias && !p.Pattern &&
			(held.Protects(p.Path) || p.Tree && held.Below(p.Path) || slices.ContainsFunc(behind, func(name string) bool {
				return below(p.Path, name) || p.Tree && below(name, p.Path)
			}))
	}
	return facts
}

// withScratch marks the paths that a command writes in a temporary directory of the
// sandbox.
func (o Options) withScratch(facts event.Facts) event.Facts {
	if !o.Scratch {
		return facts
	}
	for i, p := range facts.Paths {
		facts.Paths[i].Scratch = p.Outside && p.Write && !p.Unknown && sandbox.InScratch(p.Path)
	}
	return facts
}

// behindLinks returns the targets of the protected names of the sandbox, which it
// protects as well.
func (o Options) behindLinks() []string {
	policy := o.Sandbox.Policy()
	ws, err := resolve.At(policy.Workspace)
	if err != nil {
		return nil
	}
	var names []string
	for _, name := range policy.Protected.Named() {
		if own := ws.Path(name); !own.Outside && !policy.Protected.Protects(own.Path) {
			names = append(names, own.Path)
		}
	}
	return names
}

func below(name, dir string) bool {
	return name == dir || dir == "." || strings.HasPrefix(name, dir+"/")
}

// at returns the absolute name of a path in the sandbox.
func (o Options) at(p event.PathUse) string {
	path := filepath.FromSlash(p.Path)
	if p.Outside {
		return path
	}
	return filepath.Join(o.Sandbox.Policy().Workspace, path)
}

// limitNote names the limit for which a command was killed.
func limitNote(limit string, l sandbox.Limits) string {
	switch limit {
	case sandbox.LimitMemory:
		return fmt.Sprintf("[killed by the sandbox: it used more than %d MiB of memory, with all that it started]\n", l.MemoryBytes>>20)
	case sandbox.LimitProcesses:
		return fmt.Sprintf("[killed by the sandbox: it started more than %d processes]\n", l.Processes)
	}
	return ""
}

// changeNote lists the protected paths that a command changed, and which of them are
// still changed.
func changeNote(changes []sandbox.Change) string {
	var undone, left []string
	for _, c := range changes {
		if c.Undone {
			undone = append(undone, inText(c.Path))
		} else {
			left = append(left, inText(c.Path))
		}
	}
	note := ""
	for _, of := range []struct {
		paths []string
		what  string
	}{{undone, "the change was undone"}, {left, "the change could not be undone"}} {
		if n := len(of.paths); n > 0 {
			note += fmt.Sprintf("[failed: the command changed what is protected, and %s: %s]\n", of.what, strings.Join(of.paths[:min(n, maxNamed)], ", ")+andMore(n-maxNamed))
		}
	}
	return note
}

// maxNamed bounds the paths in a note.
const maxNamed = 20

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// inText returns a path as valid text on one line, for the journal.
func inText(path string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(path, "\uFFFD"), "\n", "\uFFFD")
}

// withOtherNames adds the protected names of a file that a command writes, or passes to
// a program, under another name (hard links), because a change applies to all names.
// File tools do not need this, because they replace the file under one name. If the
// owner requires a question before a command reads a protected file, the other names of
// files that it reads count too.
func (o Options) withOtherNames(facts event.Facts) event.Facts {
	others := sandbox.NewOtherNames(o.Dir, o.Protected)
	for _, p := range slices.Clone(facts.Paths) {
		changes := p.Write || p.Given
		if !changes && !o.GateReads || p.Unknown || p.Outside || p.Alias || p.Pattern {
			continue
		}
		names, err := others.Of(p.Path, !changes && p.Tree)
		if err != nil {
			facts.Unclear = append(facts.Unclear, "whether "+p.Path+" is another name of something protected is not known")
		}
		for _, name := range names {
			use := event.PathUse{Path: name, Write: p.Write, Given: p.Given}
			if !slices.Contains(facts.Paths, use) {
				facts.Paths = append(facts.Paths, use)
			}
		}
	}
	return facts
}

// writing returns the facts of commands that write a file: of one that names it, and,
// if the sandbox leaves the file writable, of one that does not. What a program without
// a sandbox does is unknown, so policy asks about it whatever it writes.
func (o Options) writing(file string) []event.Facts {
	ws, err := resolve.At(o.Dir)
	if err != nil {
		return nil // check rejects every command
	}
	var calls []event.Facts
	for _, name := range ws.Names(file) {
		name.Write = true
		named := o.withProtection(event.Facts{Paths: []event.PathUse{name}, Risk: event.RiskWrite, Unsandboxed: !o.Inside})
		if o.Sandbox == nil || o.OnDemand || o.Sandbox.MayWrite(o.at(name), o.grants(&named)...) {
			calls = append(calls, named)
		}
		if o.Sandbox != nil && o.Sandbox.MayWrite(o.at(name)) {
			calls = append(calls, event.Facts{Risk: event.RiskUnknown, Unsandboxed: !o.Inside})
		}
	}
	return calls
}

// asJudged fails if the facts of a command differ from those by which it was judged.
func asJudged(judged *event.Facts, now event.Facts) error {
	switch {
	case moved(judged.Paths, now.Paths):
		return &tool.Error{Type: event.ErrorConflict,
			Message: "a path of the command leads to another file now than when the call was permitted; make the call again"}
	case lostReadOnly(judged.Commands, now.Commands):
		return &tool.Error{Type: event.ErrorConflict,
			Message: "a command that was known to change nothing when the call was permitted may do more now; make the call again"}
	}
	return nil
}

// moved reports whether a path of a command now leads to another file than when the
// call was judged. Files that match a wildcard may have been added or removed
// meanwhile, which does not count. A link with a new target counts, even if the old
// target is still among the paths.
func moved(judged, now []event.PathUse) bool {
	led := slices.ContainsFunc(judged, func(p event.PathUse) bool { return !slices.Contains(now, p) })
	return slices.ContainsFunc(now, func(p event.PathUse) bool {
		return !slices.Contains(judged, p) && (led || !p.Found)
	})
}

// lostReadOnly reports whether a command that was read-only when the call was judged is
// no longer read-only: a program with its name may have been added to the search path.
func lostReadOnly(judged, now []event.Command) bool {
	for i, c := range judged {
		if c.ReadOnly && (i >= len(now) || !now[i].ReadOnly) {
			return true
		}
	}
	return false
}
