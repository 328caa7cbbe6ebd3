package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/tool/shell"
)

// pageOf returns the address of a server's page for a browser of this machine.
func pageOf(scheme string, l net.Addr) string {
	address := l.String()
	if tcp, is := l.(*net.TCPAddr); is && tcp.IP.IsUnspecified() {
		address = fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return scheme + "://" + address + "/"
}

// openInBrowser opens an address in the browser. The shell in between exits at
// once, so that the command does not wait for the browser.
func openInBrowser(ctx context.Context, address string) error {
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("open the page yourself: there is no %s", name)
	}
	c := exec.CommandContext(ctx, "/bin/sh", "-c", `"$0" "$1" >/dev/null 2>&1 </dev/null &`, path, address)
	c.Env, c.SysProcAttr = browserEnvironment(os.Environ()), &syscall.SysProcAttr{Setsid: true}
	if err := c.Run(); err != nil {
		return fmt.Errorf("open the page yourself: %s: %w", name, err)
	}
	return nil
}

// browserEnvironment keeps the variables that commands of runs have, which are not
// secret, and those that a browser needs to find its screen.
func browserEnvironment(env []string) []string {
	screen := []string{"BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_CURRENT_DESKTOP", "XDG_SESSION_TYPE", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS"}
	out := shell.Environment(env)
	for _, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(screen, name) && !slices.Contains(out, entry) {
			out = append(out, entry)
		}
	}
	return out
}

// showPage serves the page of one run of this process, on a free port, until hide
// is called. Unlike 'pawl serve', it resumes no other run.
func (a *app) showPage(ctx context.Context, s *session, run string, o launch.Options) (hide func(), err error) {
	token := tokens.New()
	web, err := server.New(server.Options{Store: s.store, Engine: s.engine, Controller: s.controller, Agents: ".", Launch: o, User: whoAmI(), Token: token})
	if err != nil {
		return nil, err
	}
	l, err := server.Listen(ctx, "127.0.0.1:0", false)
	if err != nil {
		return nil, errors.Join(err, web.Close())
	}
	h := &http.Server{Handler: web.Handler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Serve(l) // it returns when the server is closed
	}()
	fmt.Fprintf(a.err, "page: %s#%s/runs/%s\n", pageOf("http", l.Addr()), token, run)
	return func() {
		// The page receives the end of the run before the server stops.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = h.Shutdown(ctx)
		_ = web.Close()
		_ = h.Close()
		<-done
	}, nil
}
