package shell

import (
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/host/secret"
)

// process is a program with its directory, environment and input, ready to start.
type process struct {
	argv []string
	dir  string
	env  []string
	// input is its stdin, nil for none.
	input []byte
}

// spawn runs a program in a separate process group, without a box, to its end or until
// ctx ends. Both outlets may be the same.
func spawn(ctx context.Context, p process, stdout, stderr *outlet) (ended, error) {
	// The kernel sends Pdeathsig when the thread that started the child ends, so this
	// thread must live as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	g, input, err := startGated(&exec.Cmd{Dir: p.dir, Env: p.env, Stdout: stdout.w, Stderr: stderr.w}, p)
	outs := slices.Compact([]*outlet{stdout, stderr})
	for _, o := range outs {
		o.start()
	}
	if err != nil {
		return ended{}, err
	}
	feed(input, p.input)
	forget := context.AfterFunc(ctx, g.stop)
	g.awaitLeader()
	for _, o := range outs {
		o.settle()
	}
	forget()
	state, stopped, err := g.end()
	for _, o := range outs {
		o.finish(drainGrace)
	}
	end := endOf(state)
	end.stopped = stopped
	return end, err
}

// spawnIn is [spawn] in a box. All processes that the program leaves behind are killed,
// wherever they went.
func spawnIn(ctx context.Context, box *sandbox.Box, p process, grants []sandbox.Grant, out, errs *outlet) (end sandbox.End, stopped bool, err error) {
	c := sandbox.Command{Args: p.argv, Dir: p.dir, Env: p.env, Output: out.w, Grants: grants}
	outs := []*outlet{out}
	if errs != out {
		c.Errors, outs = errs.w, append(outs, errs)
	}
	if p.input != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return sandbox.End{}, false, err
		}
		defer r.Close()
		defer w.Close()
		c.Input = r
		feed(w, p.input)
	}
	started, err := box.Start(c)
	for _, o := range outs {
		o.start()
	}
	if err != nil {
		return sandbox.End{}, false, err
	}
	stopped = await(ctx, started)
	for _, o := range outs {
		o.settle()
	}
	end, err = started.Wait()
	// Without a sandbox a command may kill its supervisor, and the processes that it
	// left behind then keep the other end open.
	for _, o := range outs {
		o.finish(termGrace)
	}
	return end, stopped, err
}

// await waits for the command, and stops it if ctx ends first.
func await(ctx context.Context, p *sandbox.Process) (stopped bool) {
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

// feed writes a program's input, which the program need not read.
func feed(to io.WriteCloser, input []byte) {
	if input == nil {
		_ = to.Close()
		return
	}
	go func() {
		_, _ = to.Write(input)
		_ = to.Close()
	}()
}

// outlet reads one output of a program.
type outlet struct {
	r, w   *os.File
	into   io.Writer
	copied chan struct{}
	// grace is how long processes that the program left behind may continue the output;
	// whole reports that none did.
	grace time.Duration
	whole bool
}

func newOutlet(into io.Writer, grace time.Duration) (*outlet, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &outlet{r: r, w: w, into: into, grace: grace}, nil
}

// start reads until no process holds the other end.
func (o *outlet) start() {
	o.w.Close()
	o.copied = make(chan struct{})
	go func() {
		defer close(o.copied)
		_, _ = io.Copy(o.into, o.r)
	}()
}

func (o *outlet) settle() { o.whole = wait(o.copied, o.grace) }

// finish waits for the rest of the output, and closes the pipe even if a process
// outside the group still holds it.
func (o *outlet) finish(grace time.Duration) {
	if !wait(o.copied, grace) {
		o.r.Close()
		<-o.copied
	}
}

func (o *outlet) close() {
	o.w.Close()
	o.r.Close()
}

// wait waits for done, at most d, and reports whether it was closed.
func wait(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// allowed lists the variables that commands may see.
var allowed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR",
	"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "GOSUMDB", "GONOSUMDB", "GOPRIVATE",
	"CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NODE_PATH", "NVM_DIR", "VIRTUAL_ENV", "PYTHONPATH",
	"CI", "NO_COLOR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

// set is added to every command's environment: a program that opens a pager or asks for
// a password would block forever.
var set = []string{"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}

// userInAddress matches an address with a user, and so possibly a password.
var userInAddress = regexp.MustCompile(`://[^/?#\s]*@`)

// Environment returns the variables of env that a command may see: an allow-list and
// the locale, without names that look like secrets and addresses with a user.
func Environment(env []string) []string {
	out := slices.Clone(set)
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		wanted := slices.Contains(allowed, name) || strings.HasPrefix(name, "LC_")
		if ok && wanted && !secret.LikelyName(name) && !namesUser(name, value) {
			out = append(out, kv)
		}
	}
	return out
}

// namesUser reports whether a variable's value contains an address with a user. The
// address of a proxy needs no scheme.
func namesUser(name, value string) bool {
	return userInAddress.MatchString(value) || strings.HasSuffix(strings.ToUpper(name), "_PROXY") && strings.Contains(value, "@")
}

// variable returns the value of a variable for the commands.
func (o Options) variable(name string) string {
	for _, kv := range slices.Backward(o.Env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}
