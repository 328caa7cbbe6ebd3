package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/resolve"
	"github.com/pawlrun/pawl/sandbox"
)

// confine runs a command in a box to its end, or until ctx ends, which stopped
// says. What the command leaves behind is killed with it, wherever it
// went.
func (o Options) confine(ctx context.Context, box *sandbox.Box, command string, grants []sandbox.Grant, out io.Writer) (end ended, stopped bool, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return ended{}, false, err
	}
	defer r.Close()
	p, err := box.Start(sandbox.Command{
		Args: []string{"/bin/sh", "-c", command}, Dir: o.Dir, Env: o.environment(), Output: w, Grants: grants,
	})
	w.Close()
	if err != nil {
		return ended{}, false, err
	}
	copied := drain(out, r)
	stopped = o.await(ctx, p)
	wait(copied, drainGrace)
	got, err := p.Wait()
	if !wait(copied, termGrace) {
		// Without a sandbox a command may kill its supervisor, and what it left
		// then keeps the other end.
		r.Close()
		<-copied
	}
	end = ended{code: got.Code, signal: got.Signal, note: limitNote(got.Limit, box.Policy().Limits)}
	for _, r := range got.Reached {
		end.reached = append(end.reached, event.Reach{Host: r.Host, Port: int(r.Port), Denied: r.Denied, Count: r.Count})
	}
	return end, stopped, err
}

// await waits for the command, and stops it when ctx ends first.
func (o Options) await(ctx context.Context, p *sandbox.Process) (stopped bool) {
	select {
	case <-p.Ended():
		return false
	case <-ctx.Done():
	}
	p.Terminate()
	if !wait(p.Ended(), termGrace) {
		p.Kill()
		<-p.Ended()
	}
	return true
}

// grants are what was let through although the sandbox would not have it
// written: policy asks about every path outside the workspace and every
// protected one that a call names, so a call that runs may write those. In a
// workspace that is read-only it need not have asked, so there nothing is.
func (o Options) grants(facts *event.Facts) []sandbox.Grant {
	if facts == nil {
		return nil
	}
	var grants []sandbox.Grant
	for _, p := range facts.Paths {
		if !p.Write || p.Unknown || p.Alias || !p.Outside && o.Sandbox.Policy().Filesystem == sandbox.FilesystemReadOnly {
			continue
		}
		grants = append(grants, sandbox.Grant{Path: o.at(p), Tree: p.Tree})
	}
	return grants
}

// withProtection says which of the paths that a command writes are opened for it
// although the sandbox holds them read-only: the owner of the box may be another
// than the one whose rules judge the call.
func (o Options) withProtection(facts event.Facts) event.Facts {
	if o.Sandbox == nil || o.Sandbox.Policy().Protected == nil {
		return facts
	}
	held, behind := o.Sandbox.Policy().Protected, o.behindLinks()
	for i, p := range facts.Paths {
		facts.Paths[i].Protected = p.Write && !p.Outside && !p.Unknown && !p.Alias &&
			(held.Protects(p.Path) || p.Tree && held.Below(p.Path) || slices.ContainsFunc(behind, func(name string) bool {
				return below(p.Path, name) || p.Tree && below(name, p.Path)
			}))
	}
	return facts
}

// behindLinks are what the protected names of the sandbox lead to, which it holds
// as well.
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

// at is the absolute name of a path in the sandbox.
func (o Options) at(p event.PathUse) string {
	path := filepath.FromSlash(p.Path)
	if p.Outside {
		return path
	}
	return filepath.Join(o.Sandbox.Policy().Workspace, path)
}

// limitNote says which limit a command was killed for.
func limitNote(limit string, l sandbox.Limits) string {
	switch limit {
	case sandbox.LimitMemory:
		return fmt.Sprintf("[killed by the sandbox: it used more than %d MiB of memory, with all that it started]\n", l.MemoryBytes>>20)
	case sandbox.LimitProcesses:
		return fmt.Sprintf("[killed by the sandbox: it started more than %d processes]\n", l.Processes)
	}
	return ""
}
